"""Which monomials agree on all rows: constant and repeated columns, and products that amount to them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact import kernels
from sparsact.hypercube import WORD
from sparsact.learners.low_degree.family import Family
from sparsact.learners.low_degree.moments import Moments
from sparsact.learners.low_degree.real import RealStatistic
from sparsact.learners.low_degree.solve import as_rows
from sparsact.learners.points import Points
from sparsact.statistics.exact_sum import ExactSum

_SAME = 1e-12  # of the mean square: real columns are summed in floating point


def aliases(statistic: Any, family: Family, place: int) -> NDArray[np.intp]:
    """Places of ``[(), *family]`` whose monomials equal, up to sign, that of ``place`` on all rows of a statistic."""
    if isinstance(statistic, RealStatistic):
        equal = _of_reals(statistic, len(family), place)
    elif isinstance(statistic, Moments):
        equal = _of_moments(statistic, family, place)
    else:
        rows = as_rows(statistic)
        rows.join()
        codes = np.ascontiguousarray(rows.codes[rows.weights.nonzero()])
        return agreeing(Points.from_codes(codes, rows.n), family, place)
    equal[place] = False
    return np.flatnonzero(equal)


def agreeing(points: Points, family: Family, place: int) -> NDArray[np.intp]:
    """Places of ``[(), *family]`` whose characters equal, up to sign, that of ``place`` at all points."""
    masks = family.with_empty
    every = np.full((1, points.columns.shape[1]), ~np.uint64(0))
    every[0, -1] >>= np.uint64(-points.n_rows % WORD)
    odd = kernels.parity_counts(points.columns, every, masks ^ masks[place])[0]
    equal = (odd == 0) | (odd == points.n_rows)
    equal[place] = False
    return np.flatnonzero(equal)


def _of_moments(statistic: Moments, family: Family, place: int) -> NDArray[np.bool_]:
    """A moment is plus or minus the total weight when the two characters agree wherever there is weight."""
    weight = statistic.totals.weight

    def extreme(moments: ExactSum) -> NDArray[np.float64]:
        same = np.zeros(moments.shape, dtype=bool)
        for sign in (1, -1):
            off = moments.copy()
            off.merge(weight.times(sign).repeated(moments.shape[0]))
            same |= ~off.nonzero()
        return same.astype(np.float64)

    return np.asarray(statistic.gram(family, read=extreme)[place] > 0)


def _of_reals(statistic: RealStatistic, size: int, place: int) -> NDArray[np.bool_]:
    """Where the mean square of the difference, or of the sum, of two monomials vanishes; from their means and Gram."""
    equations = statistic.normal_equations(fit_intercept=False)
    products = np.empty((size + 1, size + 1))
    products[0, 0] = equations.weight
    products[0, 1:] = products[1:, 0] = statistic.weight * statistic.feature_mean[:size]
    products[1:, 1:] = equations.gram[:size, :size]
    squares = products.diagonal()
    cross = np.abs(products[place])
    return np.asarray(squares + squares[place] - 2 * cross <= _SAME * (squares + squares[place]))
