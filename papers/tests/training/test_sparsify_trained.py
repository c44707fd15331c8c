"""An OPT of Hugging Face, trained here with L1 on its activations, measured and then computed sparsely."""

from __future__ import annotations

import os

import pytest
import torch
from inference.test_sparsify import classes
from torch import nn

from sparsact.inference import Screen, densify, find_blocks, measure, plan_of, sparsify
from sparsact.inference.batches import evaluating
from sparsact.inference.block_profile import sample_inputs
from sparsact.inference.sparse_linear import SparseLinear
from sparsact_papers.data import load_tinyshakespeare
from sparsact_papers.training import ActivationPenalty, CharacterText, Recipe, evaluation, train

transformers = pytest.importorskip("transformers")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get("SPARSACT_DATA"), reason="SPARSACT_DATA does not name the folder of the text"
    ),
]

RECIPE = Recipe(steps=500, batch=16, context=48, learning_rate=3e-3, warmup=30, evaluate_every=500, windows=24)


class Logits(nn.Module):
    """The logits alone, as training takes them."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        return self.model(input_ids=tokens, use_cache=False).logits


@pytest.fixture(scope="module")
def trained():
    """The model, its text, and its evaluations before and after."""
    try:
        text = CharacterText.of(load_tinyshakespeare().text)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    sizes = {"hidden_size": 64, "word_embed_proj_dim": 64, "ffn_dim": 256, "max_position_embeddings": 128}
    config = transformers.OPTConfig(
        vocab_size=len(text.characters), **sizes, num_hidden_layers=2, num_attention_heads=4, dropout=0.0
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Logits(transformers.OPTForCausalLM(config))
    blocks = find_blocks(model, text.windows(2, RECIPE.context)[0])
    rows = train(model, text, RECIPE, blocks=blocks, penalty=ActivationPenalty(model, blocks, 0.3))
    return model.eval(), text, rows


def shown(text):
    return text.windows(RECIPE.windows, RECIPE.context)[0]


def test_training_learns_and_switches_units_off(trained):
    model, text, (before, after) = trained
    assert after.loss < 2.3 < 4 < before.loss
    assert max(after.density) < 0.25 < min(before.density)
    measured = measure(model, shown(text))
    for block, density in zip(measured.blocks, after.density, strict=True):
        assert block.density == pytest.approx(density, rel=1e-6)
        assert block.n_units == 256
        assert 1.5 < block.roofline().speedup("exact") <= 2


@pytest.mark.parametrize("method", ["exact", "certified"])
def test_the_loss_matches_the_dense_model(trained, method):
    model, text, (_, after) = trained
    kinds = classes(model)
    sparsify(model, method, shown(text))
    assert SparseLinear in classes(model)
    x, y = (part[:, :1] for part in text.windows(200, RECIPE.context))
    losses = [evaluation(model, text, RECIPE).loss, loss(model, x, y)]
    assert [choice.method for choice in plan_of(model).choices] == [method] * 2
    densify(model)
    assert classes(model) == kinds
    assert losses[0] == pytest.approx(after.loss, abs=1e-5)
    assert losses[1] == pytest.approx(loss(model, x, y), abs=1e-5)


def loss(model, x, y):
    """Mean cross-entropy of one passage at a time, so that sparse layers take the short way."""
    with evaluating(model):
        each = [nn.functional.cross_entropy(model(a[None])[0], b) for a, b in zip(x, y, strict=True)]
    return float(torch.stack(each).double().mean())


def test_a_screen_leaves_few_more_than_are_active(trained):
    model, text, _ = trained
    for block, found in sample_inputs(model, find_blocks(model, shown(text)), shown(text)).items():
        up, inputs = model.get_submodule(block.up), found.sample
        screen = Screen.of(up.weight.detach(), up.bias.detach(), block.activation.zero_below, inputs[:256])
        survivors = screen.survivors(inputs) != 0
        active = up(inputs).detach() > 0
        assert bool((survivors | ~active).all())
        density, survived = float(active.float().mean()), float(survivors.float().mean())
        assert density <= survived < density + 0.1
