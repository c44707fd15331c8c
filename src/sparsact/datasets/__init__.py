"""Tables on disk as streams of bits, real data sets of tests, examples and benchmarks, and paper B's synthetic ones.

A synthetic data set is a *target*, a function with a Lipschitz bound, on a *domain*, a set to draw from:

>>> import numpy as np
>>> from sparsact.datasets import random_composed, random_hypercube, random_subspace
>>> rng = np.random.default_rng(0)
>>> domain = random_subspace(64, 4, rng=rng)
>>> target = random_composed(random_hypercube(4, rng=rng), 64, rng=rng)
>>> X = domain.sample(1000, rng=rng)
>>> y = target(X)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sparsact.datasets.encoding import Encoding
from sparsact.datasets.images import Images, load_cifar10
from sparsact.datasets.landscapes import (
    Landscape,
    config_performance,
    data_folder,
    iwls2020,
    moulana_s309,
    phillips_cr6261,
    poelwijk,
)
from sparsact.datasets.parts import files
from sparsact.datasets.tables import Table, encoded_table, open_table
from sparsact.datasets.tabular import TabularData, load_tabular
from sparsact.datasets.texts import WrittenText, load_tinyshakespeare

if TYPE_CHECKING:
    from sparsact.datasets.description import Description, describe
    from sparsact.datasets.domains import (
        Circle,
        Cube,
        CurvedPatch,
        Domain,
        Manifold,
        Sphere,
        Subspace,
        SwissRoll,
        Torus,
        diagonal_subspace,
        random_subspace,
    )
    from sparsact.datasets.targets import (
        Composed,
        Cones,
        CosineSeries,
        LowerEnvelope,
        Multilinear,
        Polynomial,
        Target,
        composed,
        cones,
        lower_envelope,
        random_analytic,
        random_composed,
        random_cones,
        random_hypercube,
        random_polynomial,
    )

# Loaded when first used: whoever reads a table needs none of them, nor SciPy.
_NAMES = {
    "Circle": "domains",
    "Composed": "targets",
    "Cones": "targets",
    "CosineSeries": "targets",
    "Cube": "domains",
    "CurvedPatch": "domains",
    "Description": "description",
    "Domain": "domains",
    "LowerEnvelope": "targets",
    "Manifold": "domains",
    "Multilinear": "targets",
    "Polynomial": "targets",
    "Sphere": "domains",
    "Subspace": "domains",
    "SwissRoll": "domains",
    "Target": "targets",
    "Torus": "domains",
    "composed": "targets",
    "cones": "targets",
    "describe": "description",
    "diagonal_subspace": "domains",
    "lower_envelope": "targets",
    "random_analytic": "targets",
    "random_composed": "targets",
    "random_cones": "targets",
    "random_hypercube": "targets",
    "random_polynomial": "targets",
    "random_subspace": "domains",
}

__all__ = [
    "Circle",
    "Composed",
    "Cones",
    "CosineSeries",
    "Cube",
    "CurvedPatch",
    "Description",
    "Domain",
    "Encoding",
    "Images",
    "Landscape",
    "LowerEnvelope",
    "Manifold",
    "Multilinear",
    "Polynomial",
    "Sphere",
    "Subspace",
    "SwissRoll",
    "Table",
    "TabularData",
    "Target",
    "Torus",
    "WrittenText",
    "composed",
    "cones",
    "config_performance",
    "data_folder",
    "describe",
    "diagonal_subspace",
    "encoded_table",
    "files",
    "iwls2020",
    "load_cifar10",
    "load_tabular",
    "load_tinyshakespeare",
    "lower_envelope",
    "moulana_s309",
    "open_table",
    "phillips_cr6261",
    "poelwijk",
    "random_analytic",
    "random_composed",
    "random_cones",
    "random_hypercube",
    "random_polynomial",
    "random_subspace",
]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(f"sparsact.datasets.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'sparsact.datasets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
