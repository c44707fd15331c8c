"""Sparsely activated networks: models in which each input switches on only a few units.

Names are loaded when they are first used, so that ``import sparsact`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from sparsact._version import __version__

if TYPE_CHECKING:
    from sparsact import (
        bounds,
        certificate,
        constructions,
        datasets,
        distributed,
        fourier,
        hardness,
        hypercube,
        inference,
        kernels,
        layers,
        learners,
        rademacher,
        routing,
    )
    from sparsact.certificate import Certificate, certify
    from sparsact.fit.fit_table import fit_table
    from sparsact.fit.predict import predict_table
    from sparsact.fit.result import FitResult
    from sparsact.fit.suggest import suggest_rows
    from sparsact.inference import densify, measure, plan_of, sparsify
    from sparsact.learners import (
        CubeEnsemble,
        CubeGPRegressor,
        CubeKernel,
        DSMRegressor,
        LatentRegressor,
        LettersRegressor,
        LowDegreeClassifier,
        LowDegreeRegressor,
        LowDegreeRegressorCV,
        LSHClassifier,
        LSHRegressor,
        Monomials,
        SparseFourierRegressor,
        SparselyActivatedClassifier,
        SparselyActivatedRegressor,
        TablePlan,
        plan_table,
    )
    from sparsact.learners.distillation import distil
    from sparsact.learners.distilled import Distillation
    from sparsact.learners.pac import PACHypothesis, pac_learn
    from sparsact.lift import Lift
    from sparsact.network import SparselyActivatedNetwork
    from sparsact.reports.displays import InteractionsDisplay, SpectrumDisplay, VarianceDisplay
    from sparsact.reports.letters_display import LettersDisplay
    from sparsact.saving.modelfile import load
    from sparsact.stack import Stack, StackLayer

_HOMES: Final = {  # modules of the public names that are no modules
    "Certificate": "sparsact.certificate",
    "CubeEnsemble": "sparsact.learners",
    "CubeGPRegressor": "sparsact.learners",
    "CubeKernel": "sparsact.learners",
    "Distillation": "sparsact.learners.distilled",
    "FitResult": "sparsact.fit.result",
    "InteractionsDisplay": "sparsact.reports.displays",
    "LSHClassifier": "sparsact.learners",
    "LSHRegressor": "sparsact.learners",
    "DSMRegressor": "sparsact.learners",
    "LatentRegressor": "sparsact.learners",
    "LettersDisplay": "sparsact.reports.letters_display",
    "LettersRegressor": "sparsact.learners",
    "Lift": "sparsact.lift",
    "LowDegreeClassifier": "sparsact.learners",
    "LowDegreeRegressor": "sparsact.learners",
    "LowDegreeRegressorCV": "sparsact.learners",
    "Monomials": "sparsact.learners",
    "PACHypothesis": "sparsact.learners.pac",
    "SparseFourierRegressor": "sparsact.learners",
    "SparselyActivatedNetwork": "sparsact.network",
    "SparselyActivatedClassifier": "sparsact.learners",
    "SparselyActivatedRegressor": "sparsact.learners",
    "SpectrumDisplay": "sparsact.reports.displays",
    "Stack": "sparsact.stack",
    "StackLayer": "sparsact.stack",
    "TablePlan": "sparsact.learners",
    "VarianceDisplay": "sparsact.reports.displays",
    "certify": "sparsact.certificate",
    "densify": "sparsact.inference",
    "distil": "sparsact.learners.distillation",
    "fit_table": "sparsact.fit.fit_table",
    "load": "sparsact.saving.modelfile",
    "measure": "sparsact.inference",
    "pac_learn": "sparsact.learners.pac",
    "plan_of": "sparsact.inference",
    "plan_table": "sparsact.learners",
    "predict_table": "sparsact.fit.predict",
    "sparsify": "sparsact.inference",
    "suggest_rows": "sparsact.fit.suggest",
}

__all__ = [
    "Certificate",
    "CubeEnsemble",
    "CubeGPRegressor",
    "CubeKernel",
    "DSMRegressor",
    "Distillation",
    "FitResult",
    "InteractionsDisplay",
    "LSHClassifier",
    "LSHRegressor",
    "LatentRegressor",
    "LettersDisplay",
    "LettersRegressor",
    "Lift",
    "LowDegreeClassifier",
    "LowDegreeRegressor",
    "LowDegreeRegressorCV",
    "Monomials",
    "PACHypothesis",
    "SparseFourierRegressor",
    "SparselyActivatedClassifier",
    "SparselyActivatedNetwork",
    "SparselyActivatedRegressor",
    "SpectrumDisplay",
    "Stack",
    "StackLayer",
    "TablePlan",
    "VarianceDisplay",
    "__version__",
    "bounds",
    "certificate",
    "certify",
    "constructions",
    "datasets",
    "densify",
    "distil",
    "distributed",
    "fit_table",
    "fourier",
    "hardness",
    "hypercube",
    "inference",
    "kernels",
    "layers",
    "learners",
    "load",
    "measure",
    "pac_learn",
    "plan_of",
    "plan_table",
    "predict_table",
    "rademacher",
    "routing",
    "sparsify",
    "suggest_rows",
]


if not TYPE_CHECKING:  # a type checker reads the imports above, and reports a name that does not exist

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'sparsact' has no attribute {name!r}")
        if name not in _HOMES:
            return import_module(f"sparsact.{name}")
        globals()[name] = found = getattr(import_module(_HOMES[name]), name)
        return found


def __dir__() -> list[str]:
    return sorted(__all__)
