"""A measured complexity beside what is proved and what is conjectured of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sparsact import bounds
from sparsact.fourier import Estimate
from sparsact.rademacher.sample import checked_n_active, checked_sample, checked_scale


@dataclass(frozen=True, eq=False)
class Comparison:
    r"""A Rademacher complexity and its bounds, numbers or arrays over the numbers of units.

    Parameters
    ----------
    complexity : Estimate
        What was measured.
    conjecture : float or ndarray
        Conjecture 20, :math:`(WR + B) \sqrt{sk/m}`, with constant 1 as printed; that is too small on some samples, see
        :func:`~sparsact.rademacher.orthogonal_network`.
    sparse_bound : float or ndarray
        Equation (15) with every constant, proved: :func:`sparsact.bounds.sparse_complexity_bound_explicit`.
    dense_bound : float or ndarray
        Of all networks of s units, proved: :func:`sparsact.bounds.dense_complexity_bound`.
    """

    complexity: Estimate
    conjecture: Any
    sparse_bound: Any
    dense_bound: Any

    @property
    def ratio(self) -> Estimate:
        """The complexity as a multiple of the conjecture, with its standard error."""
        measured = self.complexity
        value, error = (np.divide(part, self.conjecture)[()] for part in (measured.value, measured.standard_error))
        return Estimate(value, error, measured.n_samples)

    def exceeds_conjecture(self, confidence: float = 0.99) -> Any:
        """Whether the whole two-sided interval for the complexity lies above the conjecture.

        A lower bound by search can refute the conjecture on these points, and never confirm it.
        """
        return self.complexity.interval(confidence)[0] > self.conjecture * (1 + 1e-9)  # rounding


def compare(
    complexity: Estimate, X: ArrayLike, s: int | Sequence[int], k: int | None = 1, *, W: float = 1.0, B: float = 1.0
) -> Comparison:
    r"""A complexity beside Conjecture 20 and the bounds, all for the points ``X`` with :math:`R = \max \|x_i\|`.

    Parameters
    ----------
    complexity : Estimate
        Of :func:`~sparsact.rademacher.exact_complexity` or :func:`~sparsact.rademacher.lower_complexity`.
    X, s, k, W, B
        What that was given. The dense class counts as k = s.

    Returns
    -------
    comparison : Comparison

    Raises
    ------
    ValueError
        If the estimate has not one value for each number of units, or a number is out of range.

    References
    ----------
    .. [A] "Learning Neural Networks with Sparse Activations", 2024, equation (15) and Conjecture 20.

    Examples
    --------
    On one point the conjecture is met with equality:

    >>> from sparsact.rademacher import exact_complexity
    >>> round(float(compare(exact_complexity([[1.0]], 1), [[1.0]], 1).ratio.value), 6)
    1.0
    """
    rows, _ = checked_sample(X)
    checked_scale(W, B)
    if np.shape(complexity.value) != np.shape(s):
        raise ValueError(
            f"the complexity has shape {np.shape(complexity.value)}, but `s` has {np.shape(s)}: "
            "pass the `s` it was made with."
        )
    m, n = rows.shape
    R = float(np.linalg.norm(rows, axis=1).max())
    table = [
        (
            bounds.sparse_complexity_conjecture(size, active, W, B, R, m),
            bounds.sparse_complexity_bound_explicit(n, size, active, W, B, R, m),
            bounds.dense_complexity_bound(size, W, B, R, m),
        )
        for size in np.ravel(s).tolist()
        for active in [checked_n_active(k, size)]
    ]
    conjecture, sparse, dense = np.reshape(np.transpose(table), (3, *np.shape(s)))
    return Comparison(complexity, conjecture[()], sparse[()], dense[()])
