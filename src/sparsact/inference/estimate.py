"""Means and ratios of means over a sample, with the standard error that the sample gives them."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan, sqrt

import torch
from torch import Tensor


@dataclass(frozen=True)
class QualityEstimate:
    """A figure of the population, estimated from a sample of independent cases.

    Attributes
    ----------
    value : float
        The estimate.
    standard_error : float
        Standard deviation of the estimate over samples of this size; nan of a single case.
    """

    value: float
    standard_error: float

    @classmethod
    def ratio(cls, numerators: Tensor, denominators: Tensor) -> QualityEstimate:
        r"""The ratio of two means :math:`r = \sum_i a_i / \sum_i b_i` over cases i.

        The standard error is that of the linearised ratio, :math:`\sqrt{\sum_i (a_i - r b_i)^2 \, n / (n - 1)} /
        \sum_i b_i` (Cochran, "Sampling Techniques", 1977, eq. 6.13): both numbers of a case are taken as a pair.
        With no denominators but 0 the ratio is nan.
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
