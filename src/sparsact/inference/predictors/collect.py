"""Sample inputs of blocks: gathered while a model runs, checked, and split for fitting, calibrating and measuring."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor, nn

from sparsact.inference.batches import Inputs, batches, call, evaluating
from sparsact.inference.block import Block
from sparsact.inference.block_weights import BlockWeights, plain
from sparsact.inference.predictors.conformal import min_rows
from sparsact.inference.predictors.predictor import CalibrationSplit
from sparsact.inference.split_experts import showing_all_experts
from sparsact.validation.arrays import check_finite_tensor
from sparsact.validation.parameters import checked_size

MIN_ROWS: Final = 40


@dataclass
class Reservoir:
    """A uniform sample without replacement of at most ``limit`` of a block's input rows.

    Each row draws a random number when it comes; the rows with the smallest are kept, in the order that they came.
    """

    name: str
    limit: int
    generator: torch.Generator
    rows: Tensor | None = None
    keys: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.float64))
    rows_per_call: list[int] = field(default_factory=list)

    def add(self, layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A hook that samples the input of one call of a linear layer."""
        x: Tensor = args[0] if args else kwargs["input"]
        rows = plain(x).reshape(-1, x.shape[-1])
        self.rows_per_call.append(len(rows))
        keys = torch.cat([self.keys, torch.rand(len(rows), generator=self.generator, dtype=torch.float64)])
        if self.rows is not None:
            rows = torch.cat([self.rows, rows])
        kept = keys.argsort()[: self.limit].sort().values
        self.rows, self.keys = rows[kept], keys[kept]

    @property
    def sample(self) -> Tensor:
        """The sampled rows (m, d)."""
        if self.rows is None:
            raise ValueError(
                f"block {self.name!r} was never run by these inputs; pass inputs that reach it, or leave it out."
            )
        return self.rows


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
        Rows per block; these, and one batch, are in memory at a time.
    random_state : int, default=0
        Seed of the sample. Blocks that see the same number of rows keep the same ones.

    Returns
    -------
    rows : dict of Block to Tensor of shape (m, d)
        m is at most ``limit``, float32 or float64, on the CPU.

    Raises
    ------
    ValueError
        If a block was never run.
    """
    found = sample_inputs(model, blocks, inputs, limit, random_state=random_state)
    return {block: reservoir.sample for block, reservoir in found.items()}


def sample_inputs(
    model: nn.Module, blocks: Iterable[Block], inputs: Inputs, limit: int = 4096, *, random_state: int = 0
) -> dict[Block, Reservoir]:
    """As :func:`collect_inputs`, with the number of rows of each call; blocks that are never run raise no error."""
    checked_size(limit, "`limit`")
    reservoirs = {block: Reservoir(block.name, limit, torch.Generator().manual_seed(random_state)) for block in blocks}
    fill(model, {block.switch: reservoir for block, reservoir in reservoirs.items()}, inputs)
    return reservoirs


def fill(model: nn.Module, reservoirs: Mapping[str, Reservoir], inputs: Inputs) -> None:
    """Sample the inputs of linear layers, by name, while the model runs over batches."""
    with evaluating(model), showing_all_experts(model), ExitStack() as hooks:
        for name, reservoir in reservoirs.items():
            layer = model.get_submodule(name)
            hooks.callback(layer.register_forward_pre_hook(reservoir.add, with_kwargs=True).remove)
        for batch in batches(inputs):
            call(model, batch)


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
    """The rows in random order: half to fit, a quarter to calibrate, a quarter held out; without fit 3/4 calibrate."""
    m = len(x)
    needed = max(MIN_ROWS, 4 * min_rows(target["recall"]) if "recall" in target else 0)
    if m < needed:
        asked = ", ".join(f"{name} {value:g}" for name, value in target.items())
        raise ValueError(f"{asked} needs at least {needed} sample inputs; got {m}: collect more of them.")
    order = torch.randperm(m, generator=torch.Generator().manual_seed(random_state))
    quarter = m // 4
    fitted = m - 2 * quarter if fits else 0
    sizes = [fitted, m - quarter - fitted, quarter]
    parts = torch.split(x[order], sizes)
    return parts[0], parts[1], parts[2], CalibrationSplit(fitted, sizes[1], quarter, random_state)
