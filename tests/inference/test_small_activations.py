"""Rules that leave out small activations: each target is met, on rows of its own and on fresh ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from blocks_planted import OUT, D, S, block, gelu, inputs, relu
from torch.nn.functional import silu

from sparsact.inference.block import Activation
from sparsact.inference.methods import ApproximationTarget, checked_target
from sparsact.inference.output_error import OutputQuality
from sparsact.inference.small_activations import (
    RULES,
    Threshold,
    TopKActivations,
    calibrated,
)


def calibrate(weights, x, **target):
    ((kind, value),) = target.items()
    return calibrated(weights, x, ApproximationTarget(kind, value))


def rule_for(kind, weights, x, **target):
    """A rule of one kind, set on all rows."""
    ((name, value),) = target.items()
    return (kind.for_density if name == "density" else kind.for_error)(weights, x, value)


def error_of(weights, rule, x):
    """Relative error of the output, row by row."""
    truth, got = 0.0, 0.0
    for row in x:
        h = weights.hidden(row[None])
        truth += float((weights.down @ h[0]).double().square().sum())
        got += float((weights.down @ (rule(h) - h)[0]).double().square().sum())
    return (got / truth) ** 0.5


@pytest.mark.parametrize("gated", [False, True])
def test_top_k_keeps_the_k_largest(gated):
    h = block(gelu(), gated=gated).hidden(inputs(30, seed=4))
    before, kept = h.clone(), TopKActivations(9)(h)
    for row, found in zip(h, kept, strict=True):
        on = found != 0
        assert on.sum() == 9
        assert torch.equal(found[on], row[on])
        assert row[on].abs().min() >= row[~on].abs().max()
    assert torch.equal(h, before)
    assert torch.equal(TopKActivations(9)(h.view(5, 6, S)), kept.view(5, 6, S))


def test_top_k_takes_the_first_of_equals():
    h = torch.tensor([[0.0, -2.0, 0.0, 1.0], [3.0, 3.0, -3.0, 3.0], [0.0, 0.0, 0.0, 0.0]])
    assert TopKActivations(3)(h).tolist() == [[0, -2, 0, 1], [3, 3, -3, 0], [0, 0, 0, 0]]


def test_a_threshold_leaves_out_what_is_not_above_it():
    h = torch.tensor([[0.5, -0.5, 0.51, -0.51, 0.0, torch.nan]], dtype=torch.bfloat16)
    tau = float(h[0, 0])
    assert Threshold(tau)(h).nan_to_num(7.0).tolist() == [[0, 0, float(h[0, 2]), float(h[0, 3]), 0, 7]]
    assert torch.equal(Threshold(0.0)(h[:, :5]), h[:, :5])
    assert Threshold(tau + 1e-4)(h)[0, :2].tolist() == [0, 0]  # not a number of 16 bits
    assert Threshold(tau - 1e-4)(h)[0, 0] == tau


@pytest.mark.parametrize("activation", [relu(), gelu()])
@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize("error", [0.02, 0.2])
def test_the_error_asked_for_is_met_and_used_up(activation, kind, error):
    """On the rows that it was set on: at most the target; with one unit or one step of the threshold more, above it."""
    weights, rows = block(activation, gated=True), inputs(300, seed=4)
    rule = rule_for(kind, weights, rows, error=error)
    assert error_of(weights, rule, rows) <= error * 1.0001
    more = Threshold(rule.tau * 1.02 + 1e-6) if kind is Threshold else TopKActivations(rule.n_active - 1)
    assert error_of(weights, more, rows) > error * 0.9999
    assert 0.3 * error < error_of(weights, rule, inputs(100, seed=5)) < 3 * error


def test_more_error_keeps_fewer_units():
    weights, x = block(gelu()), inputs(400, seed=4)
    densities = [calibrate(weights, x, error=error)[1].density.value for error in (0.01, 0.1, 0.5)]
    assert densities[0] > densities[1] > densities[2]


@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize("density", [0.05, 0.2])
def test_density(kind, density):
    """The mean over 600 fresh rows; the share of one row lies in [0, 1], so Hoeffding gives 0.1 but for 7e-6."""
    weights = block(gelu())
    rule = rule_for(kind, weights, inputs(2403, seed=4), density=density)
    got = float((rule(weights.hidden(inputs(600, seed=7))) != 0).float().mean())
    assert max(0.01, density - 0.1) <= got <= density + 0.1


@pytest.mark.parametrize("target", [{"density": 0.02}, {"error": 0.1}])
def test_the_better_rule_is_chosen_on_rows_held_out(target):
    """A threshold where rows differ in size; the largest of each where large ones of some rows matter little."""
    misleading = replace(block(bias=0.0), weight=torch.zeros(S, D), bias=torch.zeros(S))
    misleading.weight[:10, 0], misleading.weight[30, 1] = 10.0, 5.0
    misleading.down[:, :10] *= 1e-3
    chosen = set()
    for weights, x in ((block(gelu()), inputs(400, seed=4)), (misleading, torch.eye(D)[:2].repeat(100, 1))):
        rows = x[torch.randperm(len(x), generator=torch.Generator().manual_seed(0))]
        cut = len(rows) - len(rows) // 4
        rules = [rule_for(kind, weights, rows[:cut], **target) for kind in RULES]
        found = [OutputQuality.of(rule, weights, rows[cut:]) for rule in rules]
        better = [one.output_error.value if "density" in target else one.density.value for one in found]
        rule, quality = calibrate(weights, x, **target)
        assert (rule, quality) == min(zip(rules, found, strict=True), key=lambda one: better[rules.index(one[0])])
        chosen.add(type(rule))
    assert chosen == set(RULES)


def test_of_rows_that_a_model_scales_the_largest_are_kept():
    weights = block(replace(gelu(), scaled=True))
    assert type(calibrate(weights, inputs(400, seed=4), density=0.1)[0]) is TopKActivations


def test_the_density_of_a_threshold_is_the_density_of_its_rows():
    weights, x = block(Activation("silu", silu, None)), inputs(173, seed=4)
    h = weights.hidden(x)
    for density in (0.013, 0.5, 0.99):
        kept = (Threshold.for_density(weights, x, density)(h) != 0).double().mean()
        assert density - 3.01 / h.numel() <= kept <= density
    assert (Threshold.for_density(weights, x, 1.0)(h) != 0).sum() == h.numel() - 1  # all but the smallest


def test_quality_is_measured_on_held_out_rows():
    weights, x = block(), inputs(803, seed=4)
    kept, state = x.clone(), torch.random.get_rng_state()
    rule, quality = calibrate(weights, x, density=0.2)
    held_out = x[torch.randperm(803, generator=torch.Generator().manual_seed(0))][-200:]
    assert quality == OutputQuality.of(rule, weights, held_out)
    assert quality.output_error.value == pytest.approx(error_of(weights, rule, held_out), rel=1e-5)
    assert torch.equal(x, kept)
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize(
    ("method", "density", "error", "message"),
    [
        ("approximate", 0.9, 0.1, "takes one target, density or error; got density=0.9, error=0.1"),
        ("approximate", None, None, "got none: pass error=0.05"),
        ("approximate", 0.0, None, r"`density` must lie in \(0, 1\]; got 0"),
        ("approximate", 1.1, None, "`density` must lie in"),
        ("approximate", None, float("nan"), "`error` must lie in"),
        ("exact", 0.1, None, 'method="exact" takes no density: it computes'),
        ("auto", 0.1, 0.2, 'method="auto" takes no density and no error'),
    ],
)
def test_targets_that_cannot_be(method, density, error, message):
    with pytest.raises(ValueError, match=message):
        checked_target(method, density, error)
    assert checked_target("exact", None, None) is None
    assert checked_target("approximate", None, 1.0) == ApproximationTarget("error", 1.0)


def test_samples_and_blocks_that_cannot_be():
    x = inputs(400, seed=4)
    x[5, 3] = float("nan")
    with pytest.raises(ValueError, match=r"must be finite; the value at \(5, 3\) is nan"):
        calibrate(block(), x, density=0.1)
    with pytest.raises(ValueError, match=r"density 0\.1 needs at least 40 sample inputs; got 39: pass batches"):
        calibrate(block(), inputs(39, seed=4), density=0.1)
    spoiled = block(gated=True)
    spoiled.up_weight[3, 1] = float("inf")
    with pytest.raises(ValueError, match=r"`up_weight` of the block must be finite; the value at \(3, 1\) is inf"):
        calibrate(spoiled, inputs(400, seed=4), density=0.1)
    with pytest.raises(ValueError, match="output is 0 on every sample input"):
        calibrate(block(bias=-1000.0), inputs(400, seed=4), error=0.1)
    assert block().down.shape == (OUT, S)
