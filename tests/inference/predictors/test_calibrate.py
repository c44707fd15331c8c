"""The targets are met on fresh inputs, and each predictor carries figures of rows that it has not seen."""

import json
from dataclasses import replace
from itertools import pairwise
from math import exp, log

import pytest
import torch
from blocks_planted import D, S, block, gelu, inputs, relu, settings

from sparsact.inference.predictors import Predictor, calibrate
from sparsact.inference.predictors.calibration import FROM_ACTIVATIONS, FROM_INPUTS
from sparsact.inference.quality import Quality

PREDICTING, CHOOSING = list(FROM_INPUTS), list(FROM_ACTIVATIONS)


def calibrated(method, weights, x, **target):
    return calibrate(weights, x, method=method, **target, **settings(method, weights))


def divergence(p, q):
    return p * log(p / q) + (1 - p) * log((1 - p) / (1 - q))


@pytest.mark.parametrize("method", PREDICTING)
@pytest.mark.parametrize("gated", [False, True])
def test_recall_holds_on_fresh_inputs(method, gated):
    """Fails for a correct library with probability 1e-5 at most.

    Let l be the least level of risk a + e or below. Calibration ends below l only if the mean loss of n rows at a level
    just under l, of risk at least a + e, is a or less: probability exp(-n KL(a || a + e)) at most (Chernoff, losses in
    [0, 1]). The fresh mean then exceeds a + 2e with probability exp(-m KL(a + 2e || a + e)) at most.
    """
    a, e = 0.1, 0.05
    weights, fresh = block(gated=gated), inputs(5000, seed=5)
    on = weights.on(weights.pre_activations(fresh))
    predictor = calibrated(method, weights, inputs(6000, seed=4), recall=1 - a)
    some = on.any(1)
    n = int(0.8 * predictor.split.calibrated)  # rows with a unit on, at least
    assert some.float().mean() > 0.85
    assert exp(-n * divergence(a, a + e)) < 5e-6
    assert exp(-int(some.sum()) * divergence(a + 2 * e, a + e)) < 5e-6
    chosen = predictor.active(fresh).bool()
    recall = ((chosen & on).sum(1)[some] / on.sum(1)[some]).mean()
    assert recall >= 1 - a - 2 * e
    assert chosen.float().mean() < 0.9  # it does leave units out


@pytest.mark.parametrize("method", PREDICTING)
def test_a_higher_recall_computes_more_units(method):
    weights, x, fresh = block(), inputs(1700, seed=4), inputs(53, seed=6)
    masks = [calibrated(method, weights, x, recall=recall).active(fresh) for recall in (0.5, 0.8, 0.95, 0.99)]
    for fewer, more in pairwise(masks):
        assert (fewer <= more).all()
        assert fewer.sum() < more.sum()


@pytest.mark.parametrize("method", PREDICTING)
def test_recall_1_misses_nothing_of_the_rows_it_was_calibrated_on(method):
    weights, x = block(), inputs(601, seed=4)
    predictor = calibrated(method, weights, x, recall=1.0)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    fitted, share = predictor.split.fitted, predictor.split.calibrated
    rows = x[order][fitted : fitted + share]
    assert (predictor.active(rows).bool() >= weights.on(weights.pre_activations(rows))).all()


@pytest.mark.parametrize("method", PREDICTING + CHOOSING)
@pytest.mark.parametrize("density", [0.05, 0.2])
def test_density(method, density):
    """The mean over 600 fresh rows; the share of one row lies in [0, 1], so Hoeffding gives 0.1 but for 7e-6."""
    weights = block(gelu() if method in CHOOSING else relu())
    predictor = calibrated(method, weights, inputs(2403, seed=4), density=density)
    fresh = inputs(600, seed=7)
    got = predictor.active(fresh if predictor.reads == "inputs" else weights.hidden(fresh)).float().mean()
    assert got <= density + 0.1
    if method != "lsh":  # which has only whole tables to add
        assert got >= density - 0.1 if density > 0.1 else got > 0.01
    assert abs(predictor.quality.density.value - got) < 0.1


@pytest.mark.parametrize("method", PREDICTING + CHOOSING)
def test_quality_is_that_of_the_held_out_rows(method):
    weights, x = block(), inputs(803, seed=4)
    kept = x.clone()
    predictor = calibrated(method, weights, x, density=0.2)
    split = predictor.split
    assert (split.held_out, split.fitted + split.calibrated) == (200, 603)
    assert (split.fitted == 0) == (method in CHOOSING)
    held_out = x[torch.randperm(803, generator=torch.Generator().manual_seed(0))][-200:]
    expected = Quality.of(predictor.rule, weights, held_out)  # may hold nan, unequal to itself from Python 3.13 on
    assert repr(predictor.quality) == repr(expected)
    assert torch.equal(x, kept)


