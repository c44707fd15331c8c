"""Approximate choices of active units, for when approximation is asked for: each carries its measured quality."""

from sparsact.inference.predictors.calibration import calibrate, calibrate_blocks
from sparsact.inference.predictors.collect import collect_inputs
from sparsact.inference.predictors.low_rank import LowRank
from sparsact.inference.predictors.lsh import LSH
from sparsact.inference.predictors.magnitude import LargestActivations, Threshold
from sparsact.inference.predictors.masked_model import Approximated
from sparsact.inference.predictors.predictor import Predictor, Rule, Split
from sparsact.inference.predictors.sketch import Sketch

__all__ = [
    "LSH",
    "Approximated",
    "LargestActivations",
    "LowRank",
    "Predictor",
    "Rule",
    "Sketch",
    "Split",
    "Threshold",
    "calibrate",
    "calibrate_blocks",
    "collect_inputs",
]
