"""Routers of a mixture of experts by name, and outputs of the chosen experts, from groups of tokens."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import log2
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import functional as F

from sparsact import routing
from sparsact.layers.gated_experts import gated_experts
from sparsact.layers.gather import gather_sum, scatter_outer
from sparsact.layers.routed_layer import ACTIVATIONS, Activation, activation_of
from sparsact.layers.segments import Groups, segment_matmul
from sparsact.routing.array_functions import gpu_kernels, is_for_onnx, is_transformed
from sparsact.routing.operators import Operator, is_watched
from sparsact.routing.router import Router, check_choice
from sparsact.validation.parameters import checked_size

NAMES: Final[dict[Any, str]] = {F.silu: "silu", F.gelu: "gelu"}
FUNCTIONS: Final = {name: function for function, name in NAMES.items()}


def gated(function: Activation, z: Tensor) -> Tensor:
    """``f(u) * v`` (m, h) of pre-activations z (m, 2 h), first u, then v."""
    if function in NAMES and gpu_kernels(z) and not (torch.compiler.is_compiling() or is_transformed()):
        return gated_rows(z, NAMES[function])
    u, v = z.chunk(2, -1)
    return function(u) * v


def _gated_rows(z: Tensor, name: str) -> Tensor:
    """:func:`gated` for a function by its name."""
    if gpu := gpu_kernels(z):
        of_gpu: Tensor = gpu.gated(z, name)
        return of_gpu
    u, v = z.chunk(2, -1)
    y: Tensor = FUNCTIONS[name](u) * v
    return y


def _gated_gradient(gradient: Tensor, z: Tensor, name: str) -> Tensor:
    """The gradient (m, 2 h) at z, of that at the output (m, h)."""
    if gpu := gpu_kernels(z):
        of_gpu: Tensor = gpu.gated(z, name, gradient)
        return of_gpu
    u, v = z.chunk(2, -1)
    derivative: Any = getattr(torch.ops.aten, f"{name}_backward")
    return torch.cat([derivative(gradient * v, u), gradient * FUNCTIONS[name](u)], -1)


def _save(ctx: Any, inputs: tuple[Tensor, str], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0])
    ctx.name = inputs[1]


def _backward(ctx: Any, needs: tuple[bool, ...], gradient: Tensor) -> tuple[Tensor, None]:
    (z,) = ctx.saved_tensors
    if not (torch.is_grad_enabled() or is_transformed()):
        return gated_gradient(gradient, z, ctx.name), None
    of: Any = torch.func.vjp(lambda x: FUNCTIONS[ctx.name](x.chunk(2, -1)[0]) * x.chunk(2, -1)[1], z)[1]
    return of(gradient)[0], None  # derivatives of every order exist


gated_rows = Operator(_gated_rows, lambda z, name: z.new_empty(z.shape[0], z.shape[1] // 2), _save, _backward)
gated_gradient = Operator(_gated_gradient, lambda gradient, z, name: torch.empty_like(z))

GATED: Final[dict[str, Activation]] = {"geglu": F.gelu, "reglu": F.relu, "swiglu": F.silu}


def expert_activation(activation: str | Activation) -> Activation:
    """The function of pre-activations that a name stands for; a function stands for itself."""
    if isinstance(activation, str) and activation in GATED:
        return partial(gated, GATED[activation])
    if not callable(activation) and activation not in tuple(ACTIVATIONS):
        names = ", ".join(sorted([*ACTIVATIONS, *GATED]))
        raise ValueError(f"`activation` must be one of {names} or a function; got {activation!r}.")
    return activation_of(activation)


def experts_of(
    rows: Tensor,
    indices: Tensor,
    weights: Tensor,
    up: Tensor,
    down: Tensor,
    activation: Callable[[Tensor], Tensor],
    up_bias: Tensor | None = None,
    *,
    max_taken: int | None = None,
) -> Tensor:
    """Sums (m, o) of the outputs of experts ``indices`` (m, k), -1 for none, for ``rows`` (m, d), weighted.

    They name at most ``max_taken`` experts, or any number if that is None.
    """

    def composed(rows: Tensor, weights: Tensor, up: Tensor, down: Tensor) -> Tensor:
        groups = Groups.of(indices, len(up), max_taken=max_taken)
        hidden = segment_matmul(
            scatter_outer(torch.ones_like(weights), rows, groups.slots, groups.n_slots), up, groups.starts
        )
        if up_bias is not None:
            experts = groups.experts[:, None]
            hidden = hidden + gather_sum(torch.ones_like(experts, dtype=rows.dtype), up_bias.to(rows.dtype), experts)
        return gather_sum(weights, segment_matmul(activation(hidden), down, groups.starts), groups.slots)

    operands = rows, weights, up.to(rows.dtype), down.to(rows.dtype)
    if is_for_onnx():
        return _of_all(*operands, indices, activation, up_bias)
    name = NAMES.get(activation.args[0]) if isinstance(activation, partial) and activation.func is gated else None
    if name is None or up_bias is not None or not rows.is_cpu or is_transformed() or is_watched(*operands, indices):
        return composed(*operands)
    return gated_experts(*operands, indices, name, composed)


def _of_all(
    x: Tensor, weights: Tensor, up: Tensor, down: Tensor, indices: Tensor, activation: Activation, bias: Tensor | None
) -> Tensor:
    """The same, where every expert computes every row."""
    hidden = x @ up  # (E, m, w)
    outputs = activation(hidden if bias is None else hidden + bias.to(x.dtype)[:, None]) @ down
    shares = weights.new_zeros(x.shape[0], up.shape[0])
    shares = shares.scatter_add(1, indices.clamp(min=0), weights.masked_fill(indices < 0, 0))
    return torch.einsum("me,emo->mo", shares, outputs)


def _power(n_experts: int, n_active: int) -> int:
    """Binary choices among the experts of one table."""
    bits = log2(n_experts / n_active)
    if bits != int(bits):
        raise ValueError(
            f"this router needs a power of two of experts; got n_experts={n_experts} with n_active={n_active}."
        )
    return int(bits)


ROUTERS: Final[dict[str, Callable[..., Router]]] = {
    "block_top1": lambda e, k, **o: routing.BlockTop1(k, e // k, **o),
    "expert_choice": lambda e, k, **o: routing.ExpertChoice(e, **{"capacity_factor": float(k), **o}),
    "hash_table": lambda e, k, **o: routing.HashTable(n_experts=e, n_active=k, **o),
    "hyperplane_lsh": lambda e, k, **o: routing.HyperplaneLSH(_power(e, k), k, **o),
    "learned_lsh": lambda e, k, **o: routing.LearnedLSH(_power(e, k), k, **o),
    "random_hash": lambda e, k, **o: routing.RandomHash(k, e, **o),
    "sigmoid": lambda e, k, **o: routing.SigmoidTopK(e, k, **o),
    "switch": lambda e, k, **o: routing.Switch(e, **o),
    "top_k": lambda e, k, **o: routing.SoftmaxTopK(e, k, **o),
    "tree": lambda e, k, **o: routing.Tree(_power(e, 1), **o),
}


def expert_router(router: str | Router, n_experts: int | None, n_active: int | None, options: dict[str, Any]) -> Router:
    """The router itself, or the one of that name for the given number of experts."""
    if isinstance(router, Router):
        if options:
            raise ValueError(f"`{next(iter(options))}` belongs to the router; pass it where {router!r} is made.")
        if router.routes_on != "inputs":
            raise ValueError(f"experts are chosen by inputs; {router!r} reads pre-activations: pass SoftmaxTopK.")
        return router
    if router not in ROUTERS:
        raise ValueError(f"`router` must be a Router or one of {', '.join(ROUTERS)}; got {router!r}.")
    if n_experts is None:
        raise ValueError(f'`n_experts` must be given with router="{router}".')
    n_experts = checked_size(n_experts, "`n_experts`")
    usual = 1 if router in ("hash_table", "switch", "tree") else 2
    n_active = min(usual, n_experts) if n_active is None else checked_size(n_active, "`n_active`")
    check_choice(n_active, n_experts)
    try:
        return ROUTERS[router](n_experts, n_active, **options)
    except TypeError as error:
        hint = "; did you mean capacity_factor?" if "capacity" in options else "."
        raise ValueError(f'router="{router}" cannot be made from {options}: {str(error).rstrip(".")}{hint}') from error


def check_sizes(router: Router, seen: int, n_experts: int | None, n_active: int | None) -> None:
    """Raise if the router's numbers of experts differ from the layer's arguments."""
    has = router.width(seen), router.max_active(seen)
    for name, asked, number in (("n_experts", n_experts, has[0]), ("n_active", n_active, has[1])):
        by_experts = name == "n_active" and isinstance(router, routing.ExpertChoice)  # a mean: not a router's number
        if asked not in (None, number) and not by_experts:
            raise ValueError(f"`{name}` = {asked}, but {router!r} has {number}; pass {name}={number}.")
