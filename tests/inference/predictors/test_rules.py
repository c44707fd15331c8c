"""Each rule against the truth where it is known."""

from dataclasses import replace

import pytest
import torch
from blocks_planted import OUT, Coarse, D, S, block, gelu, inputs, relu
from torch.nn.functional import silu

from sparsact.inference.block import Activation
from sparsact.inference.block_weights import BlockWeights
from sparsact.inference.predictors import LSH, LowRank, Sketch, Threshold, TopKActivations, calibrate
from sparsact.inference.predictors.conformal import relative_error
from sparsact.inference.predictors.low_rank import metric
from sparsact.inference.predictors.lsh import hashed

SCALES = torch.tensor([[4.0, 2.0, 1.0, 0.5, 0.2, 0.1], [0.3, 1.0, 0.5, 3.0, 1.0, 2.0]], dtype=torch.float64)


def error_of(weights, rule, x):
    """Relative error of the output, row by row."""
    truth, got = 0.0, 0.0
    for row in x:
        h = weights.hidden(row[None])
        kept = h * rule.active(h)
        truth += float((weights.down @ h[0]).double().square().sum())
        got += float((weights.down @ (kept - h)[0]).double().square().sum())
    return (got / truth) ** 0.5


def test_low_rank_is_exact_on_weights_of_that_rank():
    """Inputs all over the space, so that only the weights are of low rank."""
    draw = torch.Generator().manual_seed(11)
    weights, x = block(rank=4, bias=-1.0), torch.randn(800, D, generator=draw)
    fresh = torch.randn(301, D, generator=draw)
    rule = LowRank.fit(weights, x, random_state=0, rank=4)
    torch.testing.assert_close(rule.scores(fresh), weights.pre_activations(fresh), atol=2e-5, rtol=1e-5)
    predictor = calibrate(weights, x, method="low_rank", rank=4, recall=1.0)
    quality = predictor.quality
    assert quality.recall.value == quality.precision.value == quality.energy.value == 1
    assert quality.output_error.value == 0


def test_low_rank_is_exact_on_inputs_of_that_dimension():
    """Weights of full rank, inputs in an affine plane of dimension 5: the mean needs no direction of its own."""
    weights, x = block(), inputs(200, seed=4, noise=0.0)
    fresh = inputs(100, seed=5, noise=0.0)
    exact = LowRank.fit(weights, x, random_state=0, rank=5).scores(fresh)
    torch.testing.assert_close(exact, weights.pre_activations(fresh), atol=1e-4, rtol=1e-4)
    short = LowRank.fit(weights, x, random_state=0, rank=4).scores(fresh)
    assert (short - weights.pre_activations(fresh)).abs().max() > 0.1


def test_low_rank_has_the_least_error_of_its_rank():
    """The error that Eckart and Young give, and no other map of that rank does better."""
    weights, x = block(), inputs(500, seed=4, noise=0.5).double()
    weights = replace(weights, weight=weights.weight.double(), bias=weights.bias.double())
    rule = LowRank.fit(weights, x, random_state=0, rank=3)
    truth = weights.pre_activations(x)
    error = (rule.scores(x) - truth).square().mean(0).sum()
    centred = truth - truth.mean(0)
    singular = torch.linalg.svdvals(centred / len(x) ** 0.5)
    torch.testing.assert_close(error, singular[3:].square().sum())
    draw = torch.Generator().manual_seed(3)
    for _ in range(20):
        other = rule.A + 0.01 * torch.randn(rule.A.shape, generator=draw, dtype=torch.float64)
        assert (replace(rule, A=other).scores(x) - truth).square().mean(0).sum() > error


def test_low_rank_without_a_rank_takes_a_sixteenth():
    rule = LowRank.fit(block(), inputs(100, seed=4), random_state=0)
    assert rule.B.shape == (1, D)
    assert LowRank.fit(block(), inputs(100, seed=4), random_state=0, rank=1000).B.shape == (D, D)
    with pytest.raises(ValueError, match="`rank` must be 1 or more; got 0"):
        LowRank.fit(block(), inputs(100, seed=4), random_state=0, rank=0)


def test_a_sketch_without_error_decides_as_the_layer():
    """Weights and inputs whose products are whole numbers: the stand-in's copy is the weights themselves."""
    draw = torch.Generator().manual_seed(5)
    weight = torch.randint(-7, 8, (S, D), generator=draw).float()
    weight[:, 0] = 7.0  # so that the scale is 1
    weights = BlockWeights(weight, torch.full((S,), -60.5), None, None, torch.randn(OUT, S, generator=draw), relu())
    x = torch.randint(-3, 4, (400, D), generator=draw).float()
    predictor = calibrate(weights, x, method="sketch", screen=Coarse.of(weights), recall=1.0)
    fresh = torch.randint(-3, 4, (300, D), generator=draw).float()
    assert torch.equal(predictor.active(fresh).bool(), weights.pre_activations(fresh) > 0)


