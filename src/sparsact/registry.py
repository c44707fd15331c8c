"""The one door upward: where a lower part finds, by name, what stands above it.

Modules import only what stands below them. How a network is certified and what a file can hold stand above; they are
looked up here at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

BARS: Final = "sparsact.passes.bars:bars"
CERTIFY: Final = "sparsact.certificate:certify"
CERTIFY_STACK: Final = "sparsact.certificate:certify_stack"
DISPLAYS: Final = {  # pictures, each made by ``from_<kind>``
    "anova": "sparsact.reports.letters_display:LettersDisplay",
    "interactions": "sparsact.reports.displays:InteractionsDisplay",
    "spectrum": "sparsact.reports.displays:SpectrumDisplay",
}
PAGES: Final = {  # functions that draw what a fit has found
    "fit": "sparsact.fit.page:fit_page",
    "figures of a fit": "sparsact.fit.page:figures_by_name",
    "hash tables": "sparsact.reports.lsh_figures:lsh_figures",
}
MODELS: Final = {  # what a model file may hold: a class, whose `_from_file` makes an object from what was read
    "CompactPredictor": "sparsact.learners.lsh.compact_predictor:CompactPredictor",
    "CubeEnsemble": "sparsact.learners:CubeEnsemble",
    "CubeGPRegressor": "sparsact.learners:CubeGPRegressor",
    "DSMRegressor": "sparsact.learners:DSMRegressor",
    "LSHClassifier": "sparsact.learners:LSHClassifier",
    "LSHRegressor": "sparsact.learners:LSHRegressor",
    "LatentRegressor": "sparsact.learners:LatentRegressor",
    "LettersRegressor": "sparsact.learners:LettersRegressor",
    "LowDegreeClassifier": "sparsact.learners:LowDegreeClassifier",
    "LowDegreeRegressor": "sparsact.learners:LowDegreeRegressor",
    "LowDegreeRegressorCV": "sparsact.learners:LowDegreeRegressorCV",
    "SparseFourierRegressor": "sparsact.learners:SparseFourierRegressor",
    "SparselyActivatedClassifier": "sparsact.learners:SparselyActivatedClassifier",
    "SparselyActivatedNetwork": "sparsact.network:SparselyActivatedNetwork",
    "SparselyActivatedRegressor": "sparsact.learners:SparselyActivatedRegressor",
    "Stack": "sparsact.stack:Stack",
}


def find(place: str) -> Any:
    """What stands at ``"module:name"``; the module is imported."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
