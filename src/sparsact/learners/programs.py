"""Fitted functions of bits or numbers as programs without dependencies: polynomials, networks, tables of all values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import Subset
from sparsact.learners.points import Encoding
from sparsact.saving.c_file import array, head, write_program
from sparsact.saving.onnx_file import ELEMENTS, OnnxGraph

Array = NDArray[np.float64]

MOST_PRODUCTS: Final = 1 << 17  # of columns, prefixes of other products included
MOST_BITS: Final = 16  # in a table of all values
OPSET: Final = 18
_IN_C: Final = Template("""\
$head
$data
void $name(const double *given, double *y)
{
    double x[$n], nothing = 0.0;
    for (size_t i = 0; i < $n; ++i) {
        x[i] = $read;
        nothing += 0.0 * given[i] + 0.0 * x[i]; /* NaN for a row that the model refuses */
    }
$body}
""")
_POLYNOMIAL: Final = """\
    double products[DEPTH + 1] = {1.0};
    for (size_t j = 0; j < T; ++j) y[j] = intercept[j] + nothing;
    for (size_t i = 0; i < N; ++i) { /* a product is the last one with one column fewer, times its last column */
        products[sizes[i]] = products[sizes[i] - 1] * x[columns[i]];
        for (size_t j = 0; j < T; ++j) y[j] += coefficients[i * T + j] * products[sizes[i]];
    }
"""
_TABLE: Final = """\
    size_t row = 0;
    for (size_t i = 0; i < COLUMNS; ++i) row |= (size_t)(x[i] < 0.0) << i;
    y[0] = values[row] + nothing;
"""
_LAYERS: Final = """\
    double units[WIDTH], next[WIDTH];
    const double *w = weights, *b = biases;
    for (size_t i = 0; i < sizes[0]; ++i) units[i] = x[i] - centre[i];
    for (size_t l = 1; l < LAYERS; ++l) {
        for (size_t j = 0; j < sizes[l]; ++j) {
            next[j] = *b++;
            for (size_t i = 0; i < sizes[l - 1]; ++i) next[j] += *w++ * units[i];
        }
        for (size_t j = 0; j < sizes[l]; ++j) units[j] = next[j] > 0.0 || l + 1 == LAYERS ? next[j] : 0.0;
    }
    y[0] = (units[0] < limits[0] ? limits[0] : units[0] > limits[1] ? limits[1] : units[0]) + nothing;
