"""Held-out error of every degree and penalty, from one statistic a fold; and which fold a row of a stream goes to."""

from __future__ import annotations

from itertools import count
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.low_degree.family import Family
from sparsact.learners.low_degree.moments import Moments
from sparsact.learners.low_degree.normal_equations import NormalEquations, normal_equations
from sparsact.learners.low_degree.plan import plan
from sparsact.learners.low_degree.real import RealStatistic
from sparsact.learners.low_degree.solve import Penalty, solve, squared_error
from sparsact.learners.low_degree.stream import Request, Stream

_MOST_SHUFFLED = 1 << 16


def fold_scores(
    stream: Stream, request: Request, degrees: list[int], alphas: list[float], *, fit_intercept: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Held-out mean squared errors (degrees, alphas, folds, T), and each fold's variance about its mean (folds, T).

    Of targets of size one, as :meth:`Stream.in_unit` gives them: else squares may overflow or vanish.
    """
    shape = (len(degrees), len(alphas), stream.n_folds, stream.n_targets)
    squared, variance = np.empty(shape), np.empty(shape[2:])
    everything = stream.total()
    for fold, held_out in enumerate(stream.statistics):
        training = everything.copy()
        training.merge(held_out if type(held_out) is type(training) else _alike(held_out, training), -1)
        squared[:, :, fold], variance[fold] = _scores(training, held_out, request, degrees, alphas, fit_intercept)
    return squared, variance


def _alike(held_out: Any, training: Any) -> Any:
    """The fold in the form of the total."""
    twin = training.copy()
    twin.merge(training, -1)
    twin.absorb(held_out.copy())
    return twin


def _scores(
    training: Any, held_out: Any, request: Request, degrees: list[int], alphas: list[float], fit_intercept: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    squared = np.empty((len(degrees), len(alphas), held_out.n_targets))
    written: tuple[NormalEquations, NormalEquations] | None = None
    for i in reversed(range(len(degrees))):  # the largest first: lower degrees are its leading part
        wanted = request.of_degree(degrees[i])
        if isinstance(training, RealStatistic):
            if written is None:
                written = (
                    training.normal_equations(fit_intercept=fit_intercept),
                    held_out.normal_equations(fit_intercept=fit_intercept),
                )
            family = training.family.leading(wanted.family(training.family.n))
            squared[i] = _by_equations(*written, family, alphas)
            continue
        size = wanted.size(training.n, training.totals.n_rows, training.n_targets)
        route = plan(size, request.solver, request.max_memory, rows_kept=not isinstance(training, Moments))
        family = wanted.family(training.n)
        if route.solver != "kernel" and not route.iterative:
            if written is None:
                written = (
                    normal_equations(training, family, fit_intercept=fit_intercept, n_threads=request.n_threads),
                    normal_equations(held_out, family, fit_intercept=fit_intercept, n_threads=request.n_threads),
                )
            squared[i] = _by_equations(*written, family, alphas)
            continue
        for j, alpha in enumerate(alphas):
            penalty = Penalty("ridge", alpha, fit_intercept)
            polynomial = solve(training, family, route, penalty, n_threads=request.n_threads).polynomial
            squared[i, j] = squared_error(held_out, polynomial, n_threads=request.n_threads) / _weight(held_out)
    return squared, _variance(held_out)


def _by_equations(
    training: NormalEquations, held_out: NormalEquations, family: Family, alphas: list[float]
) -> NDArray[np.float64]:
    """Mean squared errors (alphas, T) by quadratic forms in the held-out equations."""
    leading = slice(len(family))
    train, test = training.part(leading), held_out.part(leading)
    errors = []
    for alpha in alphas:
        coef = train.factor(alpha).solve(train.rhs)
        errors.append(test.squared_error(coef, train.feature_mean, train.target_mean) / test.weight)
    return np.stack(errors)


def _weight(statistic: Any) -> float:
    return float(statistic.weight if isinstance(statistic, RealStatistic) else statistic.totals.total_weight())


def _variance(statistic: Any) -> NDArray[np.float64]:
    if isinstance(statistic, RealStatistic):
        return np.asarray(statistic.normal_equations(fit_intercept=True).target_squares / statistic.weight)
    totals, weight = statistic.totals, statistic.totals.total_weight()
    return np.asarray(totals.squares_about(totals.sums.to_float() / weight) / weight)


def summary(
    degrees: list[int], alphas: list[float], squared: NDArray[np.float64], variance: NDArray[np.float64]
) -> dict[str, NDArray[Any]]:
    """Table of candidates; ``squared`` (degrees, alphas, folds, T) are held-out mean squared errors."""
    constant = np.where(squared == 0, 1.0, 0.0)  # scikit-learn's R2 of a constant target
    r2 = np.where(variance > 0, 1 - squared / np.where(variance > 0, variance, 1.0), constant)
    r2 = r2.mean(axis=-1).reshape(-1, squared.shape[2])
    mse = squared.mean(axis=-1).reshape(-1, squared.shape[2])
    grid_degree, grid_alpha = np.meshgrid(degrees, alphas, indexing="ij")
    return {
        "degree": grid_degree.ravel(),
        "alpha": grid_alpha.ravel(),
        "mean_mse": mse.mean(axis=1),
        "std_mse": mse.std(axis=1),
        "mean_r2": r2.mean(axis=1),
        "std_r2": r2.std(axis=1),
        "fold_mse": mse,
        "fold_r2": r2,
    }


def dealt(first: int, n_rows: int, n_folds: int, seed: int) -> NDArray[np.intp]:
    """Folds of rows first..first + n_rows - 1 of a stream: each block of ``n_folds`` rows is a random permutation.

    Depends on the row's number and the seed alone, not on how the stream was cut. Blocks of very many folds are never
    written out: their permutations are affine, with a random multiplier and shift.
    """
    if n_folds > _MOST_SHUFFLED:
        return np.array([_affine(row // n_folds, row % n_folds, n_folds, seed) for row in range(first, first + n_rows)])
    block = np.arange(first // n_folds, (first + n_rows - 1) // n_folds + 1)
    numbers = block[:, None] * n_folds + np.arange(n_folds)
    keys = _mixed(numbers.astype(np.uint64), seed)
    folds = keys.argsort(axis=1, kind="stable").ravel()
    return folds[first % n_folds :][:n_rows]


def _affine(block: int, place: int, n_folds: int, seed: int) -> int:
    """Where a permutation that depends on the block and the seed takes a place."""
    for draw in count():
        shift, factor = (int(word) for word in _mixed(np.array([block, draw + 1], dtype=np.uint64), seed))
        if gcd(factor, n_folds) == 1:
            return (factor * place + shift) % n_folds
    raise AssertionError  # some odd number in 64 bits is prime to n_folds


def _mixed(numbers: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """SplitMix64 (Steele, Lea, Flood 2014): random-looking words that depend on the number and the seed alone."""
    with np.errstate(over="ignore"):
        z = (numbers + np.uint64(int(seed) % 2**64)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))
