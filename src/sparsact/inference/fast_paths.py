"""Torch's fused paths through whole encoders, which call no layer in them.

In evaluation mode and without gradients ``nn.TransformerEncoderLayer`` hands its weights to one fused operation, and
``nn.TransformerEncoder`` packs padded inputs into nested tensors for it. Each asks an attribute of its own first.
"""

from __future__ import annotations

from torch import nn

from sparsact.inference.sparse_linear import SparseLinear

_ASKED = {nn.TransformerEncoderLayer: "activation_relu_or_gelu", nn.TransformerEncoder: "use_nested_tensor"}
_KEPT = "_sparsact_fast_path"


def bar_fast_paths(model: nn.Module) -> None:
    """Let encoders that hold a sparse layer call it."""
    for owner, name in _owners(model):
        if _KEPT not in owner.__dict__ and _holds_sparse(owner):
            owner.__dict__[_KEPT] = before = owner.__dict__.get(name, False)
            owner.__dict__[name] = type(before)(0)  # of the same type: TorchScript infers it


def free_fast_paths(model: nn.Module) -> None:
    """Let encoders that hold no sparse layer any more go the way they went before."""
    for owner, name in _owners(model):
        if _KEPT in owner.__dict__ and not _holds_sparse(owner):
            owner.__dict__[name] = owner.__dict__.pop(_KEPT)


def _owners(model: nn.Module) -> list[tuple[nn.Module, str]]:
    return [(owner, name) for owner in model.modules() for kind, name in _ASKED.items() if isinstance(owner, kind)]


def _holds_sparse(owner: nn.Module) -> bool:
    return any(isinstance(module, SparseLinear) for module in owner.modules())
