"""Parameters and buffers that an activation reads: its thresholds hold for their numbers alone."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from sparsact.inference.block import Activation
from sparsact.inference.expression import Operation, parts
from sparsact.inference.held import Watch
from sparsact.inference.probe import Replay


class Constants:
    """Tensors of a model that an activation reads, by module and name, as they are now.

    Parameters
    ----------
    places : list of (nn.Module, str)
    """

    def __init__(self, places: list[tuple[nn.Module, str]]) -> None:
        self._places = places
        self._watch = Watch(self._now()) if places else None

    def still(self) -> bool:
        """Whether none has moved or, as far as :class:`Watch` sees it, changed."""
        return self._watch is None or self._watch.still(self._now())

    @property
    def trained(self) -> bool:
        """Whether gradients are being recorded for one of them."""
        return self._watch is not None and torch.is_grad_enabled() and any(one.requires_grad for one in self._now())

    def _now(self) -> list[Tensor]:
        return [_at(*place) for place in self._places]

    def __reduce__(self) -> tuple[type[Constants], tuple[list[tuple[nn.Module, str]]]]:
        """A copy is of the numbers that are copied with it."""
        return Constants, (self._places,)


def constants(model: nn.Module, activation: Activation) -> Constants | None:
    """What the activation reads of the model; None if it reads numbers that are computed from others as the model runs.

    Zeros count as numbers that are written in the model's code.
    """
    given = list(_tensors(activation))
    places = [(module, name) for module in model.modules() for name in (*module._parameters, *module._buffers)]
    found = [place for place in places if any(_shared(_at(*place), tensor) for tensor in given)] if given else []
    for tensor in given:
        if bool((tensor != 0).any()) and not any(_shared(_at(*place), tensor) for place in found):
            return None
    return None if any(_at(*place).is_inference() for place in found) else Constants(found)


def _tensors(activation: Activation) -> Iterator[Tensor]:
    if isinstance(activation.function, Replay):
        for part in parts(activation.function.expression):
            if isinstance(part, Operation):
                yield from (one for one in (*part.arguments, *part.keywords.values()) if isinstance(one, Tensor))


def _at(module: nn.Module, name: str) -> Tensor:
    """The tensor of that name; an empty one where there is none."""
    found = module._parameters.get(name, module._buffers.get(name))
    return torch.empty(0) if found is None else found


def _shared(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors lie in the same memory."""
    return one.numel() > 0 and one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
