"""Layers without numbers, on the meta device: large models are built there, and filled or loaded later."""

import pytest
import torch
from grids import grid

from sparsact.layers import BlockSparseFeedForward, LSHLayer, MixtureOfExperts, SparselyActivatedLayer, SwitchLayer
from sparsact.routing import HyperplaneLSH, RandomHash, Switch, TopK, Tree

n = 7
LAYERS = {
    "top-k": lambda **made: SparselyActivatedLayer(n, 12, 5, router=TopK(3), **made),
    "gate": lambda **made: SparselyActivatedLayer(n, 12, 5, router=Switch(4), **made),
    "hashes": lambda **made: SparselyActivatedLayer(n, 16, 5, router=HyperplaneLSH(3), **made),
    "random hash": lambda **made: SparselyActivatedLayer(n, 16, 5, router=RandomHash(3, 4), **made),
    "tree": lambda **made: SparselyActivatedLayer(n, 16, 5, router=Tree(3), **made),
    "buckets": lambda **made: LSHLayer(n, 5, router=HyperplaneLSH(3, n_tables=2), degree=1, **made),
    "experts": lambda **made: SwitchLayer(n, 6, 5, router=Switch(3), **made),
    "biases": lambda **made: MixtureOfExperts(n, 6, n_experts=3, n_active=2, router="sigmoid", **made),
    "table": lambda **made: MixtureOfExperts(
        n, 6, n_experts=3, router="hash_table", n_tokens=5, route_features=n, **made
    ),
    "blocks": lambda **made: BlockSparseFeedForward(n, 64, 4, **made),
}


def by_argument(make):
    return make(device="meta")


def by_context(make):
    with torch.device("meta"):
        return make()


def by_accelerate(make):
    from accelerate import init_empty_weights

    with init_empty_weights(include_buffers=True):
        return make()


@grid(name=list(LAYERS), build=[by_argument, by_context, by_accelerate])
def test_a_layer_without_numbers_is_filled_or_loaded(name, build):
    make = LAYERS[name]
    x = torch.randn(11, n, generator=torch.Generator().manual_seed(1))
    layer = make(generator=torch.Generator().manual_seed(5)).eval()
    for parameter in layer.parameters():  # zeros of buckets would hide a value that is not loaded
        torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(2))

    loaded = build(make).eval()
    assert all(tensor.is_meta for tensor in loaded.state_dict().values())
    loaded.load_state_dict(layer.state_dict(), assign=True)
    assert torch.equal(loaded(x), layer(x))
    assert {key for key, _ in loaded.named_parameters()} == {key for key, _ in layer.named_parameters()}

    filled = build(make).to_empty(device="cpu").eval()
    filled.reset_parameters(torch.Generator().manual_seed(5))
    assert torch.equal(filled(x), make(generator=torch.Generator().manual_seed(5)).eval()(x))


@pytest.mark.parametrize("build", [by_argument, by_context, by_accelerate])
def test_loads_are_counted_after_loading_and_after_filling(build):
    layer, x = LAYERS["biases"](), torch.randn(11, n, generator=torch.Generator().manual_seed(1))
    loaded, filled = build(LAYERS["biases"]), build(LAYERS["biases"]).to_empty(device="cpu")
    for made in (loaded, filled):
        made.load_state_dict(layer.state_dict(), assign=True)
        for times in (1, 2):
            counts = made.forward_with_selection(x)[1].counts
            assert torch.equal(made.load, times * counts)
