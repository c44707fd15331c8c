"""Torch's fused paths of encoders, which call no layer: barred while a layer is sparse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from torch import nn

from sparsact.inference.sparse_linear import SparseLinear

# In evaluation mode and without gradients ``nn.TransformerEncoderLayer`` passes its weights to one fused operation, and
# ``nn.TransformerEncoder`` packs padded inputs into nested tensors for it. Each tests an attribute of its own first.
_FAST_PATH_ATTRIBUTES: Final = {
    nn.TransformerEncoderLayer: "activation_relu_or_gelu",
    nn.TransformerEncoder: "use_nested_tensor",
}
_SAVED: Final = "_sparsact_fast_path"


def bar_fast_paths(model: nn.Module) -> None:
    """Let encoders that hold a sparse layer call it, instead of torch's fused path that calls no layer."""
    for owner, name in _fast_path_attributes(model):
        if _SAVED not in owner.__dict__ and _holds_sparse_layer(owner):
            owner.__dict__[_SAVED] = before = owner.__dict__.get(name, False)
            owner.__dict__[name] = type(before)(0)  # of the same type: TorchScript infers it


def free_fast_paths(model: nn.Module) -> None:
    """Restore the fused path of encoders that no longer hold a sparse layer."""
    for owner, name in _fast_path_attributes(model):
        if _SAVED in owner.__dict__ and not _holds_sparse_layer(owner):
            owner.__dict__[name] = owner.__dict__.pop(_SAVED)


def _fast_path_attributes(model: nn.Module) -> Iterator[tuple[nn.Module, str]]:
    for kind, name in _FAST_PATH_ATTRIBUTES.items():
        yield from ((owner, name) for owner in model.modules() if isinstance(owner, kind))


def _holds_sparse_layer(owner: nn.Module) -> bool:
    return any(isinstance(module, SparseLinear) for module in owner.modules())
