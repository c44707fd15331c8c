"""Sparse polynomials of a table: the significant monomials among all of some degree, from all rows and by fold."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets import Table
from sparsact.datasets.columns import Classes
from sparsact.fit.choose import select_polynomial
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.kind import CandidateKind, Facts, FitRun, Fitted, refused_without_bits
from sparsact.fit.options import FitOptions
from sparsact.fit.scores import ROUNDING
from sparsact.fit.sums import RowSample, as_numbers
from sparsact.hypercube import n_subsets
from sparsact.learners import LowDegreeClassifier, LowDegreeRegressor, SparseFourierRegressor
from sparsact.learners.sparse_fourier.regressor import LARGEST_DEGREE
from sparsact.passes.progress import Stages
from sparsact.statistics.simplest import simplest

DEGREES: Final = (2, 3, LARGEST_DEGREE)  # that are compared, as far as they are within reach
PRODUCTS: Final = 2e10  # rows times monomials of a scan: a tenth of a second


def degrees_to_scan(n: int, n_rows: int) -> tuple[int, ...]:
    """Degrees whose scan takes at most ``PRODUCTS`` products."""
    reach = [d for d in range(2, min(n, LARGEST_DEGREE) + 1) if n_subsets(n, d, 1) * n_rows <= PRODUCTS]
    largest = max(reach, default=1)
    return tuple(sorted({min(degree, largest) for degree in DEGREES}))


def fitted_sparse(table: Table, options: FitOptions, sample: RowSample, stages: Stages) -> tuple[Any, HeldOutScores]:
    """The least squares on monomials that all rows choose, and how such polynomials predict the folds left out.

    The degree is the lowest one of :func:`degrees_to_scan` that is as good as the best, by :func:`.simplest`.
    """
    X, y, folds = sample.rows()
    X = X.astype(bool)  # bits, even where all are 1
    target, degrees = table.encoding.targets[0], degrees_to_scan(X.shape[1], len(X))
    found: dict[int, HeldOutScores] = {}
    with stages.stage("searching monomials", len(X) * (len(degrees) * options.folds + 1)) as on_rows:
        for degree in degrees:
            models = []
            for fold in range(options.folds):
                models.append(_fitted(table, options, X[folds != fold], y[folds != fold], degree))
                on_rows(len(X))
            found[degree] = HeldOutScores.of(models, target, X, y, folds)
        errors = np.square([found[degree].rmse()[0].folds for degree in degrees])
        best = degrees[simplest(errors, ROUNDING * float(y.var()))]
        model = _fitted(table, options, X, y, best)
        on_rows(len(X))
    return model, found[best]


def _fitted(table: Table, options: FitOptions, X: NDArray[Any], y: NDArray[np.float64], degree: int) -> Any:
    target = table.encoding.targets[0]
    search = SparseFourierRegressor(degree, domain="cube", random_state=options.random_state)
    subsets = search.fit(X, as_numbers(target, y)).subsets_
    settings: dict[str, Any] = {"degree": max(map(len, subsets), default=1), "subsets": subsets, "domain": "cube"}
    if isinstance(target, Classes):
        return LowDegreeClassifier(**settings).partial_fit(X, target.labels[y.astype(np.intp)], classes=target.labels)
    return LowDegreeRegressor(**settings).fit(X, y)


class SparseCandidate(CandidateKind):
    """Significant monomials."""

    kind, name, is_polynomial = "sparse", "a sparse polynomial", True
    terms_of = (
        "These rows have chosen the terms, each significant among all products that were searched (5 %, Bonferroni), "
        "so that intervals of weak ones are a little too narrow."
    )

    def refusal(self, facts: Facts) -> str:
        """Columns that are not bits are refused."""
        return refused_without_bits(facts, self.name)

    def competes(self, facts: Facts) -> bool:
        """It competes where there are no letters."""
        return not facts.of_letters and not self.refusal(facts)

    def fit(self, run: FitRun) -> Fitted:
        """The polynomial of the degree with the best held-out R2."""
        return fitted_sparse(*run.parts)


class LassoCandidate(CandidateKind):
    """Lasso polynomials, from the same sums of folds as the others."""

    kind, name, is_polynomial = "lasso", "a lasso polynomial", True
    handicap, takes_weights = 1.01, True

    def competes(self, facts: Facts) -> bool:
        """It competes for one function, where there are no letters."""
        return facts.one_function and not facts.of_letters

    def fit(self, run: FitRun) -> Fitted:
        """The polynomial of the degree and penalty with the least held-out error."""
        with run.stages.stage("choosing terms by the lasso"):
            by_lasso = run.sums.by_lasso()
            return run.polynomial(by_lasso, select_polynomial(by_lasso.search, run.options))
