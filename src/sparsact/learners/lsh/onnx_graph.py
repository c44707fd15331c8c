"""A compact model as a graph of ONNX: keys of buckets by integers, look-ups by gathering, trees by one node."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels.hashing import FARTHEST, FIRST, SECOND, STEP
from sparsact.learners.lsh.compiled import CompiledModel, CompiledTable, Directory
from sparsact.learners.lsh.inputs import InputRules
from sparsact.learners.lsh.prediction_limits import Ends
from sparsact.learners.lsh.tree_ensemble import TreeEnsemble
from sparsact.saving.onnx_file import ELEMENTS, OnnxGraph

OPSET: Final = 18  # the first with BitwiseXor
TREES, TREES_OPSET = "ai.onnx.ml", 5  # the first whose trees take float64
SUM, LESS_OR_EQUAL = 1, 0  # of a TreeEnsemble's `aggregate_function` and `nodes_modes`


def onnx_model(model: CompiledModel[Directory], ends: Ends, inputs: InputRules) -> bytes:
    """A file of ONNX: input ``X`` (rows, columns) and output ``Y`` (rows, targets), both float64.

    A row falls into the same cells as in the model, to the bit; values are the same up to rounding, as a runtime may
    order their sums otherwise. A row with an infinity has the value NaN.
    """
    graph = OnnxGraph({"": OPSET} | ({} if model.trees is None else {TREES: TREES_OPSET}))
    encoded = _encoded(graph, inputs)
    add, constant = graph.add, graph.constant
    rows = encoded if model.columns is None else add("Gather", encoded, constant(model.columns), axis=1)
    line = _product(graph, add("Sub", rows, constant(model.centre)), model.trend)
    values = add("Add", line, constant(model.level))
    *stages, (own, total) = (_Tables(graph, table).values(rows) for table in model.tables)
    if model.backup is not None:
        own = add("Where", add("Greater", total, constant(0.0)), own, _Tables(graph, model.backup).values(rows)[0])
    if ends.start is not None:
        values = add("Where", add("Greater", total, constant(0.0)), values, constant(ends.start))
    for each in (*(stage for stage, _ in stages), own):
        values = add("Add", values, each)
    if model.trees is not None:
        values = add("Add", values, _tree_values(graph, model.trees, encoded))
    if ends.low is not None and ends.high is not None:
        below, above = (ends.low, ends.high) if ends.beyond == "clip" else (np.nan, np.nan)
        for operator, limit, instead in (("Less", ends.low, below), ("Greater", ends.high, above)):
            values = add("Where", add(operator, values, constant(limit)), constant(instead), values)
    strange = add("ReduceMax", add("Cast", add("IsInf", "X"), to=ELEMENTS["float64"]), constant([1]), keepdims=1)
    add("Where", add("Greater", strange, constant(0.0)), constant(np.nan), values, result="Y")
    return graph.to_bytes({"X": ["rows", inputs.n_columns]}, {"Y": ["rows", len(model.level)]})


def _encoded(graph: OnnxGraph, inputs: InputRules) -> str:
    """Rows of numbers alone; see :meth:`InputRules.encode`."""
    add, constant = graph.add, graph.constant
    lacking, rows = add("IsNaN", "X"), "X"
    filled = add("Where", lacking, constant(inputs.fills), rows)
    if inputs.is_plain:
        return filled
    parts = [add("Gather", filled, constant(inputs.numeric), axis=1)] if len(inputs.numeric) else []
    gaps, values = add("Cast", lacking, to=ELEMENTS["float64"]), []
    for one in inputs.categories:
        same = add("Equal", add("Gather", rows, constant([one.column]), axis=1), constant(one.known[None]))
        ones = add("Cast", same, to=ELEMENTS["float64"])
        seen = add("ReduceSum", ones, constant([1]), keepdims=1)
        gap = add("Gather", gaps, constant([one.column]), axis=1)
        unseen = add("Sub", add("Sub", constant(1.0), seen), gap)
        values.append(add("MatMul", add("Concat", ones, unseen, gap, axis=1), constant(one.values)))
    parts += [add("Gather", gaps, constant(inputs.gaps), axis=1)] if len(inputs.gaps) else []
    return add("Concat", *parts, *values, axis=1)


def _product(graph: OnnxGraph, rows: str, matrix: NDArray[np.float64]) -> str:
    """Rows (m, n) times a matrix (n, k), added column by column as the model's kernels do.

    MatMul orders and fuses as it likes, and a last bit moves a row at an edge into another cell.
    """
    add, constant = graph.add, graph.constant
    columns = (add("Gather", rows, constant([i]), axis=1) for i in range(len(matrix)))
    terms = [add("Mul", column, constant(row[None])) for column, row in zip(columns, matrix, strict=True)]
    total = terms[0]
    for term in terms[1:]:
        total = add("Add", total, term)
    return total


def _tree_values(graph: OnnxGraph, trees: TreeEnsemble, rows: str) -> str:
    """Values (rows, targets) of the trees, with float64 thresholds and leaves."""
    base = graph.constant(trees.base[None])
    if not len(trees.roots):
        return base
    alone = trees.roots < 0  # a leaf without a node: the graph has a node whose two children it is
    n, none = len(trees.columns), np.zeros(np.count_nonzero(alone), np.int32)
    roots = trees.roots.copy()
    roots[alone] = n + np.arange(len(none))
    children = {
        name: np.concatenate([own, trees.roots[alone]]) for name, own in (("true", trees.left), ("false", trees.right))
    }
    parts: dict[str, NDArray[Any]] = {
        f"nodes_{name}leafs": (own < 0).astype(np.int64) for name, own in children.items()
    }
    parts |= {f"nodes_{name}nodeids": np.where(own < 0, -1 - own, own) for name, own in children.items()}
    parts |= {"nodes_featureids": np.concatenate([trees.columns, none]), "tree_roots": roots}
    parts |= {"leaf_targetids": trees.leaf_targets()}
    tensors = {
        "nodes_splits": np.concatenate([trees.thresholds, none]),
        "nodes_modes": np.full(n + len(none), LESS_OR_EQUAL, np.uint8),
        "leaf_weights": trees.leaves,
    }
    numbers = {name: part.tolist() for name, part in parts.items()}
    options = {"n_targets": len(trees.base), "aggregate_function": SUM, **numbers, **tensors}
    return graph.add("Add", graph.add("TreeEnsemble", rows, domain=TREES, **options), base)


class _Tables:
    """Nodes of some hash tables; axes are rows, tables, then codes, places in a group, or coefficients."""

    def __init__(self, graph: OnnxGraph, table: CompiledTable[Directory]) -> None:
        self._graph, self._table = graph, table
        self._bits = (len(table.storage.starts) - 1).bit_length() - 1

    def values(self, rows: str) -> tuple[str, str]:
        """Values (rows, targets), and the weight (rows, 1) behind them."""
        add, constant = self._graph.add, self._graph.constant
        features, keys = self._features_and_keys(rows)
        found = self._find(keys)
        known = add("GreaterOrEqual", found, constant(0))
        hit, at = self._cast(known, "float64"), add("Max", found, constant(0))
        held = self._table.storage.weights
        own = add("Gather", constant(held if len(held) else np.zeros(1)), at)
        weights = add("Mul", self._cast(own, "float64"), hit)
        value = self._polynomials(features, at)  # at rows far off, another bucket's polynomial may be no number
        value = add("Where", add("Unsqueeze", known, constant([2])), value, constant(0.0))
        total = add("ReduceSum", weights, constant([1]), keepdims=1)
        is_first = self._table.combine == "first"
        share = self._first(hit) if is_first else weights
        values = add("ReduceSum", add("Mul", add("Unsqueeze", share, constant([2])), value), constant([1]), keepdims=0)
        if not is_first:
            some = add("Greater", total, constant(0.0))
            values = add("Div", values, add("Where", some, total, constant(1.0)))
        return values, total

    def _first(self, hit: str) -> str:
        """1 at the first table that is not empty."""
        add, constant = self._graph.add, self._graph.constant
        places = constant(np.arange(len(self._table.hashes.seeds)))
        is_first = add("Equal", places, add("ArgMax", hit, axis=1, keepdims=1))
        return add("Mul", hit, self._cast(is_first, "float64"))

    def _features_and_keys(self, rows: str) -> tuple[str, str]:
        add, constant, hashes = self._graph.add, self._graph.constant, self._table.hashes
        n_tables = len(hashes.seeds)
        n_codes = len(hashes.offsets) // n_tables
        centred = add("Sub", rows, constant(hashes.centre))
        local = _product(self._graph, centred, hashes.local)
        places = _product(self._graph, local if hashes.grid else centred, hashes.directions)
        places = add("Reshape", add("Add", places, constant(hashes.offsets)), constant([-1, n_tables, n_codes]))
        if hashes.signs:
            codes = self._cast(add("Greater", places, constant(0.0)), "int64")
        else:
            codes = self._cast(add("Floor", add("Clip", places, constant(-FARTHEST), constant(FARTHEST))), "int64")
        if hashes.grid:
            features = add("Sub", add("Sub", places, self._cast(codes, "float64")), constant(0.5))
        else:
            features = add("Unsqueeze", local, constant([1]))
        words = self._cast(codes, "uint64")
        keys = constant(hashes.seeds[None])
        for code in range(n_codes):
            keys = add("BitwiseXor", keys, add("Gather", words, constant(code), axis=2))
            keys = self._folded(add("Mul", keys, constant(STEP)), 32)
        keys = add("Mul", self._folded(keys, 30), constant(FIRST))
        return features, self._folded(add("Mul", self._folded(keys, 27), constant(SECOND)), 31)

    def _find(self, keys: str) -> str:
        """Number of each key's bucket, or -1."""
        add, constant, table = self._graph.add, self._graph.constant, self._table
        groups = self._cast(self._shifted(keys, 64 - self._bits), "int64")
        tags = self._cast(self._shifted(self._shifted(keys, self._bits, "LEFT"), 32), "uint32")
        starts = constant(table.storage.starts)
        first = self._cast(add("Gather", starts, groups), "int64")
        stop = self._cast(add("Gather", starts, add("Add", groups, constant(1))), "int64")
        most = max(1, int(np.diff(table.storage.starts.astype(np.int64)).max()))
        places = add("Add", add("Unsqueeze", first, constant([2])), constant(np.arange(most)))
        inside = add("Less", places, add("Unsqueeze", stop, constant([2])))
        known = constant(table.storage.tags if len(table.storage.tags) else np.zeros(1, np.uint32))
        held = add("Gather", known, add("Min", places, constant(max(0, len(table.storage.tags) - 1))))
        same = add("And", inside, add("Equal", held, add("Unsqueeze", tags, constant([2]))))
        return add("ReduceMax", add("Where", same, places, constant(-1)), constant([2]), keepdims=0)

    def _polynomials(self, features: str, at: str) -> str:
        """Values (rows, tables, targets) of the polynomials of buckets."""
        add, constant, table = self._graph.add, self._graph.constant, self._table
        p, (n_buckets, D, n_targets) = table.hashes.local.shape[1], table.storage.coefficients.shape
        held = table.storage.coefficients if n_buckets else np.zeros((1, D, n_targets))
        own = self._cast(add("Gather", constant(held), at), "float64")
        level = add("Gather", own, constant(0), axis=2)
        if D == 1:
            return level
        if table.degree == 2:
            i, j = (add("Gather", features, constant(places), axis=2) for places in np.triu_indices(p))
            features = add("Concat", features, add("Mul", i, j), axis=2)
        slopes = add("Slice", own, constant([1]), constant([D]), constant([2]))
        terms = add("Mul", add("Unsqueeze", features, constant([3])), slopes)
        return add("Add", level, add("ReduceSum", terms, constant([2]), keepdims=0))

    def _cast(self, name: str, dtype: str) -> str:
        return self._graph.add("Cast", name, to=ELEMENTS[dtype])

    def _shifted(self, keys: str, bits: int, direction: str = "RIGHT") -> str:
        return self._graph.add("BitShift", keys, self._graph.constant(np.uint64(bits)), direction=direction)

    def _folded(self, keys: str, bits: int) -> str:
        return self._graph.add("BitwiseXor", keys, self._shifted(keys, bits))
