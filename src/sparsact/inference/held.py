"""What is made from a layer's weights and kept until they change."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from sparsact.kernels.fingerprint import fingerprint

Made = TypeVar("Made")


class Held(Generic[Made]):
    """A value made from the weight and the bias of a layer, and made again after these have changed.

    Copies and pickles hold the recipe alone: memory that kernels point into is never shared by accident.

    Parameters
    ----------
    make : callable
        From (weight, bias or None) to the value. To be pickled it must be a function of a module, or a partial of one.
    """

    def __init__(self, make: Callable[[Tensor, Tensor | None], Made]) -> None:
        self._make = make
        self._made: tuple[Made, Stamped] | None = None

    def of(self, linear: nn.Linear) -> Made:
        """The value for the layer's present weights."""
        made = self._made
        if made is None or not made[1].still(linear):
            of = Stamped(linear)
            self._made = made = self._make(of.weight, of.bias), of
        return made[0]

    def __deepcopy__(self, memo: dict[int, Any]) -> Held[Made]:
        return Held(self._make)

    def __reduce__(self) -> tuple[Any, ...]:
        return Held, (self._make,)


class Stamped:
    """The weight and the bias of a layer as they are now."""

    def __init__(self, linear: nn.Linear) -> None:
        sparse = linear.__dict__.get("_sparse")
        doubts = sparse.doubts if sparse is not None else 0
        self._weight, self._bias = Watch(linear.weight, doubts), Watch(linear.bias, doubts)
        assert self._weight.tensor is not None  # noqa: S101 # a layer has a weight
        self.weight, self.bias = self._weight.tensor, self._bias.tensor

    def still(self, linear: nn.Linear) -> bool:
        """Whether they have neither moved nor, as far as :class:`Watch` sees it, changed."""
        parameters = linear._parameters  # much quicker than the attributes
        doubts = linear._sparse.doubts if "_sparse" in linear.__dict__ else 0
        return self._weight.still(parameters["weight"], doubts) and self._bias.still(parameters["bias"], doubts)


class Watch:
    """A tensor as it is now; held, so that no other comes to lie at its address.

    Torch does not count all writes: fused optimisers, collectives, ``.data`` and NumPy views leave ``_version`` alone.
    Every call of :meth:`still` therefore also compares one stripe of the memory with its fingerprint, and all of it
    after an optimiser's step, a counted write, or a doubt of the caller's.

    Parameters
    ----------
    tensor : Tensor or None
    doubts : int
        How often the caller has seen something after which the tensor may have changed.
    """

    def __init__(self, tensor: Tensor | None, doubts: int = 0) -> None:
        _count_steps()
        self.tensor = None if tensor is None else tensor.detach()
        self._place = _place(tensor)
        self._seen = doubts, _steps, _version(tensor)
        self._address, n_bytes = _memory(tensor)
        self._fingerprint = fingerprint(self._address, n_bytes)

    def still(self, tensor: Tensor | None, doubts: int = 0) -> bool:
        """Whether ``tensor`` lies where it lay and holds what it held, as far as it was looked at."""
        if _place(tensor) != self._place:
            return False
        seen = doubts, _steps, _version(tensor)
        if seen == self._seen:
            return bool(self._fingerprint.next(self._address))
        if not self._fingerprint.all(self._address):
            return False
        self._seen = seen
        return True


def _place(tensor: Tensor | None) -> tuple[Any, ...]:
    return () if tensor is None else (tensor.data_ptr(), tensor.shape, tensor.stride())


def _version(tensor: Tensor | None) -> int:
    return 0 if tensor is None or tensor.is_inference() else tensor._version


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
