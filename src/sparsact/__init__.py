"""Sparsely activated networks: models in which each input switches on only a few units.

Names are loaded when they are first used, so that ``import sparsact`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sparsact._version import __version__

if TYPE_CHECKING:
    from sparsact import certificate, datasets, fourier, hypercube, kernels, learners
    from sparsact.certificate import Certificate, certify
    from sparsact.learners import LowDegreeClassifier, LowDegreeRegressor, LowDegreeRegressorCV
    from sparsact.network import SparselyActivatedNetwork
    from sparsact.storage import load

_SUBMODULES = ("certificate", "datasets", "fourier", "hypercube", "kernels", "learners")
_NAMES = {
    "Certificate": "sparsact.certificate",
    "LowDegreeClassifier": "sparsact.learners",
    "LowDegreeRegressor": "sparsact.learners",
    "LowDegreeRegressorCV": "sparsact.learners",
    "SparselyActivatedNetwork": "sparsact.network",
    "certify": "sparsact.certificate",
    "load": "sparsact.storage",
}

__all__ = [
    "Certificate",
    "LowDegreeClassifier",
    "LowDegreeRegressor",
    "LowDegreeRegressorCV",
    "SparselyActivatedNetwork",
    "__version__",
    "certificate",
    "certify",
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
