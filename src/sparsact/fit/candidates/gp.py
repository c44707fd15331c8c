"""Gaussian processes on the cube as models of a table: one for each of some kernels, of all rows and by fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from sparsact.datasets import Encoding
from sparsact.fit.candidate import CandidateKind, Details, Facts, Findings, Fit, FitRun, Targets, refused_without_bits
from sparsact.fit.explain import tested_terms, with_terms
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.target_result import TargetResult
from sparsact.fit.term import Term
from sparsact.hypercube import Subset
from sparsact.kernels.threads import in_threads
from sparsact.learners import CubeGPRegressor, LatentRegressor
from sparsact.learners.cube_ensemble import LARGEST_CUBE, CubeEnsemble
from sparsact.learners.letters.ensemble import Warp, asinh
from sparsact.statistics.folds import out_of_fold
from sparsact.statistics.isotonic import isotonic_curve

MOST_COLUMNS: Final = 64
MOST_NUMBERS: Final = 1 << 31  # rows times points of the cube, where all of these have numbers
MOST_WIDE_ROWS: Final = 12_000  # of more columns, where a step of conjugate gradients takes time by their square
MOST_DENSE_ROWS: Final = 2_000  # up to which folds have processes of their own, by matrices of their rows
KERNELS_OF_FEW: Final = ("product", "sparse_product", "degree_site")  # with more parameters, few rows mislead
KERNELS: Final = ("product", "product + product", "degree_site + product", "degree_site_pair")
KERNELS_OF_MANY: Final = ("degree_site + product", "degree_site_pair")  # which hold the others as special cases
KERNELS_OF_WIDE: Final = ("product", "degree")  # that need no table of all subsets
FEW_ROWS, MANY_ROWS = 100, 10_000
LEAST_ROWS_TO_WARP: Final = 80
LEAST_RATIO: Final = 1.5  # of the largest to the smallest target: logarithms of closer ones are nearly linear
HYPERPARAMETER_ROWS: Final = 800
TERMS: Final = 40  # whose variances are computed
DRAWS, ROWS_DRAWN = 200, 5_000  # of functions from a posterior, and the most rows for which they are quick
LEAST_SHARE: Final = 0.001  # of a degree that is listed

Array = NDArray[np.float64]
Rows = NDArray[np.bool_] | slice
Spectral = CubeGPRegressor | LatentRegressor | CubeEnsemble


@dataclass(frozen=True)
class WarpedProcess:
    """A Gaussian process of a monotone function of the target, and a function back."""

    process: CubeGPRegressor
    back: Callable[[Array], Array]

    def predict(self, X: NDArray[Any]) -> Array:
        """Values (m,)."""
        return np.asarray(self.back(self.process.predict(X)))


def _unwarped(process: CubeGPRegressor, scores: HeldOutScores, y: Array) -> Fit:
    """Back to units of the target: isotonic regression on held-out predictions; for a fold, of the other folds."""

    def back(rows: Rows) -> Callable[[Array], Array]:
        curve = isotonic_curve(scores.predicted[rows, 0], y[rows])
        return lambda values: np.interp(values, *curve)

    predicted = out_of_fold(scores.folds, lambda _, rows: back(~rows)(scores.predicted[rows, 0])[:, None])
    return Fit(WarpedProcess(process, back(slice(None))), HeldOutScores(y[:, None], predicted, scores.folds))


def normal_scores(y: Array) -> Array:
    """Quantiles of the normal distribution at the ranks."""
    return np.asarray(ndtri((rankdata(y) - 0.5) / len(y)))


WARPS: Final[dict[str, Warp]] = {"normal scores": normal_scores, "inverse sines": partial(asinh, linear=0.3)}


def _strongest(model: Spectral, n_terms: int) -> list[tuple[Subset, float]]:
    """The largest coefficients; with more columns than a spectrum has, of one and two columns only."""
    n = model.n_features_in_
    by_polynomial = isinstance(model, LatentRegressor) and model.latent == "low-degree"
    if isinstance(model, CubeEnsemble) or by_polynomial or n <= LARGEST_CUBE:
        spectrum = model.spectrum_
        first = spectrum[0] if isinstance(spectrum, list) else spectrum  # a table's target has one trait
        return list(first.top(n_terms, min_degree=1))
    subsets = [subset for size in (1, 2) for subset in combinations(range(n), size)]
    means = (
        model._posterior.means_of(subsets) if isinstance(model, CubeGPRegressor) else model._coefficients(subsets)[0]
    )
    return [(subsets[i], float(means[i])) for i in np.argsort(-np.abs(means), kind="stable")[:n_terms]]


def gp_terms(model: Spectral, encoding: Encoding, n_terms: int = TERMS) -> tuple[Term, ...]:
    """The largest coefficients of a model with a spectrum, with posterior intervals, each by itself and all at once.

    The q-value is twice the posterior probability that the sign is wrong. It needs no correction for the number
    of effects: the prior, learned from all of them, has shrunk them already.
    """
    strongest = [(subset, mean) for subset, mean in _strongest(model, n_terms) if mean]
    subsets = [subset for subset, _ in strongest]
    means = np.array([mean for _, mean in strongest])
    wrong = 2 * ndtr(-np.abs(means) / model.standard_errors(subsets)) if subsets else means
    q_values = [None if np.isnan(probability) else probability for probability in wrong.tolist()]
    return tuple(tested_terms(model, 0, encoding, subsets, means, q_values, len(subsets)))


def explained_by_spectrum(
    targets: Sequence[TargetResult], model: CubeGPRegressor | CubeEnsemble, encoding: Encoding, points: NDArray[Any]
) -> tuple[TargetResult, ...]:
    """The target with the largest coefficients of a spectrum, and with influences of the columns."""
    weights = tuple(model.spectrum_.weight_by_degree()[1:].tolist()) if _is_cube(points) else ()
    (target,) = with_terms(targets, lambda _: gp_terms(model, encoding), model, encoding, points)
    return (replace(target, weights=weights, posterior_shares=posterior_shares(model)),)


def posterior_shares(model: CubeGPRegressor | CubeEnsemble) -> tuple[tuple[float, float, float], ...]:
    """Shares of the degrees in the variance with 95 % intervals, of a Gaussian process of not too many rows."""
    if not isinstance(model, CubeGPRegressor):
        return ()
    if model.n_features_in_ > LARGEST_CUBE or len(model.X_train_) > ROWS_DRAWN:
        return ()
    shares = model.variance_decomposition(DRAWS).shares
    means, ends = shares.mean(), shares.interval()
    n_shown = int(np.flatnonzero(ends[:, 1] >= LEAST_SHARE).max(initial=0)) + 1
    return tuple(map(tuple, np.column_stack([means, ends])[:n_shown].tolist()))


def _is_cube(points: NDArray[Any]) -> bool:
    """Whether rows of bits are all points of the cube, once each."""
    n_rows, n = points.shape
    return bool(n_rows == 2**n) and len(np.unique(np.packbits(points, axis=1), axis=0)) == n_rows


def refused_beyond(facts: Facts, name: str, most: int) -> str:
    """Why models of numbers on a cube of at most ``most`` columns do not apply to a table."""
    if refusal := refused_without_bits(facts, name):
        return refusal
    if facts.of_numbers and facts.n <= most:
        return ""
    need = f"numbers to predict and at most {most} columns of bits"
    fact = f"there are {facts.n}" if facts.of_numbers else "these are classes"
    return f"{name} needs {need}, but {fact}; choose model sparse."


class PosteriorDetails(Details):
    """Effects have posterior intervals, from the Gaussian process; there are no other facts."""

    by_posterior = True


@dataclass(frozen=True)
class ProcessCandidate(CandidateKind):
    """Gaussian processes: the best kernel's competes, and all are members of an ensemble."""

    kind, name, rank, takes_weights, searches_bits = "gp", "a Gaussian process", 3, True, True
    handicap = 1.1  # a kernel is the best of four
    terms_of = (
        "The effects are posterior means with 95 % posterior intervals, widened by errors on held-out rows. The prior "
        "expects small effects, so weak effects are shrunk towards 0."
    )
    process: Callable[..., CubeGPRegressor] = CubeGPRegressor
    kernels: tuple[str, ...] = KERNELS
    warps: tuple[str, ...] = tuple(WARPS)
    most_rows: int = CandidateKind.most_rows
    most_dense_rows: int = MOST_DENSE_ROWS

    def refusal(self, facts: Facts) -> str:
        """Classes are refused, and too many columns."""
        return refused_beyond(facts, self.name, MOST_COLUMNS)

    def fit(self, run: FitRun) -> Fit | str:
        """The process of the kernel with the best held-out R2."""
        processes = self._processes(run, warped="ensemble" in run.kinds)
        plain = (fit for fit in processes.values() if isinstance(fit.model, CubeGPRegressor))
        return replace(max(plain, key=attrgetter("mean_r2")), members=processes)

    def findings(self, run: FitRun, fit: Fit, targets: Targets) -> Findings:
        """The terms have posterior intervals."""
        rows, _, _ = run.sample.rows()
        return explained_by_spectrum(targets, fit.model, run.table.encoding, rows), PosteriorDetails()

    def rows_for(self, n: int) -> int:
        """Rows that processes of n columns are fitted to."""
        return min(self.most_rows, MOST_NUMBERS >> n) if n <= LARGEST_CUBE else min(self.most_rows, MOST_WIDE_ROWS)

    def kernels_for(self, n_rows: int, n: int) -> tuple[str, ...]:
        """Kernels that are worth their time."""
        if n > LARGEST_CUBE:
            return KERNELS_OF_WIDE if n_rows <= self.most_dense_rows else KERNELS_OF_WIDE[:1]
        return KERNELS_OF_FEW if n_rows < FEW_ROWS else self.kernels if n_rows < MANY_ROWS else KERNELS_OF_MANY

    def _processes(self, run: FitRun, *, warped: bool) -> dict[str, Fit]:
        """Processes by kernel, fitted to all rows or to a sample of many, with predictions of left-out folds.

        A fold's process learns its hyperparameters from rows outside of the fold, starting at the values for all rows.
        With ``warped`` some learn a monotone function of the target (:class:`WarpedProcess`): its logarithm if it is
        positive and not nearly constant, and from 80 rows on ``warps``, which an isotonic regression inverts.
        """
        options, sample, most = run.options, run.sample, self.rows_for(run.n)
        X, y, folds = sample.at_most(most)
        X, target = X.astype(bool), run.table.encoding.targets[0]  # bits, even where all are 1
        tasks = {kernel: (kernel, y) for kernel in self.kernels_for(*X.shape)}
        if warped and LEAST_ROWS_TO_WARP <= len(X) < MANY_ROWS:
            tasks |= {f"product of {name}": ("product", WARPS[name](y)) for name in self.warps}
        logs = np.log(y) if warped and len(X) < MANY_ROWS and 0 < LEAST_RATIO * y.min() < y.max() else y
        if logs is not y:
            tasks["product of logarithms"] = "product", logs

        weights = sample.weights[sample.smallest(most)] if options.weighted else None

        def fitted(task: tuple[str, Array]) -> Fit:
            kernel, values = task
            process = self.process(
                kernel,
                n_hyperparameter_rows=HYPERPARAMETER_ROWS,
                warm_start=True,
                domain="cube",
                random_state=options.random_state,
            ).fit(X, values, weights)
            if process.n_inducing_:  # its kernel is learned from few of the rows, and serves all folds
                predicted = process._out_of_fold(X, values, weights, folds)
                return Fit(process, HeldOutScores(y[:, None], predicted[:, None], folds, weights=weights))

            def without(fold: int) -> CubeGPRegressor:
                rows = folds != fold
                return copy(process).fit(X[rows], values[rows], None if weights is None else weights[rows])

            scores = replace(HeldOutScores.of(without, target, X, values, folds), weights=weights)
            if values is y:
                return Fit(process, scores)
            if values is logs:
                predicted = np.exp(scores.predicted)
                return Fit(WarpedProcess(process, np.exp), replace(scores, actual=y[:, None], predicted=predicted))
            return _unwarped(process, scores, y)

        found: dict[str, Fit] = {}
        n_rows = (options.folds + 1) * len(X)
        with run.stages.stage("fitting Gaussian processes", len(tasks) * n_rows) as on_rows:
            for name, result in zip(tasks, in_threads(fitted, tasks.values()), strict=True):
                found[name] = result
                on_rows(n_rows)
        return found


CANDIDATE: Final = ProcessCandidate()
