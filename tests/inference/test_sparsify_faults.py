"""What is done to a sparsified model later, or around it, never makes it wrong in silence."""

from __future__ import annotations

import math
import threading
from itertools import product

import pytest
import torch
from sparse_models import METHODS, assert_same, both, gated, gated_up_first, jump, plain, reads, rows, selectors
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.utils import prune
from torch.nn.utils.parametrizations import weight_norm

from sparsact.inference import densify, find_blocks, plan_of, sparsify
from sparsact.inference.selectors import ActiveInputs, SwitchedOn, WhereGateIsOn
from sparsact.inference.sparse_linear import SparseLinear

MAKES = [plain, gated, gated_up_first]
QUICK = [(plain, "certified"), (gated, "exact"), (gated_up_first, "certified")]  # each model and each method
every = pytest.mark.parametrize(
    ("make", "method"),
    [
        pytest.param(make, method, marks=() if (make, method) in QUICK else pytest.mark.slow)
        for make in MAKES
        for method in METHODS
    ],
)


AROUND = {
    "torch.jit.trace": lambda model, x: torch.jit.trace(model, x, check_trace=False),
    "make_fx": lambda model, x: make_fx(model)(x),
    "torch.fx": lambda model, x: torch.fx.symbolic_trace(model),
    "torch.export": lambda model, x: torch.export.export(model, (x,)).module(),
    "torch.compile": lambda model, x: torch.compile(model, backend="eager", fullgraph=True),
    "vmap": lambda model, x: torch.vmap(model),
    "jvp": lambda model, x: lambda y: torch.func.jvp(model, (y,), (x,))[1],
    "autocast": lambda model, x: torch.autocast("cpu", torch.bfloat16)(model),
    "subclass": lambda model, x: lambda y: model(y.as_subclass(Named)),
}


DEAR = ("torch.export", "torch.compile")


class Named(torch.Tensor):
    pass


@pytest.mark.parametrize(
    ("name", "make", "method"),
    [
        pytest.param(name, make, method, marks=pytest.mark.grid if name in DEAR and make is not gated else ())
        for name in AROUND
        for make, method in QUICK
    ]
    + [
        pytest.param(name, make, method, marks=pytest.mark.slow)
        for name, make, method in product(AROUND, MAKES, METHODS)
        if (make, method) not in QUICK
    ],
)
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # of torch.jit.trace, and of jvp's own code
def test_what_records_transforms_or_casts_operations_sees_all_of_them(name, make, method):
    x, y = rows(2, make(), seed=1), rows(2, make(), seed=2)
    with torch.no_grad():
        found, wanted = (AROUND[name](model, x)(y) for model in both(make, method))
    assert_same(found, wanted)


def test_fake_tensors_have_no_memory_to_read():
    from torch._subclasses import FakeTensorMode

    model, _ = both(gated, "certified")
    with torch.no_grad(), FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert model(mode.from_tensor(rows(2, model))).shape == (2, 22)


@every
@pytest.mark.parametrize("layer", ["up", "gate", "down"])
@pytest.mark.parametrize("before", [False, True])
def test_hooks_that_change_what_layers_read_or_give(before, layer, make, method):
    models = both(make, method)
    if getattr(models[0], layer) is None:
        pytest.skip("it has no gate")
    for model in models:
        if before:
            getattr(model, layer).register_forward_pre_hook(lambda module, given: (-given[0],))
        else:
            getattr(model, layer).register_forward_hook(lambda module, given, output: output + 3)
    with torch.no_grad():
        assert_same(*(model(rows(3, model)) for model in models))


@pytest.mark.parametrize("make", [plain, gated])
def test_hooks_that_are_there_before_see_all_units(make):
    model, seen = make(), []
    (model.gate or model.up).register_forward_hook(lambda module, given, output: seen.append(output))
    blocks = find_blocks(make(), rows(3, model))
    sparsify(model, "exact", rows(64, model), blocks=blocks)
    assert not {SwitchedOn, WhereGateIsOn} & set(selectors(model))
    assert reads(model.down, ActiveInputs)
    with pytest.raises(ValueError, match="read elsewhere"):
        sparsify(model, "certified", rows(64, model), blocks=blocks)


@every
@pytest.mark.parametrize("layer", ["up", "gate", "down"])
@pytest.mark.parametrize("change", [weight_norm, lambda layer: prune.l1_unstructured(layer, "weight", 0.5)])
def test_weights_that_are_computed_anew(change, layer, make, method):
    models = both(make, method)
    if getattr(models[0], layer) is None:
        pytest.skip("it has no gate")
    for model in models:
        change(getattr(model, layer))
    x = rows(3, models[0])
    with torch.no_grad():
        assert_same(*(model(x) for model in models))
        densify(models[0])
        assert not any(isinstance(module, SparseLinear) for module in models[0].modules())
        assert_same(*(model(x) for model in models))


@every
@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("layer", ["up", "gate", "down"])
def test_zero_times_a_weight_that_is_not_finite(layer, bad, make, method):
    models = both(make, method)
    if getattr(models[0], layer) is None:
        pytest.skip("it has no gate")
    with torch.no_grad():
        for model in models:
            getattr(model, layer).weight[5, 3] = bad
        assert_same(*(model(rows(3, model)) for model in models))


@every
def test_zero_times_an_input_that_is_not_finite(make, method):
    def falling():
        model = make()
        with torch.no_grad():
            for layer in filter(None, (model.up, model.gate)):
                layer.weight[:, 0].abs_().neg_()
        return model

    models = both(falling, method)
    x = rows(3, models[0])
    x[1, 0] = math.inf  # every unit is off, at minus infinity
    with torch.no_grad():
        assert_same(*(model(x) for model in models))


