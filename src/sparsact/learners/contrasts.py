"""Contrasts of any fitted model: weighted sums of values at some rows, such as differences, and how sure they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsact.kernels.dispatch import blas_threads
from sparsact.learners.cube_ensemble import CubeEnsemble
from sparsact.learners.cube_gp import CubeGPRegressor
from sparsact.learners.latent import LatentRegressor
from sparsact.learners.latent.shared import Traits
from sparsact.learners.letters import LettersRegressor
from sparsact.learners.letters.contrasts import contrast_moments
from sparsact.learners.low_degree import LowDegreeClassifier, LowDegreeRegressor
from sparsact.learners.low_degree.interpretation import contrast_errors
from sparsact.learners.predictor import predictor

Array = NDArray[np.float64]
Rows = NDArray[Any]


@dataclass(frozen=True)
class Contrasts:
    """Values (k, n_outputs) of contrasts and their posterior deviations, NaN where the model has none."""

    values: Array
    deviations: Array

    @classmethod
    def of(cls, values: Array, deviations: Array | None = None) -> Contrasts:
        """Contrasts of one function or several, (k,) or (k, n_outputs)."""
        found = values.reshape(len(values), -1)
        known = np.full(found.shape, np.nan) if deviations is None else deviations.reshape(found.shape)
        return cls(found, known)


@singledispatch
def contrasts(model: Any, X: Rows, weights: csr_array) -> Contrasts:
    """Contrasts of weights (k, m), each of sum 0, of a fitted model's values at distinct rows (m, n).

    By the joint posterior of these values where the model has one: processes, polynomials with a ridge penalty, and
    measurement models, of whose latent they are. An ensemble of models of bits has the deviations of its coefficients
    only, whose errors are taken as uncorrelated.
    """
    return Contrasts.of(weights @ predictor(model).values(X))


@contrasts.register
def _of_letters(model: LettersRegressor, X: Rows, weights: csr_array) -> Contrasts:
    with blas_threads(0):
        return Contrasts.of(*contrast_moments(model._ensemble, model._alphabet.codes(X), weights))


@contrasts.register
def _of_polynomials(model: LowDegreeRegressor | LowDegreeClassifier, X: Rows, weights: csr_array) -> Contrasts:
    values = weights @ predictor(model).values(X)
    if model.encoding_ is None:
        return Contrasts.of(values)
    signs = 1.0 - 2.0 * X if model.encoding_ == "bits" else X.astype(np.float64)
    return Contrasts.of(values, contrast_errors(model._fitted, signs, weights))


@contrasts.register
def _of_processes(model: CubeGPRegressor, X: Rows, weights: csr_array) -> Contrasts:
    with blas_threads(len(model._posterior.rows) ** 3 / 3):
        return Contrasts.of(*model._posterior.contrasts(model._bits(X), weights))


@contrasts.register
def _of_measurements(model: LatentRegressor, X: Rows, weights: csr_array) -> Contrasts:
    latent = model._fitted.latent
    if isinstance(latent, Traits):
        return Contrasts.of(weights @ model.predict_latent(X))
    return Contrasts.of(*latent.contrasts(model._bits(X), weights))


@contrasts.register
def _of_ensembles(model: CubeEnsemble, X: Rows, weights: csr_array) -> Contrasts:
    return Contrasts.of(weights @ model.predict(X), model.contrast_deviations(X, weights))
