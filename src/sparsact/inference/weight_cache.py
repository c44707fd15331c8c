"""Values computed from a layer's weights, cached until the weights change, and constants that activations read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils import swap_tensors

from sparsact.kernels.fingerprint import fingerprint

T = TypeVar("T")


class WeightVersion:
    """Tensors as they are now; held, so that no others come to lie at their addresses.

    Torch does not count all writes: fused optimisers, collectives, ``.data`` and NumPy views leave ``_version`` alone.
    On the CPU every call of :meth:`is_current` also compares one stripe of the memory with its fingerprint, and all of
    it after an optimiser's step, a counted write, or a write that the caller suspects: ``suspected_writes`` counts the
    events after which the tensors may have changed. On other devices such events alone are noticed, and the sums of
    rows and columns compared then. The tensors must not be of inference mode, which counts no writes.
    """

    optimizer_steps: ClassVar[int] = 0  # of all optimisers of the process

    def __init__(self, tensors: Sequence[Tensor | None], suspected_writes: int = 0) -> None:
        _count_optimizer_steps()
        self.tensors = [None if tensor is None else tensor.detach() for tensor in tensors]
        self._layouts = [_layout(tensor) for tensor in tensors]
        self.write_counts: list[Any] | None = _write_counts(tensors, suspected_writes)
        self._fingerprint = fingerprint([_memory(tensor) for tensor in tensors])
        self._sums = [_sums(tensor) for tensor in self.tensors if tensor is not None and not tensor.is_cpu]

    def is_current(self, tensors: Sequence[Tensor | None], suspected_writes: int = 0) -> bool:
        """Whether the tensors lie where they lay and hold what they held, in the part of them that was compared."""
        counts = _write_counts(tensors, suspected_writes)
        if counts == self.write_counts:
            return bool(self._fingerprint.next())
        if [_layout(tensor) for tensor in tensors] != self._layouts or not self._fingerprint.all():
            return False
        away = [_sums(tensor) for tensor in tensors if tensor is not None and not tensor.is_cpu]
        if not all(map(torch.equal, self._sums, away)):
            return False
        self.write_counts = counts
        return True

    @property
    def stripe(self) -> Callable[[], bool] | None:
        """Compares the next stripe of memory with its fingerprint; None if calls compare none."""
        following: Callable[[], bool] = self._fingerprint.next
        return following

    def __reduce__(self) -> tuple[Any, ...]:
        """None: a copy would be of other memory."""
        return type(None), ()


class CountedVersion(WeightVersion):
    """Tensors whose memory no call reads: only counted and suspected writes are noticed."""

    def is_current(self, tensors: Sequence[Tensor | None], suspected_writes: int = 0) -> bool:
        """Whether no write was counted or suspected, or the tensors hold what they held."""
        same = _write_counts(tensors, suspected_writes) == self.write_counts
        return same or super().is_current(tensors, suspected_writes)

    @property
    def stripe(self) -> None:
        """None: calls compare no memory."""


class WeightCache(Generic[T]):
    """A value computed from a layer's weight and bias, and computed again when their version changes.

    Copies and pickles hold only ``make``, a function of (weight, bias or None) at module level or a partial of one:
    memory that kernels point into is never shared by accident.
    """

    def __init__(self, make: Callable[[Tensor, Tensor | None], T]) -> None:
        self.make = make
        self._made: tuple[T, WeightVersion] | None = None

    def get(self, version: WeightVersion) -> T:
        """The value for this version of (weight, bias)."""
        made = self._made
        if made is None or made[1] is not version:
            weight, bias = version.tensors
            self._made = made = self.make(weight, bias), version  # type: ignore[arg-type] # a layer has a weight
        return made[0]

    def set(self, value: T, version: WeightVersion) -> None:
        """Take this value, which was computed before, for this version."""
        self._made = value, version

    def __reduce__(self) -> tuple[Any, ...]:
        return WeightCache, (self.make,)


def _write_counts(tensors: Sequence[Tensor | None], suspected_writes: int) -> list[Any]:
    """What changes when a tensor moves, is written to as torch counts it, or may have been written to."""
    counts: list[Any] = [suspected_writes, WeightVersion.optimizer_steps]
    for tensor in tensors:
        if tensor is not None:
            counts += tensor.data_ptr(), tensor._version
    if tensors and tensors[0] is not None:  # a square matrix may be transposed in place: it is not contiguous then
        counts.append(tensors[0].is_contiguous())
    return counts


def _layout(tensor: Tensor | None) -> tuple[Any, ...]:
    return () if tensor is None else (tensor.data_ptr(), tensor.shape, tensor.stride())


def _memory(tensor: Tensor | None) -> tuple[int, int]:
    """Address and length in bytes of the memory that a tensor on the CPU spans, (0, 0) of others."""
    if tensor is None or not tensor.is_cpu or tensor.layout is not torch.strided or not tensor.numel():
        return 0, 0
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), (last + 1) * tensor.itemsize


def _sums(tensor: Tensor) -> Tensor:
    """Sums of the bits of a tensor, as integers, along each axis, which few changes leave; a vector itself."""
    bits = tensor.detach().view({8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.int8}[tensor.itemsize])
    if tensor.ndim < 2:
        return bits.clone()
    return torch.cat([bits.sum(axis, dtype=torch.int64).flatten() for axis in range(tensor.ndim)])


@cache
def _count_optimizer_steps() -> None:
    """Count steps of optimisers from the first call on."""

    def count(*given: object) -> None:
        WeightVersion.optimizer_steps += 1

    register_optimizer_step_post_hook(count)


def count_writes(layer: nn.Module) -> None:
    """Have torch count writes to the parameters of a layer, which it does not if they were made in inference mode."""
    with torch.inference_mode(False):
        for held in layer._parameters.values():
            if held is not None and held.is_inference():  # swapped, so that it stays tied to other modules
                swap_tensors(held, nn.Parameter(held.clone(), held.requires_grad))  # type: ignore[no-untyped-call]


class ActivationConstants:
    """Tensors of a model that an activation reads, by module and name, and the values that it was found with."""

    def __init__(self, places: list[tuple[nn.Module, str]], values: list[Tensor] | None = None) -> None:
        self._places = places
        self._values = [tensor.detach().clone() for tensor in self._tensors()] if values is None else values
        self._version: WeightVersion | None = None

    @property
    def none(self) -> bool:
        """Whether there are none."""
        return not self._places

    def is_current(self) -> bool:
        """Whether none has its gradient recorded, has moved or, as far as :class:`WeightVersion` detects it, changed.

        Not known in a copy that was made in inference mode, where writes are not counted.
        """
        if not self._places:
            return True
        tensors = self._tensors()
        if any(tensor.is_inference() or (tensor.requires_grad and torch.is_grad_enabled()) for tensor in tensors):
            return False
        if self._version is None:
            pairs = zip(tensors, self._values, strict=True)
            same = all(one.dtype is value.dtype and torch.equal(one, value.to(one.device)) for one, value in pairs)
            self._version = WeightVersion(tensors) if same else None
        return self._version is not None and self._version.is_current(tensors)

    def _tensors(self) -> list[Tensor]:
        return [tensor_at(*place) for place in self._places]

    def __reduce__(self) -> tuple[type[ActivationConstants], tuple[Any, ...]]:
        """A copy of a model refers to the copied tensors, which may have changed before it was made."""
        return ActivationConstants, (self._places, self._values)


def tensor_at(module: nn.Module, name: str) -> Tensor:
    """The tensor of that name; an empty one if there is none."""
    found = module._parameters.get(name, module._buffers.get(name))
    return torch.empty(0) if found is None else found
