"""Sample inputs of blocks, gathered while a model runs."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from sparsact.inference.batches import Inputs, batches, call, evaluating
from sparsact.inference.block import Block
from sparsact.inference.block_weights import plain
from sparsact.inference.split_experts import showing_all_experts
from sparsact.validation.parameters import checked_size


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


def sample_inputs(
    model: nn.Module, blocks: Iterable[Block], inputs: Inputs, limit: int = 4096, *, random_state: int = 0
) -> dict[Block, Reservoir]:
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
    found : dict of Block to Reservoir
        ``sample`` (m, d) with m at most ``limit``, float32 or float64, on the CPU, which raises ValueError if the block
        was never run; and ``rows_per_call``.
    """
    checked_size(limit, "`limit`")
    found = {block: Reservoir(block.name, limit, torch.Generator().manual_seed(random_state)) for block in blocks}
    with evaluating(model), showing_all_experts(model), ExitStack() as hooks:
        for block, reservoir in found.items():
            layer = model.get_submodule(block.switch)
            hooks.callback(layer.register_forward_pre_hook(reservoir.add, with_kwargs=True).remove)
        for batch in batches(inputs):
            call(model, batch)
    return found
