r"""Rows of bits with their held-out errors, and what these say of the effects of a model.

A model's coefficient of :math:`\chi_S` lies from the function's by the mean of :math:`\chi_S` times the model's error
over all points. The columns of S divide the points into :math:`2^{|S|}` cells of equal size. Held-out errors r of the
:math:`m_u` rows in cell u estimate this distance and the standard error of the coefficient, whatever the model,

.. math:: d_S = 2^{-|S|} \sum_u \chi_S(u)\, q_u\, \bar r_u, \qquad
          s_S^2 = 4^{-|S|} \sum_u \frac{q_u}{m_u} \overline{r^2_u},

with the share :math:`q_u` of the cell's points that no row has: the other points are known up to their noise. If the
model has missed a corner with few rows, both sums show it for each interaction that the corner moves; a cell
with one row counts with its error. Only the part of :math:`d_S^2` beyond its own noise, :math:`s_S^2`, counts.

References
----------
.. [1] T. Zrnic, E. J. Candes, "Cross-prediction-powered inference", PNAS 121, 2024.
.. [2] J. G. MacKinnon, H. White, "Some heteroskedasticity-consistent covariance matrix estimators with improved finite
   sample properties", J. Econometrics 29, 1985.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sparsact.statistics.conformal import LocalErrors

MOST_BYTES: Final = 1 << 27  # of a text, when it is no longer compressed
MOST_NUMBERS: Final = 1 << 18  # of predictions and errors that are kept, of more than 400 rows
_HEAD: Final = np.dtype("<i8")


class CoefficientError(NamedTuple):
    """Distance of a coefficient by held-out rows beyond its noise, its standard error, and the freedom of that."""

    distance: float
    deviation: float
    freedom: float


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """Rows, what models that had not seen them predicted, and how far this was from what was measured.

    Attributes
    ----------
    bits : ndarray of shape (m, n), bool
        The rows; no columns where some are numbers.
    predicted, errors : ndarray of shape (m, T)
        Predictions, and targets less these; no columns where the targets are classes.
    n_fitted : int
        Rows of the fit; these may be a sample of them.

    Examples
    --------
    One row of seven has both bits, and errs by 4; a quarter of this is the product's:

    >>> bits = np.array([[0, 0], [0, 0], [0, 1], [0, 1], [1, 0], [1, 0], [1, 1]], dtype=bool)
    >>> rows = HeldOutRows(np.pad(bits, [(0, 0), (0, 9)]), np.zeros((7, 1)), np.array([[0.0, 0, 0, 0, 0, 0, 4]]).T, 7)
    >>> rows.n_on((0, 1)), round(rows.coefficient_error((0, 1)).deviation, 1)
    (1, 0.8)
    """

    bits: NDArray[np.bool_]
    predicted: NDArray[np.float64]
    errors: NDArray[np.float64]
    n_fitted: int

    @staticmethod
    def n_kept(n_targets: int) -> int:
        """The most rows that are kept with a model of this many targets."""
        return max(400, MOST_NUMBERS // (2 * n_targets))

    def n_on(self, subset: Sequence[int]) -> int | None:
        """Number of rows in which all columns of a set are 1; None of a sample."""
        if len(self.bits) < self.n_fitted or not self.bits.shape[1]:
            return None
        return int(self.bits[:, list(subset)].all(axis=1).sum())

    @cached_property
    def n_points(self) -> float:
        """Distinct rows of the fit for each row that is kept, as far as the kept rows show."""
        return len(np.unique(np.packbits(self.bits, axis=1), axis=0)) / len(self.bits) * self.n_fitted / len(self.bits)

    def coefficient_error(self, subset: Sequence[int], target: int = 0) -> CoefficientError | None:
        """Error of a model's coefficient of a set of columns; None without errors, or where columns are numbers.

        The mean square of a cell counts one error of the mean size besides. A cell without rows counts as if it had its
        share of the rows, one at most.
        """
        if target >= self.errors.shape[1] or not self.bits.shape[1]:
            return None
        bits, n_cells = self.bits[:, list(subset)], 2.0 ** len(subset)
        numbers = bits @ (1 << np.arange(len(subset)))
        _, first, cells = np.unique(numbers, return_index=True, return_inverse=True)
        unseen = 1 - np.minimum(1.0, np.bincount(cells) * self.n_points * n_cells * 2.0 ** -self.bits.shape[1])
        signs = 1.0 - 2.0 * (bits[first].sum(axis=1) % 2)
        found = self.contrast_error(cells, signs, unseen, n_cells, target)
        return CoefficientError(found.distance / n_cells, found.deviation / n_cells, found.freedom)

    def contrast_error(
        self, cells: NDArray[np.intp], signs: NDArray[Any], unseen: NDArray[Any], n_cells: float, target: int
    ) -> CoefficientError:
        """Error of a model's sum over cells with signs, from the rows' places (m,) among cells that have rows, or -1.

        ``unseen`` is the share of each cell's points that no row has; the other of ``n_cells`` cells have no rows.
        """
        unit = float(np.abs(self.errors[:, target]).max(initial=0.0)) or 1.0
        errors = self.errors[:, target] / unit  # squares of errors of any size are then numbers
        overall, n_rows = float(np.mean(errors**2)), len(errors)
        errors, cells = errors[cells >= 0], cells[cells >= 0]
        counts = np.bincount(cells)
        distance = float(signs @ (unseen * np.bincount(cells, errors) / counts))
        variances = unseen * (np.bincount(cells, errors**2) + overall) / (counts + 1) / counts
        n_empty, of_empty = n_cells - len(counts), max(1.0, n_cells / n_rows) * overall
        variance = float(variances.sum()) + n_empty * of_empty
        spread = float((variances**2 / counts).sum()) + n_empty * of_empty**2
        distance = float(np.sqrt(max(distance**2 - variance, 0.0)))  # its noise is none of the model's
        freedom = variance**2 / spread if spread else np.inf
        deviation = float(np.sqrt(variance * n_rows / self.n_fitted))  # the model has learned from all rows
        return CoefficientError(unit * distance, unit * deviation, freedom)

    def reach(self, target: int, values: NDArray[np.float64], confidence: float) -> NDArray[np.float64]:
        """Half widths (m',) of intervals about predicted values that hold new rows of a target, or more."""
        return LocalErrors(self.predicted[:, target], self.errors[:, target]).reach(values, confidence)

    def to_text(self) -> str:
        """The rows as a text."""
        numbers = np.concatenate([self.predicted, self.errors], axis=1).astype("<f8")
        head = np.array([*self.bits.shape, self.errors.shape[1], self.n_fitted], _HEAD)
        whole = head.tobytes() + np.packbits(self.bits, axis=1).tobytes() + numbers.tobytes()
        return b64encode(zlib.compress(whole, 9)).decode()

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The rows of :meth:`to_text`; a ValueError if there are none."""
        try:
            data = zlib.decompressobj().decompress(b64decode(text, validate=True), MOST_BYTES)
            m, n, n_targets, n_fitted = np.frombuffer(data, _HEAD, 4).tolist()
            packed = np.frombuffer(data, np.uint8, m * -(-n // 8), 32).reshape(m, -1)
            numbers = np.frombuffer(data, "<f8", 2 * m * n_targets, 32 + packed.size).reshape(m, 2 * n_targets)
        except (ValueError, zlib.error) as error:
            raise ValueError(f"held-out rows that cannot be read: {error}") from error
        if n_fitted < m or not np.isfinite(numbers).all():
            raise ValueError(f"held-out rows of {m} rows of {n_fitted}, or with numbers that are not finite")
        bits = np.unpackbits(packed, axis=1, count=n).astype(bool)
        return cls(bits, numbers[:, :n_targets], numbers[:, n_targets:], n_fitted)
