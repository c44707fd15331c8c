"""``sparsact export``: the model of a table as a program without dependencies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sparsact.cli.io import check_apart, check_writable, read_model
from sparsact.cli.options import SHARED, argument, option, with_help

if TYPE_CHECKING:
    from sparsact.datasets.columns import Column, Encoding


@with_help(
    model=SHARED["learned_model"],
    program=argument("PROGRAM", "File to write: .c (C99) or .onnx."),
    name=option("NAME", "Name of the C function. Default: the file's name, then _predict."),
)
def export(model: Path, program: Path, name: str | None = None) -> None:
    """Write a fitted model as standalone C99 code or as an ONNX graph.

    The comment at the top of the C file, and the description of the graph, say which column or value each input x[i]
    stands for, and what each output y[j] is. Polynomials and hash tables can be exported; Gaussian processes and
    ensembles on up to 16 bits.

    Example: sparsact export model.sparsact model.c
    """
    from sparsact.learners.programs import Exportable

    check_writable(program, (".c", ".onnx"))
    check_apart({"PROGRAM": program}, [model])
    learned, encoding = read_model(model)
    if not isinstance(learned, Exportable):
        raise ValueError(
            f"{model.name} holds a {type(learned).__name__}, which cannot be exported; fit the table with --model lsh "
            "or --model low-degree, or distil the model in Python: sparsact.distil(model, X, y)."
        )
    learned.export(program, name=name, description="\n".join([*_inputs(encoding), *_outputs(encoding, learned)]))
    typer.echo(f"wrote {program}: it takes {len(encoding.feature_names)} numbers a row; its comment explains them.")


def _inputs(encoding: Encoding) -> Iterator[str]:
    """A line for each number of a row."""
    place = 0
    for column in encoding.columns:
        for line in _meanings(column, ("1", "-1") if encoding.real else ("0", "1")):
            yield f"x[{place}]: {line}"
            place += 1


def _meanings(column: Column, symbols: tuple[str, str]) -> list[str]:
    """What each number of a column is, where ``symbols`` stand for bits 0 and 1."""
    from sparsact.datasets.columns import Bit, MissingBit, OneHot, Real
    from sparsact.datasets.sites import BitString

    zero, one = symbols
    if isinstance(column, Real):
        number = "its number"
        if (column.centre, column.scale) != (0.0, 1.0):
            number = f"(its number - {column.centre!r}) / {column.scale!r}"
        missing = None if column.fill is None else (column.fill - column.centre) / column.scale
        return [f"column {column.name!r}: {number}" + ("" if missing is None else f"; {missing:.17g} if missing")]
    if isinstance(column, MissingBit):
        return [f"column {column.name!r}: {one} where it is missing, else {zero}"]
    if isinstance(column, Bit):
        return [f"column {column.name!r}: {one} for {column.values[-1]!r}, {zero} for {column.values[0]!r}"]
    if isinstance(column, OneHot):
        return [f"column {column.name!r}: {one} for {value!r}, else {zero}" for value in column.values]
    digit = " = 1" if isinstance(column, BitString) else ""
    return [f"{one} where {feature!r}{digit}, else {zero}" for feature in column.features]


def _outputs(encoding: Encoding, model: object) -> list[str]:
    """A line for each answer."""
    from sparsact.datasets.columns import Classes, LogReal
    from sparsact.learners import LSHClassifier

    first = encoding.targets[0]
    if not isinstance(first, Classes):
        logarithm = {True: "the natural logarithm of ", False: ""}
        named = [f"{logarithm[isinstance(one, LogReal)]}column {one.name!r}" for one in encoding.targets]
        return [f"y[{i}]: {line}" for i, line in enumerate(named)]
    names = [str(name) for name in first.named]
    if len(names) == 2 and not isinstance(model, LSHClassifier):
        return [f"y[0]: column {first.name!r} is {names[1]!r} where it is above 0, else {names[0]!r}"]
    return [f"y[{i}]: column {first.name!r} is {name!r} where it is the largest" for i, name in enumerate(names)]
