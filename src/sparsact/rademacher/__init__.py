"""Empirical Rademacher complexity of the sparse and the dense class: exact, from below, compared with its bounds."""

from sparsact.rademacher.comparison import Comparison, compare, orthogonal_network
from sparsact.rademacher.directions import gathered_complexity, gathered_network, spread_network
from sparsact.rademacher.exact import exact_complexity
from sparsact.rademacher.lower import correlating_network, lower_complexity

__all__ = [
    "Comparison",
    "compare",
    "correlating_network",
    "exact_complexity",
    "gathered_complexity",
    "gathered_network",
    "lower_complexity",
    "orthogonal_network",
    "spread_network",
]
