"""Rules that set small activations to zero, so that the second layer of a block reads fewer columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Final, TypeVar

import torch
from torch import Tensor

from sparsact.inference.block import BlockWeights, plain
from sparsact.inference.methods import ApproximationTarget
from sparsact.inference.output_error import OutputQuality
from sparsact.routing import TopK
from sparsact.validation.arrays import check_finite_tensor

MIN_ROWS: Final = 40  # a quarter of them, 10, measures the error
QUANTILES: Final = 1 << 16  # of the activations, among which a threshold is chosen

Rule = TypeVar("Rule", bound=Callable[[Tensor], Tensor])


@dataclass(frozen=True)
class Threshold:
    r"""Keeps the activations with :math:`|h_j| > \tau`; what is not a number stays, so that it shows.

    Due to [1]_ and [2]_, who set the threshold to a share of activations.

    Attributes
    ----------
    tau : float
        One number for the layer.

    References
    ----------
    .. [1] D. Lee et al., "CATS: Contextually-Aware Thresholding for Sparsity in Large Language Models", 2024.
    .. [2] J. Liu et al., "Training-Free Activation Sparsity in Large Language Models" (TEAL), 2024.
    """

    tau: float

    @classmethod
    def for_density(cls, weights: BlockWeights, x: Tensor, density: float) -> Threshold:
        """The smallest threshold that keeps at most a share ``density`` of the activations on the rows ``x``."""
        sizes = weights.hidden(x).abs().flatten()
        n_kept = min(int(density * len(sizes)), len(sizes) - 1)
        return cls(float(sizes.kthvalue(len(sizes) - n_kept).values))

    @classmethod
    def for_error(cls, weights: BlockWeights, x: Tensor, error: float) -> Threshold:
        """The largest threshold with at most this error of the output on the rows ``x``, see :func:`within_error`.

        Among 65,536 quantiles of the sample's activations: 16 products with V.
        """
        sizes = weights.hidden(x).abs().flatten().sort().values
        places = torch.linspace(0, len(sizes) - 1, min(len(sizes), QUANTILES), dtype=torch.float64).long()
        taus = [0.0, *sizes[places].tolist()]
        return within_error(lambda i: cls(taus[i]), len(taus) - 1, weights, x, error)

    def __call__(self, h: Tensor) -> Tensor:
        """``h`` (..., s) with zeros; compared in float32 at least, as the threshold was chosen."""
        return h.masked_fill(plain(h).abs() <= self.tau, 0)

    def __str__(self) -> str:
        return f"activations above {self.tau:.3g} in absolute value"


@dataclass(frozen=True)
class TopKActivations:
    """Keeps the activations of each input with the largest :math:`|h_j|`, ties in favour of the first.

    Attributes
    ----------
    n_active : int
        The same for each input.
    """

    n_active: int

    @classmethod
    def for_density(cls, weights: BlockWeights, x: Tensor, density: float) -> TopKActivations:
        """As many units as a share ``density`` of all holds; at least one."""
        return cls(max(1, int(density * weights.sizes[1])))

    @classmethod
    def for_error(cls, weights: BlockWeights, x: Tensor, error: float) -> TopKActivations:
        """The fewest units with at most this error of the output on the rows ``x``, see :func:`within_error`."""
        s = weights.sizes[1]
        return within_error(lambda left_out: cls(s - left_out), s - 1, weights, x, error)

    @cached_property
    def _router(self) -> TopK:
        return TopK(self.n_active, absolute=True)

    def __call__(self, h: Tensor) -> Tensor:
        """``h`` (..., s) with zeros."""
        rows = plain(h).reshape(-1, h.shape[-1])
        left_out = torch.ones(rows.shape, dtype=torch.bool).scatter_(1, self._router.select(rows, {}).indices, False)
        return h.masked_fill(left_out.view(h.shape), 0)

    def __str__(self) -> str:
        return f"the {self.n_active:,} largest activations of each input"


RULES: Final[tuple[type[Threshold | TopKActivations], ...]] = (TopKActivations, Threshold)


def within_error(rule: Callable[[int], Rule], last: int, weights: BlockWeights, x: Tensor, error: float) -> Rule:
    r"""By bisection, a rule whose relative error of the output on the rows ``x`` is at most ``error``.

    .. math:: \sqrt{\sum \|V (h - h')\|^2 / \sum \|V h\|^2}

    with h' what the rule keeps of the activations h. ``rule(i)`` leaves out more for a larger i of 0 ... ``last``, and
    ``rule(0)`` is taken to be within.
    """
    h = weights.hidden(x)
    whole = float(weights.output(h).double().square().sum())
    if not whole:
        raise ValueError(
            "the block's output is 0 on every sample input, so a relative error is undefined; pass other sample "
            "inputs, or a density."
        )

    def is_within(i: int) -> bool:
        return sqrt(float(weights.output(h - rule(i)(h)).double().square().sum()) / whole) <= error

    if is_within(last):
        return rule(last)
    inside, outside = 0, last
    while outside - inside > 1:
        middle = (inside + outside) // 2
        inside, outside = (middle, outside) if is_within(middle) else (inside, middle)
    return rule(inside)


def calibrated(
    weights: BlockWeights, x: Tensor, target: ApproximationTarget
) -> tuple[Threshold | TopKActivations, OutputQuality]:
    """The better of two rules that meet a target on three quarters of the rows, and its quality on the others.

    Better means a smaller error if the target is a density, and fewer units kept if the target is an error. Where a
    model scales rows, no threshold fits all of them: the largest activations of each are kept.

    Parameters
    ----------
    weights : BlockWeights
    x : Tensor of shape (m, d)
        Sample inputs of the block, at least 40, in random order here.
    target : ApproximationTarget
        Largest share of units kept, or largest relative error of the block's output.

    Raises
    ------
    ValueError
        If the rows are too few, or a number of them or of the weights is not finite, or the output is always 0.

    Notes
    -----
    Standard errors count rows as independent; those of tokens of one text are too small.
    """
    m = len(x)
    if m < MIN_ROWS:
        wanted = f"{target.kind} {target.value:g}"
        raise ValueError(f"{wanted} needs at least {MIN_ROWS} sample inputs; got {m}: pass batches with more rows.")
    check_finite_tensor(x, "sample inputs")
    for name in ("weight", "bias", "up_weight", "up_bias", "down"):
        if (array := getattr(weights, name)) is not None:
            check_finite_tensor(array, f"`{name}` of the block", ": leave the block dense")
    rows = x[torch.randperm(m, generator=torch.Generator().manual_seed(0))]
    sample, held_out = rows[: m - m // 4], rows[m - m // 4 :]
    found = []
    for kind in RULES[:1] if weights.activation.scaled else RULES:
        choose = kind.for_density if target.kind == "density" else kind.for_error
        rule = choose(weights, sample, target.value)
        found.append((rule, OutputQuality.of(rule, weights, held_out)))
    return min(found, key=lambda one: (one[1].output_error if target.kind == "density" else one[1].density).value)
