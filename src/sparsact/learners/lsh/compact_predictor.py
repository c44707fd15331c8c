"""Compact predictor of a fitted LSH model: call it, save it, export it as C or ONNX."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike

from sparsact.kernels.bucket_statistics import n_features
from sparsact.learners.lsh.c_source import c_source
from sparsact.learners.lsh.compiled import CompiledModel, CompiledTable, Directory
from sparsact.learners.lsh.inputs import InputRules
from sparsact.learners.lsh.layout import Array, read_hashes
from sparsact.learners.lsh.onnx_graph import onnx_model
from sparsact.learners.lsh.predict import CompiledPredictor
from sparsact.learners.lsh.prediction_limits import Ends
from sparsact.learners.lsh.tree_ensemble import TreeEnsemble
from sparsact.saving import ModelFileError, modelfile, schema
from sparsact.saving.c_file import write_program
from sparsact.saving.schema import ArrayField, Arrays, State

_LINEAR: Final = {
    "level": ArrayField("T", finite=True),
    "centre": ArrayField("c", finite=True),
    "trend": ArrayField("c T", finite=True),
    "columns": ArrayField("c", np.int64, nonnegative=True, optional=True),
}
_ENDS: Final = {name: ArrayField("T", optional=True) for name in ("low", "high", "start")}
_INDEX: Final = {"starts": ArrayField("groups", np.uint32), "tags": ArrayField("B", np.uint32)}
_DTYPES: Final = {("float64", "float64"), ("float32", "float32"), ("float32", "uint16")}


class CompactPredictor(CompiledPredictor):
    """Values of a fitted LSH model, from coefficients alone; see :meth:`LSHRegressor.predictor`.

    It holds no sums, learns nothing more, and may be called by several threads at once. A file of it is mapped into
    memory when it is loaded, and shared by processes.

    Attributes
    ----------
    model : CompiledModel
        The arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsact import LSHRegressor
    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> predict = LSHRegressor(random_state=0).fit(X, np.abs(X[:, 0])).predictor(dtype="float32")
    >>> bool(abs(predict([0.5]) - 0.5) < 1e-3)
    True
    """

    model: CompiledModel[Directory]

    def __init__(self, model: CompiledModel[Directory], ends: Ends, inputs: InputRules, single: bool) -> None:
        self.model, self._ends, self.inputs, self._single = model, ends, inputs, single

    @property
    def ends(self) -> Ends:
        """Limits of the values, and the values in empty buckets."""
        return self._ends

    @property
    def n_features_in_(self) -> int:
        """Columns of a row."""
        return self.inputs.n_columns

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the coefficients."""
        return self.model.tables[-1].storage.coefficients.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self.model.nbytes + self.ends.nbytes

    def numbers(self, X: ArrayLike) -> Array:
        """Rows (m, d) as exported programs take them: a number for each category, NaN for missing values.

        A category that is a number stands for itself; a text, for 2**52 plus the first 52 bits of its BLAKE2b digest of
        8 bytes, read as a little-endian number.
        """
        return self.inputs.numbers(X)

    def save(self, path: str | Path) -> None:
        """Write the predictor to one file, which :func:`sparsact.load` maps into memory."""
        model, ends = self.model, self.ends
        named = [(name, getattr(model, name)) for name in _LINEAR] + [(name, getattr(ends, name)) for name in _ENDS]
        arrays: Arrays = {name: value for name, value in named if value is not None}
        arrays |= schema.add_prefix("inputs", self.inputs.arrays())
        if self.model.trees is not None:
            arrays |= schema.add_prefix("trees", self.model.trees.arrays())
        state: State = {"n_features_in_": self.n_features_in_, "single": self._single, "tables": len(self.model.tables)}
        state |= {"beyond": ends.beyond, "refuses": ends.refuses, "feature_names": list(self.inputs.names)}
        for name, table in self.model.named_tables().items():
            arrays |= schema.add_prefix(name, table.arrays())
            state[name] = {
                "degree": table.degree,
                "combine": table.combine,
                "grid": bool(table.hashes.grid),
                "signs": bool(table.hashes.signs),
            }
        modelfile.write(path, type(self).__name__, state, arrays)

    def export(self, path: str | Path, *, name: str | None = None, description: str = "") -> None:
        """Write the predictor as a program without dependencies; see :meth:`LSHRegressor.export`."""
        if self.ends.refuses:
            raise ValueError(
                'a program of C or ONNX cannot raise an error for a row of empty buckets (fallback="raise"): call '
                'set_params(fallback="nan") first, and look for NaN.'
            )
        model, ends, inputs = self.model, self.ends, self.inputs
        in_c, in_onnx = partial(c_source, model, ends, inputs=inputs), partial(onnx_model, model, ends, inputs)
        write_program(path, name, description, in_c, in_onnx)

    @classmethod
    def _from_file(cls, state: State, arrays: Arrays) -> Self:
        """The predictor that :meth:`save` wrote."""
        linear: dict[str, Any] = schema.read_arrays(_LINEAR, arrays)
        lengths = {"c": len(linear["centre"]), "T": len(linear["level"])}
        n_features = schema.as_count(state["n_features_in_"], "n_features_in_", minimum=1)
        names = tuple(schema.as_str(name, "feature_names") for name in state.get("feature_names", ()))
        inputs = InputRules.from_arrays(schema.strip_prefix("inputs", arrays), n_features, names)
        columns, n_encoded = linear.get("columns"), len(inputs.sources)
        if (columns is None and lengths["c"] != n_encoded) or (columns is not None and (columns >= n_encoded).any()):
            raise ValueError("the columns do not match")
        nodes = schema.strip_prefix("trees", arrays)
        trees = TreeEnsemble.from_arrays(nodes, n_encoded, lengths["T"]) if nodes else None
        n_tables = schema.as_count(state["tables"], "tables", minimum=1)
        tables = tuple(_table(f"table{place}", state, arrays, lengths) for place in range(n_tables))
        backup = _table("backup", state, arrays, lengths) if "backup" in state else None
        limits: dict[str, Any] = schema.read_arrays(_ENDS, arrays, T=lengths["T"])
        beyond, refuses = state.get("beyond", "clip"), state.get("refuses", False)  # earlier versions wrote neither
        if ("low" in limits) != ("high" in limits) or beyond not in ("clip", "nan"):
            raise ValueError("one limit is missing, or what lies beyond them has no name")
        ends = Ends(**limits, beyond=beyond, refuses=schema.as_bool(refuses, "refuses"))
        single = schema.as_bool(state["single"], "single")
        if single and lengths["T"] != 1:
            raise ValueError(f"{lengths['T']} targets where there is one")
        return cls(CompiledModel(**linear, tables=tables, backup=backup, trees=trees), ends, inputs, single)


