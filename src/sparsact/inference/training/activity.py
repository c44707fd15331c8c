"""How many units are on, and which of them ever are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from sparsact.inference.block import Block

RARE = 1e-3  # a unit that is on for a smaller share of inputs is rarely active


@dataclass(frozen=True, eq=False)
class UnitCounts:
    """How often each unit of a block was on.

    Attributes
    ----------
    counts : Tensor of shape (units,), int64
        Inputs for which the unit's activation was not zero.
    n_inputs : int
        Inputs seen: a unit without any of them may still be on for others.
    """

    counts: Tensor
    n_inputs: int

    @property
    def density(self) -> float:
        """Share of units that are on, a mean over inputs."""
        return int(self.counts.sum()) / (self.n_inputs * len(self.counts))

    @property
    def dead(self) -> int:
        """Units that were on for none of the inputs seen."""
        return int((self.counts == 0).sum())

    @property
    def rare(self) -> int:
        """Units that were on for some inputs, and for less than one in a thousand."""
        return int(((self.counts > 0) & (self.counts < RARE * self.n_inputs)).sum())


@contextmanager
def unit_counts(model: nn.Module, blocks: Sequence[Block]) -> Iterator[Callable[[], list[UnitCounts]]]:
    """Count while the model is called; the value gives the counts so far, a block each.

    Parameters
    ----------
    model : nn.Module
        Called within the ``with`` block.
    blocks : sequence of Block
        Whose units are counted.

    Yields
    ------
    counts : callable
        Without arguments; a :class:`UnitCounts` for each block.
    """
    counts: list[Tensor | int] = [0] * len(blocks)
    seen = [0] * len(blocks)

    def add(place: int, hidden: Tensor) -> None:
        on = hidden.detach().reshape(-1, hidden.shape[-1]) != 0
        counts[place] = counts[place] + on.sum(dim=0)
        seen[place] += len(on)

    def found() -> list[UnitCounts]:
        for block, n in zip(blocks, seen, strict=True):
            if not n:
                raise ValueError(f"block {block.name!r} has seen no input; call the model first.")
        return [UnitCounts(torch.as_tensor(one), n) for one, n in zip(counts, seen, strict=True)]

    with watching(model, blocks, add):
        yield found


@contextmanager
def watching(model: nn.Module, blocks: Sequence[Block], look: Callable[[int, Tensor], Tensor | None]) -> Iterator[None]:
    """Show the activations of each block, the inputs of ``down``, to ``look``; a tensor that it returns replaces them.

    ``look`` is told the place of the block among ``blocks``, and the activations (..., units).
    """

    def hook(place: int) -> Callable[[nn.Module, tuple[Any, ...]], tuple[Any, ...] | None]:
        def before(_: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
            changed = look(place, arguments[0])
            return None if changed is None else (changed, *arguments[1:])

        return before

    downs = [block.linears(model)["down"] for block in blocks]
    handles = [down.register_forward_pre_hook(hook(place)) for place, down in enumerate(downs)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
