"""Ensembles of the models of a table of bits: their weighted mean, by the rows that each has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.fit.candidate import Facts, Fit, FitRun
from sparsact.fit.candidates.gp import ProcessCandidate, WarpedProcess, refused_beyond
from sparsact.fit.candidates.low_degree import polynomial
from sparsact.fit.member_names import LEAST_WEIGHT
from sparsact.hypercube import points, signs_to_bits
from sparsact.learners import CubeGPRegressor
from sparsact.learners.cube_ensemble import LARGEST_CUBE, CubeEnsemble
from sparsact.learners.latent.targets import pinned
from sparsact.learners.predictor import predictor
from sparsact.learners.stacking import stacking_weights
from sparsact.statistics.folds import out_of_fold
from sparsact.statistics.row_sample import RowSample

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


def _at_all_points(model: object, cube: NDArray[Any]) -> Array:
    if isinstance(model, WarpedProcess):
        return np.asarray(model.back(_at_all_points(model.process, cube)))
    if isinstance(model, CubeGPRegressor):
        return model.spectrum_.values()
    return predictor(model).values(cube)[:, 0]


def weighted_models(members: Mapping[str, Fit], sample: RowSample) -> Fit:
    """Weights of fitted models, and held-out scores of their mean.

    Predictions are clipped to the :func:`reach` of the targets. The final weights are learned from the held-out
    predictions of all rows; the weights that score a fold, from the held-out predictions of the other folds.

    Parameters
    ----------
    members : mapping
        By name a model and its held-out scores.
    sample : RowSample
        The rows of the scores.
    """
    n_rows = min(len(fit.held_out.folds) for fit in members.values())
    priors = PRIOR
    if n_rows < FEW_ROWS:
        priors, members = PRIOR_OF_FEW, {name: member for name, member in members.items() if name not in PRIOR}
    held_out = [fit.held_out.first(sample, n_rows) for fit in members.values()]
    first = held_out[0]
    y, folds = first.actual[:, 0], first.folds
    predicted = np.column_stack([scores.predicted[:, 0] for scores in held_out])
    prior = np.array([priors.get(name, 1.0) for name in members])

    def stacked(_: int, left: NDArray[np.bool_]) -> Array:
        low, high = reach(y[~left])
        predicted[left] = predicted[left].clip(low, high)
        weights = stacking_weights(predicted[~left].clip(low, high), y[~left], prior)
        return np.asarray(predicted[left] @ weights)[:, None]

    mean = out_of_fold(folds, stacked)
    weights = stacking_weights(predicted, y, prior)
    models = {name: fit.model for name, fit in members.items()}
    named = dict(zip(members, weights.tolist(), strict=True))
    found = WeightedModels(models, named, reach(y), np.abs(mean[:, 0] - y))
    return Fit(found, replace(first, predicted=mean))


def reach(y: Array) -> tuple[float, float]:
    """Limits of predictions: half the targets' range beyond them, but not beyond a bound where many are pinned."""
    low, high = pinned(y, np.ones(len(y)))
    beyond = MARGIN * float(np.ptp(y))
    return max(low, float(y.min()) - beyond), min(high, float(y.max()) + beyond)


def with_deviations(ensemble: CubeEnsemble, process: CubeGPRegressor) -> CubeEnsemble:
    """An ensemble whose coefficients have the posterior deviations of one of its Gaussian processes.

    The distance between both functions' coefficients is added, as the root of the sum of squares.
    """
    away = ensemble.spectrum_.coefficients - process.spectrum_.coefficients
    return ensemble.with_deviations(np.hypot(process.standard_errors(), away))


class EnsembleCandidate(ProcessCandidate):
    """The weighted mean of all other models; a Gaussian process, too, has a spectrum of all coefficients."""

    kind, name, rank, takes_weights = "ensemble", "an ensemble of models", 4, False
    handicap = 1.01
    needs = ("sparse", "lasso", "gp", "trees")
    alone = ("sparse", "lasso", "latent", "network")  # members besides all processes and trees
    competing = ("low-degree", *alone)
    terms_of = (
        "The effects are exact for the weighted mean of the models. The 95 % intervals are posterior intervals of the "
        "best Gaussian process, widened by how far its effects lie from the mean's and by held-out errors."
    )

    def refusal(self, facts: Facts) -> str:
        """Classes are refused, and too many columns."""
        return refused_beyond(facts, self.name, LARGEST_CUBE)

    def fit(self, run: FitRun) -> Fit | str:
        """Weigh the models; they are evaluated at all points once they are chosen.

        Empty where all weight is on one that competes by itself, unless an ensemble was asked for.
        """
        members = {name: member for fit in run.fits.values() for name, member in fit.members.items()}
        members |= {kind: run.fits[kind] for kind in self.alone if kind in run.fits}
        members["low-degree"] = polynomial(run, run.sums, run.selected)
        with run.stages.stage("weighting models"):
            found = weighted_models(members, run.sample)
        weights = found.model.weights
        single = max(weights, key=weights.__getitem__)
        if single in self.competing and weights[single] > 1 - LEAST_WEIGHT and run.options.model != self.kind:
            return ""
        return found

    def finished(self, fit: Fit, run: FitRun) -> Fit:
        """The mean at all points, with the deviations of the best process where effects are shown."""
        ensemble = fit.model.on_cube(len(run.table.feature_names))
        if run.options.explain:
            ensemble = with_deviations(ensemble, run.fits[ProcessCandidate.kind].model)
        return replace(fit, model=ensemble)


CANDIDATE: Final = EnsembleCandidate()
