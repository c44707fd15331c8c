"""Sparse layers in the place of ``Conv1D`` of transformers, whose weight is the transpose of that of ``nn.Linear``.

The second layer of a block needs no copy of it: its rows are the units' rows. Imported only for a model that has
such layers, so that transformers is loaded.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from sparsact.inference.sparse_linear import IntegerLayer, SparseLinear


class SparseConv1D(SparseLinear, Conv1D):  # type: ignore[misc] # weights of two types
    """A ``Conv1D`` that is computed sparsely where that is possible and worthwhile."""

    transposed = True
    dense_class: ClassVar[type[nn.Module]] = Conv1D

    @property
    def in_features(self) -> int:  # type: ignore[override] # an attribute of nn.Linear
        """Number of inputs."""
        return self.nx  # type: ignore[no-any-return] # Conv1D has no types

    @property
    def out_features(self) -> int:  # type: ignore[override]
        """Number of outputs."""
        return self.nf  # type: ignore[no-any-return]

    def compiled_forward(self, x: Tensor) -> Tensor:
        """The dense product."""
        return self.dense(x)

    def dense(self, x: Tensor) -> Tensor:
        """What ``Conv1D`` computes."""
        conv1d: Any = Conv1D
        return conv1d.forward(self, x)  # type: ignore[no-any-return]


class IntegerConv1D(IntegerLayer, SparseConv1D):  # type: ignore[misc]
    """A ``Conv1D`` that has dropped its float weight."""


CLASSES: Final[dict[type[SparseLinear], type[SparseLinear]]] = {SparseLinear: SparseConv1D, IntegerLayer: IntegerConv1D}
