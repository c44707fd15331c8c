"""Sparse polynomials of a table: the significant monomials among all of some degree, from all rows and by fold."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets.columns import Classes
from sparsact.fit.candidate import CandidateKind, Facts, Fit, FitRun, refused_without_bits
from sparsact.fit.fold_sums import as_numbers
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.scores import ROUNDING
from sparsact.hypercube import n_subsets
from sparsact.learners import LowDegreeClassifier, LowDegreeRegressor, SparseFourierRegressor
from sparsact.learners.low_degree.estimator import LowDegree
from sparsact.learners.sparse_fourier.regressor import LARGEST_DEGREE
from sparsact.statistics.simplest import simplest

DEGREES: Final = (2, 3, LARGEST_DEGREE)  # that are compared, as far as they are within reach
PRODUCTS: Final = 2e10  # rows times monomials of a scan: a tenth of a second


def degrees_to_scan(n: int, n_rows: int) -> tuple[int, ...]:
    """Degrees whose scan takes at most ``PRODUCTS`` products."""
    reach = [d for d in range(2, min(n, LARGEST_DEGREE) + 1) if n_subsets(n, d, 1) * n_rows <= PRODUCTS]
    largest = max(reach, default=1)
    return tuple(sorted({min(degree, largest) for degree in DEGREES}))


def _polynomial(run: FitRun, X: NDArray[Any], y: NDArray[np.float64], degree: int) -> LowDegree:
    target = run.table.encoding.targets[0]
    search = SparseFourierRegressor(degree, domain="cube", random_state=run.options.random_state)
    subsets = search.fit(X, as_numbers(target, y)).subsets_
    settings: dict[str, Any] = {"degree": max(map(len, subsets), default=1), "subsets": subsets, "domain": "cube"}
    if isinstance(target, Classes):
        return LowDegreeClassifier(**settings).partial_fit(X, target.labelled(y), classes=target.labels)
    return LowDegreeRegressor(**settings).fit(X, y)


class SparseCandidate(CandidateKind):
    """Significant monomials."""

    kind, name, rank, is_polynomial, searches_bits = "sparse", "a sparse polynomial", 1, True, True
    terms_of = (
        "The terms were chosen on these rows: each is significant among all products searched (5 %, Bonferroni). "
        "Intervals of weak terms are therefore slightly too narrow."
    )

    def refusal(self, facts: Facts) -> str:
        """Columns that are not bits are refused."""
        return refused_without_bits(facts, self.name)

    def fit(self, run: FitRun) -> Fit:
        """The least squares on monomials that all rows choose, and how such polynomials predict the folds left out.

        The degree is the lowest one of :func:`degrees_to_scan` that is as good as the best, by :func:`.simplest`.
        """
        (X, y, folds), target = run.sample.rows(), run.table.encoding.targets[0]
        X = X.astype(bool)  # bits, even where all are 1
        degrees = degrees_to_scan(X.shape[1], len(X))
        with run.stages.stage("searching monomials", len(X) * (len(degrees) * run.options.folds + 1)) as on_rows:

            def without(fold: int | None, degree: int) -> LowDegree:
                rows = slice(None) if fold is None else folds != fold
                model = _polynomial(run, X[rows], y[rows], degree)
                on_rows(len(X))
                return model

            found = {d: HeldOutScores.of(partial(without, degree=d), target, X, y, folds) for d in degrees}
            errors = np.square([found[degree].rmse()[0].folds for degree in degrees])
            best = degrees[simplest(errors, ROUNDING * float(y.var()))]
            return Fit(without(None, best), found[best])


CANDIDATE: Final = SparseCandidate()
