"""Approximate choices of active units, for when approximation is asked for: each carries its measured quality."""

from sparsact.inference.predictors.calibration import calibrate, calibrate_blocks
from sparsact.inference.predictors.collect import collect_inputs
from sparsact.inference.predictors.low_rank import LowRank
from sparsact.inference.predictors.lsh import LSH
from sparsact.inference.predictors.magnitude import Threshold, TopKActivations
from sparsact.inference.predictors.masked_model import Approximated
from sparsact.inference.predictors.predictor import ActivityPredictor, CalibrationSplit, Predictor
from sparsact.inference.predictors.sketch import Sketch

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
