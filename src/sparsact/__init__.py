"""Sparsely activated networks: models in which each input switches on only a few units.

Names are loaded when they are first used, so that ``import sparsact`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sparsact._version import __version__

if TYPE_CHECKING:
    from sparsact import datasets, fourier, hypercube, kernels, learners
    from sparsact.learners import (
        LowDegreeClassifier,
        LowDegreeRegressor,
        LowDegreeRegressorCV,
        SparselyActivatedRegressor,
    )
    from sparsact.network import SparselyActivatedNetwork
    from sparsact.storage import load

_SUBMODULES = ("datasets", "fourier", "hypercube", "kernels", "learners")
_NAMES = {
    "LowDegreeClassifier": "sparsact.learners",
    "LowDegreeRegressor": "sparsact.learners",
    "LowDegreeRegressorCV": "sparsact.learners",
    "SparselyActivatedNetwork": "sparsact.network",
    "SparselyActivatedRegressor": "sparsact.learners",
    "load": "sparsact.storage",
}

__all__ = [
    "LowDegreeClassifier",
    "LowDegreeRegressor",
    "LowDegreeRegressorCV",
    "SparselyActivatedNetwork",
    "SparselyActivatedRegressor",
    "__version__",
    "datasets",
    "fourier",
    "hypercube",
    "kernels",
    "learners",
    "load",
]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"sparsact.{name}")
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'sparsact' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
