"""Gaussian processes on the cube as models of a table: of all rows and by fold, and the strongest effects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from sparsact.datasets import Encoding, Table
from sparsact.fit.explain import intervals
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.options import FitOptions
from sparsact.fit.progress import Stages
from sparsact.fit.sums import RowSample
from sparsact.fit.term import CONFIDENCE, Term
from sparsact.learners import CubeGPRegressor

MOST_COLUMNS = 16  # a transform of 2**16 numbers takes a millisecond
MOST_ROWS = 30_000
TERMS = 40  # whose variances are computed


def fitted_gp(table: Table, options: FitOptions, sample: RowSample, stages: Stages) -> tuple[Any, HeldOutScores]:
    """A Gaussian process of every row, or of a sample of many, and how such processes predict the folds left out.

    Those of the folds learn their hyperparameters from rows outside of the fold.
    """
    X, y, folds = sample.at_most(MOST_ROWS)
    X = X.astype(bool)  # bits, even where all are 1
    weights = sample.weights[sample.smallest(MOST_ROWS)] if options.weighted else None
    models = []
    with stages.stage("fitting Gaussian processes", (options.folds + 1) * len(X)) as on_rows:
        for fold in (None, *range(options.folds)):
            rows = slice(None) if fold is None else folds != fold
            model = CubeGPRegressor(domain="cube", random_state=options.random_state)
            models.append(model.fit(X[rows], y[rows], None if weights is None else weights[rows]))
            on_rows(len(X))
    scores = HeldOutScores.of(models[1:], table.encoding.targets[0], X, y, folds)
    return models[0], replace(scores, weights=weights)


def gp_terms(model: Any, encoding: Encoding, n_terms: int = TERMS) -> tuple[Term, ...]:
    """The largest posterior means of coefficients, with their posterior intervals, each by itself and all at once.

    The q-value is twice the posterior probability that the sign is wrong: the prior, learned from all effects, has
    shrunk those that are many already.
    """
    strongest = [pair for pair in model.spectrum_.top(n_terms, min_degree=1) if pair[1]]
    subsets = [subset for subset, _ in strongest]
    bounds = intervals(model, 0, subsets)
    joint = intervals(model, 0, subsets, 1 - (1 - CONFIDENCE) / max(1, len(subsets)))
    means = np.array([mean for _, mean in strongest])
    q_values = 2 * ndtr(-np.abs(means) / model.standard_errors(subsets)) if subsets else means
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
        for (subset, mean), ends, of_all, q_value in zip(strongest, bounds, joint, q_values.tolist(), strict=True)
    )
