"""Functions to learn: the families of paper B, each a callable with a proved Lipschitz bound."""

from sparsact_papers.data.targets.analytic import CosineSeries, random_analytic
from sparsact_papers.data.targets.composition import Composed, composed, random_composed
from sparsact_papers.data.targets.cone import Cones, LowerEnvelope, cones, lower_envelope, random_cones
from sparsact_papers.data.targets.multilinear import Multilinear, random_hypercube
from sparsact_papers.data.targets.polynomial import Polynomial, random_polynomial
from sparsact_papers.data.targets.target import Target

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
