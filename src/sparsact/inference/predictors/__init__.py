"""Approximate choices of active units, for when approximation is asked for: each carries its measured quality."""

from typing import Any

from sparsact.inference.predictors.calibration import calibrate, calibrate_blocks
from sparsact.inference.predictors.collect import collect_inputs
from sparsact.inference.predictors.low_rank import LowRank
from sparsact.inference.predictors.lsh import LSH
from sparsact.inference.predictors.magnitude import Threshold, TopKActivations
from sparsact.inference.predictors.masked_model import Approximated
from sparsact.inference.predictors.predictor import ActivityPredictor, CalibrationSplit, Predictor
from sparsact.inference.predictors.sketch import Sketch
from sparsact.validation.former_names import warn_of

__all__ = [
    "LSH",
    "ActivityPredictor",
    "Approximated",
    "CalibrationSplit",
    "LowRank",
    "Predictor",
    "Sketch",
    "Threshold",
    "TopKActivations",
    "calibrate",
    "calibrate_blocks",
    "collect_inputs",
]

_FORMER = {"LargestActivations": TopKActivations, "Rule": ActivityPredictor, "Split": CalibrationSplit}


def __getattr__(name: str) -> Any:
    if name not in _FORMER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn_of(name, _FORMER[name].__name__, __name__)
    return _FORMER[name]