@pytest.mark.parametrize("method", PREDICTING + CHOOSING)
def test_masks_and_descriptions(method):
    weights = block()
    state = torch.random.get_rng_state()
    predictor = calibrated(method, weights, inputs(400, seed=4), density=0.3)
    assert torch.equal(torch.random.get_rng_state(), state)
    x = inputs(3, seed=9)
    mask = predictor.active(x if predictor.reads == "inputs" else weights.hidden(x))
    assert mask.shape == (3, S)
    assert mask.dtype == torch.uint8
    assert mask.is_contiguous()
    assert set(mask.unique().tolist()) <= {0, 1}
    assert predictor.active(torch.zeros(0, D if predictor.reads == "inputs" else S)).shape == (0, S)
    told = json.loads(json.dumps(predictor.to_dict()))
    assert told["predictor"] == predictor.name == method
    assert told["target"] == {"density": 0.3}
    assert told["quality"]["density"]["value"] == predictor.quality.density.value
    assert predictor.nbytes > 0


@pytest.mark.parametrize("method", PREDICTING)
def test_a_unit_that_is_not_a_number_is_computed(method):
    predictor = calibrated(method, block(), inputs(400, seed=4), density=0.1)
    x = inputs(2, seed=8)
    x[1] = float("nan")
    assert predictor.active(x)[1].all()
    assert torch.equal(predictor.active(x)[:1], predictor.active(x[:1]))


def test_a_predictor_without_quality_cannot_be_made():
    made = calibrate(block(), inputs(400, seed=4), method="top_k", density=0.3)
    with pytest.raises(TypeError, match="needs its measured Quality"):
        Predictor(made.rule, None, made.split, made.target)


@pytest.mark.parametrize("method", PREDICTING)
def test_an_infinite_threshold_switches_a_unit_off_for_good(method):
    threshold = torch.zeros(S)
    threshold[3] = float("inf")
    weights = replace(block(), activation=replace(relu(), zero_below=threshold))
    predictor = calibrated(method, weights, inputs(400, seed=4), recall=0.9)
    assert predictor.quality.recall.value > 0.7
    if method != "lsh":
        assert not predictor.active(inputs(50, seed=3))[:, 3].any()


BAD = [
    ({"recall": 0.9, "density": 0.1}, ValueError, "takes one target, recall or density; got recall=0.9, density=0.1"),
    ({}, ValueError, "got none"),
    ({"error": 0.1}, ValueError, "takes one target, recall or density"),
    ({"recall": 0.0}, ValueError, r"`recall` must lie in \(0, 1\]; got 0"),
    ({"recall": 1.1}, ValueError, "must lie in"),
    ({"recall": float("nan")}, ValueError, "must lie in"),
    ({"recall": 0.999}, ValueError, "needs at least 3996 sample inputs; got 400: collect more"),
    ({"recall": 0.9, "method": "oracle"}, ValueError, "must be one of sketch, low_rank, lsh, threshold, top_k"),
    ({"recall": 0.9, "method": "top_k"}, ValueError, "top_k takes one target, density or error"),
    ({"density": 0.9, "method": "top_k", "rank": 3}, TypeError, "top_k takes no settings; got rank"),
    ({"recall": 0.99, "method": "lsh", "n_hashes": 8, "n_tables": 1}, ValueError, "out of reach of .*n_tables"),
]


@pytest.mark.parametrize(("asked", "kind", "message"), BAD)
def test_targets_that_cannot_be(asked, kind, message):
    with pytest.raises(kind, match=message):
        calibrate(block(), inputs(400, seed=4), **{"method": "low_rank"} | asked)


def test_samples_that_cannot_be():
    weights, x = block(), inputs(400, seed=4)
    x[5, 3] = float("nan")
    for sample, kind, message in [
        (x, ValueError, r"must be finite; the one at \(5, 3\) is nan"),
        (inputs(39, seed=4), ValueError, "density 0.1 needs at least 40 sample inputs; got 39"),
        (inputs(40, seed=4)[None], ValueError, r"must have shape \(m, 24\).*got \(1, 40, 24\)"),
        (inputs(40, seed=4).long(), ValueError, "must be floats; got torch.int64"),
        (inputs(40, seed=4).numpy(), TypeError, "must be a torch.Tensor"),
    ]:
        with pytest.raises(kind, match=message):
            calibrate(weights, sample, method="top_k", density=0.1)


def test_blocks_that_cannot_be():
    spoiled = block(gated=True)
    spoiled.up_weight[3, 1] = float("inf")
    with pytest.raises(ValueError, match=r"`up_weight` of the block must be finite; the one at \(3, 1\) is inf"):
        calibrate(spoiled, inputs(400, seed=4), method="top_k", density=0.1)
    with pytest.raises(ValueError, match=r"gelu\) is never exactly zero.*method=\"threshold\""):
        calibrate(block(gelu()), inputs(400, seed=4), method="low_rank", recall=0.9)
    with pytest.raises(ValueError, match="needs 9 calibration rows in which a unit is on; 0 of 100 are"):
        calibrate(block(bias=-1000.0), inputs(400, seed=4), method="low_rank", recall=0.9)
    with pytest.raises(ValueError, match="output is 0 on every sample input"):
        calibrate(block(bias=-1000.0), inputs(400, seed=4), method="threshold", error=0.1)
