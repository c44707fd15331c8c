"""Hardness made visible: oracles that keep a ledger, the problems they hide, and learners that do or do not survive."""

from sparsact.hardness.distribution import Examples, LabelledDistribution, LiftedFunction, Support
from sparsact.hardness.elimination import InconsistentLabelsError, LinearSolution, solve_binary, solve_modulo
from sparsact.hardness.gf2_polynomial import algebraic_normal_form, binary_degree, correlation_immunity
from sparsact.hardness.junta_learners import LearnedJunta, Work, junta_samples, learn_junta
from sparsact.hardness.learning_with_rounding import (
    LearningWithRounding,
    Residues,
    RoundingReduction,
    SecretSearch,
    consistent_secrets,
    secret_modulo,
)
from sparsact.hardness.parity import LearnedParity, ParityAdversary, learn_parity, parity_distribution
from sparsact.hardness.parity_comparison import ContestRow, parity_contest, statistical_queries_needed
from sparsact.hardness.queries import Ledger, MembershipOracle, QueryBudgetError, QueryRecord, StatisticalQueries
from sparsact.hardness.query_learners import heavy_coefficients, low_degree_by_queries
from sparsact.hardness.rounding_attacks import (
    carry_monomials,
    lattice_secret,
    linearisation_samples,
    linearisation_unknowns,
    linearised_secret,
    lll,
)
from sparsact.hardness.statistical_oracle import StatisticalQueryOracle

__all__ = [
    "ContestRow",
    "Examples",
    "InconsistentLabelsError",
    "LabelledDistribution",
    "LearnedJunta",
    "LearnedParity",
    "LearningWithRounding",
    "Ledger",
    "LiftedFunction",
    "LinearSolution",
    "MembershipOracle",
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
