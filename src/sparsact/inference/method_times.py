"""Time the methods of a model's blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median, quantiles
from typing import Any, Final

import torch
from torch import Tensor, nn

from sparsact.inference.apply import Replacement, applied
from sparsact.inference.batches import evaluating
from sparsact.inference.block import Block
from sparsact.inference.timing import Side, clock_of, timed_rounds

MAX_ROUNDS: Final = 40


@dataclass(frozen=True)
class Times:
    """Seconds of the blocks of a model, ``rounds[i][method][block]``, for calls of ``rows[block]`` rows.

    Every round runs all blocks under one method twice, in the order of the model, and times the second run, before it
    turns to the next method: the weights are then in the cache, or out of it, as they are when the model runs. Blocks
    of one of the ``kinds`` are judged together.
    """

    rows: Sequence[int]
    kinds: Sequence[Any]
    rounds: list[dict[str, list[float]]]

    def median(self, method: str, block: int) -> float:
        """Median of the rounds."""
        return median(seconds[method][block] for seconds in self.rounds)

    def ratios(self, method: str, block: int, to: str = "dense") -> list[float]:
        """Ratio to the time of another method in each round, of all blocks of the kind of this one together."""
        alike = [i for i, kind in enumerate(self.kinds) if kind == self.kinds[block]]
        return [sum(seconds[method][i] for i in alike) / sum(seconds[to][i] for i in alike) for seconds in self.rounds]

    def is_faster(self, method: str, block: int, max_ratio: float) -> bool:
        """Whether the median ratio to the dense time is at most ``max_ratio`` and its upper quartile at most 1.

        Ratios are taken within a round, so that load on the machine meets both sides, and over all blocks of the kind
        of this one, so that these get one decision.
        """
        ratios = self.ratios(method, block)
        return median(ratios) <= max_ratio and quantiles(ratios, n=4)[2] <= 1


def time_methods(
    model: nn.Module,
    runs: Sequence[Callable[[Tensor], object]],
    replacements: Sequence[dict[str, Replacement]],
    samples: Sequence[Tensor],
    rows: Sequence[int],
    time_limit: float,
    kinds: Sequence[Any] | None = None,
) -> Times:
    """Time every method on every block, and the dense block, on ``rows[i]`` of the sample inputs (m, d) of block i.

    ``runs[i]`` computes block i of the model as it then is, densely under a method that has no replacement for it. By
    default each block is its own kind. After ``time_limit`` seconds no further round starts, once there are enough.
    """
    methods = ["dense", *dict.fromkeys(name for one in replacements for name in one)]

    def calls(turn: int) -> list[Callable[[], object]]:
        found: list[Callable[[], object]] = []
        for run, sample, m in zip(runs, samples, rows, strict=True):
            first = turn * m % max(1, len(sample) - m + 1)
            found.append(partial(run, sample[first : first + m]))
        return found

    by_method = {name: [one[name] for one in replacements if name in one] for name in methods}
    sides = [Side(partial(applied, model, found), calls) for found in by_method.values()]
    with evaluating(model), torch.inference_mode():
        rounds = timed_rounds(sides, clock_of(samples), MAX_ROUNDS, time_limit, in_cache=True)
    kinds = range(len(runs)) if kinds is None else kinds
    return Times(rows, kinds, [dict(zip(methods, seconds, strict=True)) for seconds in rounds])


def block_output(model: nn.Module, block: Block, x: Tensor) -> Tensor:
    """The block's output for inputs (m, d)."""
    down = model.get_submodule(block.down)
    if block.up is None:
        return down(x)  # type: ignore[no-any-return] # modules return what they like
    up = model.get_submodule(block.up)
    if block.gate_rows is not None and block.up_rows is not None:
        gate, up_part = (up(x)[..., one.start : one.stop] for one in (block.gate_rows, block.up_rows))
        h = block.activation.function(gate) * up_part
    elif block.gate is None:
        h = block.activation.function(up(x))
    else:
        h = block.activation.function(model.get_submodule(block.gate)(x)) * up(x)
    return down(h)  # type: ignore[no-any-return] # modules return what they like