"""


class ProgramSource(NamedTuple):
    """A function of a row: its source in C99, given a name, and its graph of ONNX."""

    in_c: Callable[[str], str]
    in_onnx: Callable[[], bytes]


@runtime_checkable
class Exportable(Protocol):
    """A model that writes itself as a program."""

    def export(self, path: str | Path, *, name: str | None = None, description: str = "") -> None:
        """Write C99 to a path that ends with ``.c``, a graph of ONNX to ``.onnx``."""


class ExportedFunction(ABC):
    """Base of models that are a polynomial, a small network, or a function of few bits."""

    def export(self, path: str | Path, *, name: str | None = None, description: str = "") -> None:
        """Write the model as a program that does not need this library: ``.c`` or ``.onnx``.

        Parameters
        ----------
        path : path-like
            ``model.c``: C99 without dependencies, a function ``void model_predict(const double *x, double *y)`` of one
            row, which several threads may call. ``model.onnx``: a graph of opset 18 from ``X`` (rows, columns) to ``Y``
            (rows, targets), both float64.
        name : str, optional
            Name of the C function; default: the file's name and ``_predict``.
        description : str, default=""
            The first comment of the C file; the description of the graph.

        Raises
        ------
        ValueError
            If a polynomial has more than 131,072 products of columns, or a table of values more than 16 columns.

        Notes
        -----
        A polynomial takes one multiplication for each product of columns, a network one for each weight; others are
        tables of their values at all rows of bits. Values equal ``predict`` up to rounding, or ``decision_function`` of
        a classifier. Rows are bits, signs or numbers as in ``fit``; one that ``predict`` refuses has the value NaN.
        """
        write_program(path, name, description, *self._program())

    @abstractmethod
    def _program(self) -> ProgramSource:
        """The fitted model by one of the functions below."""


@dataclass(frozen=True, eq=False)
class RowSymbols:
    """Encoding of a model's rows, which its programs read as signs: bit 1 is -1.

    Attributes
    ----------
    n : int
        Columns.
    encoding : {"bits", "signs"} or None
        None: numbers.
    cuts : ndarray of shape (n,), optional
        Numbers above them are bits 1.
    """

    n: int
    encoding: Encoding | None
    cuts: Array | None = None

    @property
    def _symbols(self) -> tuple[float, float]:
        """What stands for the signs +1 and -1."""
        return (0.0, 1.0) if self.encoding == "bits" else (1.0, -1.0)

    @property
    def note(self) -> str:
        """What the rows hold."""
        if self.encoding is None:
            return "A row with a missing value or an infinity has the value NaN."
        plus, minus = self._symbols
        return f"Numbers are {plus:g} or {minus:g}; a row with another has the value NaN."

    def in_c(self, what: str, name: str, arrays: dict[str, NDArray[np.generic]], body: str, n_targets: int) -> str:
        """Source of a program whose body finds y from the signs x."""
        plus, minus = self._symbols
        read = f"given[i] == {plus} ? 1.0 : given[i] == {minus} ? -1.0 : NAN"
        if self.encoding is None:
            read = "given[i]" if self.cuts is None else "given[i] > cuts[i] ? -1.0 : 1.0"
        held = arrays if self.cuts is None else {"cuts": self.cuts, **arrays}
        return _IN_C.substitute(
            head=head(what, name, self.n, n_targets, self.note),
            data="".join(array(key, values) for key, values in held.items()),
            name=name,
            n=self.n,
            read=read,
            body=body,
        )

    def in_onnx(self, graph: OnnxGraph) -> tuple[str, str]:
        """Signs (rows, n) of the graph's rows ``X``; and (rows, 1), 0 or, for rows that ``predict`` refuses, NaN."""
        add, constant, signs = graph.add, graph.constant, "X"
        if self.encoding is not None:
            plus, minus = (add("Equal", "X", constant(symbol)) for symbol in self._symbols)
            signs = add("Where", minus, constant(-1.0), add("Where", plus, constant(1.0), constant(np.nan)))
        elif self.cuts is not None:
            signs = add("Where", add("Greater", "X", constant(self.cuts)), constant(-1.0), constant(1.0))
        strange = add("Mul", add("Concat", "X", signs, axis=1), constant(0.0))
        return signs, add("ReduceSum", strange, constant([1]), keepdims=1)


def program_of_polynomials(inputs: RowSymbols, subsets: list[Subset], coefficients: Array, level: Any) -> ProgramSource:
    """Polynomials with coefficients (D,) or (T, D) of subsets of columns, and constants, a float or (T,).

    A ValueError is raised if the products are too many.
    """
    level = np.atleast_1d(level)
    known = {subset: own for subset, own in zip(subsets, np.atleast_2d(coefficients).T, strict=True) if own.any()}
    products = sorted({subset[:size] for subset in known for size in range(1, len(subset) + 1)}) or [(0,)]
    if len(products) > MOST_PRODUCTS:
        raise ValueError(
            f"a program holds at most {MOST_PRODUCTS:,} products of columns; this one has {len(products):,}: lower "
            "`degree`, or fit a sparse polynomial by LowDegreeRegressor(solver='lasso') or SparseFourierRegressor."
        )
    zeros = np.zeros(len(level))
    values = np.array([known.get(product, zeros) for product in products])
    sizes, columns = (np.array(part, np.uint32) for part in (list(map(len, products)), [one[-1] for one in products]))

    def in_c(own: str) -> str:
        arrays = {"intercept": level, "coefficients": values, "sizes": sizes, "columns": columns}
        body = f"    enum {{ T = {len(level)}, N = {len(products)}, DEPTH = {sizes.max()} }};\n{_POLYNOMIAL}"
        what = f"A polynomial of {len(known)} products of columns"
        return inputs.in_c(what, own, arrays, body, len(level))

    def in_onnx() -> bytes:
        graph = OnnxGraph({"": OPSET})
        add, constant = graph.add, graph.constant
        signs, total = inputs.in_onnx(graph)
        before: dict[Subset, int] = {}
        found = ""
        for size in range(1, int(sizes.max()) + 1):
            those = np.flatnonzero(sizes == size)
            factors = add("Gather", signs, constant(columns[those].astype(np.int64)), axis=1)
            parents = [before[products[place][:-1]] for place in those] if before else []
            found = add("Mul", add("Gather", found, constant(parents), axis=1), factors) if parents else factors
            total = add("Add", total, add("MatMul", found, constant(values[those])))
            before = {products[place]: i for i, place in enumerate(those)}
        add("Add", total, constant(level), result="Y")
        return graph.to_bytes({"X": ["rows", inputs.n]}, {"Y": ["rows", len(level)]})

    return ProgramSource(in_c, in_onnx)