def test_the_margin_of_a_sketch_is_per_unit():
    weights, x = block(), inputs(300, seed=4)
    rule = Sketch.fit(weights, x, random_state=0, screen=Coarse.of(weights)).at(1.5)
    estimates = Coarse.of(weights).estimates(x)
    spread = (estimates - weights.pre_activations(x)).square().mean(0).sqrt()
    torch.testing.assert_close(rule.spread, spread)
    clear = (estimates + 1.5 * rule.spread).abs() > 1e-4
    assert clear.float().mean() > 0.99
    assert torch.equal(rule.active(x).bool()[clear], (estimates > -1.5 * rule.spread)[clear])


@pytest.mark.parametrize("n_hashes", [1, 3, 5])
def test_buckets_hold_what_the_hashes_say(n_hashes):
    """Looking units up in buckets equals comparing all codes, at every number of tables."""
    weights, x = block(), inputs(37, seed=4)
    rule = LSH.of(weights, inputs(200, seed=5), random_state=1, n_hashes=n_hashes, n_tables=6)
    needs = rule.needs(x)
    for level in (0, 1, 4, 6):
        assert torch.equal(rule.at(level).active(x).bool(), needs < level)


@pytest.mark.parametrize("dimension", [5, D])
def test_hashed_units_and_inputs_have_the_products_of_the_layer(dimension):
    """Units of equal norm whose products with the hashed inputs are the pre-activations less thresholds."""
    weights = replace(block(relu(threshold=0.3)), weight=block().weight.double(), bias=block().bias.double())
    x = inputs(200, seed=4, dimension=dimension, noise=0.0).double()
    units, transform = hashed(weights, x)
    fresh = inputs(41, seed=5, dimension=dimension, noise=0.0).double()
    hashed_inputs = torch.cat([fresh, torch.ones(41, 1)], dim=1) @ transform.T
    torch.testing.assert_close(hashed_inputs @ units.T, weights.pre_activations(fresh) - 0.3, atol=1e-5, rtol=0)
    torch.testing.assert_close(units.norm(dim=1), units.norm(dim=1)[:1].expand(S))
    assert not hashed_inputs[:, -1].any()


def test_the_metric_balances_inputs_and_units():
    """P C P = M, and no other metric makes the product of both mean squared norms smaller."""
    draw = torch.Generator().manual_seed(6)
    x, w = (torch.randn(90, 6, generator=draw, dtype=torch.float64) @ torch.diag(scale) for scale in SCALES)
    C, M = x.T @ x / 90, w.T @ w / 90
    P = metric(C, M)
    torch.testing.assert_close(P @ C @ P, M)

    def product(P):
        return float(torch.trace(P @ C) * torch.trace(torch.linalg.inv(P) @ M))

    for _ in range(30):
        other = torch.randn(6, 6, generator=draw, dtype=torch.float64)
        assert product(P + 0.001 * other @ other.T) > product(P)


def test_units_meet_inputs_as_their_angles_say():
    """Of 1,500 tables of one hyperplane, unit and input meet in a share of 1 - angle / pi.

    All 2,501 pairs are off by less than 6.5 standard deviations, but for a probability below 1e-6.
    """
    weights, x, sample = block(bias=-0.5), inputs(41, seed=4), inputs(400, seed=5)
    rule = LSH.of(weights, sample, random_state=2, n_hashes=1, n_tables=1500)
    one = [
        replace(
            rule, router=replace(rule.router, n_tables=1), directions=rule.directions[[t]], codes=rule.codes[:, [t]]
        )
        for t in range(1500)
    ]
    met = sum((table.needs(x) < 1).double() for table in one) / 1500
    units, transform = hashed(weights, sample)
    query = torch.cat([x, torch.ones(41, 1)], dim=1).double() @ transform.T
    cosine = (query / query.norm(dim=1, keepdim=True)) @ (units / units.norm(dim=1, keepdim=True)).T
    share = 1 - cosine.clamp(-1, 1).arccos() / torch.pi
    assert ((met - share).abs() < 6.5 * (share * (1 - share) / 1500).sqrt()).all()


def test_with_enough_tables_nothing_is_missed():
    weights, x = block(), inputs(1200, seed=4)
    predictor = calibrate(weights, x, method="lsh", n_hashes=1, n_tables=200, density=1.0)
    assert predictor.quality.recall.value == 1
    found = [calibrate(weights, x, method="lsh", n_hashes=3, n_tables=n, density=1.0) for n in (1, 5, 25)]
    recalls = [one.quality.recall.value for one in found]
    assert recalls == sorted(recalls)
    assert recalls[0] < 0.7 < 0.95 < recalls[2]


