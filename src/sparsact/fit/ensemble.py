"""Ensembles of the models of a table of bits: their weighted mean, by the rows that each has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.fit.gp_candidate import ProcessCandidate, WarpedProcess, refused_beyond
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.kind import Facts, FitRun, Fitted
from sparsact.fit.scores import LEAST_WEIGHT
from sparsact.fit.sums import RowSample, values
from sparsact.hypercube import points, signs_to_bits
from sparsact.learners import CubeGPRegressor
from sparsact.learners.cube_ensemble import LARGEST_CUBE, CubeEnsemble
from sparsact.learners.latent.targets import pinned
from sparsact.learners.stacking import stacking_weights

Array = NDArray[np.float64]

PRIOR: Final = {"low-degree": 0.3, "sparse": 0.3, "lasso": 0.3}  # of all others 1
PRIOR_OF_FEW: Final = {"latent": 2.0, "product of logarithms": 0.5, "trees of 8 leaves": 0.5}
MARGIN: Final = 0.5  # of the range of the targets
FEW_ROWS: Final = 100  # below, polynomials are left out: their held-out errors come in jumps


@dataclass(frozen=True)
class WeightedModels:
    """Fitted models with weights, and the absolute errors of their mean at rows left out."""

    models: Mapping[str, Any]
    weights: Mapping[str, float]
    bounds: tuple[float, float]
    errors: Array

    def on_cube(self, n_columns: int) -> CubeEnsemble:
        """Their mean at all points, which takes seconds from 18 columns on; predictions stay within the bounds."""
        cube, of_all = signs_to_bits(points(n_columns)), np.zeros(1 << n_columns)
        for name, weight in self.weights.items():
            if weight:
                of_all += weight * _at_all_points(self.models[name], cube).clip(*self.bounds)
        return CubeEnsemble(of_all, self.weights, self.errors)


def _at_all_points(model: Any, cube: NDArray[Any]) -> Array:
    if isinstance(model, WarpedProcess):
        return np.asarray(model.back(_at_all_points(model.process, cube)))
    if isinstance(model, CubeGPRegressor):
        return model.spectrum_.values()
    return values(model, cube)[:, 0]


def weighted_models(
    members: Mapping[str, tuple[Any, HeldOutScores]], sample: RowSample
) -> tuple[WeightedModels, HeldOutScores]:
    """Weights of fitted models, and held-out scores of their mean.

    Predictions are clipped to the :func:`reach` of the targets. The weights of all rows are learned from the
    predictions of rows left out; those that a fold is scored with, from the other folds.

    Parameters
    ----------
    members : mapping
        By name a model and its held-out scores.
    sample : RowSample
        The rows of the scores.
    """
    n_rows = min(len(scores.folds) for _, scores in members.values())
    priors = PRIOR
    if n_rows < FEW_ROWS:
        priors, members = PRIOR_OF_FEW, {name: member for name, member in members.items() if name not in PRIOR}
    held_out = [_rows_of(scores, sample, n_rows) for _, scores in members.values()]
    first = held_out[0]
    y, folds = first.actual[:, 0], first.folds
    predicted = np.column_stack([scores.predicted[:, 0] for scores in held_out])
    prior = np.array([priors.get(name, 1.0) for name in members])
    stacked = np.empty(len(y))
    for fold in np.unique(folds):
        seen, left = folds != fold, folds == fold
        low, high = reach(y[seen])
        predicted[left] = predicted[left].clip(low, high)
        stacked[left] = predicted[left] @ stacking_weights(predicted[seen].clip(low, high), y[seen], prior)
    weights = stacking_weights(predicted, y, prior)
    models = {name: model for name, (model, _) in members.items()}
    named = dict(zip(members, weights.tolist(), strict=True))
    found = WeightedModels(models, named, reach(y), np.abs(stacked - y))
    return found, replace(first, predicted=stacked[:, None])


def reach(y: Array) -> tuple[float, float]:
    """Limits of predictions: half the targets' range beyond them, but not beyond a bound where many are pinned."""
    low, high = pinned(y, np.ones(len(y)))
    beyond = MARGIN * float(np.ptp(y))
    return max(low, float(y.min()) - beyond), min(high, float(y.max()) + beyond)


def _rows_of(scores: HeldOutScores, sample: RowSample, n_rows: int) -> HeldOutScores:
    """The scores of the first rows of the sample."""
    places = np.searchsorted(sample.smallest(len(scores.folds)), sample.smallest(n_rows))
    return HeldOutScores(scores.actual[places], scores.predicted[places], scores.folds[places])


def with_deviations(ensemble: CubeEnsemble, process: Any) -> CubeEnsemble:
    """An ensemble whose coefficients have the posterior deviations of one of its Gaussian processes.

    The distance between both functions' coefficients is added, as the root of the sum of squares.
    """
    away = ensemble.spectrum_.coefficients - process.spectrum_.coefficients
    return ensemble.with_deviations(np.hypot(process.standard_errors(), away))


class EnsembleCandidate(ProcessCandidate):
    """The weighted mean of all other models; a Gaussian process, too, has a spectrum of all coefficients."""

    kind, name, takes_weights = "ensemble", "an ensemble of models", False
    handicap = 1.01
    needs = ("sparse", "lasso", "gp", "trees")
    members = ("sparse", "lasso", "latent", "network")  # besides all processes and trees
    competing = ("low-degree", *members)
    terms_of = (
        "The effects are exact for the weighted mean of the models. Their 95 % intervals are posterior intervals of "
        "its best Gaussian process, widened by the distance of its effects from the mean's."
    )

    def refusal(self, facts: Facts) -> str:
        """Classes are refused, and too many columns."""
        return refused_beyond(facts, self.name, LARGEST_CUBE)

    def fit(self, run: FitRun) -> Fitted | None:
        """Weigh the models; they are evaluated at all points once they are chosen.

        None where all weight is on one that competes by itself, unless an ensemble was asked for.
        """
        run.members |= {kind: run.fitted[kind] for kind in self.members if kind in run.fitted}
        run.members["low-degree"] = run.polynomial(run.sums, run.selected)
        with run.stages.stage("weighting models"):
            found, scores = weighted_models(run.members, run.sample)
        single = max(found.weights, key=lambda name: found.weights[name])
        if single in self.competing and found.weights[single] > 1 - LEAST_WEIGHT and run.options.model != self.kind:
            return None
        return found, scores

    def finished(self, model: Any, run: FitRun) -> Any:
        """The mean at all points, with the deviations of the best process where effects are shown."""
        ensemble = model.on_cube(len(run.table.feature_names))
        return with_deviations(ensemble, run.fitted[ProcessCandidate.kind][0]) if run.options.explain else ensemble
