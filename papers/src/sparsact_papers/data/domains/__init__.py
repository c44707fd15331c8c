"""Where inputs lie: sets within [-1, 1]^ambient of a lower dimension, and uniform points on them."""

from sparsact_papers.data.domains.cube import Cube
from sparsact_papers.data.domains.domain import Domain
from sparsact_papers.data.domains.manifold import Manifold
from sparsact_papers.data.domains.patch import CurvedPatch
from sparsact_papers.data.domains.sphere import Circle, Sphere
from sparsact_papers.data.domains.subspace import Subspace, diagonal_subspace, random_subspace
from sparsact_papers.data.domains.swiss_roll import SwissRoll
from sparsact_papers.data.domains.torus import Torus

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
