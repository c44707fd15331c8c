"""Hardness made visible: oracles that keep a ledger, the problems they hide, and learners that do or do not survive."""

from sparsact.hardness.binary_elimination import BinarySolution, InconsistentLabelsError, solve_binary
from sparsact.hardness.binary_polynomial import algebraic_normal_form, binary_degree, correlation_immunity
from sparsact.hardness.distribution import Examples, LabelledDistribution, LiftedFunction, Support
from sparsact.hardness.junta_search import Work
from sparsact.hardness.juntas import junta_samples, learn_junta
from sparsact.hardness.kushilevitz_mansour import heavy_coefficients
from sparsact.hardness.lattices import lattice_secret, lll
from sparsact.hardness.learned_junta import LearnedJunta
from sparsact.hardness.learning_with_rounding import LearningWithRounding, Residues, RoundingReduction
from sparsact.hardness.ledger import Ledger, QueryBudgetError, QueryRecord
from sparsact.hardness.linearisation import (
    carry_monomials,
    linearisation_samples,
    linearisation_unknowns,
    linearised_secret,
)
from sparsact.hardness.low_degree_queries import low_degree_by_queries
from sparsact.hardness.membership import MembershipOracle
from sparsact.hardness.modular_elimination import ModularSolution, solve_modulo
from sparsact.hardness.parity import LearnedParity, learn_parity, parity_distribution
from sparsact.hardness.parity_adversary import ParityAdversary
from sparsact.hardness.parity_contest import ContestRow, parity_contest, statistical_queries_needed
from sparsact.hardness.secrets_of_rounding import SecretSearch, consistent_secrets, secret_modulo
from sparsact.hardness.statistical_query import StatisticalQueries, StatisticalQueryOracle

__all__ = [
    "BinarySolution",
    "ContestRow",
    "Examples",
    "InconsistentLabelsError",
    "LabelledDistribution",
    "LearnedJunta",
    "LearnedParity",
    "LearningWithRounding",
    "Ledger",
    "LiftedFunction",
    "MembershipOracle",
    "ModularSolution",
    "ParityAdversary",
    "QueryBudgetError",
    "QueryRecord",
    "Residues",
    "RoundingReduction",
    "SecretSearch",
    "StatisticalQueries",
    "StatisticalQueryOracle",
    "Support",
    "Work",
    "algebraic_normal_form",
    "binary_degree",
    "carry_monomials",
    "consistent_secrets",
    "correlation_immunity",
    "heavy_coefficients",
    "junta_samples",
    "lattice_secret",
    "learn_junta",
    "learn_parity",
    "linearisation_samples",
    "linearisation_unknowns",
    "linearised_secret",
    "lll",
    "low_degree_by_queries",
    "parity_contest",
    "parity_distribution",
    "secret_modulo",
    "solve_binary",
    "solve_modulo",
    "statistical_queries_needed",
]
