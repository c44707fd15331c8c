"""Lasso polynomials of a table, from the same sums of folds as polynomials with a ridge penalty."""

from __future__ import annotations

from typing import Final

from sparsact.fit.candidate import CandidateKind, Facts, Fit, FitRun
from sparsact.fit.candidates.low_degree import polynomial, select_polynomial


class LassoCandidate(CandidateKind):
    """Lasso polynomials."""

    kind, name, rank, is_polynomial = "lasso", "a lasso polynomial", 6, True
    handicap, has_intervals, takes_weights, searches_bits = 1.01, False, True, True

    def competes(self, facts: Facts) -> bool:
        """It competes for one function."""
        return facts.one_function and super().competes(facts)

    def fit(self, run: FitRun) -> Fit:
        """The polynomial of the degree and penalty with the least held-out error."""
        with run.stages.stage("choosing terms by the lasso"):
            by_lasso = run.sums.by_lasso()
            return polynomial(run, by_lasso, select_polynomial(by_lasso.search, run.options))


CANDIDATE: Final = LassoCandidate()
