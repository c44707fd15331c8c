"""The sparsely activated networks of the theory: functions with few active units, and the inputs they live on."""

from sparsact.constructions.distributions import Distribution, lifted, uniform
from sparsact.constructions.gated import gate_strength, gated, gated_failure_probability
from sparsact.constructions.indexing import indexing
from sparsact.constructions.junta import junta
from sparsact.constructions.parity import parity
from sparsact.constructions.random_networks import random_network
from sparsact.constructions.residues import ResidueLift
from sparsact.constructions.rounding import rounded_products, rounding

__all__ = [
    "Distribution",
    "ResidueLift",
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
