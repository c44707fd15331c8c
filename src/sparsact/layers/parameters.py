"""How parameters are drawn."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


@torch.no_grad()
def fill_uniform(bound: float, parameters: Iterable[Tensor | None], generator: torch.Generator | None) -> None:
    """Fill each with numbers uniform in [-bound, bound]; a generator draws on its own device, whatever theirs is."""
    for parameter in parameters:
        if parameter is None or parameter.is_meta:
            continue
        if generator is None:
            parameter.uniform_(-bound, bound)
        else:
            drawn = torch.empty(parameter.shape, dtype=torch.float64, device=generator.device)
            parameter.copy_(drawn.uniform_(-bound, bound, generator=generator))
