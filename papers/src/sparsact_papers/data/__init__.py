"""Data sets of the experiments: paper B's synthetic ones, images, texts, and tables of numbers.

A synthetic data set is a *target*, a function with a Lipschitz bound, on a *domain*, a set to draw from:

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> domain = random_subspace(64, 4, rng=rng)
>>> target = random_composed(random_hypercube(4, rng=rng), 64, rng=rng)
>>> X = domain.sample(1000, rng=rng)
>>> y = target(X)
"""

from sparsact_papers.data.analytic import CosineSeries, random_analytic
from sparsact_papers.data.cones import Cones, LowerEnvelope, random_cones
from sparsact_papers.data.curved_patch import CurvedPatch
from sparsact_papers.data.domains import Cube, Domain
from sparsact_papers.data.files import (
    Images,
    TabularData,
    WrittenText,
    load_cifar10,
    load_tabular,
    load_tinyshakespeare,
)
from sparsact_papers.data.manifolds import Circle, Manifold, Sphere, SwissRoll
from sparsact_papers.data.polynomials import Multilinear, Polynomial, random_hypercube, random_polynomial
from sparsact_papers.data.subspaces import Subspace, diagonal_subspace, random_subspace
from sparsact_papers.data.targets import Composed, Description, Target, describe, random_composed

__all__ = [
    "Circle", "Composed", "Cones", "CosineSeries", "Cube", "CurvedPatch", "Description", "Domain", "Images",
    "LowerEnvelope", "Manifold", "Multilinear", "Polynomial", "Sphere", "Subspace", "SwissRoll", "TabularData",
    "Target", "WrittenText", "describe", "diagonal_subspace", "load_cifar10", "load_tabular",
    "load_tinyshakespeare", "random_analytic", "random_composed", "random_cones", "random_hypercube",
    "random_polynomial", "random_subspace",
]  # fmt: skip
