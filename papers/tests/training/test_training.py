"""Training on characters: the same bits whether it was interrupted or not, and honest evaluations."""

from __future__ import annotations

import math
import sys

import pytest
import torch
from torch import nn
from trainings import TEXT, model, penalties

from sparsact_papers.training import CharacterText, Recipe, evaluation, train

RECIPE = Recipe(steps=5, batch=3, context=11, warmup=2, evaluate_every=2, windows=4)


class StopError(Exception):
    pass


def stop_after(steps):
    left = iter(range(steps))

    def progress(done):
        for _ in range(done):
            if next(left, None) is None:
                raise StopError

    return progress


@pytest.mark.parametrize("kind", ["none", "L1", "top-k"])
@pytest.mark.parametrize("steps_before", [0, 1, 3, 4])
def test_a_resumed_training_gives_the_same_bits(tmp_path, kind, steps_before):
    whole, cut, resumed = (model(dropout=0.2) for _ in range(3))
    expected = train(whole, TEXT, RECIPE, blocks=whole.feed_forward_blocks(), penalty=penalties(whole)[kind])
    with pytest.raises(StopError):
        train(
            cut,
            TEXT,
            RECIPE,
            blocks=cut.feed_forward_blocks(),
            penalty=penalties(cut)[kind],
            checkpoint=tmp_path,
            progress=stop_after(steps_before),
        )
    torch.rand(3)  # what others draw does not matter
    told = []
    rows = train(
        resumed,
        TEXT,
        RECIPE,
        blocks=resumed.feed_forward_blocks(),
        penalty=penalties(resumed)[kind],
        checkpoint=tmp_path,
        progress=told.append,
    )
    assert rows == expected
    assert sum(told) == RECIPE.steps
    assert len(told) <= RECIPE.steps + 1 - 2 * (steps_before // 2)  # it did not begin anew
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.safetensors"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_steps_that_are_captured_train_as_others_do(tmp_path, monkeypatch):
    """On a GPU, resumed or not; batches of text are drawn on the CPU, so they are the same on any device."""
    recipe = Recipe(steps=12, batch=3, context=11, warmup=2, evaluate_every=6, windows=4)
    captured = train(model(), TEXT, recipe, device="cuda")
    with pytest.raises(StopError):
        train(model(), TEXT, recipe, device="cuda", checkpoint=tmp_path, progress=stop_after(8))
    resumed = train(model(), TEXT, recipe, device="cuda", checkpoint=tmp_path)
    monkeypatch.setattr(sys.modules[train.__module__], "CapturedStep", lambda function, device: function)
    eager, on_cpu = train(model(), TEXT, recipe, device="cuda"), train(model(), TEXT, recipe)
    for rows in (captured, resumed, eager):
        assert [row.loss for row in rows] == pytest.approx([row.loss for row in on_cpu], rel=1e-3)


def test_training_lowers_the_loss_and_leaves_torchs_generator_alone():
    made, before = model(), torch.get_rng_state()
    rows = train(made, TEXT, Recipe(steps=60, batch=8, context=11, warmup=5, evaluate_every=30, learning_rate=1e-2))
    assert [row.step for row in rows] == [0, 30, 60]
    assert rows[0].loss == pytest.approx(math.log(len(TEXT.characters)), abs=0.5)
    assert rows[-1].loss < 0.7 * rows[0].loss
    assert torch.equal(before, torch.get_rng_state())


def test_a_step_whose_loss_is_not_finite_is_not_taken():
    told, made = [], model()
    with pytest.raises(ValueError, match="the loss is nan at step 1; lower"):
        train(made, TEXT, Recipe(steps=5, batch=3, context=11, learning_rate=1e30, warmup=0), progress=told.append)
    assert told == [1]
    assert all(parameter.isfinite().all() for parameter in made.parameters())


def test_a_checkpoint_of_other_settings_is_refused(tmp_path):
    train(model(), TEXT, RECIPE, checkpoint=tmp_path)
    with pytest.raises(ValueError, match=r"trained with batch = 3, wanted 4.*resume=False"):
        train(model(), TEXT, Recipe(5, 4, 11, warmup=2, evaluate_every=2, windows=4), checkpoint=tmp_path)
    with pytest.raises(ValueError, match="trained with text"):
        train(model(), CharacterText.of(TEXT.decoded(TEXT.train)), RECIPE, checkpoint=tmp_path)
    anew = Recipe(1, 4, 11, windows=4)
    assert [row.step for row in train(model(), TEXT, anew, checkpoint=tmp_path, resume=False)] == [0, 1]


def test_a_damaged_checkpoint_is_refused(tmp_path):
    train(model(), TEXT, RECIPE, checkpoint=tmp_path)
    path = tmp_path / "checkpoint.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="altered or damaged"):
        train(model(), TEXT, RECIPE, checkpoint=tmp_path)


def test_the_loss_of_an_evaluation_is_the_mean_over_all_its_characters():
    made = model(dropout=0.5)
    x, y = TEXT.windows(7, 11)
    found = evaluation(made, TEXT, Recipe(1, batch=3, context=11, windows=7), blocks=made.feed_forward_blocks())
    assert made.training  # as it was
    made.eval()
    chances = made(x).log_softmax(dim=-1).gather(-1, y[..., None])
    assert found.loss == pytest.approx(-chances.mean().item(), rel=1e-6)
    assert found.n_inputs == 7 * 11


def test_the_rate_rises_and_then_falls_to_a_tenth():
    recipe = Recipe(steps=30, learning_rate=2.0, warmup=10)
    rates = [recipe.rate(step) for step in range(31)]
    assert rates[:10] == pytest.approx([0.2 * (step + 1) for step in range(10)])
    assert rates[10] == 2.0
    assert rates[20] == pytest.approx(1.1)
    assert rates[30] == pytest.approx(0.2)


def test_what_cannot_be_trained_is_told():
    with pytest.raises(ValueError, match="`steps` must be of type int, 1 or more; got 0"):
        Recipe(0)
    with pytest.raises(ValueError, match="`learning_rate`"):
        Recipe(1, learning_rate=math.nan)
    with pytest.raises(ValueError, match="passage needs 99 characters and one more, the validation part has 90"):
        train(model(), TEXT, Recipe(1, context=99))
    broken = model()
    nn.init.constant_(broken.logits.weight, math.inf)
    with pytest.raises(ValueError, match="the loss is nan at step 0"):
        train(broken, TEXT, RECIPE)
