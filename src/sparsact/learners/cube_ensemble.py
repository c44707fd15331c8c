"""CubeEnsemble: a weighted mean of fitted models of bits, kept as its values at all points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import NormalDist
from typing import Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.utils.validation import _get_feature_names

from sparsact.fourier import Spectrum, walsh_hadamard
from sparsact.hypercube import masks_of
from sparsact.learners.points import Encoding, pack
from sparsact.learners.programs import ExportedFunction, ProgramSource, RowSymbols, program_of_values
from sparsact.learners.stacking import intervals_about
from sparsact.saving import modelfile, schema
from sparsact.saving.schema import ArrayField, Arrays, State
from sparsact.statistics.conformal import kept_errors
from sparsact.validation.arrays import checked_reals, checked_subset
from sparsact.validation.parameters import checked_probability

Array = NDArray[np.float64]

LARGEST_CUBE: Final = 20  # coordinates
_MOST_RESIDUALS: Final = 4_096  # that are kept, as quantiles
_ARRAYS: Final = {
    "values": ArrayField("N", finite=True),
    "weights": ArrayField("k", finite=True, nonnegative=True),
    "residuals": ArrayField("r", finite=True, nonnegative=True),
    "deviations": ArrayField("N", finite=True, nonnegative=True, optional=True),
}


class CubeEnsemble(ExportedFunction):
    r"""A weighted mean of fitted models of up to 20 columns of bits, as its :math:`2^n` values.

    Whatever the models are, trees among them, their mean is a function on the cube: its Walsh spectrum is exact, and
    its file holds numbers only.

    Parameters
    ----------
    values : array-like of shape (2**n,)
        Values at all points; bit i of a point is bit i of its number.
    weights : mapping of str to float
        Weights of the models, by their names.
    residuals : array-like of shape (r,)
        Absolute errors at rows that the models had not seen.
    deviations : array-like of shape (2**n,), optional
        Posterior standard deviations of the coefficients, in the order of the points.

    Attributes
    ----------
    weights_ : dict
        The weights.
    spectrum_ : Spectrum
        Exact Fourier spectrum.
    n_features_in_ : int
        n.
    encoding_ : str
        ``"bits"``: rows to predict hold 0 and 1, or booleans.

    Examples
    --------
    >>> from sparsact.learners import CubeEnsemble
    >>> model = CubeEnsemble([0.0, 1.0, 1.0, 2.0], {"a": 0.7, "b": 0.3}, residuals=[0.1, 0.2, 0.1, 0.3])
    >>> model.predict([[0, 1], [1, 1]]).tolist()
    [1.0, 2.0]
    >>> model.spectrum_[(0,)], model.spectrum_[(0, 1)]
    (-0.5, 0.0)
    >>> model.prediction_intervals([[0, 1]], confidence=0.5).tolist()
    [[0.8, 1.2]]
    """

    encoding_: Encoding = "bits"
    table_encoding_: str

    def __init__(
        self, values: ArrayLike, weights: Mapping[str, float], residuals: ArrayLike, deviations: ArrayLike | None = None
    ) -> None:
        self._values = checked_reals(values, "`values`")
        n = self._values.size.bit_length() - 1
        if self._values.shape != (1 << n,) or not 1 <= n <= LARGEST_CUBE:
            raise ValueError(
                f"`values` must hold 2**n numbers, for n from 1 to {LARGEST_CUBE}; got shape {self._values.shape}."
            )
        self.weights_ = {name: float(weight) for name, weight in weights.items()}
        residuals = checked_reals(residuals, "`residuals`")
        if residuals.ndim != 1 or not residuals.size or (residuals < 0).any():
            raise ValueError("`residuals` must hold at least one number, and no negative one.")
        self._errors = kept_errors(residuals, _MOST_RESIDUALS)
        self._deviations = None if deviations is None else checked_reals(deviations, "`deviations`")
        if self._deviations is not None and self._deviations.shape != self._values.shape:
            raise ValueError(f"`deviations` has shape {self._deviations.shape}, and `values` {self._values.shape}.")
        self.n_features_in_ = n

    def predict(self, X: ArrayLike) -> Array:
        """Values (m,) at rows of bits X (m, n), an array; data frames raise an error."""
        if _get_feature_names(X) is not None:
            raise ValueError(
                "`X` has named columns, and a CubeEnsemble takes bits by their places: of a table's model call "
                "sparsact.predict_table(model, X), which finds columns by name; or pass the bits as an array."
            )
        rows = np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_:
            raise ValueError(f"`X` must have {self.n_features_in_} columns; got shape {rows.shape}.")
        codes = pack(rows, "bits").codes()
        return self._values[codes[:, 0].astype(np.intp)]

    def prediction_intervals(self, X: ArrayLike, confidence: float = 0.95) -> Array:
        """Intervals (m, 2) around :meth:`predict` as wide as the held-out errors require.

        The half width is the same for all rows: :mod:`sparsact.statistics.conformal`. Infinite where the residuals are
        too few for the confidence.
        """
        return intervals_about(self.predict(X), self._errors, confidence)

    def with_deviations(self, deviations: ArrayLike) -> Self:
        """The ensemble with other deviations."""
        return type(self)(self._values, self.weights_, self._errors, deviations)

    @property
    def spectrum_(self) -> Spectrum:
        """Exact Fourier spectrum over the signs, +1 where a bit is 0."""
        return Spectrum.from_coefficients(np.asarray(walsh_hadamard(self._values)))

    def standard_errors(self, subsets: Iterable[Iterable[int]]) -> Array:
        """Posterior standard deviations of the coefficients of ``subsets``, (N,); NaN where none were given."""
        numbers = self._numbers(subsets)
        return np.full(len(numbers), np.nan) if self._deviations is None else self._deviations[numbers]

    def confidence_intervals(self, subsets: Iterable[Iterable[int]], confidence: float = 0.95) -> Array:
        """Central posterior intervals of the coefficients of ``subsets``, (N, 2)."""
        named = [checked_subset(subset) for subset in subsets]
        reach = NormalDist().inv_cdf((1 + checked_probability(confidence, "`confidence`")) / 2)
        coefficients = self.spectrum_.coefficients[self._numbers(named)]
        return np.asarray(coefficients[:, None] + self.standard_errors(named)[:, None] * np.array([-reach, reach]))

    def contrast_deviations(self, X: ArrayLike, weights: csr_array) -> Array:
        """Deviations (k,) of contrasts (k, m) of values at rows X, as if errors of coefficients were uncorrelated."""
        if self._deviations is None:
            return np.full(weights.shape[0], np.nan)
        codes, found = pack(np.asarray(X), "bits").codes()[:, 0].astype(np.intp), []
        for row in weights.toarray():
            table = np.bincount(codes, row, self._values.size)
            found.append(np.linalg.norm(walsh_hadamard(table, normalize=False) * self._deviations))
        return np.array(found)

    def _numbers(self, subsets: Iterable[Iterable[int]]) -> NDArray[np.intp]:
        """Numbers of subsets in table order."""
        named = [checked_subset(subset) for subset in subsets]
        masks_of(named, self.n_features_in_)  # validates the coordinates
        return np.array([sum(1 << i for i in subset) for subset in named], dtype=np.intp)

    def _program(self) -> ProgramSource:
        inputs = RowSymbols(self.n_features_in_, self.encoding_)
        return program_of_values(inputs, type(self).__name__, lambda: self._values)

    def save(self, path: str | Path) -> None:
        """Write the ensemble to one file, which :func:`sparsact.load` reads back."""
        state: State = {"names": list(self.weights_)}
        if hasattr(self, "table_encoding_"):
            state["table_encoding_"] = self.table_encoding_
        arrays = {"values": self._values, "weights": np.array(list(self.weights_.values())), "residuals": self._errors}
        if self._deviations is not None:
            arrays["deviations"] = self._deviations
        modelfile.write(path, type(self).__name__, state, arrays)

    @classmethod
    def _from_file(cls, state: State, arrays: Arrays) -> Self:
        """The ensemble that :meth:`save` wrote."""
        names = schema.as_strs(state["names"], "names")
        read = schema.read_arrays(_ARRAYS, arrays, k=len(names))
        ensemble = cls(
            read["values"],
            dict(zip(names, read["weights"].tolist(), strict=True)),
            read["residuals"],
            read.get("deviations"),
        )
        if "table_encoding_" in state:
            ensemble.table_encoding_ = schema.as_str(state["table_encoding_"], "table_encoding_")
        return ensemble

    def __repr__(self) -> str:
        named = ", ".join(f"{name} {weight:.2f}" for name, weight in self.weights_.items() if weight >= 0.005)
        return f"<CubeEnsemble on {self.n_features_in_} coordinates: {named}>"
