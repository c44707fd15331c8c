"""Where inputs lie: sets within [-1, 1]^ambient of a lower dimension, and uniform points on them."""

from sparsact.datasets.domains.cube import Cube
from sparsact.datasets.domains.domain import Domain
from sparsact.datasets.domains.manifold import Manifold
from sparsact.datasets.domains.patch import CurvedPatch
from sparsact.datasets.domains.sphere import Circle, Sphere
from sparsact.datasets.domains.subspace import Subspace, diagonal_subspace, random_subspace
from sparsact.datasets.domains.swiss_roll import SwissRoll
from sparsact.datasets.domains.torus import Torus

__all__ = [
    "Circle",
    "Cube",
    "CurvedPatch",
    "Domain",
    "Manifold",
    "Sphere",
    "Subspace",
    "SwissRoll",
    "Torus",
    "diagonal_subspace",
    "random_subspace",
]
