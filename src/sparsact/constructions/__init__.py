"""The sparsely activated networks of the theory: functions with few active units, and the inputs they live on."""

from sparsact.constructions.distributions import Distribution, lifted, uniform
from sparsact.constructions.parity import parity
from sparsact.constructions.residues import ResidueLift
from sparsact.constructions.rounding import rounded_products, rounding

__all__ = ["Distribution", "ResidueLift", "lifted", "parity", "rounded_products", "rounding", "uniform"]
