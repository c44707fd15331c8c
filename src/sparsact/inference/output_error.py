"""Estimates with standard errors, and what leaving out activations does to the output of a block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan, sqrt

import torch
from torch import Tensor

from sparsact.inference.block import BlockWeights


@dataclass(frozen=True)
class QualityEstimate:
    """An estimate from a sample of independent cases, with its standard error.

    Attributes
    ----------
    value : float
    standard_error : float
        Standard deviation of the estimate over samples of this size; nan for a single case.
    """

    value: float
    standard_error: float

    @classmethod
    def ratio(cls, numerators: Tensor, denominators: Tensor) -> QualityEstimate:
        r"""The ratio of two means :math:`r = \sum_i a_i / \sum_i b_i` over cases i.

        The standard error is that of the linearised ratio, :math:`\sqrt{\sum_i (a_i - r b_i)^2 \, n / (n - 1)} /
        \sum_i b_i` (Cochran, "Sampling Techniques", 1977, eq. 6.13): the two numbers of a case are paired.
        If all denominators are 0 the ratio is nan.
        """
        a, b = numerators.double(), denominators.double()
        n, total = len(a), float(b.sum())
        if total == 0:
            return cls(nan, nan)
        value = float(a.sum()) / total
        spread = float(torch.linalg.vector_norm(a - value * b))
        return cls(value, spread * sqrt(n / (n - 1)) / total if n > 1 else nan)

    @classmethod
    def mean(cls, values: Tensor) -> QualityEstimate:
        """The mean of independent values."""
        return cls.ratio(values, torch.ones_like(values))

    @property
    def root(self) -> QualityEstimate:
        """The square root, its standard error by the derivative; that of 0 is 0."""
        value = sqrt(self.value)
        return QualityEstimate(value, self.standard_error / (2 * value) if value else 0.0)

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.standard_error:.2g}"


def row_errors(before: Sequence[Tensor], after: Sequence[Tensor]) -> tuple[float, float]:
    r"""Root mean square and largest error of a row, relative to the root mean square of the rows before.

    .. math::
        \sqrt{\sum_i \|y'_i - y_i\|^2 \Big/ \sum_i \|y_i\|^2}, \qquad
        \max_i \|y'_i - y_i\| \Big/ \sqrt{\tfrac{1}{m} \sum_j \|y_j\|^2}.

    Tensors before and after have the same shapes, and their m rows run along the last axis. Entries that were not
    finite before are left out. Both errors are nan without a row, or if the rows before are 0.

    >>> row_errors([torch.tensor([[3.0, 4.0], [5.0, 0.0]])], [torch.tensor([[3.0, 4.0], [5.0, 1.0]])])
    (0.1414213562373095, 0.2)
    """
    squares = []
    for one, other in zip(before, after, strict=True):
        finite = one.isfinite()
        rest = torch.where(finite, other.double() - one.double(), 0.0)
        pair = torch.stack([rest, torch.where(finite, one, 0.0).double()])
        squares.append(pair.reshape(2, -1, one.shape[-1] if one.ndim else 1).square().sum(2).cpu())
    errors, sizes = torch.cat(squares, 1) if squares else torch.zeros(2, 0, dtype=torch.float64)
    size = float(sizes.sum())
    if not size:
        return nan, nan
    return sqrt(float(errors.sum()) / size), sqrt(float(errors.max()) * len(sizes) / size)


@dataclass(frozen=True)
class OutputQuality:
    r"""Effect of leaving out activations on the output of a block, over rows taken as independent.

    With h the activations of a row, and h' the same with 0 where they are left out:

    Attributes
    ----------
    rows : int
        Rows measured.
    density : QualityEstimate
        Mean share of units whose activation is kept and not 0.
    output_error : QualityEstimate
        :math:`\sqrt{\sum \|V h' - V h\|^2 / \sum \|V h\|^2}`, the block's relative error without the bias of V.
    """

    rows: int
    density: QualityEstimate
    output_error: QualityEstimate

    @classmethod
    def of(cls, rule: Callable[[Tensor], Tensor], weights: BlockWeights, x: Tensor) -> OutputQuality:
        """Measured on inputs ``x`` (m, d) of the block; ``rule`` sets the activations to 0 that it leaves out."""
        h = weights.hidden(x)
        kept = rule(h)
        errors, sizes = (weights.output(one).double().square().sum(1) for one in (h - kept, h))
        density = QualityEstimate.mean((kept != 0).double().mean(1))
        return cls(len(x), density, QualityEstimate.ratio(errors, sizes).root)

    def __str__(self) -> str:
        return f"density {self.density}, output error {self.output_error}"
