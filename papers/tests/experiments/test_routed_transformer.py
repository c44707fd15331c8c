"""Routed feed-forward layers: what they cost, counted by hand, and rules on made-up rows."""

import pytest
from reproduced import made_up

from sparsact_papers.common import characters
from sparsact_papers.experiments import Rows, Scale
from sparsact_papers.practice.routed_transformer import (
    DENSE,
    EXPERIMENT,
    LSH,
    LSH_4,
    MODELS,
    NARROW,
    TABLES,
    TOP_K,
    TREE,
    feed_forward,
    flops,
)

COSTS = {DENSE: 100, NARROW: 12, LSH: 13, LSH_4: 15, TREE: 14, TOP_K: 60}
LOSSES = {DENSE: 2.0, NARROW: 2.2, LSH: 2.02, LSH_4: 2.01, TREE: 2.1, TOP_K: 2.0}


def rows(losses=(), costs=()):
    """Three seeds that differ far more than the models of one seed do."""
    at_the_end, flops = LOSSES | dict(losses), COSTS | dict(costs)
    return Rows(
        made_up(
            EXPERIMENT,
            {"model": model, "seed": seed},
            {
                "at": [0, 9],
                "losses": [4.0, at_the_end[model] + seed],
                "flops": flops[model],
                "active_flops": flops[model] - 1,
                "routing_flops": 1,
                "other_flops": 7,
                "parameters": 99,
            },
        )
        for seed in range(3)
        for model in MODELS
    )


@pytest.mark.parametrize(
    ("model", "routing"),
    [
        (LSH, 3 * 20),  # hyperplanes
        (LSH_4, 4 * 3 * 20),
        (TREE, 3 * 21),  # each with a bias
        (TOP_K, 84 * 20 + 96),  # pre-activations of units that stay off, and a comparison for each
    ],
)
def test_operations_are_those_counted_by_hand(model, routing):
    """Width 10 and 96 units, 12 of which are on: a unit costs a product up and one down, 2 * 10 each."""
    found = flops(model, 10, 96)
    assert (found.routing, found.active, found.dense) == (routing, 12 * 40, 96 * 40)


def test_dense_layers_route_nothing():
    assert (flops(DENSE, 10, 96).routing, flops(DENSE, 10, 96).total) == (0, 96 * 40)
    assert (flops(NARROW, 10, 96).routing, flops(NARROW, 10, 96).total) == (0, 12 * 40)


@pytest.mark.parametrize("model", MODELS)
def test_a_measurement_is_repeated_exactly(short_text, model):
    task = {"model": model, **characters.chosen(Scale.SMOKE, 0), "steps": 3}
    first, again = (EXPERIMENT.measure(**task) for _ in range(2))
    assert first == again
    assert first["at"] == [0, 1, 2, 3]
    assert first["flops"] == first["routing_flops"] + first["active_flops"] == 2 * flops(model, 16, 64).total
    # Two layers: projections 8 * 16 * 16, scores and sums 4 * 16 for 8.5 places; and seven logits.
    assert first["other_flops"] == 2 * (2048 + 544) + 2 * 16 * 7


@pytest.mark.parametrize("model", [LSH, LSH_4, TREE, TOP_K])
def test_one_unit_in_eight_is_on(model):
    torch = pytest.importorskip("torch")
    layer = feed_forward(model, 10, 96).eval()
    x = torch.randn(31, 10, generator=torch.Generator().manual_seed(0))
    chosen = layer.route(x).dense()
    assert chosen.shape == (31, 96)
    assert (chosen.sum(dim=1) == 12).all()
    tables = TABLES.get(model, 1)
    assert (chosen.reshape(31, tables, -1).sum(dim=2) == 12 / tables).all()


def test_the_frames_hold_the_numbers_of_the_rows():
    loss, cost, parts = (chart.frame(rows()) for chart in EXPERIMENT.charts)
    place = [*zip(loss["series"], loss["step"], strict=True)].index((TREE, 9))
    assert (loss["low"][place], loss["loss"][place], loss["high"][place]) == (2.1, 3.1, 4.1)
    assert dict(zip(cost["series"], cost["megaflops"], strict=True))[TOP_K] == 60e-6
    assert parts["units"][parts["model"].index(LSH)] == 12e-6
    assert all(len(column) == len(MODELS) for column in parts.values())
