"""Functions to learn: the families of paper B, each a callable with a proved Lipschitz bound."""

from sparsact.datasets.targets.analytic import CosineSeries, random_analytic
from sparsact.datasets.targets.composition import Composed, composed, random_composed
from sparsact.datasets.targets.cone import Cones, LowerEnvelope, cones, lower_envelope, random_cones
from sparsact.datasets.targets.multilinear import Multilinear, random_hypercube
from sparsact.datasets.targets.polynomial import Polynomial, random_polynomial
from sparsact.datasets.targets.target import Target

__all__ = [
    "Composed",
    "Cones",
    "CosineSeries",
    "LowerEnvelope",
    "Multilinear",
    "Polynomial",
    "Target",
    "composed",
    "cones",
    "lower_envelope",
    "random_analytic",
    "random_composed",
    "random_cones",
    "random_hypercube",
    "random_polynomial",
]
