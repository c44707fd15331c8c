"""Gaussian processes on the cube as models of a table: one for each of some kernels, of all rows and by fold."""

from __future__ import annotations

from copy import copy
from typing import Any

from sparsact.datasets import Encoding, Table
from sparsact.fit.explain import CONFIDENCE, Term, intervals
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.options import FitOptions
from sparsact.fit.progress import Stages
from sparsact.fit.sums import RowSample
from sparsact.learners import CubeGPRegressor

MOST_COLUMNS = 16  # a transform of 2**16 numbers takes a millisecond
MOST_ROWS = 30_000
KERNELS_OF_FEW = ("degree", "product", "degree_site")  # with more parameters, few rows mislead
KERNELS = ("product", "product + product", "degree_site + product", "degree_site_pair")
FEW_ROWS = 100
HYPERPARAMETER_ROWS = 800
TERMS = 40  # whose variances are computed

Fitted = tuple[Any, HeldOutScores]


def fitted_processes(table: Table, options: FitOptions, sample: RowSample, stages: Stages) -> dict[str, Fitted]:
    """By kernel a Gaussian process of every row, or of a sample of many, and how such processes predict left-out folds.

    Those of the folds learn their hyperparameters from rows outside of the fold; the search begins at those of all.
    """
    X, y, folds = sample.at_most(MOST_ROWS)
    X = X.astype(bool)  # bits, even where all are 1
    kernels = KERNELS if len(X) >= FEW_ROWS else KERNELS_OF_FEW
    found: dict[str, Fitted] = {}
    with stages.stage("fitting Gaussian processes", len(kernels) * (options.folds + 1) * len(X)) as on_rows:
        for kernel in kernels:
            process = CubeGPRegressor(
                kernel,
                n_hyperparameter_rows=HYPERPARAMETER_ROWS,
                warm_start=True,
                domain="cube",
                random_state=options.random_state,
            ).fit(X, y)
            on_rows(len(X))
            models = []
            for fold in range(options.folds):
                models.append(copy(process).fit(X[folds != fold], y[folds != fold]))
                on_rows(len(X))
            found[kernel] = process, HeldOutScores.of(models, table.encoding.targets[0], X, y, folds)
    return found


def gp_terms(model: Any, encoding: Encoding, n_terms: int = TERMS) -> tuple[Term, ...]:
    """The largest coefficients of a model with a spectrum, with their posterior intervals.

    Significant are those whose intervals for all terms together (Bonferroni) exclude 0.
    """
    strongest = [pair for pair in model.spectrum_.top(n_terms, min_degree=1) if pair[1]]
    subsets = [subset for subset, _ in strongest]
    bounds = intervals(model, 0, subsets)
    bounds_of_all = intervals(model, 0, subsets, 1 - (1 - CONFIDENCE) / max(1, len(subsets)))
    return tuple(
        Term(
            tuple(encoding.feature_names[i] for i in subset),
            mean,
            *ends,
            significant=widest[0] is not None and widest[1] is not None and not widest[0] <= 0 <= widest[1],
            n_bits=len(subset),
        )
        for (subset, mean), ends, widest in zip(strongest, bounds, bounds_of_all, strict=True)
    )