def program_of_layers(
    centre: Array, weights: Sequence[Array], biases: Sequence[Array], limits: tuple[float, float]
) -> ProgramSource:
    """Layers of ReLU units with weights (n_l, n_{l+1}), the last one of one unit without ReLU, within limits."""
    inputs, sizes = RowSymbols(len(centre), None), np.array([len(centre), *map(len, biases)], np.uint32)

    def in_c(own: str) -> str:
        flat = {"weights": np.concatenate([W.T.ravel() for W in weights]), "biases": np.concatenate(biases)}
        arrays = {"centre": centre, **flat, "limits": np.array(limits), "sizes": sizes}
        body = f"    enum {{ LAYERS = {len(sizes)}, WIDTH = {sizes.max()} }};\n{_LAYERS}"
        return inputs.in_c(f"A network of {sizes[1:-1].sum()} ReLU units", own, arrays, body, 1)

    def in_onnx() -> bytes:
        graph = OnnxGraph({"": OPSET})
        add, constant = graph.add, graph.constant
        units, nothing = inputs.in_onnx(graph)
        units = add("Sub", units, constant(centre))
        for place, (W, b) in enumerate(zip(weights, biases, strict=True)):
            units = add("Relu", units) if place else units
            units = add("Add", add("MatMul", units, constant(W)), constant(b))
        add("Add", add("Clip", units, *map(constant, limits)), nothing, result="Y")
        return graph.to_bytes({"X": ["rows", inputs.n]}, {"Y": ["rows", 1]})

    return ProgramSource(in_c, in_onnx)


def program_of_values(inputs: RowSymbols, model: str, values_of: Callable[[], Array]) -> ProgramSource:
    """A function of bits by its values (2**n,) at all points.

    A ValueError is raised if the columns are too many, with the name of the model.
    """
    if inputs.n > MOST_BITS:
        raise ValueError(
            f"a {model} is exported as a table of its values at all rows, of at most {MOST_BITS} columns; this one has "
            f"{inputs.n}: distil it, sparsact.distil(model, X, y).export(path)."
        )
    values = values_of()

    def in_c(own: str) -> str:
        body = f"    enum {{ COLUMNS = {inputs.n} }};\n{_TABLE}"
        return inputs.in_c(f"The values of a {model} at all rows", own, {"values": values}, body, 1)

    def in_onnx() -> bytes:
        graph = OnnxGraph({"": OPSET})
        add, constant = graph.add, graph.constant
        signs, nothing = inputs.in_onnx(graph)
        bits = add("Cast", add("Less", signs, constant(0.0)), to=ELEMENTS["int64"])
        places = add("Mul", bits, constant(2 ** np.arange(inputs.n)))
        row = add("ReduceSum", places, constant([1]), keepdims=1)
        add("Add", add("Gather", constant(values), row, axis=0), nothing, result="Y")
        return graph.to_bytes({"X": ["rows", inputs.n]}, {"Y": ["rows", 1]})

    return ProgramSource(in_c, in_onnx)
