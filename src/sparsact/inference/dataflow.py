"""Trace the outputs of linear layers through a forward pass, operation by operation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode, _pop_mode_temporarily
from torch.utils.weak import WeakTensorKeyDictionary

from sparsact.inference.activation import Expression, Leaf, Operation, RowScale, leaves
from sparsact.inference.batches import tensors_in

aten = torch.ops.aten

# These return the numbers that they are given, in another shape, order of axes or memory.
SAME_NUMBERS: Final = {
    *(aten.view, aten._unsafe_view, aten._reshape_alias, aten.unsqueeze, aten.squeeze, aten.expand, aten.slice),
    *(aten.permute, aten.transpose, aten.t, aten.clone, aten.detach, aten.alias, aten._reshape_copy),
}
# These return parts of what they are given.
PARTS: Final = {aten.split, aten.split_with_sizes, aten.slice}
# These keep zeros if their second argument is a factor of each row.
SCALING: Final = {aten.mul, aten.div}
# These are elementwise, and some of their overloads are not tagged as such.
POINTWISE: Final = {
    "_prelu_kernel",
    "add",
    "hardswish",
    "hardtanh",
    "masked_fill",
    "mul",
    "rsub",
    "sub",
    "threshold",
    "where",
}
# These read only the shape of their argument.
SHAPE_ALONE: Final = {
    *(aten.zeros_like, aten.ones_like, aten.full_like, aten.empty_like, aten.new_zeros, aten.new_ones),
    *(aten.new_full, aten.new_empty),
}


@dataclass(eq=False)
class TracedInput:
    """A call of a linear layer: its input and its output."""

    source: Tensor
    values: Tensor


@dataclass(frozen=True, eq=False)
class Provenance:
    """How a tensor was computed from outputs of linear layers; without expression if not elementwise, with a reason.

    ``per_row`` says that it has one number for each row of such outputs.
    """

    expression: Expression | None
    origins: dict[Leaf, TracedInput]
    reason: str = ""
    per_row: bool = False


UNTRACEABLE: Final = Provenance(None, {})


class DataflowTracer(TorchDispatchMode):
    """Records how every tensor that depends on the inputs was computed from outputs of linear layers.

    A tensor without provenance depends on no input: it is a constant. Records do not keep tensors alive.

    Attributes
    ----------
    readers : list of Expression
        Values that were read by something other than an elementwise operation.
    module_values : dict of (str, Expression) to None
        Values that modules other than plain linear layers received or returned, by the module's name.
    """

    def __init__(self, batch: object) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._provenance: Any = WeakTensorKeyDictionary()
        self.readers: list[Expression] = []
        self.module_values: dict[tuple[str, Expression], None] = {}
        self._paused = False
        self._halves: dict[tuple[Leaf, int], Leaf] = {}
        for tensor in tensors_in(batch):
            self._provenance[tensor] = UNTRACEABLE

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Operations within are not the model's own; with no mode above this one they do not pass through it."""
        self._paused = True
        try:
            with _pop_mode_temporarily() if _get_current_dispatch_mode() is self else nullcontext():
                yield
        finally:
            self._paused = False

    def provenance(self, tensor: Tensor) -> Provenance | None:
        """What was recorded for a tensor."""
        found: Provenance | None = self._provenance.get(tensor)
        return found

    def record_layer(self, name: str, source: Tensor, output: Tensor) -> None:
        """The linear layer ``name`` returned ``output`` for ``source``."""
        leaf = Leaf(name, output.shape[-1])
        # Aliases: a record that held the tensor itself would keep it alive.
        self._provenance[output] = Provenance(leaf, {leaf: TracedInput(source.detach(), output.detach())})

    def record_module(self, name: str, values: object) -> None:
        """The module ``name`` received or returned ``values``."""
        self.module_values |= {(name, expression): None for expression in self._expressions(tensors_in(values))}

    def record_outputs(self, outputs: object) -> None:
        """The model returned ``outputs``, which are read, as is whatever else it keeps."""
        self.readers += self._expressions([*tensors_in(outputs), *self._provenance.keys()])

    def _expressions(self, tensors: list[Tensor]) -> list[Expression]:
        found = [self.provenance(tensor) for tensor in tensors]
        return [one.expression for one in found if one and one.expression]

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Compute the operation and record the provenance of its results."""
        kwargs = kwargs or {}
        if self._paused:
            return func(*args, **kwargs)
        overwritten = _overwritten_arguments(func, args, kwargs)
        for tensor in overwritten:
            self._keep_values_of(tensor)
        made = self._provenance_of_result(func, args, kwargs) if func.overloadpacket not in SHAPE_ALONE else None
        result = func(*args, **kwargs)
        if made is None:
            return result
        outputs = tensors_in(result)
        if func.overloadpacket in PARTS and self._record_halves(made, args[0], outputs):
            return result
        if made.expression and not (len(outputs) == 1 and _has_shape_of_origins(outputs[0], made)):
            made = UNTRACEABLE
        if made.expression is None and (read := self._expressions(tensors_in((args, kwargs)))):
            self.readers += read
            made = Provenance(None, {}, _untraceable_reason(func, read), self._is_per_row(outputs, args))
        for tensor in overwritten:
            self._update_views_of(tensor, made)
        for tensor in outputs:
            self._provenance[tensor] = made
        return result

    def _record_halves(self, made: Provenance, whole: Tensor, parts: list[Tensor]) -> bool:
        """Whether parts of a tensor are halves of what one linear layer returned, such as gate and up-projection."""
        source = self.provenance(whole)
        if source is None or not isinstance(source.expression, Leaf) or source.expression.start is not None:
            return False
        leaf, origin = source.expression, source.origins[source.expression]
        for part in parts:
            start = part.storage_offset() - whole.storage_offset()
            same = part.shape[:-1] == whole.shape[:-1] and part.stride() == whole.stride() and whole.stride(-1) == 1
            if not same or 2 * part.shape[-1] != leaf.width or start not in (0, part.shape[-1]):
                return False
        for part in parts:
            start = int(part.storage_offset() - whole.storage_offset())
            half = self._halves.setdefault((leaf, start), Leaf(leaf.name, part.shape[-1], start))
            self._provenance[part] = Provenance(half, {half: TracedInput(origin.source, part.detach())})
        return True

    def _provenance_of_result(
        self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Provenance | None:
        """Provenance of the result, None if it depends on no input."""
        read = [self.provenance(tensor) for tensor in tensors_in((args, kwargs))]
        if not any(read) and torch.Tag.nondeterministic_seeded not in func.tags:
            return None
        first = read[0] if read else None
        traced = [one for one in read if one]
        if func.overloadpacket in SCALING and len(traced) == 2 and first and first.expression and read[1] is traced[1]:
            scale = traced[1].per_row and args[1].shape == (*args[0].shape[:-1], 1)
            if scale and not traced[1].expression:
                scaled = Operation(func, (first.expression, RowScale(args[1].detach().clone())), {})
                return Provenance(scaled, first.origins)
        if not traced or not all(one.expression for one in traced) or (func._schema.is_mutable and not first):
            carried = func.overloadpacket in SAME_NUMBERS or _is_pointwise(func)
            one_reason = len({one.reason for one in traced}) == 1
            return traced[0] if carried and one_reason and not traced[0].expression else UNTRACEABLE
        origins = {leaf: origin for one in traced for leaf, origin in one.origins.items()}
        if func.overloadpacket in SAME_NUMBERS and first:
            return Provenance(first.expression, origins)
        if func.overloadpacket is aten._to_copy and first:
            dtype = kwargs.get("dtype")
            cast = Operation(func, (first.expression,), {"dtype": dtype}) if dtype else first.expression
            return Provenance(cast, origins)
        if not _is_pointwise(func) or "out" in kwargs:
            return UNTRACEABLE
        width = next(iter(origins)).width
        arguments = [self._operand(argument, width) for argument in args]
        keywords = {name: self._operand(argument, width) for name, argument in kwargs.items()}
        if any(operand is UNTRACEABLE for operand in (*arguments, *keywords.values())):
            return UNTRACEABLE
        return Provenance(Operation(func, tuple(arguments), keywords), origins)

    def _is_per_row(self, outputs: list[Tensor], args: tuple[Any, ...]) -> bool:
        """Whether an operation made one number for each row of the values of an expression."""
        read = next((one for one in tensors_in(args) if (found := self.provenance(one)) and found.expression), None)
        return read is not None and len(outputs) == 1 and outputs[0].shape == (*read.shape[:-1], 1)

    def _operand(self, argument: object, width: int) -> Any:
        """An argument as an expression holds it; ``UNTRACEABLE`` if it differs between inputs."""
        if not isinstance(argument, Tensor):
            return argument
        found = self.provenance(argument)
        if found:
            return found.expression
        constant = _per_unit(argument, width)
        return UNTRACEABLE if constant is None else constant

    def _keep_values_of(self, tensor: Tensor) -> None:
        """Copy inputs and outputs of linear layers that lie in memory about to be overwritten."""
        for one in list(self._provenance.values()):
            for origin in one.origins.values():
                if _address(origin.values) == _address(tensor):
                    origin.values = origin.values.clone()
                if _address(origin.source) == _address(tensor):
                    origin.source = origin.source.clone()

    def _update_views_of(self, tensor: Tensor, made: Provenance) -> None:
        """Tensors that share the memory of an overwritten one have changed with it."""
        before = self.provenance(tensor)
        for other in list(self._provenance.keys()):
            seen = self.provenance(other)
            if seen and seen.expression and _address(other) == _address(tensor):
                whole = before and seen.expression is before.expression and other.dtype == tensor.dtype
                self._provenance[other] = made if whole else UNTRACEABLE
        self._provenance[tensor] = made


def _per_unit(constant: Tensor, width: int) -> Tensor | None:
    """A constant that broadcasts over (..., width), without axes of inputs; None if it differs between inputs."""
    if constant.ndim <= 1:
        return constant
    rows = constant.reshape(-1, constant.shape[-1])
    if len(rows) > 1 and not bool((rows == rows[0]).all()):
        return None
    if constant.shape[-1] not in (1, width):
        return None
    return rows[0] if len(rows) == 1 else rows[0].clone()  # a view shows to which parameter it belongs


def _untraceable_reason(func: OpOverload, read: list[Expression]) -> str:
    """At which operation the trace of linear outputs ends."""
    names = dict.fromkeys(leaf.name for one in read for leaf in leaves(one))
    how = "with other numbers of the input" if _is_pointwise(func) else "which is not of each unit alone"
    return f"{' and '.join(names)} through {func.overloadpacket.__name__.strip('_')}, {how}"


def _is_pointwise(func: OpOverload) -> bool:
    return torch.Tag.pointwise in func.tags or func.overloadpacket.__name__.rstrip("_") in POINTWISE


def _overwritten_arguments(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    if not func._schema.is_mutable:
        return []
    parameters = func._schema.arguments
    given = dict(zip([one.name for one in parameters], args, strict=False)) | kwargs
    names = [one.name for one in parameters if one.alias_info and one.alias_info.is_write]
    return tensors_in([given[name] for name in names if name in given])


def _address(tensor: Tensor) -> int:
    """Address of a tensor's storage, the same for all its views."""
    return tensor.untyped_storage().data_ptr()


def _has_shape_of_origins(tensor: Tensor, made: Provenance) -> bool:
    """Whether a tensor has one number for each output that it was computed from, units last."""
    return tensor.ndim > 0 and all(
        tensor.shape[-1] == leaf.width and tensor.numel() == origin.values.numel()
        for leaf, origin in made.origins.items()
    )
