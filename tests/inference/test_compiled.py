"""Compiled, a sparse model reads only active units too, and returns what the dense model returns."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from grids import few_of
from sparse_models import assert_same, both, gated, gated_up_first, plain, reads, rows, squared
from torch.nn.utils.parametrizations import weight_norm

from sparsact.inference import compiled as graphs
from sparsact.inference import densify, sparsify
from sparsact.inference.selectors import ActiveInputs

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # of torch's own code
MAKES = [plain, gated, gated_up_first]
BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]
QUICK_BACKENDS = BACKENDS[:2]
backends = pytest.mark.parametrize("backend", BACKENDS)


@pytest.fixture(autouse=True)
def _nothing_compiled():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(model, backend="aot_eager", **options):
    return torch.compile(model, backend=backend, fullgraph=True, **options)


@pytest.mark.parametrize(
    ("make", "method", "backend"),
    few_of(
        [(make, method, backend) for make in MAKES for method in ("exact", "certified") for backend in QUICK_BACKENDS],
        [
            (plain, "exact", "eager"),
            (gated_up_first, "exact", "aot_eager"),
            (gated, "certified", "aot_eager"),
        ],
    ),
)
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
@pytest.mark.grid
def test_gradients_match_the_dense_model(backend):
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


@pytest.mark.grid
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
    assert reads(model.down, ActiveInputs)
    densify(model)
    assert torch.equal(run(x), dense(x))


@pytest.mark.slow  # inductor calls a C++ compiler
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@torch.no_grad()
def test_inductor_calls_the_layer_directly_where_its_code_is_known(mode, known, monkeypatch):
    calls, direct = [], graphs.linear
    monkeypatch.setattr(graphs, "linear", lambda *given: calls.append(given) or direct(*given))
    registry = pytest.importorskip("torch._inductor.codegen.custom_extern_kernel_codegen")
    if not known:
        monkeypatch.setattr(registry, "generate_print_python", lambda node, writeline, wrapper: None)
        monkeypatch.delitem(registry.CUSTOM_EXTERN_KERNEL_CODEGEN, graphs._NAME, raising=False)
    model, dense = both(gated)
    run, x = compiled(model, "inductor", mode=mode), rows(1, dense)
    with torch._functorch.config.patch(enable_autograd_cache=False), torch._inductor.config.patch(fx_graph_cache=False):
        # torch analyses the operators of the first call by a dispatch mode: a direct call within it computes densely.
        assert_same(run(x), dense(x))
    before = model.down._sparse.sparse_calls
    for _ in range(2):
        assert_same(run(x), dense(x))
    assert model.down._sparse.sparse_calls == before + 2
    assert len(calls) == (3 * 3 if known else 0)


@pytest.mark.parametrize("backend", few_of(QUICK_BACKENDS, ["aot_eager"]))
@pytest.mark.parametrize("keep_weights", [True, False])
@pytest.mark.parametrize("weights", ["int8", "int4"])
@pytest.mark.parametrize("make", few_of([*MAKES, squared], [gated]))
@torch.no_grad()
def test_quantised_layers_compute_with_integers(make, weights, keep_weights, backend):
    model = make()
    x = rows(3, model)
    sparsify(
        model, "exact", [rows(1, model, seed=seed) for seed in range(8)], weights=weights, keep_weights=keep_weights
    )
    expected, state = model(x), model.down._sparse
    run, before = compiled(model, backend, dynamic=True), state.sparse_calls
    assert torch.equal(run(x), expected)
    assert torch.equal(run(x[1:]), model(x[1:]))
    assert state.sparse_calls - before == 3


@torch.no_grad()
def test_an_input_of_the_wrong_width_is_refused_as_by_a_dense_layer():
    model, dense = both(plain)
    compiled(model)(rows(1, dense))
    with pytest.raises((RuntimeError, torch._dynamo.exc.TorchRuntimeError)):
        compiled(model.down)(torch.zeros(1, 3))


@torch.no_grad()
def test_the_operator_finds_its_layer_and_passes_torchs_checks():
    model, dense = both(plain)
    layer, h = model.down, torch.zeros(2, 70)
    h[:, 3] = 1.5
    for handle in (layer._sparse.handle, layer._sparse.handle.clone()):
        given, calls = (h, layer.weight, layer.bias, handle, 18), layer._sparse.sparse_calls
        assert_same(torch.ops.sparsact.linear(*given), dense.down(h))
        assert layer._sparse.sparse_calls == calls + 1
        torch.library.opcheck(graphs._OPERATOR, given)
        other = layer.weight * 2, layer.bias
        assert_same(graphs.linear(h, *other, handle, 18), torch.nn.functional.linear(h, *other))
