"""Hardness made visible: oracles that keep a ledger, the problems they hide, and learners that do or do not survive."""

from sparsact.hardness.binary_elimination import BinarySolution, InconsistentLabelsError, solve_binary
from sparsact.hardness.distribution import Examples, LabelledDistribution, LiftedFunction, Support
from sparsact.hardness.kushilevitz_mansour import heavy_coefficients
from sparsact.hardness.ledger import Ledger, QueryBudgetError, QueryRecord
from sparsact.hardness.low_degree_queries import low_degree_by_queries
from sparsact.hardness.membership import MembershipOracle
from sparsact.hardness.parity import LearnedParity, learn_parity, parity_distribution
from sparsact.hardness.parity_adversary import ParityAdversary
from sparsact.hardness.statistical_query import StatisticalQueries, StatisticalQueryOracle

__all__ = [
    "BinarySolution",
    "Examples",
    "InconsistentLabelsError",
    "LabelledDistribution",
    "LearnedParity",
    "Ledger",
    "LiftedFunction",
    "MembershipOracle",
    "ParityAdversary",
    "QueryBudgetError",
    "QueryRecord",
    "StatisticalQueries",
    "StatisticalQueryOracle",
    "Support",
    "heavy_coefficients",
    "learn_parity",
    "low_degree_by_queries",
    "parity_distribution",
    "solve_binary",
]
