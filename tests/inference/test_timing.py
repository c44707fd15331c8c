"""How methods and models are timed, and for which calls a method is taken by its times."""

from __future__ import annotations

import math
import sys
from functools import partial

import pytest
import torch
from sparse_models import PLAIN, plain, reads, rows
from torch import nn

from sparsact.inference import densify, find_blocks, plan_check, plan_of, sparse_linear, sparsify
from sparsact.inference.apply import Replacement
from sparsact.inference.autotune import BATCHES
from sparsact.inference.block_profile import BlockProfile
from sparsact.inference.comparison import speed
from sparsact.inference.method_times import Times, block_output, time_methods
from sparsact.inference.selectors import ActiveInputs
from sparsact.inference.weights import FloatWeights


@pytest.fixture
def _always_worthwhile(monkeypatch):
    """Whole models are small here, and not faster."""
    monkeypatch.setattr(plan_check, "is_worthwhile", lambda whole, any_sparse: True)


def test_methods_are_timed_in_evaluation_mode():
    model = plain().train()
    block = find_blocks(model, rows(3, model))[0]
    seen = []
    model.down.register_forward_hook(lambda module, given, output: seen.append(module.training))
    time_methods(model, [partial(block_output, model, block)], [{}], [rows(3, model)], [1], 0.0)
    assert seen
    assert not any(seen)
    assert model.down.training


def test_timing_that_is_broken_off_leaves_the_model_dense():
    model = plain()
    block = find_blocks(model, rows(3, model))[0]

    class Interrupted(Replacement):
        def apply(self, model):
            super().apply(model)
            raise KeyboardInterrupt

    from sparsact.inference.methods import exact_replacement

    replacement = exact_replacement(model, block)
    with pytest.raises(KeyboardInterrupt):
        time_methods(
            model,
            [partial(block_output, model, block)],
            [{"exact": Interrupted(replacement.layers)}],
            [rows(3, model)],
            [1],
            0.0,
        )
    assert type(model.down) is nn.Linear


@pytest.mark.usefixtures("_always_worthwhile")
@pytest.mark.parametrize(("m", "most"), [(1, 1), (3, 3), (5, 5), (40, 40)])
def test_no_more_rows_are_taken_than_were_timed(m, most, monkeypatch):
    monkeypatch.setattr(Times, "is_faster", lambda *given: True)
    (choice,) = plan_of(sparsify(plain(), "auto", rows(m, plain()), time_limit=0)).choices
    assert choice.max_rows == most


def test_the_difference_that_speed_tells():
    model = plain()
    shown = [rows(5, model), rows(6, model, seed=8)]
    assert speed(sparsify(model, "exact", shown), shown, rounds=1).difference < 2e-6
    sparsify(model, "approximate", torch.cat(shown).repeat(5, 1), density=0.02)
    found = speed(model, shown, rounds=1)
    with torch.no_grad():
        outputs = [model(x) for x in shown]
        densify(model)
        wanted = [model(x) for x in shown]
    errors = [float((one - other).norm() / other.norm()) for one, other in zip(outputs, wanted, strict=True)]
    assert found.difference == pytest.approx(max(errors), rel=1e-5)
    assert (found.rounds, found.batches) == (1, 2)


def test_speed_tells_of_a_number_that_is_lost():
    """A model that forgets what is not a number where its layers are sparse."""

    class Forgetting(nn.Module):
        def __init__(self):
            super().__init__()
            self.block, self.d = plain(), PLAIN["d"]

        def forward(self, x):
            y = self.block(x)
            return y.nan_to_num() if reads(self.block.down, ActiveInputs) else y

    model = Forgetting().eval()
    x = rows(5, model)
    sparsify(model, "exact", x)
    x[1, 2] = math.nan
    found = speed(model, [x], rounds=1)
    assert found.difference == math.inf
    assert found.to_dict()["difference"] is None


@pytest.mark.usefixtures("_always_worthwhile")
def test_auto_times_as_many_rows_as_the_calls_shown_have(monkeypatch):
    """A method that pays for one row is kept for calls of one row, and no more is said of the calls shown."""
    monkeypatch.setattr(Times, "is_faster", lambda self, method, block, max_ratio: self.rows[block] == 1)
    monkeypatch.setattr(BlockProfile, "pays_below", lambda *given: 1.0)
    (choice,) = plan_of(sparsify(plain(), "auto", rows(40, plain()), time_limit=0)).choices
    assert (choice.max_rows, choice.share, choice.speed_up) == (1, 0.0, 1.0)
    assert "faster for calls of one row; no sample call" in choice.reason
    (choice,) = plan_of(sparsify(plain(), "auto", list(rows(40, plain()).split(1)), time_limit=0)).choices
    assert (choice.max_rows, choice.share, choice.reason) == (1, 1.0, "fastest here")


@pytest.mark.usefixtures("_always_worthwhile")
def test_each_number_of_rows_is_computed_by_what_was_faster_for_it(monkeypatch):
    """A prompt of 512 rows, then single rows: a screen for few rows, all pre-activations for more."""
    faster = {1: "certified", 4: "certified", 16: "exact", 64: "exact"}
    monkeypatch.setattr(Times, "is_faster", lambda self, method, block, most: faster[self.rows[block]] == method)
    monkeypatch.setattr(BlockProfile, "pays_below", lambda *given: 1.0)
    model = sparsify(plain(), "auto", list(rows(80, plain()).split(1)), time_limit=0)
    (choice,) = plan_of(model).choices
    assert (choice.method, choice.max_rows) == ("certified", sys.maxsize)
    calls = []
    monkeypatch.setattr(sparse_linear, "LayerCall", None)  # every call is asked in full
    for layer in (model.up, model.down):
        layer._sparse.direct = None
    monkeypatch.setattr(FloatWeights, "screened", lambda self, x, screen, rows, share: calls.append(rows))
    down = model.down._sparse
    down.calls = down.sparse_calls = 0
    with torch.no_grad():
        for m in (512, 1, 16, 4):
            x = rows(m, model, seed=m)
            torch.testing.assert_close(model(x), plain()(x))
    assert calls == [1, 4]
    assert (down.calls, down.sparse_calls) == (4, 4)
    assert list(faster) == list(BATCHES)
