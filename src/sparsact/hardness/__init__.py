"""Hardness made visible: oracles that keep a ledger, the problems they hide, and learners that do or do not survive."""

from sparsact.hardness.binary_polynomial import algebraic_normal_form, binary_degree, correlation_immunity
from sparsact.hardness.distribution import Examples, LabelledDistribution, LiftedFunction, Support
from sparsact.hardness.elimination import (
    BinarySolution,
    InconsistentLabelsError,
    ModularSolution,
    solve_binary,
    solve_modulo,
)
from sparsact.hardness.junta_search import Work
from sparsact.hardness.juntas import LearnedJunta, junta_samples, learn_junta
from sparsact.hardness.kushilevitz_mansour import heavy_coefficients
from sparsact.hardness.lattices import lattice_secret, lll
from sparsact.hardness.linearisation import (
    carry_monomials,
    linearisation_samples,
    linearisation_unknowns,
    linearised_secret,
)
from sparsact.hardness.low_degree_queries import low_degree_by_queries
from sparsact.hardness.parity import LearnedParity, ParityAdversary, learn_parity, parity_distribution
from sparsact.hardness.parity_comparison import ContestRow, parity_contest, statistical_queries_needed
from sparsact.hardness.queries import (
    Ledger,
    MembershipOracle,
    QueryBudgetError,
    QueryRecord,
    StatisticalQueries,
    StatisticalQueryOracle,
)
from sparsact.hardness.rounding import (
    LearningWithRounding,
    Residues,
    RoundingReduction,
    SecretSearch,
    consistent_secrets,
    secret_modulo,
)

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
