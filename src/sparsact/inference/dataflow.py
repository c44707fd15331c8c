"""Trace the outputs of linear layers through a forward pass, operation by operation."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from operator import getitem
from typing import Any, Final

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode, _pop_mode_temporarily
from torch.utils.weak import WeakTensorKeyDictionary

from sparsact.inference.batches import tensors_in
from sparsact.inference.expression import Expression, Given, Leaf, Literal, Operation, Source, leaves
from sparsact.inference.torch_operations import (
    MASKING,
    PARTS,
    PRODUCTS,
    SAME_NUMBERS,
    SHAPE_ALONE,
    along_units,
    bound,
    is_pointwise,
    positional,
)


@dataclass(eq=False)
class TracedInput:
    """A call of a linear layer: its input and its output."""

    source: Tensor
    values: Tensor


@dataclass(frozen=True, eq=False)
class Provenance:
    """How a tensor was computed from outputs of linear layers; without expression if not row by row, with a reason.

    ``width`` is the size of its last axis, 0 if that is not known yet; it is 1 of a tensor that lacks the last axis,
    with one number for each row.
    """

    expression: Expression | None
    origins: dict[Source, TracedInput]
    reason: str = ""
    width: int = 0
    lacks_axis: bool = False

    def settled(self, expression: Expression, output: Tensor) -> Provenance:
        """The provenance of an output of the operation, ``UNTRACEABLE`` unless it has one row for each row."""
        shape, outputs = output.shape, [one.values for leaf, one in self.origins.items() if isinstance(leaf, Leaf)]
        rows = {values.shape[:-1].numel() for values in outputs}
        if not self.lacks_axis and shape and rows == {shape[:-1].numel()} and self.width in (0, shape[-1]):
            return replace(self, expression=expression, width=shape[-1])
        if (self.lacks_axis or self.width == 1) and rows == {shape.numel()}:
            return replace(self, expression=expression, width=1, lacks_axis=True)
        return UNTRACEABLE


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
    unseen : list of str
        Names of modules whose values are not recorded.
    products : dict of str to None
        Parameters of modules other than plain linear layers that something was multiplied with.
    """

    def __init__(self, batch: object, parameters: Mapping[int, str]) -> None:
        """``parameters`` are names by address."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._provenance: Any = WeakTensorKeyDictionary()
        self._literals: Any = WeakTensorKeyDictionary()
        self.products: dict[str, None] = {}
        self.readers: list[Expression] = []
        self.module_values: dict[tuple[str, Expression], None] = {}
        self.unseen: list[str] = []
        self._parameters = parameters
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
        leaf = Leaf(name, output.shape[-1], output.dtype)
        # Aliases: a record that held the tensor itself would keep it alive.
        origin = TracedInput(source.detach(), output.detach())
        self._provenance[output] = Provenance(leaf, {leaf: origin}, width=leaf.width)

    def record_module(self, name: str, values: object) -> None:
        """The module ``name`` received or returned ``values``."""
        self.module_values |= {(name, expression): None for expression in self._expressions(tensors_in(values))}

    def record_outputs(self, outputs: object) -> None:
        """The model returned ``outputs``, which are read, as is whatever else it keeps."""
        self.readers += self._expressions([*tensors_in(outputs), *self._provenance.keys()])

    def _expressions(self, tensors: list[Tensor]) -> list[Expression]:
        found = [self.provenance(tensor) for tensor in tensors]
        return [one.expression for one in found if one and one.expression]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Torch need not load its compiler, which takes seconds, to keep it out: no compiled code runs in a trace."""
        return False

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
        literal = made is None and self._is_literal(func, args, kwargs)
        result = func(*args, **kwargs)
        outputs = tensors_in(result)
        written = [other for tensor in overwritten for other in self._aliases(tensor)]
        for other in written:
            del self._literals[other]
        for tensor in outputs if literal else ():
            self._literals[tensor] = True
        if made is None:
            return result
        if func.overloadpacket in PARTS and self._record_halves(made, args[0], outputs):
            return result
        found = _of_outputs(made, outputs)
        if not any(one.expression for one in found):
            read = self._expressions(tensors_in((args, kwargs)))
            self.readers += read
            reason = self._product_reason(func, args) or (_untraceable_reason(func, read) if read else made.reason)
            found = [Provenance(None, {}, reason)] * len(outputs)
        for other in written:
            self._provenance[other] = UNTRACEABLE
        for tensor in overwritten:
            self._update_views_of(tensor, found[0])
        for tensor, one in zip(outputs, found, strict=True):
            self._provenance[tensor] = one
        return result

    def _is_literal(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether an operation without numbers of the input makes new ones from none but the model's code."""
        if func.overloadpacket is torch.ops.aten.arange:  # places, which other inputs may have further on
            return False
        fresh = func.overloadpacket in SHAPE_ALONE or func.overloadpacket is torch.ops.aten.lift_fresh
        return fresh or all(tensor in self._literals for tensor in tensors_in((args, kwargs)))

    def _product_reason(self, func: OpOverload, args: tuple[Any, ...]) -> str:
        """That an operation is a product with a parameter that is in no plain linear layer, if it is."""
        if func.overloadpacket not in PRODUCTS:
            return ""
        named = [self._parameters[_address(one)] for one in tensors_in(args) if _address(one) in self._parameters]
        self.products |= dict.fromkeys(named)
        return f"a product with the parameter {' and '.join(named)}" if named else ""

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
            half = self._halves.setdefault((leaf, start), Leaf(leaf.name, part.shape[-1], leaf.dtype, start))
            self._provenance[part] = Provenance(half, {half: TracedInput(origin.source, part.detach())})
        return True

    def _provenance_of_result(
        self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Provenance | None:
        """Provenance of the result, None if it depends on no input."""
        packet, tensors = func.overloadpacket, tensors_in((args, kwargs))
        read = [self.provenance(tensor) for tensor in tensors]
        if not any(read) and torch.Tag.nondeterministic_seeded not in func.tags:
            return None
        first, traced = read[0] if read else None, [one for one in read if one]
        known = [one for one in traced if one.expression]
        if not known or (len(known) < len(traced) and packet not in MASKING):
            carried = packet in SAME_NUMBERS or is_pointwise(func)
            one_reason = len({one.reason for one in traced}) == 1
            return traced[0] if carried and one_reason and not traced[0].expression else UNTRACEABLE
        if func._schema.is_mutable and not first and [one is tensors[0] for one in self._aliases(tensors[0])] != [True]:
            return UNTRACEABLE
        origins = {source: origin for one in known for source, origin in one.origins.items()}
        given = bound(func, args, kwargs)
        row = along_units(func, given)
        lacks_axis = {one.lacks_axis for one in known}
        if row is None and first and packet in SAME_NUMBERS:
            return UNTRACEABLE if packet is torch.ops.aten.slice and _ends(given) else replace(first, lacks_axis=False)
        if row is None and first and packet is torch.ops.aten._to_copy:
            dtype = kwargs.get("dtype")
            return replace(first, expression=Operation(func, (first.expression,), {"dtype": dtype})) if dtype else first
        if not (row or is_pointwise(func)) or len(lacks_axis) > 1 or (row and True in lacks_axis):
            return UNTRACEABLE
        func, given, lacks = row or (func, given, True in lacks_axis)
        arguments, keywords = positional(func, given)
        if tensors_in(keywords):
            return UNTRACEABLE
        like = max((one for one in tensors if self._expressions([one])), key=lambda one: one.ndim and one.shape[-1])
        operand = partial(self._operand, like, origins, bool(row), packet in MASKING)
        made = Operation(func, tuple(map(operand, arguments)), keywords)
        if any(operand is UNTRACEABLE for operand in made.operands):
            return UNTRACEABLE
        return Provenance(made, origins, lacks_axis=lacks)

    def _operand(
        self, like: Tensor, origins: dict[Source, TracedInput], is_row: bool, is_mask: bool, argument: object
    ) -> Any:
        """An argument as an expression holds it; ``UNTRACEABLE`` if it differs between inputs and is no mask."""
        if isinstance(argument, list | tuple):
            return [self._operand(like, origins, is_row, is_mask, one) for one in argument]
        if not isinstance(argument, Tensor):
            return argument
        found = self.provenance(argument)
        if found and found.expression:
            return found.expression
        of_like = self.provenance(like)
        whole = like.ndim > 0 and not (of_like and of_like.lacks_axis)
        width = argument.shape[-1] if is_row and argument.ndim else like.shape[-1] if whole else 1
        constant = None if found else _per_unit(argument, width)
        if constant is not None and (whole or constant.numel() == 1):
            return Literal(constant) if argument in self._literals else constant
        return self._given(argument, like, origins) if whole and is_mask else UNTRACEABLE

    def _given(self, tensor: Tensor, like: Tensor, origins: dict[Source, TracedInput]) -> Any:
        """Numbers of the input, one or as many for each row of ``like``."""
        try:
            values = tensor.detach().expand(*like.shape[:-1], tensor.shape[-1] if tensor.ndim else 1)
        except RuntimeError:
            return UNTRACEABLE
        given = Given(values.shape[-1], values.dtype)
        origins[given] = TracedInput(values, values)
        return given

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

    def _aliases(self, tensor: Tensor) -> list[Tensor]:
        """Tensors that the model's code made in this call, and that share the memory of this one."""
        return [one for one in list(self._literals) if _address(one) == _address(tensor)]


def _of_outputs(made: Provenance, outputs: list[Tensor]) -> list[Provenance]:
    """The provenance of each output of an operation."""
    if made.expression is None:
        return [made] * len(outputs)
    if len(outputs) == 1:
        return [made.settled(made.expression, outputs[0])]
    return [made.settled(Operation(getitem, (made.expression, i), {}), one) for i, one in enumerate(outputs)]


def _per_unit(constant: Tensor, width: int) -> Tensor | None:
    """A constant that broadcasts over (..., width), without axes of inputs; None if it differs between inputs."""
    if constant.ndim <= 1:
        return constant
    rows = constant.reshape(-1, constant.shape[-1])
    if (len(rows) > 1 and not bool((rows == rows[0]).all())) or constant.shape[-1] not in (1, width):
        return None
    return rows[0] if len(rows) == 1 else rows[0].clone()  # a view shows to which parameter it belongs


def _ends(sliced: dict[str, Any]) -> bool:
    """Whether a slice may leave out rows of a longer input, though it takes all of this one."""
    return bool(sliced["start"]) or sliced["end"] not in (None, sys.maxsize)


def _untraceable_reason(func: OpOverload, read: list[Expression]) -> str:
    """At which operation the trace of linear outputs ends."""
    names = dict.fromkeys(leaf.name for one in read for leaf in leaves(one))
    how = "with other numbers of the input" if is_pointwise(func) else "which is not of each unit alone"
    return f"{' and '.join(names)} through {func.overloadpacket.__name__.strip('_')}, {how}"


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
