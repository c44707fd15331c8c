"""Gaussian processes on the cube as models of a table: one for each of some kernels, of all rows and by fold."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from sparsact.datasets import Encoding, Table
from sparsact.fit.explain import intervals
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.options import FitOptions
from sparsact.fit.progress import Stages
from sparsact.fit.sums import RowSample
from sparsact.fit.term import CONFIDENCE, Term
from sparsact.kernels.threads import in_threads
from sparsact.learners import CubeGPRegressor

MOST_COLUMNS = 16  # a transform of 2**16 numbers takes a millisecond
MOST_ROWS = 30_000
KERNELS_OF_FEW = ("degree", "product", "degree_site")  # with more parameters, few rows mislead
KERNELS = ("product", "product + product", "degree_site + product", "degree_site_pair")
KERNELS_OF_MANY = ("degree_site + product", "degree_site_pair")  # which hold the others as special cases
FEW_ROWS, MANY_ROWS = 100, 10_000
LEAST_ROWS_TO_WARP = 80
HYPERPARAMETER_ROWS = 800
TERMS = 40  # whose variances are computed

Array = NDArray[np.float64]
Fitted = tuple[Any, HeldOutScores]


@dataclass(frozen=True)
class WarpedProcess:
    """A Gaussian process of a monotone function of the target, and an isotonic regression back."""

    process: CubeGPRegressor
    back: Any

    def predict(self, X: NDArray[Any]) -> Array:
        """Values (m,)."""
        return np.asarray(self.back.predict(self.process.predict(X)))


def fitted_processes(
    table: Table, options: FitOptions, sample: RowSample, stages: Stages, *, warped: bool
) -> dict[str, Fitted]:
    """By kernel a Gaussian process of every row, or of a sample of many, and how such processes predict left-out folds.

    Those of the folds learn their hyperparameters from rows outside of the fold; the search begins at those of all.
    With ``warped``, and not too few rows, some are of a monotone function of the target (:class:`WarpedProcess`).
    """
    X, y, folds = sample.at_most(MOST_ROWS)
    X, target = X.astype(bool), table.encoding.targets[0]  # bits, even where all are 1
    tasks = {kernel: (kernel, y) for kernel in kernels_for(len(X))}
    if warped and LEAST_ROWS_TO_WARP <= len(X) < MANY_ROWS:
        tasks |= {f"product of {name}": ("product", warp(y)) for name, warp in WARPS.items()}

    weights = sample.weights[sample.smallest(MOST_ROWS)] if options.weighted else None

    def fitted(task: tuple[str, Array]) -> Fitted:
        kernel, values = task
        process = CubeGPRegressor(
            kernel,
            n_hyperparameter_rows=HYPERPARAMETER_ROWS,
            warm_start=True,
            domain="cube",
            random_state=options.random_state,
        ).fit(X, values, weights)
        models = []
        for fold in range(options.folds):
            rows = folds != fold
            models.append(copy(process).fit(X[rows], values[rows], None if weights is None else weights[rows]))
        scores = replace(HeldOutScores.of(models, target, X, values, folds), weights=weights)
        return (process, scores) if values is y else _unwarped(process, scores, y)

    found: dict[str, Fitted] = {}
    n_rows = (options.folds + 1) * len(X)
    with stages.stage("fitting Gaussian processes", len(tasks) * n_rows) as on_rows:
        for name, result in zip(tasks, in_threads(fitted, tasks.values()), strict=True):
            found[name] = result
            on_rows(n_rows)
    return found


def kernels_for(n_rows: int) -> tuple[str, ...]:
    """Kernels that are worth their time."""
    return KERNELS_OF_FEW if n_rows < FEW_ROWS else KERNELS if n_rows < MANY_ROWS else KERNELS_OF_MANY


def _unwarped(process: CubeGPRegressor, scores: HeldOutScores, y: Array) -> Fitted:
    """In units of the target: isotonic regression on predictions of rows left out, of a fold on those of the others."""
    from sklearn.isotonic import IsotonicRegression

    def back(rows: Any) -> Any:
        return IsotonicRegression(out_of_bounds="clip").fit(scores.predicted[rows, 0], y[rows])

    predicted = np.empty_like(scores.predicted)
    for fold in np.unique(scores.folds):
        left = scores.folds == fold
        predicted[left, 0] = back(~left).predict(scores.predicted[left, 0])
    return WarpedProcess(process, back(slice(None))), HeldOutScores(y[:, None], predicted, scores.folds)


def normal_scores(y: Array) -> Array:
    """Quantiles of the normal distribution at the ranks."""
    return np.asarray(ndtri((rankdata(y) - 0.5) / len(y)))


def inverse_sines(y: Array) -> Array:
    """Logarithms of large distances from the median, in both directions."""
    return np.arcsinh((y - np.median(y)) / (0.3 * y.std() or 1.0))


WARPS = {"normal scores": normal_scores, "inverse sines": inverse_sines}


def gp_terms(model: Any, encoding: Encoding, n_terms: int = TERMS) -> tuple[Term, ...]:
    """The largest coefficients of a model with a spectrum, with posterior intervals, each by itself and all at once.

    The q-value is twice the posterior probability that the sign is wrong: the prior, learned from all effects, has
    shrunk those that are many already.
    """
    strongest = [pair for pair in model.spectrum_.top(n_terms, min_degree=1) if pair[1]]
    subsets = [subset for subset, _ in strongest]
    bounds = intervals(model, 0, subsets)
    joint = intervals(model, 0, subsets, 1 - (1 - CONFIDENCE) / max(1, len(subsets)))
    means = np.array([mean for _, mean in strongest])
    wrong = 2 * ndtr(-np.abs(means) / model.standard_errors(subsets)) if subsets else means
    q_values = [None if np.isnan(probability) else probability for probability in wrong.tolist()]
    return tuple(
        Term(
            tuple(encoding.feature_names[i] for i in subset),
            mean,
            *ends,
            q_value=q_value,
            joint_low=of_all[0],
            joint_high=of_all[1],
            n_bits=len(subset),
        )
        for (subset, mean), ends, of_all, q_value in zip(strongest, bounds, joint, q_values, strict=True)
    )
