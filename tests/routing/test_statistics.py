"""What statistics say of a routing, and when they warn."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from grids import grid
from routed import ROUTERS, M, inputs, state_of

from sparsact import routing
from sparsact.routing import EMPTY, RoutingCollapseWarning, RoutingStatistics, Selection, warn_of_collapse

FIELDS = ("n_inputs", "n_places", "n_dropped", "n_missed")


def sent_to(units, width):
    return RoutingStatistics.of(Selection.of(np.array(units)[:, None], np.ones((len(units), 1)), width))


def test_by_hand():
    statistics = sent_to([0, 0, 0, 2, 2, EMPTY, 3, 0], 5)
    assert statistics.counts.tolist() == [4, 0, 2, 1, 0]
    assert statistics.load.tolist() == [4 / 7, 0, 2 / 7, 1 / 7, 0]
    assert statistics.imbalance == pytest.approx(5 * 4 / 7)
    assert statistics.dead_share == pytest.approx(2 / 5)
    assert statistics.jain_index == pytest.approx(49 / (5 * 21))
    assert statistics.entropy == pytest.approx(4 / 7 * np.log2(7 / 4) + 2 / 7 * np.log2(7 / 2) + 1 / 7 * np.log2(7))
    assert statistics.miss_rate == pytest.approx(1 / 8)
    assert statistics.drop_rate == 0
    assert "40 % are never used" in str(statistics)


def test_extremes():
    even, one = sent_to([0, 1, 2, 3] * 3, 4), sent_to([1] * 12, 4)
    assert (even.imbalance, even.jain_index, even.entropy, even.dead_share) == (1, pytest.approx(1), 2, 0)
    assert (one.imbalance, one.jain_index, one.entropy, one.dead_share) == (4, pytest.approx(1 / 4), 0, 3 / 4)


def test_drops_are_no_misses():
    router = routing.Switch(3, capacity_factor=0.5)
    chosen = router(inputs(), state_of(router), training=True)
    for selection, size in ((chosen, 1), (chosen.expand(4), 4)):
        statistics = RoutingStatistics.of(selection)
        assert statistics.drop_rate == chosen.dropped.mean() > 0
        assert statistics.n_missed == 0
        assert statistics.counts.sum() == size * M


@pytest.mark.parametrize("router", ROUTERS, ids=repr)
def test_batches_add_up(router):
    state, x = state_of(router), inputs()
    whole = RoutingStatistics.of(router(x, state))
    parts = [RoutingStatistics.of(router(torch.tensor(rows), state)) for rows in (x[:9], x[9:9], x[9:])]
    if isinstance(router, routing.ExpertChoice):
        pytest.skip("experts choose among a batch")
    if getattr(router, "eval_capacity_factor", None) is not None:  # room is that of a batch
        router = replace(router, eval_capacity_factor=None)
        whole = RoutingStatistics.of(router(x, state))
        parts = [RoutingStatistics.of(router(torch.tensor(rows), state)) for rows in (x[:9], x[9:9], x[9:])]
    for total in (parts[0] + parts[1] + parts[2], sum(parts[:0:-1], start=parts[0])):
        assert total.counts.tolist() == whole.counts.tolist()
        assert [getattr(total, name) for name in FIELDS] == [getattr(whole, name) for name in FIELDS]


def test_other_widths_do_not_add_up():
    with pytest.raises(ValueError, match="4 and 5 units"):
        sent_to([0], 4) + sent_to([0], 5)


@pytest.mark.parametrize("width", [8, 256, 4096])
def test_a_collapse_is_warned_of(width):
    with pytest.warns(RoutingCollapseWarning, match="collapsed.*auxiliary loss"):
        warn_of_collapse(sent_to([1] * 200, width))


def test_most_units_dead_is_a_collapse():
    with pytest.warns(RoutingCollapseWarning):
        warn_of_collapse(sent_to(list(range(7)) * 40, 16))


@grid(width=[1, 8, 256, 4096], m=[0, 1, 29, 200, 5000])
def test_fair_chance_is_no_collapse(width, m):
    """Units drawn at random, a quarter of the index that chance gives is 30 deviations away and more."""
    statistics = sent_to(np.random.default_rng(m).integers(0, width, size=m), width)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_collapse(statistics)
    assert np.isfinite([statistics.jain_index, statistics.entropy, statistics.imbalance]).all()


def test_a_few_inputs_that_are_alike_are_no_collapse():
    warn_of_collapse(sent_to([1] * 20, 64))
