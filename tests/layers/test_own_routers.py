"""Faults of a router that a user writes: an error, and never a read past an array."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from sparsact import routing
from sparsact.layers import LSHLayer, MixtureOfExperts, SparselyActivatedLayer, clip_gradients
from sparsact.layers.gather import gather_dot, gather_sum, scatter_outer


@dataclass(frozen=True)
class Fixed(routing.Router):
    """The same places for every input, or what ``made`` returns for the inputs."""

    name = "fixed"
    made: Any

    def width(self, in_features):
        return 8

    def max_active(self, in_features):
        return 2

    def flops(self, in_features):
        return 0

    def select(self, x, state, *, training=False):
        return self.made(x)


def indices_of(x, k=2):
    return torch.arange(k).expand(len(x), k).contiguous()


LAYERS = {
    "mixture": lambda router: MixtureOfExperts(4, 16, router=router),
    "sparse": lambda router: SparselyActivatedLayer(4, 8, 4, router=router, method="sparse"),
    "dense": lambda router: SparselyActivatedLayer(4, 8, 4, router=router, method="dense"),
    "lsh": lambda router: LSHLayer(4, 4, router=router),
}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("columns", [1, 3])
def test_weights_of_another_shape_than_the_indices_raise(layer, columns):
    router = Fixed(lambda x: routing.Selection.of(indices_of(x), torch.ones(len(x), columns), 8))
    with pytest.raises(ValueError, match=rf"\(64, {columns}\).*\(64, 2\).*expand\(64, 2\)"):
        LAYERS[layer](router)(torch.randn(64, 4))


def test_every_way_to_make_a_selection_checks_the_shapes():
    indices, narrow = np.zeros((5, 2), np.int64), np.ones((5, 1))
    good = routing.Selection.of(indices, np.ones((5, 2)), 3)
    for make in (
        lambda: routing.Selection.of(indices, narrow, 3),
        lambda: routing.Selection(indices, narrow, None, 0.0, good.counts, good.dropped),
        lambda: routing.Selection.of(indices[:, 0], narrow[:, 0], 3),
    ):
        with pytest.raises(ValueError, match="`weights` has shape"):
            make()


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("kind", ["expanded", torch.float64, torch.int64, torch.bfloat16])
def test_weights_of_any_kind_count_as_ones(layer, kind):
    def made(weights):
        return Fixed(lambda x: routing.Selection.of(indices_of(x), weights(x), 8))

    x = torch.randn(6, 4)
    layer = LAYERS[layer](made(lambda x: torch.ones(len(x), 2)))
    expected = layer(x)
    one = (lambda x: torch.ones(len(x), 1).expand(-1, 2)) if kind == "expanded" else None
    layer.routing.router = made(one or (lambda x: torch.ones(len(x), 2, dtype=kind)))
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])  # with a kernel, and without
def test_products_check_their_operands(dtype):
    indices = torch.zeros(6, 2, dtype=torch.int64)
    a, x, rows = torch.ones(6, 2, dtype=dtype), torch.ones(6, 3, dtype=dtype), torch.ones(5, 3, dtype=dtype)
    for product in (
        lambda: gather_dot(x[:2], rows, indices),
        lambda: gather_dot(x[:, :2], rows, indices),
        lambda: gather_sum(a[:, :1], rows, indices),
        lambda: gather_sum(a[:2], rows, indices),
        lambda: scatter_outer(a[:, :1], x, indices, 5),
        lambda: scatter_outer(a, x[:2], indices, 5),
    ):
        with pytest.raises(ValueError, match="must have shape"):
            product()


@dataclass(frozen=True)
class Misnamed(Fixed):
    """Trains a state that it does not have."""

    trainable = ("gat",)

    def initial_state(self, in_features, *, rng):
        return {"gate": rng.normal(size=(8, in_features))}


def test_a_trainable_entry_that_the_state_lacks_is_named():
    with pytest.raises(ValueError, match=r"'gat'.* initial_state has gate"):
        MixtureOfExperts(4, 16, router=Misnamed(None))


WRONG = {
    "chose 3 units; .* max_active = 2": lambda x: routing.Selection.of(indices_of(x, 3), torch.ones(len(x), 3), 8),
    "returned 1 rows for 6 inputs": lambda x: routing.Selection.of(indices_of(x[:1]), torch.ones(1, 2), 8),
    r"topk.* use Selection\.of": lambda x: torch.topk(x, 2),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_select_may_not_return(message):
    router = Fixed(WRONG[message])
    for call in (router, LAYERS["mixture"](router), LAYERS["lsh"](router).eval()):
        with pytest.raises((TypeError, ValueError), match=message):
            call(torch.randn(6, 4))


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_on_the_meta_device_says_how_to_load_it(layer):
    with torch.device("meta"):
        empty = LAYERS[layer](routing.Tree(3))
    for device in ("cpu", "meta"):
        with pytest.raises(RuntimeError, match=r"meta device; .*assign=True.* to_empty"):
            empty(torch.zeros(2, 4, device=device))
    empty.load_state_dict(LAYERS[layer](routing.Tree(3)).state_dict(), assign=True)
    assert empty(torch.zeros(2, 4)).shape == (2, 4)


MISTAKES = {
    "did you mean capacity_factor": lambda: MixtureOfExperts(4, 16, n_experts=4, capacity=1.25),
    r"routing\.TopK\(64\)": lambda: SparselyActivatedLayer(4, 8, 4, router="top_k"),
    "pass SoftmaxTopK": lambda: MixtureOfExperts(4, 16, router=routing.TopK(2)),
    "pass the model itself": lambda: clip_gradients(torch.nn.Linear(2, 2).parameters(), 1.0),
}


@pytest.mark.parametrize("remedy", MISTAKES)
def test_first_mistakes_are_told_the_remedy(remedy):
    with pytest.raises((TypeError, ValueError), match=remedy):
        MISTAKES[remedy]()
