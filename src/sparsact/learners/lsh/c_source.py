"""A compact model as one file of C99: the functions of ``model.c``, and arrays."""

from __future__ import annotations

from importlib.resources import files
from math import prod
from string import Template
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.lsh.compiled import CompiledModel, CompiledTable, Directory
from sparsact.learners.lsh.inputs import InputRules
from sparsact.learners.lsh.prediction_limits import Ends
from sparsact.saving.c_file import C_TYPES, array, head

AT_ONCE: Final = 8  # tags that ``model.c`` looks at


def c_source(model: CompiledModel[Directory], ends: Ends, name: str, inputs: InputRules) -> str:
    """Source of a function ``void name(const double *x, double *y)`` with the values of the model.

    With categories, ``double name_code(const char *text, size_t length)`` gives the number of one that is a text.

    Numbers are written bit for bit, and added in the order in which the model's kernels add them: without contraction
    to fused operations the two give the same bits, up to the rounding of a sum over tables.
    """
    tables = model.named_tables("table_")
    weight = np.result_type(*(table.storage.weights.dtype for table in tables.values()))
    number = model.tables[-1].storage.coefficients.dtype
    parts = [_table(key, table, number, weight) for key, table in tables.items()]
    linear = {"level": model.level, "centre": model.centre, "trend": model.trend}
    limits = {"low": ends.low, "high": ends.high, "start": ends.start}
    linear |= {key: values for key, values in limits.items() if values is not None}
    parts += [array(key, values) for key, values in linear.items()]
    if model.trees is not None:
        parts += [array(f"tree_{key}", values) for key, values in model.trees.arrays().items()]
    if model.columns is not None:
        parts.append(array("columns", model.columns.astype(np.uint32)))
    parts += _input_arrays(inputs)
    categories = _template("categories.c").substitute(name=name) if inputs.categories else ""
    note = f", a category that is a text what {name}_code gives, another itself" if inputs.categories else ""
    note = f"A missing value is NaN{note}; a row with an infinity has the value NaN."
    sizes = {"n_columns": inputs.n_columns, "n_targets": len(model.level)}
    return _template("model.c").substitute(
        sizes,
        head=head("A model of hash tables", name, note=note, **sizes),
        name=name,
        categories=categories,
        most_columns=len(model.centre),
        most_local=max(table.hashes.local.shape[1] for table in tables.values()),
        most_codes=max(_n_codes(table) for table in tables.values()),
        most_tables=max(len(table.hashes.seeds) for table in tables.values()),
        number=C_TYPES[number.name],
        weight=C_TYPES[weight.name],
        data="".join(parts),
        body="".join(f"    {line}\n" for line in [*_encoding(inputs), *_body(model, ends)]),
    )


_TREES: Final = """\
for (size_t j = 0; j < TARGETS; ++j) from_trees[j] = tree_base[j];
for (size_t t = 0; t < TREES; ++t) {
    int32_t node = tree_roots[t];
    while (node >= 0) node = row[tree_columns[node]] <= tree_thresholds[node] ? tree_left[node] : tree_right[node];
    from_trees[tree_targets[t]] += tree_leaves[-1 - node];
}
for (size_t j = 0; j < TARGETS; ++j) y[j] += from_trees[j];
"""


def _template(name: str) -> Template:
    return Template(files(__package__).joinpath(name).read_text(encoding="utf-8"))


def _input_arrays(inputs: InputRules) -> list[str]:
    """Arrays that encode rows."""
    if inputs.is_plain:
        return [array("fills", inputs.fills)]
    parts = []  # of arrays that are used: compilers warn of others
    if len(inputs.numeric):
        parts += [array("fills", inputs.fills), array("numeric", inputs.numeric.astype(np.uint32))]
    if len(inputs.gaps):
        parts.append(array("gaps", inputs.gaps.astype(np.uint32)))
    for place, one in enumerate(inputs.categories):
        parts += [array(f"known_{place}", one.known), array(f"category_{place}", one.values)]
    return parts


