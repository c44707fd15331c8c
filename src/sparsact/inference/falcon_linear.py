"""Sparse layers in the place of ``FalconLinear`` of transformers, which adds its bias after the product.

Imported only for a model that has such layers, so that transformers is loaded.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from torch import Tensor, nn
from transformers.models.falcon.modeling_falcon import FalconLinear

from sparsact.inference.sparse_linear import IntegerLayer, SparseLinear


class SparseFalconLinear(SparseLinear, FalconLinear):
    """A ``FalconLinear`` that is computed sparsely where that is possible and worthwhile."""

    dense_class: ClassVar[type[nn.Module]] = FalconLinear

    def dense(self, x: Tensor) -> Tensor:
        """What ``FalconLinear`` computes."""
        falcon: Any = FalconLinear
        return falcon.forward(self, x)  # type: ignore[no-any-return] # FalconLinear has no types


class IntegerFalconLinear(IntegerLayer, SparseFalconLinear):
    """A ``FalconLinear`` that has dropped its float weight."""


CLASSES: Final[dict[type[SparseLinear], type[SparseLinear]]] = {
    SparseLinear: SparseFalconLinear,
    IntegerLayer: IntegerFalconLinear,
}
