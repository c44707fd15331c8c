"""Quality of an approximate selection of units on one block, with standard errors."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import nan, sqrt
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor

from sparsact.inference.block_weights import BlockWeights

if TYPE_CHECKING:
    from sparsact.inference.predictors.predictor import ActivityPredictor


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


CHUNK: Final = 256  # rows at a time: activations of wide blocks fill memory


@dataclass(frozen=True)
class Quality:
    r"""An approximate selection of units compared with the active units, over rows taken as independent.

    With h the activations of a row, P its predicted units and A those truly on:

    Attributes
    ----------
    rows : int
        Rows measured.
    recall : QualityEstimate or None
        Mean of :math:`|P \cap A| / |A|` over the rows with a unit on. None where the activation has no exact zeros.
    precision : QualityEstimate or None
        :math:`\sum |P \cap A| / \sum |P|`; likewise.
    energy : QualityEstimate
        Share of the activations' energy that is kept, :math:`\sum \|h_P\|^2 / \sum \|h\|^2`.
    density : QualityEstimate
        Mean share of units that are predicted, :math:`|P| / s`.
    active : QualityEstimate or None
        Mean share of units that are truly on, :math:`|A| / s`.
    output_error : QualityEstimate
        :math:`\sqrt{\sum \|V h_P - V h\|^2 / \sum \|V h\|^2}`, the block's relative error without the bias of V.
    """

    rows: int
    recall: QualityEstimate | None
    precision: QualityEstimate | None
    energy: QualityEstimate
    density: QualityEstimate
    active: QualityEstimate | None
    output_error: QualityEstimate

    @classmethod
    def of(cls, rule: ActivityPredictor, weights: BlockWeights, x: Tensor) -> Quality:
        """Measured on inputs ``x`` (m, d) of the block, 256 rows at a time; costs a dense pass."""
        sums = torch.cat([_sums(rule, weights, part) for part in torch.split(x, CHUNK)]).T
        hits, predicted, on, kept, energy, error, output = sums
        s, exact = weights.sizes[1], weights.activation.zero_below is not None
        some = on > 0
        return cls(
            len(x),
            QualityEstimate.mean(hits[some] / on[some]) if exact else None,
            QualityEstimate.ratio(hits, predicted) if exact else None,
            QualityEstimate.ratio(kept, energy),
            QualityEstimate.mean(predicted / s),
            QualityEstimate.mean(on / s) if exact else None,
            QualityEstimate.ratio(error, output).root,
        )

    def to_dict(self) -> dict[str, Any]:
        """All figures with their standard errors, as JSON holds them."""
        return asdict(self)

    def __str__(self) -> str:
        figures = ((name, figure) for name, figure in vars(self).items() if figure is not None)
        return ", ".join(f"{name.replace('_', ' ')} {figure}" for name, figure in figures)


def _sums(rule: ActivityPredictor, weights: BlockWeights, x: Tensor) -> Tensor:
    """Per row: |P and A|, |P|, |A|, energy kept, energy, squared error and squared output, (m, 7) in float64."""
    z = weights.pre_activations(x)
    h = weights.hidden(x, z)
    chosen = rule.active(x if rule.reads == "inputs" else h).bool()
    on = weights.on(z) if weights.activation.zero_below is not None else h != 0
    left_out = weights.output(h.masked_fill(chosen, 0))
    columns = (
        (chosen & on).sum(1),
        chosen.sum(1),
        on.sum(1),
        h.masked_fill(~chosen, 0).double().square().sum(1),
        h.double().square().sum(1),
        left_out.double().square().sum(1),
        weights.output(h).double().square().sum(1),
    )
    return torch.stack([column.double() for column in columns], dim=1)
