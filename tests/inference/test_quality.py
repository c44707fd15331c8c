"""Figures of quality against brute force, and their standard errors against repeated samples."""

from dataclasses import dataclass, field
from math import isnan, nan, sqrt

import pytest
import torch
from blocks_planted import D, S, block, gelu, inputs

from sparsact.inference.quality import Quality, QualityEstimate


@dataclass
class Chance:
    """Units by a fixed random pattern of the inputs' own digits."""

    reads: str = "inputs"
    directions: torch.Tensor = field(
        default_factory=lambda: torch.randn(S, D, generator=torch.Generator().manual_seed(9))
    )

    def active(self, x):
        return (x @ self.directions.T > 0).to(torch.uint8)


@pytest.mark.parametrize("gated", [False, True])
def test_brute_force(gated):
    """300 rows: more than one piece."""
    weights, x, rule = block(gated=gated), inputs(300, seed=4), Chance()
    quality = Quality.of(rule, weights, x)
    recalls, hits, predicted, active, kept, energy, error, output = [], 0, 0, 0, 0.0, 0.0, 0.0, 0.0
    for row in x:
        z = weights.weight @ row + weights.bias
        h = torch.relu(z)
        if gated:
            h = h * (weights.up_weight @ row + weights.up_bias)
        on = {j for j in range(S) if z[j] > 0}
        chosen = {j for j in range(S) if rule.active(row[None])[0, j]}
        if on:
            recalls.append(len(on & chosen) / len(on))
        hits, predicted, active = hits + len(on & chosen), predicted + len(chosen), active + len(on)
        part = torch.zeros(S)
        part[sorted(chosen)] = h[sorted(chosen)]
        kept, energy = kept + float(part @ part), energy + float(h @ h)
        y, approximate = weights.down @ h, weights.down @ part
        error, output = error + float((y - approximate) @ (y - approximate)), output + float(y @ y)
    assert quality.rows == 300
    assert quality.recall.value == pytest.approx(sum(recalls) / len(recalls))
    assert quality.precision.value == pytest.approx(hits / predicted)
    assert quality.density.value == pytest.approx(predicted / (300 * S))
    assert quality.active.value == pytest.approx(active / (300 * S))
    assert quality.energy.value == pytest.approx(kept / energy, rel=1e-5)
    assert quality.output_error.value == pytest.approx(sqrt(error / output), rel=1e-5)
    assert quality.recall.standard_error == pytest.approx(float(torch.tensor(recalls).std()) / sqrt(len(recalls)))


def test_standard_errors_are_the_spread_of_samples():
    """A standard deviation of 400 samples is off by more than a quarter with probability below 1e-6."""
    weights, rule = block(), Chance()
    samples = [Quality.of(rule, weights, inputs(200, seed=seed)) for seed in range(400)]
    for name in ("recall", "precision", "density", "energy", "output_error"):
        values = torch.tensor([getattr(one, name).value for one in samples])
        told = sqrt(sum(getattr(one, name).standard_error ** 2 for one in samples) / len(samples))
        assert 0.75 < float(values.std()) / told < 1.25


def test_without_exact_zeros_there_is_no_recall():
    quality = Quality.of(Chance(), block(gelu()), inputs(30, seed=4))
    assert quality.recall is quality.precision is quality.active is None
    assert 0 < quality.output_error.value < 1
    assert "recall" not in str(quality)
    assert "output error" in str(quality)


def test_ratios_by_hand():
    one = QualityEstimate.ratio(torch.tensor([1, 3]), torch.tensor([2, 2]))
    assert one.value == 1
    assert one.standard_error == pytest.approx(0.5)  # residuals -1, 1: sqrt(2 * 2 / 1) / 4
    assert QualityEstimate.mean(torch.tensor([0.0, 1.0])).standard_error == pytest.approx(0.5)
    assert QualityEstimate(4.0, 0.2).root == QualityEstimate(2.0, 0.05)
    assert QualityEstimate(0.0, 0.0).root == QualityEstimate(0.0, 0.0)
    assert isnan(QualityEstimate.mean(torch.tensor([2.0])).standard_error)
    assert isnan(QualityEstimate.mean(torch.tensor([])).value)
    assert str(QualityEstimate(0.98765, 0.00123)) == "0.9877 ± 0.0012"
    assert isnan(QualityEstimate(nan, nan).root.value)
