"""Approximate choices of active units, for when approximation is asked for: each carries its measured quality."""

from sparsact.inference.predictors.approximated import Approximated
from sparsact.inference.predictors.blocks import calibrate_blocks
from sparsact.inference.predictors.calibrate import calibrate
from sparsact.inference.predictors.collect import collect_inputs
from sparsact.inference.predictors.low_rank import LowRank
from sparsact.inference.predictors.lsh import LSH
from sparsact.inference.predictors.rule import Predictor, Rule, Split
from sparsact.inference.predictors.sketch import Sketch
from sparsact.inference.predictors.threshold import Threshold
from sparsact.inference.predictors.top_k import LargestActivations

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
