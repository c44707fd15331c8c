"""Figures of quality against brute force, and their standard errors against repeated samples."""

from math import isnan, nan, sqrt

import pytest
import torch
from blocks_planted import S, block, inputs

from sparsact.inference.output_error import OutputQuality, QualityEstimate


def every_third(h):
    """A fixed third of the units."""
    return h * (torch.arange(S) % 3 == 0)


@pytest.mark.parametrize("gated", [False, True])
def test_brute_force(gated):
    weights, x = block(gated=gated), inputs(300, seed=4)
    quality = OutputQuality.of(every_third, weights, x)
    kept, error, output = 0, 0.0, 0.0
    for row in x:
        h = torch.relu(weights.weight @ row + weights.bias)
        if gated:
            h = h * (weights.up_weight @ row + weights.up_bias)
        part = torch.zeros(S)
        part[::3] = h[::3]
        kept += sum(1 for value in part if value != 0)
        y, approximate = weights.down @ h, weights.down @ part
        error, output = error + float((y - approximate) @ (y - approximate)), output + float(y @ y)
    assert quality.rows == 300
    assert quality.density.value == pytest.approx(kept / (300 * S))
    assert quality.output_error.value == pytest.approx(sqrt(error / output), rel=1e-5)
    assert str(quality).startswith(f"density {quality.density.value:.4g} ± ")


def test_standard_errors_are_the_spread_of_samples():
    """A standard deviation of 400 samples is off by more than a quarter with probability below 1e-6."""
    weights = block()
    samples = [OutputQuality.of(every_third, weights, inputs(200, seed=seed)) for seed in range(400)]
    for name in ("density", "output_error"):
        values = torch.tensor([getattr(one, name).value for one in samples])
        told = sqrt(sum(getattr(one, name).standard_error ** 2 for one in samples) / len(samples))
        assert 0.75 < float(values.std()) / told < 1.25


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
