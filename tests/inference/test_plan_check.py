"""What ``"auto"`` measures on the whole model, and what it gives up there."""

from __future__ import annotations

import copy

import pytest
import torch
from sparse_models import language_like, rows
from torch import nn

from sparsact.inference import WholeModel, plan_check, plan_of, sparsify
from sparsact.inference.autotune import kinds_of
from sparsact.inference.block_profile import BlockProfile
from sparsact.inference.comparison import paired_seconds
from sparsact.inference.method_times import Times


@pytest.fixture
def _faster_blocks(monkeypatch):
    monkeypatch.setattr(Times, "is_faster", lambda *given: True)


@pytest.mark.usefixtures("_faster_blocks")
def test_a_plan_that_makes_the_whole_model_slower_is_given_up(monkeypatch):
    dense = language_like(depth=3)
    asked = []

    def never(whole, any_sparse):
        asked.append(any_sparse)
        return False

    monkeypatch.setattr(plan_check, "is_worthwhile", never)
    model = sparsify(copy.deepcopy(dense), "auto", list(rows(6, dense).split(1)), time_limit=0)
    assert asked == [True, True]  # all blocks, then the better half of them
    assert (plan_of(model).whole, plan_of(model).forecast) == (None, 1.0)
    assert str(plan_of(model)).endswith("\nwhole model: left dense")
    for choice in plan_of(model).choices:
        assert choice.method == "dense"
        assert "the whole model runs" in choice.reason
    assert [type(module) for module in model.modules()] == [type(module) for module in dense.modules()]


@pytest.mark.usefixtures("_faster_blocks")
def test_the_better_half_may_stay(monkeypatch):
    answers = iter([False, True])
    monkeypatch.setattr(plan_check, "is_worthwhile", lambda whole, any_sparse: next(answers))
    dense = language_like(depth=4)
    plan = plan_of(sparsify(dense, "auto", list(rows(6, dense).split(1)), time_limit=0))
    kept = [choice.speed_up for choice in plan.choices if choice.method != "dense"]
    assert 0 < len(kept) < 4
    assert plan.whole is not None
    assert plan.whole.speed_up == plan.whole.dense / plan.whole.sparse
    assert 0 < plan.whole.low <= plan.whole.speed_up <= plan.whole.high
    assert f"times as fast [{plan.whole.low:.2f}, {plan.whole.high:.2f}] (" in str(plan)
    assert str(plan).endswith(str(plan.whole))
    assert plan.to_dict()["whole"]["speed_up"] == plan.to_dict()["forecast"] == plan.whole.speed_up


def test_what_is_worthwhile():
    same, better = WholeModel(1.0, 1.0, 3), WholeModel(1.1, 1.0, 3)
    assert [plan_check.is_worthwhile(one, True) for one in (same, better)] == [False, True]
    assert plan_check.is_worthwhile(same, False)  # calls of fewer rows may gain


def test_rounds_run_every_batch_both_ways():
    model = language_like()
    shown = [rows(m, model) for m in (1, 3)]
    sparsify(model, "exact", shown)
    found = paired_seconds(model, shown, 4)
    assert [[len(times) for times in one] for one in found] == [[2, 2]] * 4
    assert len(paired_seconds(model, shown, 9, time_limit=0)) == 3
    assert all(type(module) is not nn.Linear for name, module in model.named_modules() if name.endswith("down"))


def test_blocks_alike_are_of_one_kind():
    model = language_like(depth=2)

    def profile(block, density):
        return BlockProfile(model, block, torch.zeros(3, 5), density, (1,))

    from sparsact.inference import find_blocks

    first, second = find_blocks(model, rows(4, model))
    densities = (0.10, 0.12, 0.30, 0.11)
    blocks = (first, second, first, second)
    assert kinds_of([profile(*one) for one in zip(blocks, densities, strict=True)]) == [0, 0, 1, 0]
