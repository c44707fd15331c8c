"""The level for a recall, against all levels one by one."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sparsact.inference.predictors.conformal import level_for_density, level_for_recall, min_rows


def bound(needs, on, level):
    """n / (n + 1) times the mean loss, plus 1 / (n + 1)."""
    some = on.any(1)
    missed = (on & ~(needs < level)).sum(1)[some] / on.sum(1)[some].double()
    return float(missed.sum() + 1) / (int(some.sum()) + 1)


@given(st.integers(0, 2**20), st.sampled_from([0.5, 0.75, 0.9]), st.booleans())
def test_the_least_level_within_the_bound(seed, recall, ties):
    draw = torch.Generator().manual_seed(seed)
    needs = torch.randn(23, 7, generator=draw)
    needs = needs.round() if ties else needs
    on = torch.rand(23, 7, generator=draw) < 0.4
    level = level_for_recall(needs, on, recall)
    assert bound(needs, on, level) <= 1 - recall + 1e-6
    levels = [one for one in needs[on].unique().tolist() if one < level]  # with `<`, each leaves its own out
    assert levels
    assert bound(needs, on, max(levels)) > 1 - recall


def test_recall_1_is_the_largest_need_of_an_active_unit():
    needs, on = torch.tensor([[1.0, 5.0], [2.0, 3.0]]), torch.tensor([[True, False], [True, True]])
    level = level_for_recall(needs, on, 1.0)
    assert 3 < level < 3.000001


@pytest.mark.parametrize(("recall", "rows"), [(0.5, 1), (0.9, 9), (0.99, 99), (0.95, 19), (2 / 3, 2), (1.0, 1)])
def test_rows_that_a_recall_needs(recall, rows):
    """One row fewer, and even a level that misses nothing would exceed the bound."""
    assert min_rows(recall) == rows
    if recall < 1:
        assert 1 / (rows + 1) <= 1 - recall + 1e-9 < 1 / rows
    with pytest.raises(ValueError, match=f"needs {rows} calibration rows in which a unit is on; {rows - 1} of"):
        level_for_recall(torch.zeros(rows + 3, 2), (torch.arange(rows + 3) < rows - 1)[:, None].expand(-1, 2), recall)


@given(st.integers(0, 2**20), st.floats(0.001, 1))
def test_the_largest_level_within_a_density(seed, density):
    needs = torch.randn(11, 7, generator=torch.Generator().manual_seed(seed))
    level = level_for_density(needs, density)
    computed = int((needs < level).sum())
    assert computed == int(density * 77)  # no ties: it is used up