def _encoding(inputs: InputRules) -> list[str]:
    """Statements that make a row of numbers alone of ``given``; see :meth:`InputRules.encode`."""
    d = inputs.n_columns
    lines = [f"double row[{len(inputs.sources)}];"]
    if inputs.is_plain:
        return [*lines, f"for (size_t i = 0; i < {d}; ++i) row[i] = given[i] != given[i] ? fills[i] : given[i];"]
    n_numbers, n_gaps = len(inputs.numeric), len(inputs.gaps)
    lines += [f"int lacking[{d}];", "double *next = row;"]
    lines += [f"size_t place_{place};" for place in range(len(inputs.categories))]
    lines.append(f"for (size_t i = 0; i < {d}; ++i) lacking[i] = given[i] != given[i];")
    for place, one in enumerate(inputs.categories):
        n = len(one.known)
        known = f"place_of(known_{place}, {n}, given[{one.column}])"
        lines.append(f"place_{place} = lacking[{one.column}] ? {n + 1} : {known};")
    if n_numbers:
        number = "lacking[numeric[i]] ? fills[numeric[i]] : given[numeric[i]]"
        lines.append(f"for (size_t i = 0; i < {n_numbers}; ++i) *next++ = {number};")
    if n_gaps:
        lines.append(f"for (size_t i = 0; i < {n_gaps}; ++i) *next++ = lacking[gaps[i]];")
    for place, one in enumerate(inputs.categories):
        width = one.values.shape[1]
        lines.append(f"for (size_t i = 0; i < {width}; ++i) *next++ = category_{place}[place_{place} * {width} + i];")
    return lines


def _body(model: CompiledModel[Directory], ends: Ends) -> list[str]:
    """Statements of the function."""
    stages, last = [f"add(&table_{place}, x, y);" for place in range(len(model.tables) - 1)], len(model.tables) - 1
    lines = ["double from[MOST_COLUMNS]" + (";" if model.trees is None else ", from_trees[TARGETS];")]
    if model.columns is None:
        lines += ["const double *x = row;"]
    else:
        lines += ["double x[MOST_COLUMNS];", "for (size_t i = 0; i < MOST_COLUMNS; ++i) x[i] = row[columns[i]];"]
    lines += [
        "for (size_t i = 0; i < MOST_COLUMNS; ++i) from[i] = x[i] - centre[i];",
        "project(from, MOST_COLUMNS, trend, TARGETS, TARGETS, y);",
        "for (size_t j = 0; j < TARGETS; ++j) y[j] = level[j] + y[j];",
        *stages,
        f"if (!add(&table_{last}, x, y)) {{",
        *([] if model.backup is None else ["    add(&backup, x, y);"]),
        *([] if ends.start is None else ["    for (size_t j = 0; j < TARGETS; ++j) y[j] = start[j];"]),
        *([] if ends.start is None else [f"    {line}" for line in stages]),
        "}",
    ]
    if model.trees is not None:
        lines += _TREES.replace("TREES", str(len(model.trees.roots))).splitlines()
    if ends.low is not None:
        below, above = ("low[j]", "high[j]") if ends.beyond == "clip" else ("NAN", "NAN")
        limited = f"y[j] = y[j] < low[j] ? {below} : y[j] > high[j] ? {above} : y[j];"
        lines.append(f"for (size_t j = 0; j < TARGETS; ++j) {limited}")
    lines.append("for (size_t i = 0; i < COLUMNS; ++i)")
    lines.append("    for (size_t j = 0; isinf(given[i]) && j < TARGETS; ++j) y[j] = NAN;")
    return lines


def _n_codes(table: CompiledTable[Directory]) -> int:
    return len(table.hashes.offsets) // len(table.hashes.seeds)


def _table(name: str, table: CompiledTable[Directory], number: np.dtype[Any], weight: np.dtype[Any]) -> str:
    """A ``struct tables`` of this name and its arrays."""
    hashes, buckets = table.hashes, table.storage
    arrays: dict[str, NDArray[Any]] = {
        "centre": hashes.centre,
        "projections": hashes.local,
        "directions": hashes.directions,
        "offsets": hashes.offsets,
        "seeds": hashes.seeds,
        "starts": buckets.starts,
        "tags": np.concatenate([buckets.tags, np.zeros(AT_ONCE, np.uint32)]),
        "polynomials": buckets.coefficients.astype(number),
        "weights": buckets.weights.astype(weight),
    }
    own = {key: f"{name}_{key}" for key in arrays}
    own["polynomials"] += ".numbers"
    if weight.kind == "f":
        own["weights"] += ".numbers"
    bits = (len(buckets.starts) - 1).bit_length() - 1
    numbers = [
        *(len(hashes.centre), hashes.local.shape[1], _n_codes(table), len(hashes.seeds)),
        *(table.degree, int(hashes.grid), int(hashes.signs), int(table.combine == "first"), bits),
    ]
    fields = [*numbers, *list(own.values())[:7], prod(buckets.coefficients.shape[1:]), *list(own.values())[7:]]
    bitwise = {"polynomials", "weights"}
    text = "".join(array(f"{name}_{key}", values, bitwise=key in bitwise) for key, values in arrays.items())
    return f"{text}static const struct tables {name} = {{{', '.join(map(str, fields))}}};\n\n"
