"""What torch.func, narrow dtypes, padding of any numbers and batches of any size do to routed layers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from expert_layers import NAMES, hidden, inputs, layer, n
from grids import few_of, grid
from torch.autograd import forward_ad
from torch.func import functional_call, grad, jacfwd, jacrev, jvp, vmap

from sparsact import routing
from sparsact.layers import (
    BlockSparseFeedForward,
    LSHLayer,
    MixtureOfExperts,
    ProductKeyMemory,
    SparselyActivatedLayer,
    routing_losses,
    update_biases,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning"),  # of torch's forward mode
    pytest.mark.filterwarnings("ignore:torch.searchsorted"),  # of columns that vmap has moved
]
made = {"dtype": torch.float64, "generator": torch.Generator().manual_seed(3)}
LAYERS = {
    **{name: lambda name=name: layer(name, bias=True, n_shared=1) for name in NAMES},
    "top-k units": lambda: SparselyActivatedLayer(n, 12, 5, router=routing.TopK(3), method="sparse", **made),
    "units of hashes": lambda: SparselyActivatedLayer(
        n, 16, 5, router=routing.RandomHash(3, 4), method="sparse", **made
    ),
    "buckets": lambda: LSHLayer(n, 5, router=routing.HyperplaneLSH(3, n_tables=2), degree=1, **made),
}


@pytest.mark.grid
@grid(name=list(LAYERS))
def test_transforms_of_torch_func_are_derivatives(name):
    """Forward and reverse mode, by inputs and by parameters, are what the backward pass computes."""
    moe, x, direction = LAYERS[name]().eval(), inputs(5), inputs(5, seed=7)
    wanted = torch.autograd.functional.jacobian(moe, x)
    assert wanted.abs().max() > 0.01 or name == "buckets"  # whose values are zeros at first
    torch.testing.assert_close(jacrev(moe)(x), wanted)
    torch.testing.assert_close(jacfwd(moe)(x), wanted)
    value, along = jvp(moe, (x,), (direction,))
    torch.testing.assert_close(value, moe(x))
    torch.testing.assert_close(along, torch.einsum("mojd,jd->mo", wanted, direction))
    for trained in (True, False):  # without torch.func; also where nothing needs gradients
        with forward_ad.dual_level():
            tangent = forward_ad.unpack_dual(moe.requires_grad_(trained)(forward_ad.make_dual(x, direction))).tangent
            torch.testing.assert_close(tangent, along)
    moe.requires_grad_(True)

    parameters = {key: value.detach() for key, value in moe.named_parameters()}
    found = grad(lambda own: functional_call(moe, own, (x,)).square().sum())(parameters)
    moe(x).square().sum().backward()
    for key, parameter in moe.named_parameters():
        backward = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        torch.testing.assert_close(found[key], backward)


@grid(name=list(LAYERS))
def test_many_gradients_at_once(name):
    """By torch.autograd's batches, by torch.func and one after the other."""
    moe, x = LAYERS[name]().train(), inputs(5).requires_grad_()
    y = moe(x)
    weights = torch.randn(3, *y.shape, dtype=y.dtype, generator=torch.Generator().manual_seed(5))
    wanted = torch.stack([torch.autograd.grad(y, x, one, retain_graph=True)[0] for one in weights])
    batched = torch.autograd.grad(y, x, weights, is_grads_batched=True, retain_graph=True)[0]
    torch.testing.assert_close(batched, wanted)
    mapped = vmap(lambda one: torch.autograd.grad(y, x, one, retain_graph=True)[0])(weights)
    torch.testing.assert_close(mapped, wanted)


