"""The small transformer, and the text that it reads."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from sparsact_papers.training import CharacterText, Transformer

X = torch.arange(35).reshape(7, 5) % 11


SIZES = {"vocabulary": 11, "width": 6, "n_layers": 3, "n_heads": 2, "hidden": 14, "context": 8}


def transformer(**choices):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Transformer(**SIZES | choices)


def test_no_place_sees_a_later_one():
    model = transformer()
    logits = model(X)
    for cut in range(1, 5):
        changed = X.clone()
        changed[:, cut:] = (changed[:, cut:] + 3) % 11
        assert torch.allclose(model(changed)[:, :cut], logits[:, :cut], atol=1e-6)
        assert not torch.allclose(model(changed)[:, cut:], logits[:, cut:], atol=1e-3)


def test_attention_matches_torch():
    model = transformer()
    ours = model.blocks[0].attention
    theirs = nn.MultiheadAttention(6, 2, batch_first=True)
    theirs.in_proj_weight, theirs.in_proj_bias = ours.projections.weight, ours.projections.bias
    theirs.out_proj.weight, theirs.out_proj.bias = ours.out.weight, ours.out.bias
    x = torch.randn(4, 5, 6, generator=torch.Generator().manual_seed(0))
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    assert torch.allclose(ours(x), theirs(x, x, x, attn_mask=mask, need_weights=False)[0], atol=1e-6)


def test_feed_forward_layers_come_from_the_factory():
    made = []

    def factory(width, hidden):
        made.append((width, hidden))
        return nn.Identity()

    model = transformer(feed_forward=factory)
    assert made == [(6, 14)] * 3
    assert model.feed_forward_blocks() == []
    assert model(X).shape == (7, 5, 11)


def test_sizes_that_do_not_fit_are_told():
    with pytest.raises(ValueError, match="3 heads and width 8"):
        transformer(width=8, n_heads=3)
    with pytest.raises(ValueError, match=r"`activation` must be one of relu, gelu, silu; got 'step'"):
        transformer(activation="step")
    with pytest.raises(ValueError, match="reads 8 tokens at most, got 9"):
        transformer()(torch.zeros(1, 9, dtype=torch.int64))


def test_batches_are_passages_and_what_follows():
    text = CharacterText.of("abcdefghijklmnopqrstuvwxyz", validation=0.4)
    assert text.decoded(text.train) + text.decoded(text.validation) == "abcdefghijklmnopqrstuvwxyz"
    assert len(text.validation) == 10
    generator = torch.Generator().manual_seed(0)
    x, y = text.batch(200, 5, generator=generator)
    assert x.shape == y.shape == (200, 5)
    assert torch.equal(x + 1, y)
    assert set(x[:, 0].tolist()) == set(range(11))  # every place where a passage can begin
    state = generator.get_state()
    later = text.batch(3, 5, generator=generator)[0]
    generator.set_state(state)
    assert torch.equal(later, text.batch(3, 5, generator=generator)[0])


def test_windows_are_spread_over_the_validation_text():
    text = CharacterText.of("abcdefghijklmnopqrstuvwxyz", validation=0.4)
    x, y = text.windows(3, 4)
    assert [text.decoded(row) for row in x] == ["qrst", "stuv", "vwxy"]
    assert [text.decoded(row) for row in y] == ["rstu", "tuvw", "wxyz"]
    assert text.decoded(text.windows(1, 4)[0][0]) == "qrst"


@pytest.mark.parametrize("share", [0.0, 1.0, float("nan")])
def test_both_parts_hold_something(share):
    with pytest.raises(ValueError, match="between 0 and 1"):
        CharacterText.of("abc", validation=share)
