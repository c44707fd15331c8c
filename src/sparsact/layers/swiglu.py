"""SwiGLU as one operator, which keeps its input alone for the backward pass and works on blocks that fit a cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 # as torch writes it

BLOCK = 2**17  # numbers at a time on a CPU


def swiglu(z: Tensor) -> Tensor:
    """``silu(u) * v`` (m, h) of pre-activations (m, 2 h), those of u first."""
    products: Tensor = _swiglu(z)
    return products


@torch.library.custom_op("sparsact::swiglu", mutates_args=())
def _swiglu(z: Tensor) -> Tensor:
    products = z.new_empty(z.shape[0], z.shape[1] // 2)
    for rows in _blocks(z):
        u, v = z[rows].chunk(2, 1)
        torch.mul(F.silu(u), v, out=products[rows])
    return products


@torch.library.custom_op("sparsact::swiglu_backward", mutates_args=())
def _swiglu_backward(gradient: Tensor, z: Tensor) -> Tensor:
    """Gradient (m, 2 h) in z, from that in ``swiglu(z)``."""
    gradients = torch.empty_like(z)
    for rows in _blocks(z):
        (u, v), (in_u, in_v) = z[rows].chunk(2, 1), gradients[rows].chunk(2, 1)
        logistic = u.sigmoid()
        silu = logistic * u
        torch.mul(silu, gradient[rows], out=in_v)
        slope = torch.addcmul(logistic + silu, silu, logistic, value=-1)
        torch.mul(slope.mul_(v), gradient[rows], out=in_u)
    return gradients


@_swiglu.register_fake
def _(z: Tensor) -> Tensor:
    return z.new_empty(z.shape[0], z.shape[1] // 2)


@_swiglu_backward.register_fake
def _(gradient: Tensor, z: Tensor) -> Tensor:
    return torch.empty_like(z)


def _save(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _gradient(ctx: Any, gradient: Tensor) -> Tensor:
    (z,) = ctx.saved_tensors
    if not torch.is_grad_enabled():
        result: Tensor = _swiglu_backward(gradient, z)
        return result
    u, v = z.chunk(2, 1)  # differentiable once more
    logistic = u.sigmoid()
    return torch.cat([gradient * v * logistic * (1 + u * (1 - logistic)), gradient * logistic * u], 1)


_swiglu.register_autograd(_gradient, setup_context=_save)


def _blocks(z: Tensor) -> Iterator[slice]:
    height = max(1, BLOCK // max(1, z.shape[1])) if z.device.type == "cpu" else max(1, len(z))
    for start in range(0, len(z), height):
        yield slice(start, start + height)