@pytest.mark.grid
@pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec.` is deprecated:FutureWarning")  # of torch.export
def test_transforms_and_exports_count_no_load():
    moe, x = layer("sigmoid").train(), inputs(5)
    parameters = {key: value.detach() for key, value in moe.named_parameters()}
    grad(lambda own: functional_call(moe, own, (x,)).square().sum())(parameters)
    vmap(grad(lambda own, row: functional_call(moe, own, (row[None],)).sum()), (None, 0))(parameters, x)
    program = torch.export.export(moe, (x,)).run_decompositions().module()
    program(x)
    assert not moe.load.any()
    with torch.inference_mode():
        moe.load = torch.zeros_like(moe.load)
    moe(x)
    assert moe.load.sum() == moe.route(x).counts.sum()


@pytest.mark.parametrize("name", ["top_k", "hyperplane_lsh", "tree"])
def test_models_side_by_side(name):
    moes, x = [layer(name, generator=torch.Generator().manual_seed(seed)).eval() for seed in (1, 2)], inputs(5)
    stacked = {key: torch.stack([moe.state_dict()[key] for moe in moes]) for key in moes[0].state_dict()}
    found = vmap(lambda own: functional_call(moes[0], own, (x,)))(stacked)
    torch.testing.assert_close(found, torch.stack([moe(x) for moe in moes]))


@pytest.mark.grid
@pytest.mark.parametrize("name", few_of(["top_k", "switch", "sigmoid", "block_top1"], ["top_k"]))
def test_one_graph_serves_batches_of_any_size(name):
    torch._dynamo.reset()
    plain = {"load_balance": 0, "z_loss": 0} if name == "top_k" else {"load_balance": 0} if name == "switch" else {}
    moe, graphs = layer(name, **plain), []

    def backend(graph, example):
        graphs.append(graph)
        return graph

    compiled = torch.compile(moe, fullgraph=True, dynamic=True, backend=backend)
    for m in (5, 7, 64, 257, 300):
        torch.testing.assert_close(compiled(inputs(m)), moe(inputs(m)))
    assert len(graphs) <= 2


BLOCKS = {
    "units": lambda: SparselyActivatedLayer(n, 12, 5, router=routing.TopK(3), dtype=torch.float64),
    "blocks": lambda: BlockSparseFeedForward(n, 12, 3, dtype=torch.float64),
}


GROUPS = {
    "top_k in groups": lambda: layer("top_k", eval_capacity_factor=0.7, group_size=4),
    "switch with room": lambda: layer("switch", eval_capacity_factor=0.9),
    "expert_choice in groups": lambda: layer("expert_choice", group_size=4),
}


class RoutedByItself(torch.nn.Module):
    """A mixture whose router sees its tokens as ``route_by``."""

    def __init__(self, moe):
        super().__init__()
        self.moe = moe

    def forward(self, x):
        return self.moe(x, route_by=x)


MEMORIES = {"product keys": lambda: ProductKeyMemory(6, n, 3, 2, sparse=False, **made)}


def exportable(name, dtype=torch.float64):
    moe = (LAYERS | GROUPS | BLOCKS | MEMORIES)[name]().eval().to(dtype)
    return RoutedByItself(moe) if name == "hash_table" else moe


EXPORTED = [*NAMES, *GROUPS, "buckets", "units of hashes", "top-k units", *BLOCKS]
IN_ONNX = [name for name in [*EXPORTED, *MEMORIES] if "hash" not in name]  # which reads bits of floats
QUICK = {"top_k", "buckets"}  # each takes a second


@pytest.mark.parametrize("name", few_of(EXPORTED, QUICK))
@pytest.mark.grid
def test_exported_programs_take_batches_of_any_size(name):
    """Whether the example has few tokens, one group of them, or many."""
    moe = exportable(name)
    for example in (3, 300):
        shapes = ({0: torch.export.Dim("m", min=2)},)
        exported = torch.export.export(moe, (inputs(example),), dynamic_shapes=shapes).module()
        for m in (2, 7, 301):
            torch.testing.assert_close(exported(inputs(m)), moe(inputs(m)))


def own_operators(program):
    graphs = [each.graph for each in program.graph_module.modules() if isinstance(each, torch.fx.GraphModule)]
    return {str(node.target) for graph in graphs for node in graph.nodes if "sparsact." in str(node.target)}


@pytest.mark.grid
@pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec.` is deprecated:FutureWarning")  # of torch.export
@pytest.mark.parametrize("name", few_of([*EXPORTED, *MEMORIES], {"top_k"}))
def test_operators_decompose_into_torch_operators(name):
    """Some exporters need that: their format has no operators of ours."""
    moe, x, shapes = exportable(name), inputs(5), ({0: torch.export.Dim("m", min=2)},)
    table = {key: value for key, value in torch._decomp.decomposition_table.items() if key.namespace == "sparsact"}
    program = torch.export.export(moe, (x,), dynamic_shapes=shapes)
    assert own_operators(program) or name == "buckets"
    program = program.run_decompositions(table)
    assert not own_operators(program)
    for m in (2, 7, 301):
        torch.testing.assert_close(program.module()(inputs(m)), moe(inputs(m)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of the exporter
@pytest.mark.parametrize("name", few_of(IN_ONNX, {"top_k", "product keys"}))
def test_onnx_runtime_computes_what_the_layer_does(name, tmp_path):
    pytest.importorskip("onnxscript")
    runtime, moe = pytest.importorskip("onnxruntime"), exportable(name, torch.float32)
    shapes = ({0: torch.export.Dim("m", min=2)},)
    program = torch.onnx.export(moe, (inputs(5).float(),), dynamo=True, dynamic_shapes=shapes, verbose=False)
    program.save(tmp_path / "layer.onnx")
    session = runtime.InferenceSession(tmp_path / "layer.onnx")
    for m in (2, 7, 301):
        x = inputs(m).float()
        (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        torch.testing.assert_close(torch.from_numpy(found), moe(x), rtol=1e-4, atol=1e-5)


@grid(name=["top_k", "switch", "sigmoid"], training=[True, False], group_size=[None, 5])
def test_rooms_hold_what_experts_take(name, training, group_size):
    """The bound of a layer's memory is one on what a batch takes, in groups that are not full too."""
    router = layer(
        name, capacity_factor=0.6, eval_capacity_factor=0.9, group_size=group_size, z_loss=0, load_balance=0
    ).routing.router
    for m in (1, 3, 5, 13, 20):
        state = router.initial_state(n, rng=np.random.default_rng(m))
        taken = (router.select(inputs(m).numpy(), state, training=training).indices >= 0).sum()
        assert taken <= router.most_taken(m, training=training)


def outcome(moe, tokens, mask, real):
    """Output and gradient of each token that is ``real``, the loss, and the gradients of all parameters."""
    tokens = tokens.clone().requires_grad_()
    routed = {"route_by": tokens.detach()} if moe.routing.router.name == "hash_table" else {}
    moe.zero_grad()
    with routing_losses(moe) as losses:
        y = moe(tokens, **routed, **({} if mask is None else {"mask": mask}))
    (y.square().sum() + y.sum() + losses.total).backward()
    assert not y[~real].any()
    assert not tokens.grad[~real].any()
    gradients = [p.grad for p in moe.parameters() if p.grad is not None]
    return [y.detach()[real], tokens.grad[real], losses.total.detach(), *gradients]


PADDED = {"shared": {"n_shared": 2}, "biases": {"bias": True}, "gelu": {"activation": "gelu", "n_shared": 1}}
PADDED |= {"never 0": {"activation": lambda z: torch.cos(z), "n_shared": 1}, "jitter": {}}


@pytest.mark.grid
@grid(name=[*NAMES, "one", "one in groups"], kind=list(PADDED), padding=[torch.nan, 1e300])
def test_padding_may_hold_anything(name, kind, padding):
    """Outputs and gradients are the same as for the tokens alone, without padding."""
    options = dict(PADDED[kind])
    if name.startswith("one"):
        options |= {"n_active": 1, "capacity_factor": 0.9} | ({"group_size": 4} if name == "one in groups" else {})
    moe = layer("top_k" if name.startswith("one") else name, **options)
    mask = torch.tensor([True, False, True, True, True, False])
    if name == "one in groups":  # of 4 tokens with padding and without
        mask = torch.tensor([True, True, True, True, False, False])
    x = inputs(6)
    if kind == "jitter":
        wanted = outcome(moe, x.masked_fill(~mask[:, None], 0), mask, mask)
    else:
        wanted = outcome(moe, x[mask], None, torch.ones(4, dtype=torch.bool))
    wanted = [one.clone() for one in wanted]
    found = outcome(moe, x.masked_fill(~mask[:, None], padding), mask, mask)
    for plain, padded in zip(wanted, found, strict=True):
        torch.testing.assert_close(padded, plain, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["top_k", "expert_choice", "random_hash"])
def test_padding_counts_in_no_statistic(name):
    moe, x = layer(name), inputs(4, 10)
    mask = torch.arange(10).expand(4, 10) < 2
    with routing_losses(moe) as losses:
        moe(x, mask=mask)
    (its,) = losses.statistics.values()
    assert its.n_inputs == 8
    assert its.n_missed == 0 or its.n_dropped
    assert its.n_dropped <= 8
    assert its.n_places == 8 * losses.selections[""][0].indices.shape[1]


def test_experts_that_choose_their_inputs_miss_none():
    statistics = routing.RoutingStatistics.of(layer("expert_choice").route(inputs(30)))
    assert (statistics.n_missed, statistics.miss_rate) == (0, 0.0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_biases_balance_in_models_of_narrow_dtype(dtype):
    moe = MixtureOfExperts(n, hidden, n_experts=2, n_active=1, router="sigmoid", bias_rate=0.001).to(dtype)
    moe.routing.bias.copy_(torch.tensor([0.6, 0.5]))
    moe.load = torch.tensor([70_001, 70_000])
    update_biases(moe)
    torch.testing.assert_close(moe.routing.bias, torch.tensor([0.599, 0.501]))
    again = MixtureOfExperts(n, hidden, n_experts=2, n_active=1, router="sigmoid", dtype=dtype)
    again.load_state_dict(moe.state_dict())
    assert torch.equal(again.routing.bias, moe.routing.bias)
    assert again.routing.gate.dtype == dtype
    assert again.double().routing.bias.dtype == torch.float64


def test_a_table_that_names_no_expert_is_refused():
    moe = MixtureOfExperts(n, hidden, n_experts=4, router="hash_table", n_tokens=3)
    moe.routing.table.copy_(torch.tensor([[1], [4], [2]]))
    with pytest.raises(IndexError, match=r"must name units in range\(4\), or -1; got 1 to 4"):
        moe(inputs(3, dtype=torch.float32), route_by=torch.arange(3))


def test_rooms_are_not_rounded_past_a_whole_number():
    assert routing.SoftmaxTopK(10, 1, capacity_factor=1.1).capacity(100, training=True) == 11
    assert routing.SoftmaxTopK(8, 2, capacity_factor=1.1).capacity(400, training=True) == 110
    assert routing.SoftmaxTopK(8, 2, capacity_factor=1.1).capacity(401, training=True) == 111


def test_operations_of_experts_that_choose_count_their_mean_number():
    moe = MixtureOfExperts(n, hidden, n_experts=4, n_active=2, router="expert_choice")
    assert 2 * moe.flops(10).active == moe.flops(10).dense
