"""How a tensor came from the outputs of linear layers, and what an operation does to that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves

from sparsact.inference.expression import Expression, Leaf, leaves

aten = torch.ops.aten

# These give the numbers that they get, in another shape or order of axes, or in other memory.
SAME_NUMBERS = {
    *(aten.view, aten._unsafe_view, aten._reshape_alias, aten.unsqueeze, aten.squeeze, aten.expand, aten.slice),
    *(aten.permute, aten.transpose, aten.t, aten.clone, aten.detach, aten.alias, aten._reshape_copy),
}
# These are computed number by number, and some of their forms are not tagged as such.
POINTWISE = {"_prelu_kernel", "add", "hardswish", "hardtanh", "masked_fill", "mul", "rsub", "sub", "threshold", "where"}
# These read the shape of their argument alone.
SHAPE_ALONE = {
    *(aten.zeros_like, aten.ones_like, aten.full_like, aten.empty_like, aten.new_zeros, aten.new_ones),
    *(aten.new_full, aten.new_empty),
}


@dataclass(eq=False)
class Origin:
    """A call of a linear layer: what it read and what it gave."""

    source: Tensor
    values: Tensor


@dataclass(frozen=True, eq=False)
class Trail:
    """How a tensor came from outputs of linear layers; no expression if not number by number, then why."""

    expression: Expression | None
    origins: dict[Leaf, Origin]
    why_not: str = ""


ELSEWHERE = Trail(None, {})


def per_unit(constant: Tensor, width: int) -> Tensor | None:
    """A constant that broadcasts over (..., width), without axes of inputs; None if it differs between inputs."""
    if constant.ndim <= 1:
        return constant
    rows = constant.reshape(-1, constant.shape[-1])
    if len(rows) > 1 and not bool((rows == rows[0]).all()):
        return None
    if constant.shape[-1] not in (1, width):
        return None
    return rows[0] if len(rows) == 1 else rows[0].clone()  # a view tells of which parameter it is


def lost(func: OpOverload, read: list[Expression]) -> str:
    """By which operation outputs of linear layers stopped being followed."""
    names = dict.fromkeys(leaf.name for one in read for leaf in leaves(one))
    how = "with other numbers of the input" if pointwise(func) else "which is not of each unit alone"
    return f"{' and '.join(names)} through {func.overloadpacket.__name__.strip('_')}, {how}"


def still_lost(func: OpOverload, noted: list[Trail]) -> Trail:
    """The note where nothing is followed: why that is, as long as it is for one reason."""
    reasons = {trail.why_not for trail in noted}
    carried = func.overloadpacket in SAME_NUMBERS or pointwise(func)
    return noted[0] if carried and len(reasons) == 1 and not noted[0].expression else ELSEWHERE


def pointwise(func: OpOverload) -> bool:
    """Whether an operation computes number by number."""
    return torch.Tag.pointwise in func.tags or func.overloadpacket.__name__.rstrip("_") in POINTWISE


def tensors(tree: Any) -> list[Tensor]:
    """The tensors in nested containers."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def written(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """The arguments that an operation overwrites."""
    if not func._schema.is_mutable:
        return []
    names = [argument.name for argument in func._schema.arguments]
    given = dict(zip(names, args, strict=False)) | kwargs
    targets = [a.name for a in func._schema.arguments if a.alias_info and a.alias_info.is_write]
    return tensors([given[name] for name in targets if name in given])


def place(tensor: Tensor) -> int:
    """Where the memory of a tensor begins, the same for all its views."""
    return tensor.untyped_storage().data_ptr()


def same_size(tensor: Tensor, trail: Trail) -> bool:
    """Whether a tensor has one number for each of the outputs that it came from, units last."""
    return tensor.ndim > 0 and all(
        tensor.shape[-1] == leaf.width and tensor.numel() == origin.values.numel()
        for leaf, origin in trail.origins.items()
    )
