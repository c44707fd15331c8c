"""Uncertainty of contrasts of any fitted model: weighted sums of its values at some rows, such as differences."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsact.kernels.dispatch import blas_threads
from sparsact.learners.cube_ensemble import CubeEnsemble
from sparsact.learners.cube_gp import CubeGPRegressor
from sparsact.learners.latent import LatentRegressor
from sparsact.learners.letters import LettersRegressor
from sparsact.learners.letters.contrasts import ensemble_deviations
from sparsact.learners.low_degree import LowDegreeClassifier, LowDegreeRegressor
from sparsact.learners.low_degree.interpretation import contrast_errors
from sparsact.learners.predictor import predictor

Array = NDArray[np.float64]
Rows = NDArray[Any]


@singledispatch
def contrast_deviations(model: Any, X: Rows, weights: csr_array) -> Array:
    """Posterior deviations (k, n_outputs) of weighted sums (k, m) of a fitted model's values at distinct rows (m, n).

    The weights of each sum add up to 0. By the joint posterior of the values where the model has one, else NaN:
    processes, polynomials with a ridge penalty, and measurement models, whose latent is meant. An ensemble of models of
    bits has the deviations of its coefficients only, whose errors are taken as uncorrelated.
    """
    return np.full((weights.shape[0], predictor(model).n_outputs), np.nan)


@contrast_deviations.register
def _of_letters(model: LettersRegressor, X: Rows, weights: csr_array) -> Array:
    with blas_threads(0):
        return ensemble_deviations(model._ensemble, model._alphabet.codes(X), weights)[:, None]


@contrast_deviations.register
def _of_polynomials(model: LowDegreeRegressor | LowDegreeClassifier, X: Rows, weights: csr_array) -> Array:
    signs = 1.0 - 2.0 * X if model.encoding_ == "bits" else X.astype(np.float64)
    found = None if model.encoding_ is None else contrast_errors(model._fitted, signs, weights)
    return np.full((weights.shape[0], predictor(model).n_outputs), np.nan) if found is None else found


@contrast_deviations.register
def _of_processes(model: CubeGPRegressor, X: Rows, weights: csr_array) -> Array:
    with blas_threads(len(model._posterior.rows) ** 3 / 3):
        return model._posterior.contrast_deviations(model._bits(X), weights)[:, None]


@contrast_deviations.register
def _of_measurements(model: LatentRegressor, X: Rows, weights: csr_array) -> Array:
    return model._fitted.latent.contrast_deviations(model._bits(X), weights).reshape(weights.shape[0], -1)


@contrast_deviations.register
def _of_ensembles(model: CubeEnsemble, X: Rows, weights: csr_array) -> Array:
    return model.contrast_deviations(X, weights)[:, None]
