"""Sample inputs of a block: checked, and shared out for fitting, calibrating and measuring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sparsact.inference.predictors.risk import least_rows
from sparsact.inference.predictors.rule import Split
from sparsact.inference.weights import BlockWeights, plain

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
    finite = x.isfinite()
    if not bool(finite.all()):
        place = tuple((~finite).nonzero()[0].tolist())
        raise ValueError(f"sample inputs must be finite; the one at {place} is {float(x[place])}.")
    _check_finite(weights)
    return plain(x).to(weights.weight.dtype)


def _check_finite(weights: BlockWeights) -> None:
    for name in ("weight", "bias", "up_weight", "up_bias", "down"):
        array = getattr(weights, name)
        if array is not None and not bool(array.isfinite().all()):
            place = tuple((~array.isfinite()).nonzero()[0].tolist())
            raise ValueError(
                f"`{name}` of the block must be finite; the number at {place} is {float(array[place])}: "
                "leave the block dense."
            )


def split(x: Tensor, target: Mapping[str, float], *, fits: bool, seed: int) -> tuple[Tensor, Tensor, Tensor, Split]:
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
    order = torch.randperm(m, generator=torch.Generator().manual_seed(seed))
    quarter = m // 4
    fitted = m - 2 * quarter if fits else 0
    sizes = [fitted, m - quarter - fitted, quarter]
    parts = torch.split(x[order], sizes)
    return parts[0], parts[1], parts[2], Split(fitted, sizes[1], quarter, seed)
