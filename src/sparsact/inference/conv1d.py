"""Sparse layers in the place of ``Conv1D`` of transformers, whose weight is the transpose of that of ``nn.Linear``.

The second layer of a block needs no copy of it: its rows are those of the units. Imported only for a model that has
such layers, so that transformers is loaded.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from sparsact.inference.fused_linear import FusedGateUp
from sparsact.inference.quantized import QuantizedGate, QuantizedGatedUp, QuantizedLinear
from sparsact.inference.sparse_linear import GatedUp, SparseDown, SparseLinear, SparseUp


class SparseConv1D(SparseLinear):
    """A ``Conv1D`` that is computed sparsely where that is possible and worthwhile."""

    transposed = True
    dense_class: ClassVar[type[nn.Module]] = Conv1D

    @property
    def in_features(self) -> int:  # type: ignore[override] # an attribute of nn.Linear
        """Number of inputs."""
        return self.nx  # type: ignore[return-value] # a module's attributes have no types

    @property
    def out_features(self) -> int:  # type: ignore[override]
        """Number of outputs."""
        return self.nf  # type: ignore[return-value]

    def compiled_forward(self, x: Tensor) -> Tensor:
        """The dense product."""
        return self.dense(x)

    def dense(self, x: Tensor) -> Tensor:
        """What ``Conv1D`` computes."""
        conv1d: Any = Conv1D
        return conv1d.forward(self, x)  # type: ignore[no-any-return]

    def __prepare_scriptable__(self) -> Any:
        """What ``torch.jit.script`` compiles: a plain layer with the same parameters."""
        plain: Any = Conv1D.__new__(Conv1D)
        plain.__dict__ = {name: value for name, value in self.__dict__.items() if name != "_sparse"}
        return plain


class Conv1DDown(SparseConv1D, SparseDown, Conv1D):  # type: ignore[misc] # weights of two types
    """The second layer of a block."""


class Conv1DUp(SparseConv1D, SparseUp, Conv1D):  # type: ignore[misc]
    """The layer that switches units on."""


class Conv1DGatedUp(SparseConv1D, GatedUp, Conv1D):  # type: ignore[misc]
    """The up-projection of a gated block."""


class Conv1DFused(SparseConv1D, FusedGateUp, Conv1D):  # type: ignore[misc]
    """Gate and up-projection in one layer."""


class Conv1DQuantized(SparseConv1D, QuantizedLinear, Conv1D):  # type: ignore[misc]
    """A layer with integer weights."""

    def compiled_forward(self, x: Tensor) -> Tensor:
        """What the integers give if they are all that is left."""
        return self.dense(x) if self._sparse.dropped is None else QuantizedLinear.compiled_forward(self, x)


class Conv1DQuantizedGate(Conv1DQuantized, QuantizedGate):  # type: ignore[misc]
    """The gate of a gated block with integer weights."""


class Conv1DQuantizedGatedUp(Conv1DQuantized, QuantizedGatedUp):  # type: ignore[misc]
    """The up-projection of a gated block with integer weights."""


CLASSES: Final[dict[type[SparseLinear], type[SparseLinear]]] = {
    SparseDown: Conv1DDown,
    SparseUp: Conv1DUp,
    GatedUp: Conv1DGatedUp,
    FusedGateUp: Conv1DFused,
    QuantizedLinear: Conv1DQuantized,
    QuantizedGate: Conv1DQuantizedGate,
    QuantizedGatedUp: Conv1DQuantizedGatedUp,
}
