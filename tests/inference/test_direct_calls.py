"""Layers that call their kernel at once while nothing changes: when they do, and what ends it."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from sparse_models import Block, plain, rows
from torch import nn

from sparsact.inference import sparsify
from sparsact.inference.sparse_linear import LayerCall
from sparsact.kernels import dispatch

pytestmark = pytest.mark.skipif(LayerCall is None, reason="torch before 2.10, or no native kernels: nothing is direct")
KINDS = {"certified": {"method": "certified"}, "int8": {"method": "exact", "weights": "int8"}}
every = pytest.mark.parametrize("kind", KINDS)


def called(kind: str, make=plain) -> tuple[Block, torch.Tensor]:
    """A model after a call, and an input of it."""
    model = make()
    sparsify(model, inputs=rows(64, model), **KINDS[kind])
    x = rows(2, model, seed=3)
    with torch.no_grad():
        model(x)
    return model, x


def in_full(model: Block, x: torch.Tensor) -> torch.Tensor:
    """What the model returns if all is asked again."""
    for layer in (model.up, model.down):
        layer._sparse.direct = None
    return model(x)


@every
def test_the_second_call_asks_nothing_in_full(kind, monkeypatch):
    model, x = called(kind)
    with torch.no_grad():
        batches = x, x[0], x.view(2, 1, -1), x.expand(3, *x.shape).contiguous()
        wanted = [in_full(model, batch) for batch in batches]
        in_full(model, x)
        for layer in (model.up, model.down):
            monkeypatch.setattr(type(layer), "eligible_rows", None)
        before = model.down._sparse.sparse_calls
        for batch, outputs in zip(batches, wanted, strict=True):
            assert torch.equal(model(batch), outputs)
        assert model.down._sparse.sparse_calls == before + len(batches)


def written(model, x):
    with torch.no_grad():
        model.down.weight.mul_(2)
        model.up.bias.add_(0.5)


def moved(model, x):
    model.down.weight.data = 3 * model.down.weight
    model.up.weight = nn.Parameter(model.up.weight + 0.1)


def stepped(model, x):
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    torch.optim.Adam(model.parameters(), lr=0.1, fused=True).step()


@every
@pytest.mark.parametrize("change", [written, moved, stepped])
def test_other_weights(kind, change):
    model, x = called(kind)
    with torch.no_grad():
        before = model(x)
    change(model, x)
    with torch.no_grad():
        after = model(x)
        assert not torch.allclose(after, before)
        assert torch.equal(after, in_full(model, x))


def test_writes_that_torch_does_not_count_are_seen_when_their_stripe_is_read():
    """A mismatch that a direct call meets is not forgotten by the call in full that follows."""
    model, x = called("certified")
    with torch.no_grad():
        before = model(x)
        row, unit = (int(place) for place in model.up(x).relu().nonzero()[0])
        model.down.weight.numpy()[5, unit] += 100  # one of several stripes
        stripes = model.down._sparse.version._fingerprint.stripes
        assert stripes > 2
        for _ in range(stripes):
            after = model(x)
        assert abs(after - before)[row, 5] > 1e-3
        assert torch.equal(after, in_full(model, x))


@every
@pytest.mark.parametrize(
    "unusual",
    [
        lambda x: x.bfloat16().float().requires_grad_(),
        lambda x: x.double(),
        lambda x: x.t().contiguous().t(),
        lambda x: x[:0],
        lambda x: x.as_subclass(nn.Parameter),
    ],
    ids=["gradient", "float64", "strided", "no rows", "subclass"],
)
def test_inputs_that_are_not_plain(kind, unusual):
    model, x = called(kind)
    given = unusual(x)
    outcomes = []
    for run in (model, lambda x: in_full(model, x)):
        try:
            outcomes.append(run(given).detach())
        except RuntimeError as error:  # dense layers refuse another dtype
            outcomes.append(str(error))
    assert type(outcomes[0]) is type(outcomes[1])
    assert torch.equal(*outcomes) if isinstance(outcomes[0], torch.Tensor) else outcomes[0] == outcomes[1]


def test_hooks_and_other_readers_see_all_pre_activations():
    model, x = called("certified")
    model.activation, seen = nn.ReLU(), []
    model, x = called("certified", lambda: plain(activation=nn.ReLU()))
    with torch.no_grad():
        assert (model.up(x) == 0).any()
        handle = model.activation.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
        model(x)
        handle.remove()
        torch.testing.assert_close(seen[0], nn.functional.linear(x, model.up.weight, model.up.bias))
        model.activation = nn.Identity()  # what it receives must not miss anything
        wanted = nn.functional.linear(x, model.up.weight, model.up.bias)
        torch.testing.assert_close(model(x), nn.functional.linear(wanted, model.down.weight, model.down.bias))


@every
def test_models_are_freed(kind):
    model, _ = called(kind)
    gone = weakref.ref(model.up)
    del model
    gc.collect()
    assert gone() is None


def test_reference_kernels_are_asked_in_full():
    with dispatch.using("reference"):
        model, _ = called("certified")
        assert model.down._sparse.direct is None


def test_limits_end_it():
    model, x = called("certified")
    assert model.down._sparse.direct is not None
    model.down._sparse.limits = {"max_rows": 1}
    with torch.no_grad():
        before = model.down._sparse.sparse_calls
        model(x)
        assert model.down._sparse.sparse_calls == before