def _table(name: str, state: State, arrays: Arrays, lengths: dict[str, int]) -> CompiledTable[Directory]:
    """A table read from a file, with every index checked."""
    own, found = state[name], schema.strip_prefix(name, arrays)
    hashes = read_hashes(found, grid=schema.as_bool(own["grid"], "grid"), signs=schema.as_bool(own["signs"], "signs"))
    degree = schema.as_count(own["degree"], "degree", maximum=2)
    index = schema.read_arrays(_INDEX, found)
    starts, n_buckets = index["starts"], len(index["tags"])
    n_groups = len(starts) - 1
    if n_groups < 2 or n_groups & (n_groups - 1) or starts[-1] != n_buckets or (starts[1:] < starts[:-1]).any():
        raise ValueError("the directory of keys leads nowhere")
    coefficients, weights = found["coefficients"], found["weights"]
    if (coefficients.dtype.name, weights.dtype.name) not in _DTYPES:
        raise ValueError(f"coefficients are {coefficients.dtype}, weights {weights.dtype}")
    shape = (n_buckets, n_features(hashes.local.shape[1], degree), lengths["T"])
    if coefficients.shape != shape or weights.shape != shape[:1] or len(hashes.centre) != lengths["c"]:
        raise ValueError(f"{name} holds {coefficients.shape} coefficients of {weights.shape} buckets")
    if own["combine"] not in ("average", "first"):
        raise ModelFileError(
            f"tables whose values are combined as {own['combine']!r}, which this version no longer does; fit the model "
            "again, and save its predictor."
        )
    storage = Directory(starts, index["tags"], coefficients, weights)
    return CompiledTable(hashes, degree, storage, own["combine"])
