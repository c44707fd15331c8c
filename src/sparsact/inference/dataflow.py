"""Trace the outputs of linear layers through a forward pass, operation by operation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakTensorKeyDictionary

from sparsact.inference.expression import Expression, Leaf, Operation, leaves

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
class TracedInput:
    """A call of a linear layer: what it read and what it gave."""

    source: Tensor
    values: Tensor


@dataclass(frozen=True, eq=False)
class Provenance:
    """How a tensor came from outputs of linear layers; no expression if not number by number, then why."""

    expression: Expression | None
    origins: dict[Leaf, TracedInput]
    why_not: str = ""


ELSEWHERE = Provenance(None, {})


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


def untraceable_reason(func: OpOverload, read: list[Expression]) -> str:
    """By which operation outputs of linear layers stopped being followed."""
    names = dict.fromkeys(leaf.name for one in read for leaf in leaves(one))
    how = "with other numbers of the input" if pointwise(func) else "which is not of each unit alone"
    return f"{' and '.join(names)} through {func.overloadpacket.__name__.strip('_')}, {how}"


def still_untraceable(func: OpOverload, noted: list[Provenance]) -> Provenance:
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


def same_size(tensor: Tensor, trail: Provenance) -> bool:
    """Whether a tensor has one number for each of the outputs that it came from, units last."""
    return tensor.ndim > 0 and all(
        tensor.shape[-1] == leaf.width and tensor.numel() == origin.values.numel()
        for leaf, origin in trail.origins.items()
    )


class DataflowTracer(TorchDispatchMode):
    """Notes of every tensor that depends on the inputs how it was computed from outputs of linear layers.

    A tensor without a note depends on no input: it is a constant. Notes do not keep tensors alive.

    Attributes
    ----------
    readers : list of Expression
        Values that were read by something other than an operation on each number by itself.
    shown : dict of (str, Expression) to None
        Values that modules other than plain linear layers were given or gave, by the module's name.
    """

    def __init__(self, batch: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.trails: Any = WeakTensorKeyDictionary()
        self.readers: list[Expression] = []
        self.shown: dict[tuple[str, Expression], None] = {}
        self.paused = False
        for tensor in tensors(dict(batch) if isinstance(batch, Mapping) else batch):
            self.trails[tensor] = ELSEWHERE

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Operations in here are not the model's own."""
        self.paused = True
        try:
            yield
        finally:
            self.paused = False

    def end(self, outputs: Any) -> None:
        """Note that what the model returns is read, and what else it keeps."""
        kept = [*tensors(outputs), *self.trails.keys()]
        seen = [self.trail(tensor) for tensor in kept]
        self.readers += [trail.expression for trail in seen if trail and trail.expression]

    def show(self, name: str, values: Any) -> None:
        """Note what the module ``name`` is given or gives."""
        seen = [self.trail(tensor) for tensor in tensors(values)]
        self.shown |= {(name, trail.expression): None for trail in seen if trail and trail.expression}

    def begin(self, name: str, source: Tensor, output: Tensor) -> None:
        """Note that ``output`` is what the linear layer ``name`` gave of ``source``."""
        leaf = Leaf(name, output.shape[-1])
        # An alias: a note that held the tensor itself would keep it alive.
        self.trails[output] = Provenance(leaf, {leaf: TracedInput(source.detach(), output.detach())})

    def trail(self, tensor: Tensor) -> Provenance | None:
        """What is noted of a tensor."""
        found: Provenance | None = self.trails.get(tensor)
        return found

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Compute the operation, and note what came of it."""
        kwargs = kwargs or {}
        if self.paused:
            return func(*args, **kwargs)
        overwritten = written(func, args, kwargs)
        for tensor in overwritten:
            self._keep_values_of(tensor)
        trail = self._next_trail(func, args, kwargs) if func.overloadpacket not in SHAPE_ALONE else None
        result = func(*args, **kwargs)
        if trail is None:
            return result
        outputs = tensors(result)
        if trail.expression and not (len(outputs) == 1 and same_size(outputs[0], trail)):
            trail = ELSEWHERE
        if trail.expression is None:
            read = [self.trail(tensor) for tensor in tensors((args, kwargs))]
            seen = [one.expression for one in read if one and one.expression]
            self.readers += seen
            trail = Provenance(None, {}, why_not=untraceable_reason(func, seen)) if seen else trail
        for tensor in overwritten:
            self._overwritten(tensor, trail)
        for tensor in outputs:
            self.trails[tensor] = trail
        return result

    def _next_trail(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Provenance | None:
        """The note of the result, None if it depends on no input."""
        read = [self.trail(tensor) for tensor in tensors((args, kwargs))]
        if not any(read) and torch.Tag.nondeterministic_seeded not in func.tags:
            return None
        first = read[0] if read else None
        noted = [seen for seen in read if seen]
        if not noted or not all(seen.expression for seen in noted) or (func._schema.is_mutable and not first):
            return still_untraceable(func, noted)
        origins = {leaf: origin for seen in noted for leaf, origin in seen.origins.items()}
        if func.overloadpacket in SAME_NUMBERS and first:
            return Provenance(first.expression, origins)
        if func.overloadpacket is torch.ops.aten._to_copy and first:
            dtype = kwargs.get("dtype")
            return Provenance(
                Operation(func, (first.expression,), {"dtype": dtype}) if dtype else first.expression, origins
            )
        if not pointwise(func) or "out" in kwargs:
            return ELSEWHERE
        width = next(iter(origins)).width
        arguments = [self._operand(argument, width) for argument in args]
        keywords = {name: self._operand(argument, width) for name, argument in kwargs.items()}
        if any(operand is ELSEWHERE for operand in (*arguments, *keywords.values())):
            return ELSEWHERE
        return Provenance(Operation(func, tuple(arguments), keywords), origins)

    def _operand(self, argument: Any, width: int) -> Any:
        """An argument as an expression keeps it; ``ELSEWHERE`` if it has a value per input."""
        if not isinstance(argument, Tensor):
            return argument
        trail = self.trail(argument)
        if trail:
            return trail.expression
        constant = per_unit(argument, width)
        return ELSEWHERE if constant is None else constant

    def _keep_values_of(self, tensor: Tensor) -> None:
        """Copy what linear layers read and gave where it lies in memory about to be written."""
        for trail in list(self.trails.values()):
            for origin in trail.origins.values():
                if place(origin.values) == place(tensor):
                    origin.values = origin.values.clone()
                if place(origin.source) == place(tensor):
                    origin.source = origin.source.clone()

    def _overwritten(self, tensor: Tensor, trail: Provenance) -> None:
        """What shared the memory of ``tensor`` has changed with it."""
        before = self.trail(tensor)
        for other in list(self.trails.keys()):
            seen = self.trail(other)
            if seen and seen.expression and place(other) == place(tensor):
                whole = before and seen.expression is before.expression and other.dtype == tensor.dtype
                self.trails[other] = trail if whole else ELSEWHERE
        self.trails[tensor] = trail
