"""What is computed from a layer's weights, cached until they change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_post_hook

from sparsact.kernels.fingerprint import fingerprint

Made = TypeVar("Made")


class WeightVersion:
    """Tensors as they are now; held, so that no others come to lie at their addresses.

    Torch does not count all writes: fused optimisers, collectives, ``.data`` and NumPy views leave ``_version`` alone.
    Every call of :meth:`is_current` therefore also compares one stripe of the memory with its fingerprint, and all of
    it after an optimiser's step, a counted write, or a doubt of the caller's.

    Parameters
    ----------
    tensors : sequence of Tensor or None
        Not of inference mode, which counts no writes.
    doubts : int
        How often the caller has seen something after which the tensors may have changed.
    """

    def __init__(self, tensors: Sequence[Tensor | None], doubts: int = 0) -> None:
        _count_steps()
        self.tensors = [None if tensor is None else tensor.detach() for tensor in tensors]
        self._places = [_place(tensor) for tensor in tensors]
        self._seen = _seen(tensors, doubts)
        self._fingerprint = fingerprint([_memory(tensor) for tensor in tensors])

    def is_current(self, tensors: Sequence[Tensor | None], doubts: int = 0) -> bool:
        """Whether the tensors lie where they lay and hold what they held, as far as was looked."""
        seen = _seen(tensors, doubts)
        if seen == self._seen:
            return bool(self._fingerprint.next())
        if [_place(tensor) for tensor in tensors] != self._places or not self._fingerprint.all():
            return False
        self._seen = seen
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        """None: a copy is of other memory."""
        return type(None), ()


class WeightCache(Generic[Made]):
    """A value made from watched tensors, the weight and the bias of a layer, and made again when others are watched.

    Copies and pickles hold the recipe alone: memory that kernels point into is never shared by accident.

    Parameters
    ----------
    make : callable
        From (weight, bias or None) to the value. To be pickled it must be a function of a module, or a partial of one.
    """

    def __init__(self, make: Callable[[Tensor, Tensor | None], Made]) -> None:
        self._make = make
        self._made: tuple[Made, WeightVersion] | None = None

    def get(self, watch: WeightVersion) -> Made:
        """The value for the weights that are watched."""
        made = self._made
        if made is None or made[1] is not watch:
            weight, bias = watch.tensors
            assert weight is not None  # noqa: S101 # a layer has one
            self._made = made = self._make(weight, bias), watch
        return made[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return WeightCache, (self._make,)


def _seen(tensors: Sequence[Tensor | None], doubts: int) -> list[Any]:
    """What changes when a tensor moves, or is written to and torch counts it, and when there is doubt."""
    seen: list[Any] = [doubts, _steps]
    for tensor in tensors:
        if tensor is not None:  # a square matrix may be turned where it lies: it is not contiguous then
            seen += tensor.data_ptr(), tensor._version, tensor.is_contiguous()
    return seen


def _place(tensor: Tensor | None) -> tuple[Any, ...]:
    return () if tensor is None else (tensor.data_ptr(), tensor.shape, tensor.stride())


def _memory(tensor: Tensor | None) -> tuple[int, int]:
    """Address and length of the memory that a tensor on the CPU spans, (0, 0) of others."""
    if tensor is None or not tensor.is_cpu or tensor.layout is not torch.strided or not tensor.numel():
        return 0, 0
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), (last + 1) * tensor.itemsize


_steps = 0  # of all optimisers of the process


@cache
def _count_steps() -> None:
    """Count steps of optimisers from the first call on."""

    def count(*given: Any) -> None:
        global _steps
        _steps += 1

    register_optimizer_step_post_hook(count)
