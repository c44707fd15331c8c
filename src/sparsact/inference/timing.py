"""Seconds of each block under each method, on this machine, taken in turns."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median, quantiles

import torch
from torch import Tensor, nn

from sparsact.inference.block import Block
from sparsact.inference.inputs import evaluating
from sparsact.inference.settings import Replacement

LEAST, MOST = 5, 40  # rounds


class Times:
    """Seconds of the blocks of a model: ``seconds[method][i]`` lists the rounds of block i.

    Every round runs all blocks under one method, one after the other as the model does, before it comes to the next
    method: so the weights lie where they lie when the model runs, in the cache or out of it.
    """

    def __init__(self, methods: Sequence[str], rows: Sequence[int]) -> None:
        self.rows = rows  # of each block
        self.seconds: dict[str, list[list[float]]] = {name: [[] for _ in rows] for name in methods}

    def median(self, method: str, block: int) -> float:
        """Median of the rounds."""
        return median(self.seconds[method][block])

    def pays(self, method: str, block: int, gain: float) -> bool:
        """Whether the method takes at most ``gain`` times the dense time in the median, and seldom more than that time.

        Ratios are taken within a round, so that a busy moment of the machine meets both sides.
        """
        rounds = zip(self.seconds[method][block], self.seconds["dense"][block], strict=True)
        ratios = [sparse / dense for sparse, dense in rounds]
        return median(ratios) <= gain and quantiles(ratios, n=4)[2] <= 1


def take(
    model: nn.Module,
    blocks: Sequence[Block],
    settings: Sequence[dict[str, Replacement]],
    samples: Sequence[Tensor],
    rows: Sequence[int],
    limit: float,
) -> Times:
    """Time every setting of every block, and the dense block, on so many rows of each block at a time.

    Parameters
    ----------
    settings : list of dict
        For each block, its settings by method; a block that lacks a method is run densely under it.
    samples : list of Tensor
        Inputs (m, d) of each block; rounds take them in turns.
    limit : float
        Seconds after which no further round is begun, once there are enough.
    """
    methods = ["dense", *dict.fromkeys(name for one in settings for name in one)]
    times = Times(methods, rows)
    start = time.perf_counter()
    with evaluating(model), torch.inference_mode():
        for turn in range(MOST + 1):
            for method in methods:
                worn = [one[method] for one in settings if method in one]
                try:
                    for setting in worn:
                        setting.put_on(model)
                    for i, block in enumerate(blocks):
                        seconds = _once(model, block, _rows(samples[i], turn, rows[i]))
                        if turn:  # the first round pays for first touches
                            times.seconds[method][i].append(seconds)
                finally:
                    for setting in worn:
                        setting.take_off(model)
            if turn >= LEAST and time.perf_counter() - start > limit:
                break
    return times


def run(model: nn.Module, block: Block, x: Tensor) -> Tensor:
    """The block's output for inputs (m, d)."""
    up, down = model.get_submodule(block.up), model.get_submodule(block.down)
    if block.gate is None:
        h = block.activation.function(up(x))
    else:
        h = block.activation.function(model.get_submodule(block.gate)(x)) * up(x)
    return down(h)  # type: ignore[no-any-return] # modules return what they like


def _once(model: nn.Module, block: Block, x: Tensor) -> float:
    start = time.perf_counter()
    run(model, block, x)
    return time.perf_counter() - start


def _rows(sample: Tensor, turn: int, rows: int) -> Tensor:
    first = turn * rows % max(1, len(sample) - rows + 1)
    return sample[first : first + rows]
