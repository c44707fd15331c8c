"""Forms of a layer's weight that kernels read. A new form is a file here, with the three methods of ``WeightForm``."""

from typing import Final

from sparsact.inference.weights.float import FloatWeights
from sparsact.inference.weights.form import WeightForm
from sparsact.inference.weights.int4 import Int4Weights
from sparsact.inference.weights.int8 import Int8Weights
from sparsact.inference.weights.integer import IntegerWeights

INTEGERS: Final[dict[str, type[IntegerWeights]]] = {"int8": Int8Weights, "int4": Int4Weights}

__all__ = ["INTEGERS", "FloatWeights", "Int4Weights", "Int8Weights", "IntegerWeights", "WeightForm"]