def test_lsh_finds_active_units_more_often_than_others():
    quality = calibrate(block(), inputs(1200, seed=4), method="lsh", recall=0.9).quality
    assert quality.recall.value > 1.2 * quality.density.value
    assert quality.precision.value > 1.2 * quality.active.value


@pytest.mark.parametrize("gated", [False, True])
def test_top_k_keeps_the_k_largest(gated):
    weights, x = block(gelu(), gated=gated), inputs(30, seed=4)
    h = weights.hidden(x)
    mask = TopKActivations(9).active(h).bool()
    for row, kept in zip(h, mask, strict=True):
        assert kept.sum() == 9
        assert row[kept].abs().min() >= row[~kept].abs().max()


def test_top_k_does_not_count_zeros_and_takes_the_first_of_equals():
    h = torch.tensor([[0.0, -2.0, 0.0, 1.0], [3.0, 3.0, -3.0, 3.0], [0.0, 0.0, 0.0, 0.0]])
    assert TopKActivations(3).active(h).tolist() == [[0, 1, 0, 1], [1, 1, 1, 0], [0, 0, 0, 0]]
    with pytest.raises(ValueError, match="`n_active` of TopK must be 1 or more"):
        TopKActivations(0)


def test_a_threshold_leaves_out_what_is_not_above_it():
    h = torch.tensor([[0.5, -0.5, 0.51, -0.51, 0.0]], dtype=torch.bfloat16)
    tau = float(h[0, 0])
    assert Threshold(tau).active(h).tolist() == [[0, 0, 1, 1, 0]]
    assert Threshold(0.0).active(h).tolist() == [[1, 1, 1, 1, 0]]


@pytest.mark.parametrize("activation", [relu(), gelu()])
@pytest.mark.parametrize("method", ["threshold", "top_k"])
@pytest.mark.parametrize("error", [0.02, 0.2])
def test_the_error_asked_for_is_met_and_used_up(activation, method, error):
    """On the rows that it was set on: at most the target; with one unit or one step of the threshold more, above it."""
    weights, x = block(activation, gated=True), inputs(400, seed=4)
    predictor = calibrate(weights, x, method=method, error=error)
    rows = x[torch.randperm(400, generator=torch.Generator().manual_seed(0))][:300]
    got = error_of(weights, predictor.rule, rows)
    assert got <= error * 1.0001
    rule = predictor.rule
    more = Threshold(rule.tau * 1.02 + 1e-6) if method == "threshold" else TopKActivations(rule.n_active - 1)
    assert error_of(weights, more, rows) > error * 0.9999
    assert 0.3 * error < predictor.quality.output_error.value < 3 * error


@pytest.mark.parametrize("method", ["threshold", "top_k"])
def test_more_error_computes_fewer_units(method):
    weights, x = block(gelu()), inputs(400, seed=4)
    qualities = [calibrate(weights, x, method=method, error=error).quality for error in (0.01, 0.1, 0.5)]
    densities = [quality.density.value for quality in qualities]
    assert densities[0] > densities[1] > densities[2]
    assert qualities[0].recall is qualities[0].precision is qualities[0].active is None


def test_relative_error_by_hand():
    down = torch.tensor([[1.0, 2.0], [0.0, 1.0]])
    weights = BlockWeights(torch.eye(2), torch.zeros(2), None, None, down, relu(2))
    h = torch.tensor([[3.0, 1.0]])  # V h = (5, 1); without the second unit it lacks (2, 1)
    assert relative_error(weights, h, torch.tensor([[False, True]])) == pytest.approx((5 / 26) ** 0.5)


def test_the_density_of_a_threshold_is_that_of_its_rows():
    weights, x = block(Activation("silu", silu, None)), inputs(173, seed=4)
    h = weights.hidden(x)
    for density in (0.013, 0.5, 0.99):
        kept = Threshold.for_density(weights, x, density).active(h).double().mean()
        assert density - 3.01 / h.numel() <= kept <= density
    assert Threshold.for_density(weights, x, 1.0).active(h).sum() == h.numel() - 1  # all but the smallest


def test_the_screen_of_the_library_estimates():
    """By default the sketch is that of the certified screen, whose eight bits leave little to be missed."""
    pytest.importorskip("sparsact.inference.certified_screen")
    quality = calibrate(block(), inputs(1200, seed=4), recall=0.9).quality
    assert quality.recall.value > 0.8
    assert quality.precision.value > 0.95
