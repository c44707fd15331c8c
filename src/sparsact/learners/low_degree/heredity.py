"""Heredity: interactions are admitted where their parts are significant."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

from sparsact.hypercube import Subset
from sparsact.learners.low_degree.normal_equations import NormalEquations
from sparsact.learners.low_degree.polynomial import Family

_LEVEL: Final = 0.05  # of the tests


def hierarchical(equations: NormalEquations, family: Family, rule: str) -> NDArray[np.intp]:
    """Places in the family of the subsets that a heredity rule admits and the rows support.

    Sizes are visited upwards. A subset is a candidate when all (``"strong"``) or any (``"weak"``) of its subsets with
    one coordinate less were kept; the smallest size is always a candidate. Candidates are kept when the t-test of their
    coefficient, next to those kept before, passes at level 0.05 / (number of candidates), so that at each size the
    chance of keeping any null term is at most 5 %.

    Notes
    -----
    Intervals after a selection by the same rows are too narrow; judge the selected model on other rows.
    """
    enough = all if rule == "strong" else any
    kept: list[int] = []
    names: set[Subset] = set()
    by_size = np.array([len(subset) for subset in family.subsets])
    for size in np.unique(by_size):
        smallest = size == by_size[0]
        candidates = [
            place
            for place in np.flatnonzero(by_size == size).tolist()
            if smallest or enough(part in names for part in _parts(family.subsets[place]))
        ]
        if not candidates:
            break
        passed = _significant(equations, [*kept, *candidates], len(candidates))
        kept += passed
        names |= {family.subsets[place] for place in passed}
    return np.sort(np.array(kept, dtype=np.intp))


def _parts(subset: Subset) -> list[Subset]:
    return [subset[:i] + subset[i + 1 :] for i in range(len(subset))]


def _significant(equations: NormalEquations, places: list[int], n_candidates: int) -> list[int]:
    """The last ``n_candidates`` places whose t-test passes."""
    part = equations.part(np.array(places, dtype=np.intp))
    factor = part.factor(0.0)
    freedom = part.n_rows - factor.rank - 1
    if freedom < 1:
        return places[-n_candidates:]  # nothing can be tested: the rows are too few to refuse anything
    coef = factor.solve(part.rhs)
    variance = part.squared_error(coef, part.feature_mean, part.target_mean) / freedom
    error = np.sqrt(np.maximum(factor.inverse.diagonal(), 0.0)[:, None] * variance)
    critical = t.ppf(1 - _LEVEL / (2 * n_candidates * coef.shape[1]), freedom)
    passed = (np.abs(coef) > critical * error).any(axis=1)[-n_candidates:]
    return [place for place, ok in zip(places[-n_candidates:], passed.tolist(), strict=True) if ok]
