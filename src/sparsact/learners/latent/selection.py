"""Degree and link by the log-likelihood of held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import n_subsets
from sparsact.learners.gp.kernel import Array
from sparsact.learners.latent.fitting import MeasuredRows, fitted_polynomial
from sparsact.learners.points import unpack
from sparsact.statistics.folds import out_of_fold

FOLDS: Final = 5
_MOST_ROWS: Final = 4_000  # that choose
MOST_MONOMIALS: Final = 1_000  # of degree 2 and more
MOST_COLUMNS: Final = 2_000  # of degree 1: their covariance is factorized in a tenth of a second
_HIGHEST_DEGREE: Final = 4
_ERRORS: Final = 2.0  # standard errors by which a less simple candidate must be ahead


@dataclass(frozen=True)
class LatentCandidate:
    """A link and a degree, and the mean log-likelihood of held-out rows."""

    link: str
    degree: int
    log_likelihood: float


def degrees_to_try(n: int, n_rows: int) -> list[int]:
    """Degrees up to 4 of at most 1,000 monomials and as many as there are rows; 1 in any case."""
    most = min(MOST_MONOMIALS, n_rows)
    return [1, *(d for d in range(2, min(n, _HIGHEST_DEGREE) + 1) if n_subsets(n, d) <= most)]


def chosen(
    rows: MeasuredRows,
    links: list[str],
    degrees: list[int],
    alpha: float | None,
    rng: np.random.Generator,
    max_iter: int,
) -> tuple[str, int, list[LatentCandidate]]:
    """The link and degree of greatest held-out log-likelihood, and all that were tried.

    Links come from the simplest on, and so do degrees, which rise until one is no better than the one below. One that
    is less simple must be ahead by two standard errors of the mean difference.
    """
    if (m := rows.points.n_rows) > _MOST_ROWS:
        rows = rows.take(np.sort(rng.permutation(m)[:_MOST_ROWS]))
    folds = _folds(rows, rng)
    tried: list[LatentCandidate] = []
    best: tuple[str, int, Array] = links[0], degrees[0], np.full(len(folds), -np.inf)
    weights = rows.targets.weights
    for link in links:
        before = -np.inf
        for degree in degrees:
            found = _held_out(rows, folds, link, degree, alpha, max_iter)
            mean = float(np.average(found, weights=weights))
            tried.append(LatentCandidate(link, degree, mean))
            if not np.isfinite(best[2][0]) or _is_ahead(found, best[2], weights):
                best = link, degree, found
            if mean <= before:
                break
            before = mean
    return best[0], best[1], tried


def _is_ahead(found: Array, best: Array, weights: Array) -> bool:
    difference = found - best
    mean = np.average(difference, weights=weights)
    error = np.sqrt(np.average((difference - mean) ** 2, weights=weights) / weights.sum())
    return bool(mean > _ERRORS * error)


def _folds(rows: MeasuredRows, rng: np.random.Generator) -> NDArray[np.intp]:
    """Folds of the rows, with as many measured and censored ones in each."""
    folds = np.empty(rows.points.n_rows, dtype=np.intp)
    shuffled = rng.permutation(len(folds))
    by_side = shuffled[np.argsort(rows.targets.side[shuffled], kind="stable")]
    folds[by_side] = np.arange(len(folds)) % FOLDS
    return folds


def _held_out(
    rows: MeasuredRows, folds: NDArray[np.intp], link: str, degree: int, alpha: float | None, max_iter: int
) -> Array:
    """Log-likelihood of each row by a fit of the other folds."""

    def densities(_: int, left: NDArray[np.bool_]) -> Array:
        # one that did not converge is scored as it is: by rows that it has not seen
        fitted = fitted_polynomial(rows.take(~left), link, degree, alpha, max_iter)
        moments = fitted.latent.given_curve(unpack(rows.points[left], "bits"))
        return fitted.measurement.log_densities(*moments, rows.take(left).of(link))

    return out_of_fold(folds, densities)
