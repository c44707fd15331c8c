"""The one door upward: where a lower part finds, by name, what stands above it.

Modules import only what stands below them. What a network can be asked (``certify``, its spectrum) and what a file can
hold stand above; they are looked up here, when they are asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

CERTIFY = "sparsact.certificate:certify"
NETWORK_SPECTRUM = "sparsact.fourier.networks:spectrum_of_network"
_LOW_DEGREE, _LSH = (f"sparsact.learners.{name}.storage:load_learner" for name in ("low_degree", "lsh"))
MODELS = {  # what a model file may hold: its class, and the function that makes one of what was read
    "DSMRegressor": ("sparsact.learners:DSMRegressor", "sparsact.learners.dsm.storage:load_dsm"),
    "LSHClassifier": ("sparsact.learners:LSHClassifier", _LSH),
    "LSHRegressor": ("sparsact.learners:LSHRegressor", _LSH),
    "LowDegreeClassifier": ("sparsact.learners:LowDegreeClassifier", _LOW_DEGREE),
    "LowDegreeRegressor": ("sparsact.learners:LowDegreeRegressor", _LOW_DEGREE),
    "LowDegreeRegressorCV": ("sparsact.learners:LowDegreeRegressorCV", _LOW_DEGREE),
    "SparselyActivatedNetwork": ("sparsact.network:SparselyActivatedNetwork", "sparsact.network:load_network"),
    "SparselyActivatedRegressor": (
        "sparsact.learners:SparselyActivatedRegressor",
        "sparsact.learners.sparsely_activated.storage:load_regressor",
    ),
}


def find(place: str) -> Any:
    """What stands at ``"module:name"``; the module is imported."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
