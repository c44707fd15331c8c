"""Learners: each a scikit-learn estimator above pure functions, with additive sums where the method allows."""

from sparsact.learners.cube_ensemble import CubeEnsemble
from sparsact.learners.cube_gp import CubeGPRegressor, CubeKernel, PosteriorDraws, VarianceDecomposition
from sparsact.learners.dsm import DSMRegressor
from sparsact.learners.latent import LatentRegressor
from sparsact.learners.letters import LettersRegressor
from sparsact.learners.low_degree import LowDegreeClassifier, LowDegreeRegressor, LowDegreeRegressorCV
from sparsact.learners.lsh import (
    CompactPredictor,
    Drift,
    Frontier,
    FrontierPoint,
    LSHClassifier,
    LSHRegressor,
    SupportEstimate,
    TablePlan,
    estimate_support,
    plan_table,
)
from sparsact.learners.monomial_features import Monomials
from sparsact.learners.sparse_fourier import SparseFourierRegressor
from sparsact.learners.sparsely_activated import SparselyActivatedClassifier, SparselyActivatedRegressor

__all__ = [
    "CompactPredictor",
    "CubeEnsemble",
    "CubeGPRegressor",
    "CubeKernel",
    "DSMRegressor",
    "Drift",
    "Frontier",
    "FrontierPoint",
    "LSHClassifier",
    "LSHRegressor",
    "LatentRegressor",
    "LettersRegressor",
    "LowDegreeClassifier",
    "LowDegreeRegressor",
    "LowDegreeRegressorCV",
    "Monomials",
    "PosteriorDraws",
    "SparseFourierRegressor",
    "SparselyActivatedClassifier",
    "SparselyActivatedRegressor",
    "SupportEstimate",
    "TablePlan",
    "VarianceDecomposition",
    "estimate_support",
    "plan_table",
]