@every
def test_weights_that_come_to_lie_where_others_lay(make, method):
    model, dense = both(make, method)
    x = rows(3, model)
    with torch.no_grad():
        model(x)
        for seed in (21, 22, 23):
            dense = make(seed=seed)
            state = {name: value.clone() for name, value in dense.state_dict().items()}
            model.load_state_dict(state, assign=True)
            del state
        assert_same(model(x), dense(x))


def test_what_is_held_is_made_from_memory_that_no_other_weights_take():
    model, _ = both(plain, "exact")
    with torch.no_grad():
        model(rows(1, model))
    address = model.down.weight.data_ptr()
    model.down.weight.data = torch.empty(0)
    others = [torch.empty(18, 70) for _ in range(50)]
    assert address not in [other.data_ptr() for other in others]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("gate", [False, True])
@pytest.mark.parametrize("assign", [False, True])
def test_thresholds_that_change(assign, gate, method):
    models = both(lambda: jump(gate=gate), method)
    with torch.no_grad():
        for model in models:
            state = {name: value.clone() for name, value in model.state_dict().items()}
            state["activation.theta"].fill_(0.01)
            model.load_state_dict(state, assign=assign)
        found, wanted = (model(rows(8, model)) for model in models)
    assert_same(found, wanted)
    assert not torch.allclose(wanted, jump(gate=gate)(rows(8, models[0])))


def test_thresholds_that_the_model_computes_are_not_relied_on():
    class Computed(nn.Module):
        def __init__(self):
            super().__init__()
            self.log = nn.Parameter(torch.linspace(-2, -1, 47))

        def forward(self, z):
            return torch.where(z > self.log.exp(), z, torch.zeros(z.shape))

    def make():
        model = jump(gate=True)
        model.activation = Computed()
        return model

    model, dense = both(make, "exact")
    assert reads(model.down, ActiveInputs)
    assert not reads(model.gate, SwitchedOn)
    with torch.no_grad():
        for one in (model, dense):
            one.activation.log.sub_(3)
        assert_same(model(rows(8, model)), dense(rows(8, dense)))
    with pytest.raises(ValueError, match="thresholds depend on the input"):
        sparsify(make(), "certified", rows(64, model))


def test_weights_of_inference_mode_are_left_dense():
    with torch.inference_mode():
        model = plain()
    (choice,) = plan_of(sparsify(model, inputs=rows(8, model))).choices
    assert choice.method == "dense"
    assert "counts no writes" in choice.reason


@pytest.mark.parametrize("make", [gated, gated_up_first])
@pytest.mark.parametrize("method", METHODS)
def test_threads_share_a_model(make, method):
    model, dense = both(make, method)
    shared = rows(2, model)
    wrong = []

    def call(seed):
        with torch.no_grad():
            for x in (rows(1, model, seed=seed), shared) * 40:
                wrong.extend([seed] * (not torch.allclose(model(x), dense(x), atol=1e-5)))

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_gate_called_twice_gives_its_pre_activations_twice():
    model, dense = both(gated, "exact")
    x = rows(1, model)
    with torch.inference_mode():
        x = x.clone()
        model.gate(x).relu_()
        assert_same(model.gate(x), dense.gate(x))
        x.add_(1)  # not counted in inference mode
        assert_same(model(x), dense(x))


@pytest.mark.parametrize("make", [gated, gated_up_first])
def test_a_gate_is_computed_once(make):
    """Also where the two layers are given views of the input, in either order."""
    model, _ = both(make, "exact")
    kinds = {"gate": SwitchedOn, "up": WhereGateIsOn}
    assert {name: type(getattr(model, name)._sparse.selector) for name in kinds} == kinds
    calls = []
    compute = SwitchedOn.pre_activations
    x = rows(1, model)
    order = ["gate", "up"] if make is gated else ["up", "gate"]
    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(SwitchedOn, "pre_activations", lambda *given: calls.append(1) or compute(*given))
        for name in order:
            getattr(model, name)(x.view(1, -1))
    assert len(calls) == 1


def test_another_input_for_the_up_projection_than_for_the_gate():
    """A block that was shown one tensor for both is exact for two."""

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = gated()

        def forward(self, x, y):
            block = self.block
            return block.down(block.gate(x).relu() * block.up(y))

    model, dense = Two(), Two()
    x = rows(8, model.block)
    sparsify(model, "exact", (x, x))
    with torch.no_grad():
        y = rows(8, model.block, seed=9)
        assert_same(model(x, y), dense(x, y))


def test_approximations_are_exact_in_training():
    model, dense = plain(), plain()
    sparsify(model, "approximate", rows(800, model), density=0.05)
    x = rows(4, model)
    with torch.no_grad():
        assert not torch.equal(model(x), dense(x))
    assert torch.equal(model(x), dense(x))  # while gradients are recorded
    assert torch.equal(model.train()(x), dense.train()(x))


@pytest.mark.parametrize("method", METHODS)
def test_the_plan_tells_for_how_many_rows_a_method_is_taken(method):
    model, _ = both(plain, method)
    (choice,) = plan_of(model).choices
    x = rows(choice.max_rows + 1, model)
    with torch.no_grad():
        assert choice.max_rows == 16
        for shown, calls in ((x[1:], 1), (x, 0)):
            before = model.down._sparse.sparse_calls
            model(shown)
            assert model.down._sparse.sparse_calls - before == calls
