"""What every layer promises, whatever it computes: shapes, parameters of a seed, files, copies, compilers and casts."""

import copy
import io

import pytest
import torch
from grids import few_of, grid

from sparsact.layers import (
    BlockSparseFeedForward,
    HashMemory,
    LSHLayer,
    MixtureOfExperts,
    ProductKeyMemory,
    SparselyActivatedLayer,
    SwitchLayer,
)
from sparsact.routing import HyperplaneLSH, Nearest, RandomHash, Switch, TopK, Tree

n = 7


class LastOfText(HashMemory):
    """A memory whose texts are the first columns of the states that gate it: the last token of each is computed."""

    def forward_with_selection(self, x):
        ids = (8 * x[..., :3]).long() % 11
        y, selection = super().forward_with_selection(ids, context=x[..., None, :])
        return y.squeeze(-2), selection

    def route(self, x):
        return self.forward_with_selection(x)[1]


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
    "choice": lambda **made: MixtureOfExperts(
        n, 6, n_experts=3, n_active=2, router="expert_choice", d_out=5, causal=False, **made
    ),
    "points": lambda **made: SparselyActivatedLayer(n, 12, 5, router=Nearest(2, n_centres=4), **made),
    "n-grams": lambda **made: LastOfText(50, n, sparse=False, **made),
    "product keys": lambda **made: ProductKeyMemory(4, n, 3, 2, sparse=False, **made),
    "blocks": lambda **made: BlockSparseFeedForward(n, 64, 4, **made),
}
OUTPUTS = {"biases": n, "table": n, "blocks": n, "n-grams": n, "product keys": n}  # others have 5


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def filled(name, seed=5, **options):
    """The layer out of training, whose parameters are numbers that differ: zeros of buckets would hide an error."""
    layer = LAYERS[name](generator=seeded(seed), **options).eval()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, generator=seeded(seed))
    return layer


def inputs(*lead, dtype=None):
    return torch.randn(*lead, n, generator=seeded(1)).to(dtype)


@grid(name=list(LAYERS), lead=[(), (0,), (1,), (2, 3), (2, 0)], training=[False, True])
def test_leading_dimensions(name, lead, training):
    layer, x = filled(name).train(training), inputs(*lead)
    with torch.random.fork_rng():
        y, selection = layer.forward_with_selection(x)
    assert y.shape == (*lead, OUTPUTS.get(name, 5))
    assert len(selection.indices) == x.shape[:-1].numel()
    (y.sum() + selection.auxiliary_loss).backward()
    if not training:
        torch.testing.assert_close(y.reshape(-1, y.shape[-1]), layer(x.reshape(-1, n)))


@grid(name=list(LAYERS))
def test_the_selection_that_was_used_is_the_one_of_route(name):
    layer, x = filled(name), inputs(9)
    used, found = layer.forward_with_selection(x)[1], layer.route(x)
    assert torch.equal(used.indices, found.indices)
    assert torch.equal(used.weights, found.weights)


@grid(name=list(LAYERS))
def test_state_is_saved_loaded_and_copied(name):
    layer, other, x, file = filled(name), filled(name, seed=6), inputs(9), io.BytesIO()
    assert not torch.equal(other(x), layer(x))
    torch.save(layer.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    copied = copy.deepcopy(layer)
    assert torch.equal(other(x), layer(x))
    assert torch.equal(copied(x), layer(x))
    for parameter in copied.parameters():
        torch.nn.init.zeros_(parameter)
    assert torch.equal(other(x), layer(x))


@grid(name=list(LAYERS))
def test_a_seed_fixes_the_parameters_and_the_global_generator_is_left_alone(name):
    make, before = LAYERS[name], torch.get_rng_state()
    first, second, other = (make(generator=seeded(seed)) for seed in (3, 3, 4))
    pairs = zip(first.state_dict().values(), other.state_dict().values(), strict=True)
    assert not all(torch.equal(*pair) for pair in pairs)
    other.reset_parameters(seeded(3))
    assert torch.equal(torch.get_rng_state(), before)
    with torch.random.fork_rng():
        torch.manual_seed(9)
        third = make()
        torch.manual_seed(9)
        fourth = make(generator=None)
    for one, two in ((first, second), (first, other), (third, fourth)):
        assert all(map(torch.equal, one.state_dict().values(), two.state_dict().values()))


@grid(name=list(LAYERS))
def test_autocast_computes_in_its_dtype_and_routes_in_the_own(name):
    layer, x = filled(name), inputs(9)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y, selection = layer.forward_with_selection(x)
        y.float().sum().backward()
    assert y.dtype == torch.bfloat16
    assert all(parameter.grad is None or parameter.grad.dtype == torch.float32 for parameter in layer.parameters())
    if name != "top-k":  # it ranks pre-activations, which autocast rounds
        assert selection.auxiliary_loss.dtype == torch.float32
        assert selection.logits is None or selection.logits.dtype != torch.bfloat16
        assert torch.equal(selection.indices, layer.route(x).indices)
        scale = float(layer(x).detach().abs().max())
        torch.testing.assert_close(y.float(), layer(x), rtol=0, atol=0.03 * scale)


@pytest.mark.grid
@pytest.mark.parametrize("name", few_of(LAYERS, ["buckets", "blocks"]))
def test_compiled_without_a_break(name):
    layer, x = filled(name), inputs(9).requires_grad_()
    y, selection = torch.compile(layer.forward_with_selection, fullgraph=True, backend="aot_eager")(x)
    expected = layer(x)
    torch.testing.assert_close(y, expected)
    assert torch.equal(selection.indices, layer.route(x).indices)
    variables = [x, *layer.parameters()]
    pairs = (torch.autograd.grad(one.square().sum(), variables, materialize_grads=True) for one in (y, expected))
    for found, wanted in zip(
        *pairs, strict=True
    ):  # sums of float32 in another order: experts are then not one function
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5 * float(wanted.abs().max()))


@grid(name=list(LAYERS))
def test_other_widths_and_dtypes_are_refused(name):
    layer = filled(name)
    with pytest.raises(ValueError, match="7 features"):
        layer(torch.ones(3, n + 1))
    with pytest.raises(TypeError, match="real numbers"):
        layer(torch.ones(3, n, dtype=torch.int32))


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
    """On the meta device large models are built, and filled or loaded later."""
    make, x, layer = LAYERS[name], inputs(11), filled(name)
    loaded = build(make).eval()
    assert all(tensor.is_meta for tensor in loaded.state_dict().values())
    loaded.load_state_dict(layer.state_dict(), assign=True)
    assert torch.equal(loaded(x), layer(x))
    assert {key for key, _ in loaded.named_parameters()} == {key for key, _ in layer.named_parameters()}

    other = build(make).to_empty(device="cpu").eval()
    other.reset_parameters(seeded(5))
    assert torch.equal(other(x), make(generator=seeded(5)).eval()(x))


@pytest.mark.parametrize("build", [by_argument, by_context, by_accelerate])
def test_loads_are_counted_after_loading_and_after_filling(build):
    layer, x = LAYERS["biases"](), inputs(11)
    for made in (build(LAYERS["biases"]), build(LAYERS["biases"]).to_empty(device="cpu")):
        made.load_state_dict(layer.state_dict(), assign=True)
        for times in (1, 2):
            counts = made.forward_with_selection(x)[1].counts
            assert torch.equal(made.load, times * counts)
