"""The contract of a form of weights, and the products that run on a GPU."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from torch import Tensor


class WeightForm(ABC):
    """A layer's weight (outputs, inputs) and bias, laid out for kernels by outputs or, ``by_input``, by inputs.

    Products take contiguous inputs of m rows, of any shape, and return (m, outputs), or None where the layer must
    compute densely: where more than ``share`` of the entries are active, or 0 times what is left out may not be 0.

    Attributes
    ----------
    rounded : bool
        Whether it holds other numbers than the layer, so that all outputs too are computed from it.
    counted : bool
        Whether ``kernel`` takes the most entries that may be active, and returns how many are.
    kernel : callable or None
        Fills outputs from inputs by their addresses: of (inputs, rows, outputs, threads) and, if counted, of that
        number; None if there is more to do.
    """

    rounded: ClassVar[bool]
    counted: ClassVar[bool]
    kernel: Callable[..., Any] | None

    @classmethod
    @abstractmethod
    def of(
        cls, weight: Tensor, bias: Tensor | None, *, by_input: bool = False, whole: bool = False, device: str = "cpu"
    ) -> WeightForm:
        """The form of a layer's float weight, for that type of device; ``whole`` if :meth:`all` alone is called."""

    @abstractmethod
    def columns(self, x: Tensor, m: int, share: float) -> Tensor | None:
        """All outputs of inputs that are mostly 0, from the weights of the other inputs."""

    @abstractmethod
    def rows(self, x: Tensor, active: Tensor, m: int, share: float) -> Tensor | None:
        """The outputs that ``active`` (m, outputs) names by bytes that are not 0, and 0 elsewhere."""

    def all(self, x: Tensor, m: int) -> Tensor:
        """All outputs, of rounded weights: other forms leave them to the layer's dense product."""
        raise NotImplementedError


def triton_product(name: str, **weights: Tensor | None) -> Callable[..., Tensor]:
    """Triton's product of that name with weights that calls share, copied if need be."""
    from sparsact.inference import triton

    given = {key: None if weight is None else weight.contiguous() for key, weight in weights.items()}
    return partial(getattr(triton, name), **given)
