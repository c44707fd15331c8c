"""Gated activations on the CPU a few rows at a time, so that what lies between two operations stays in the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 # as torch writes it

NUMBERS_AT_ONCE = 2**18
NAMES: dict[Any, str] = {F.silu: "silu", F.gelu: "gelu"}
FUNCTIONS = {name: function for function, name in NAMES.items()}


def gated(function: Callable[[Tensor], Tensor], z: Tensor) -> Tensor:
    """``f(u) * v`` (m, h) of pre-activations z (m, 2 h), those of u first."""
    if function in NAMES and z.is_cpu and not torch.compiler.is_compiling():
        y: Tensor = gated_rows(z, NAMES[function])
        return y
    u, v = z.chunk(2, -1)
    return function(u) * v


@torch.library.custom_op("sparsact::gated_rows", mutates_args=())
def gated_rows(z: Tensor, name: str) -> Tensor:
    """:func:`gated` for a function by its name."""
    y = z.new_empty(z.shape[0], z.shape[1] // 2)
    for some, (u, v) in _blocks(z):
        torch.mul(FUNCTIONS[name](u), v, out=y[some])
    return y


@torch.library.custom_op("sparsact::gated_gradient", mutates_args=())
def gated_gradient(gradient: Tensor, z: Tensor, name: str) -> Tensor:
    """The gradient (m, 2 h) at z, of that at the output (m, h)."""
    found = torch.empty_like(z)
    of_u, of_v = found.chunk(2, -1)
    for some, (u, v) in _blocks(z):
        torch.mul(gradient[some], FUNCTIONS[name](u), out=of_v[some])
        derivative: Any = getattr(torch.ops.aten, f"{name}_backward").grad_input
        derivative(gradient[some] * v, u, grad_input=of_u[some])
    return found


@gated_rows.register_fake
def _(z: Tensor, name: str) -> Tensor:
    return z.new_empty(z.shape[0], z.shape[1] // 2)


@gated_gradient.register_fake
def _(gradient: Tensor, z: Tensor, name: str) -> Tensor:
    return torch.empty_like(z)


def _save(ctx: Any, inputs: tuple[Tensor, str], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0])
    ctx.name = inputs[1]


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
    (z,) = ctx.saved_tensors
    if not torch.is_grad_enabled():
        return gated_gradient(gradient, z, ctx.name), None
    of: Any = torch.func.vjp(lambda x: FUNCTIONS[ctx.name](x.chunk(2, -1)[0]) * x.chunk(2, -1)[1], z)[1]
    return of(gradient)[0], None  # derivatives of every order exist


gated_rows.register_autograd(_backward, setup_context=_save)


def _blocks(z: Tensor) -> Iterator[tuple[slice, tuple[Tensor, ...]]]:
    """Rows of z, with both halves of them."""
    step = max(1, NUMBERS_AT_ONCE // max(1, z.shape[1]))
    for begin in range(0, z.shape[0], step):
        some = slice(begin, begin + step)
        yield some, z[some].chunk(2, -1)
