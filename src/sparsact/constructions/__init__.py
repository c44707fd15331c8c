"""The sparsely activated networks of the theory: functions with few active units, and the inputs they live on."""

from sparsact.constructions.gated import gate_strength, gated, gated_failure_probability
from sparsact.constructions.junta import extremal, indexing, junta, parity
from sparsact.constructions.random_networks import Distribution, lifted, random_network, uniform
from sparsact.constructions.rounding import ResidueLift, rounded_products, rounding

__all__ = [
    "Distribution",
    "ResidueLift",
    "extremal",
    "gate_strength",
    "gated",
    "gated_failure_probability",
    "indexing",
    "junta",
    "lifted",
    "parity",
    "random_network",
    "rounded_products",
    "rounding",
    "uniform",
]
