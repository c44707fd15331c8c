"""Compiled, a sparse model reads only active units too, and returns what the dense model returns."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from sparse_models import assert_same, both, gated, gated_up_first, plain, rows
from torch.nn.utils.parametrizations import weight_norm

from sparsact.inference import densify
from sparsact.inference.sparse_linear import SparseDown

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # of torch's own code
MAKES = [plain, gated, gated_up_first]
BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]
backends = pytest.mark.parametrize("backend", BACKENDS)


@pytest.fixture(autouse=True)
def _nothing_compiled():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(model, backend="aot_eager", **options):
    return torch.compile(model, backend=backend, fullgraph=True, **options)


@backends
@pytest.mark.parametrize("method", ["exact", "certified"])
@pytest.mark.parametrize("make", MAKES)
@torch.no_grad()
def test_one_graph_computes_sparsely_for_few_rows_and_densely_for_many(make, method, backend):
    model, dense = both(make, method)
    run, state = compiled(model, backend, dynamic=True), model.down._sparse
    for m, sparse in ((2, 1), (1, 1), (7, 1), (40, 0)):
        before = state.sparse_calls
        x = rows(m, dense)
        assert_same(run(x), dense(x))
        assert state.sparse_calls - before == sparse


@backends
def test_gradients_are_those_of_the_dense_model(backend):
    model, dense = both(gated)
    x = rows(2, dense)
    with torch.no_grad():
        compiled(model, backend)(x)  # a graph without gradients comes first
    for one in (compiled(model, backend), dense):
        one(x).square().sum().backward()
    for mine, its in zip(model.parameters(), dense.parameters(), strict=True):
        assert_same(mine.grad, its.grad)


@backends
@torch.no_grad()
def test_weights_that_change_after_compilation(backend):
    (model, dense), other = both(plain), plain(seed=11)
    run, x = compiled(model, backend), rows(1, dense)
    run(x)
    model.load_state_dict(other.state_dict())
    assert_same(run(x), other(x))
    model.down.weight.data.mul_(3)  # a write that torch does not count
    other.down.weight.mul_(3)
    model.eval()
    assert_same(run(x), other(x))
    model.down.weight = torch.nn.Parameter(dense.down.weight.clone())
    other.down.weight.copy_(dense.down.weight)
    assert_same(run(x), other(x))


@torch.no_grad()
def test_hooks_that_come_after_compilation_get_whole_pre_activations():
    model, dense = both(plain)
    x = rows(1, dense)
    compiled(model)(x)
    for one in (model, dense):
        one.up.register_forward_hook(lambda module, args, output: output + 3)
    torch._dynamo.reset()  # torch itself does not look for hooks again
    assert_same(compiled(model)(x), dense(x))


@pytest.mark.parametrize("again", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@torch.no_grad()
def test_a_copy_runs_its_own_layers_in_the_same_graph(again):
    model, dense = both(gated)
    x = rows(1, dense)
    compiled(model)(x)
    other, calls = again(model), model.down._sparse.calls
    for parameter in model.parameters():
        parameter.zero_()
    assert_same(compiled(other)(x), dense(x))
    assert model.down._sparse.calls == calls
    assert other.down._sparse.sparse_calls == model.down._sparse.sparse_calls + 1


@torch.no_grad()
def test_layers_of_one_shape_share_a_graph():
    from torch._dynamo.testing import CompileCounter

    models = [both(plain)[0] for _ in range(3)]
    counter, x = CompileCounter(), rows(1, plain())
    for model in models:
        model.down.compile(backend=counter)
        model(x)
        assert model.down._sparse.sparse_calls
    assert counter.frame_count == 1


@torch.no_grad()
def test_parameters_that_the_graph_computes_are_the_ones_used():
    model, dense = both(plain, "exact")
    for one in (model, dense):
        weight_norm(one.down)
    x = rows(2, dense)
    assert_same(compiled(model)(x), dense(x))


WITHIN = {
    "vmap": lambda model, x: lambda y: torch.vmap(model)(y),
    "jvp": lambda model, x: lambda y: torch.func.jvp(model, (y,), (x,))[1],
    "grad": lambda model, x: torch.func.grad(lambda y: model(y).sum()),
}


@pytest.mark.parametrize("name", WITHIN)
@torch.no_grad()
def test_transforms_inside_a_compiled_function(name):
    model, dense = both(gated)
    x, y = rows(2, dense, seed=1), rows(2, dense, seed=2)
    assert_same(compiled(WITHIN[name](model, x))(y), WITHIN[name](dense, x)(y))


@torch.no_grad()
def test_autocast_and_inference_mode():
    model, dense = both(gated)
    x = rows(2, dense)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(compiled(model)(x), dense(x))
    with torch.inference_mode():
        assert_same(compiled(model)(x), dense(x))
    assert model.down._sparse.sparse_calls


@pytest.mark.parametrize("strict", [False, True])
@torch.no_grad()
def test_an_exported_program_is_dense_and_runs_alone(strict):
    model, dense = both(gated)
    x = rows(2, dense)
    program = torch.export.export(model, (x,), strict=strict)
    assert "sparsact" not in str(program.graph)
    assert torch.equal(program.module()(x), dense(x))


@torch.no_grad()
def test_densify_makes_the_compiled_model_dense():
    model, dense = both(plain)
    run, x = compiled(model), rows(1, dense)
    run(x)
    assert isinstance(model.down, SparseDown)
    densify(model)
    assert torch.equal(run(x), dense(x))
