"""Sample inputs of blocks: gathered while a model runs, checked, and split for fitting, calibrating and measuring."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from sparsact.inference.batches import Inputs, batches, call, evaluating
from sparsact.inference.block import Block
from sparsact.inference.block_weights import BlockWeights, plain
from sparsact.inference.predictors.conformal import least_rows
from sparsact.inference.predictors.predictor import CalibrationSplit
from sparsact.validation.arrays import check_finite_tensor
from sparsact.validation.former_names import renamed
from sparsact.validation.parameters import checked_size


@dataclass
class Reservoir:
    """A uniform sample without replacement of the rows that went by, at most ``limit`` of them.

    Each row draws a random number when it comes; the rows with the smallest are kept, in the order that they came.
    ``calls`` lists how many rows came at a time.
    """

    limit: int
    generator: torch.Generator
    rows: Tensor | None = None
    keys: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.float64))
    calls: list[int] = field(default_factory=list)

    def add(self, rows: Tensor) -> None:
        """More rows (m, d), of one call."""
        self.calls.append(len(rows))
        keys = torch.cat([self.keys, torch.rand(len(rows), generator=self.generator, dtype=torch.float64)])
        if self.rows is not None:
            rows = torch.cat([self.rows, rows])
        kept = keys.argsort()[: self.limit].sort().values
        self.rows, self.keys = rows[kept], keys[kept]


@renamed(seed="random_state")
def collect_inputs(
    model: nn.Module, blocks: Iterable[Block], inputs: Inputs, limit: int = 4096, *, random_state: int = 0
) -> dict[Block, Tensor]:
    """Inputs of each block while the model runs over ``inputs``: a uniform sample of ``limit`` rows of all that it saw.

    Parameters
    ----------
    model : nn.Module
        Run in evaluation mode, without gradients; left as it was.
    blocks : iterable of Block
        Blocks of the model.
    inputs : tensor, mapping, tuple, or iterable of these
        Batches for the model.
    limit : int, default=4096
        Rows a block, which is also what is held in memory at a time, and one batch.
    random_state : int, default=0
        Of the sample. Blocks that see the same number of rows keep the same ones.

    Returns
    -------
    rows : dict of Block to Tensor of shape (m, d)
        m is at most ``limit``, float32 or float64, on the CPU.

    Raises
    ------
    ValueError
        If a block was never run.
    """
    found = sampled(model, blocks, inputs, limit, random_state=random_state)
    return {block: _gathered(block.name, reservoir) for block, reservoir in found.items()}


def sampled(
    model: nn.Module, blocks: Iterable[Block], inputs: Inputs, limit: int = 4096, *, random_state: int = 0
) -> dict[Block, Reservoir]:
    """As :func:`collect_inputs`, and how many rows each call of a block had; without an error for blocks never run."""
    checked_size(limit, "`limit`")
    chosen = list(blocks)
    reservoirs = {block: Reservoir(limit, torch.Generator().manual_seed(random_state)) for block in chosen}
    with evaluating(model), ExitStack() as hooks:
        for block in chosen:
            layer = model.get_submodule(block.switch)
            hook = layer.register_forward_pre_hook(_listening(reservoirs[block]), with_kwargs=True)
            hooks.callback(hook.remove)
        for batch in batches(inputs):
            call(model, batch)
    return reservoirs


def _listening(reservoir: Reservoir) -> Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], None]:
    def hook(layer: nn.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
        x: Tensor = positional[0] if positional else named["input"]
        reservoir.add(plain(x).reshape(-1, x.shape[-1]))

    return hook


def _gathered(name: str, reservoir: Reservoir) -> Tensor:
    if reservoir.rows is None:
        raise ValueError(f"block {name!r} was never run by these inputs; pass inputs that reach it, or leave it out.")
    return reservoir.rows


LEAST_ROWS = 40


def checked_sample(x: Any, weights: BlockWeights) -> Tensor:
    """``x`` (m, d) as finite floats in the precision of the weights."""
    d = weights.sizes[0]
    if not isinstance(x, Tensor):
        raise TypeError(f"sample inputs must be a torch.Tensor of shape (m, {d}); got {type(x).__name__}.")
    if x.ndim != 2 or x.shape[1] != d:
        raise ValueError(
            f"sample inputs must have shape (m, {d}), one row an input of the block; got {tuple(x.shape)}: "
            f"pass x.reshape(-1, {d})."
        )
    if not x.is_floating_point():
        raise ValueError(f"sample inputs must be floats; got {x.dtype}: pass x.float().")
    check_finite_tensor(x, "sample inputs")
    for name in ("weight", "bias", "up_weight", "up_bias", "down"):
        if (array := getattr(weights, name)) is not None:
            check_finite_tensor(array, f"`{name}` of the block", ": leave the block dense")
    return plain(x).to(weights.weight.dtype)


def split(
    x: Tensor, target: Mapping[str, float], *, fits: bool, random_state: int
) -> tuple[Tensor, Tensor, Tensor, CalibrationSplit]:
    """The rows in random order: half to fit, a quarter to calibrate, a quarter held out; a rule that is not fitted
    calibrates on the first three quarters.

    Raises
    ------
    ValueError
        If there are fewer than 40 rows, or fewer than four times what calibration for the recall needs.
    """  # noqa: D205 # one sentence
    m = len(x)
    needed = max(LEAST_ROWS, 4 * least_rows(target["recall"]) if "recall" in target else 0)
    if m < needed:
        asked = ", ".join(f"{name} {value:g}" for name, value in target.items())
        raise ValueError(f"{asked} needs at least {needed} sample inputs; got {m}: collect more of them.")
    order = torch.randperm(m, generator=torch.Generator().manual_seed(random_state))
    quarter = m // 4
    fitted = m - 2 * quarter if fits else 0
    sizes = [fitted, m - quarter - fitted, quarter]
    parts = torch.split(x[order], sizes)
    return parts[0], parts[1], parts[2], CalibrationSplit(fitted, sizes[1], quarter, random_state)
