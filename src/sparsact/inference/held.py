"""What is made from a layer's weights and kept until they change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from torch import Tensor, nn

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
        self._made: Made | None = None
        self._of: Stamped | None = None

    def of(self, linear: nn.Linear) -> Made:
        """The value for the layer's present weights."""
        of, made = self._of, self._made
        if of is None or made is None or not of.still(linear):
            of = Stamped(linear)
            made = self._make(of.weight, of.bias)
            self._made, self._of = made, of
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Held[Made]:
        return Held(self._make)

    def __reduce__(self) -> tuple[Any, ...]:
        return Held, (self._make,)


class Stamped:
    """The weight and the bias of a layer as they are now; held, so that no others come to lie at their addresses."""

    def __init__(self, linear: nn.Linear) -> None:
        self.weight = linear.weight.detach()
        self.bias = None if linear.bias is None else linear.bias.detach()
        self._stamp = _stamp(linear)

    def still(self, linear: nn.Linear) -> bool:
        """Whether they have neither moved nor been written to since, as far as torch counts it."""
        return _stamp(linear) == self._stamp


def _stamp(linear: nn.Linear) -> tuple[int, int, int, int]:
    parameters = linear._parameters  # much quicker than the attributes
    return *written(parameters["weight"]), *written(parameters["bias"])


def written(tensor: Tensor | None) -> tuple[int, int]:
    """Changes when a tensor moves or is written to."""
    if tensor is None:
        return 0, 0
    return tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version  # those of inference mode count no writes
