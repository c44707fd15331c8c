"""One linear layer that computes gate and up-projection of a block, in the place of that of a model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 # as torch writes it

from sparsact.inference.layer_state import UpState
from sparsact.inference.linear_layers import WeightRows
from sparsact.inference.products import ActiveProduct
from sparsact.inference.sparse_linear import SparseUp
from sparsact.inference.weight_cache import WeightCache


@dataclass(kw_only=True)
class FusedState(UpState):
    """State of such a layer; ``thresholds`` (units,) are those of the activation."""

    gate: WeightRows
    up: WeightRows
    thresholds: Tensor

    def __post_init__(self) -> None:
        make = partial(ActiveProduct, device=self.device)
        self.product = WeightCache(self.gate.make(make))
        self.up_product: WeightCache[ActiveProduct] = WeightCache(self.up.make(make))


class FusedGateUp(SparseUp):
    """Gate and up-projection in one layer: the gate first, then the up-projection where the gate is on, 0 elsewhere."""

    _sparse: FusedState

    def sparse_forward(self, x: Tensor, rows: int) -> Tensor:
        """``x @ weight.T + bias``, of the up-projection only where the gate is on."""
        sparse = self._sparse
        if not 0 < rows <= sparse.max_rows or self.needs_all_units:
            return self.dense(x)
        gate = self.pre_activations(x, rows)
        on = (gate <= sparse.thresholds).logical_not_().view(torch.uint8)
        up = sparse.up_product.get(sparse.weight_version(self)).gated(x, on, rows, sparse.max_share)
        up = F.linear(x, *sparse.up.of(self)) if up is None else up.view(gate.shape)
        return torch.cat([gate, up] if sparse.gate.start < sparse.up.start else [up, gate], dim=-1)

    def all_pre_activations(self, x: Tensor) -> Tensor:
        """The output of the gate."""
        return F.linear(x, *self._sparse.gate.of(self))
