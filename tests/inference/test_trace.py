"""Blocks are found by what a model computes, and what is said of them is what it computes."""

from __future__ import annotations

import subprocess
import sys
import weakref
from contextlib import ExitStack

import pytest
import torch
from grids import few_of
from inference.zoo import Case, Written, X, cases
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from sparsact.inference import find_blocks
from sparsact.inference.batches import call

CASES = list(cases())


def calls(model, batch):
    """What each linear layer of a model in evaluation mode read and gave, call by call."""
    seen = {}

    def note(name):
        def before(module, args, kwargs):
            read = (args[0] if args else kwargs["input"]).clone()
            seen.setdefault(name, []).append([read])

        def after(module, args, output):
            seen[name][-1].append(output.clone())

        return before, after

    with ExitStack() as stack, torch.no_grad():
        for name, module in model.named_modules():
            if isinstance(module, nn.Linear):
                before, after = note(name)
                stack.callback(module.register_forward_pre_hook(before, with_kwargs=True).remove)
                stack.callback(module.register_forward_hook(after).remove)
        call(model.eval(), batch)
    return seen


def check_replay(model, batch, block):
    """f(gate) * up, of what the layers gave, is exactly what ``down`` read, in every call."""
    seen = calls(model, batch)
    switched = seen[block.switch]
    assert len(seen[block.down]) == len(switched) > 0
    for i, (read, _) in enumerate(seen[block.down]):
        hidden = block.activation.function(switched[i][1])
        if block.gate:
            hidden = hidden * seen[block.up][i][1]
        assert hidden.dtype == read.dtype
        assert torch.equal(hidden.reshape(read.shape), read)


def check_thresholds(block, model):
    """Zero up to the threshold, and not for the next number, or not just above it where that would underflow."""
    below = block.activation.zero_below
    assert below.shape == (model.get_submodule(block.up).out_features,)
    for lower in (0, 1e-6, 0.5, 3, 1e4):
        assert not block.activation.function((below - lower).expand(2, 3, -1)).any()
    assert block.activation.function(below + 1e-3).all()


@pytest.mark.parametrize("name", CASES)
def test_blocks_of_the_zoo(name):
    case: Case = cases()[name]
    found = find_blocks(case.model, case.inputs)
    assert [(b.name, b.gate, b.up, b.down, b.activation.name) for b in found] == case.blocks
    for block in found:
        assert block.private == case.private
        check_replay(case.model, case.inputs, block)
        if case.zero_below is None:
            assert block.activation.zero_below is None
        else:
            expected = torch.as_tensor(case.zero_below).expand(model_units(case.model, block))
            assert torch.equal(block.activation.zero_below, expected)
            check_thresholds(block, case.model)


def model_units(model, block):
    return model.get_submodule(block.up).out_features


@pytest.mark.parametrize(
    "dtype", few_of([torch.float64, torch.float32, torch.bfloat16, torch.float16], [torch.float32, torch.bfloat16])
)
@pytest.mark.parametrize(
    ("activation", "zero_below"),
    [
        *((nn.ReLU(), 0.0), (nn.ReLU6(), 0.0), (nn.Hardtanh(0, 1), 0.0), (nn.Hardswish(), -3.0)),
        *((nn.Threshold(0.25, 0.0), 0.25), (nn.PReLU(7, 0.0), 0.0)),
        *((act, None) for act in (nn.GELU(), nn.GELU("tanh"), nn.SiLU(), nn.Mish(), nn.ELU(), nn.Softplus())),
        *((act, None) for act in (nn.LeakyReLU(), nn.PReLU(7), nn.Tanh(), nn.Sigmoid(), nn.Softshrink(0.01))),
    ],
    ids=str,
)
def test_thresholds_of_activations(activation, zero_below, dtype):
    model = nn.Sequential(nn.Linear(3, 7), activation, nn.Linear(7, 5)).to(dtype)
    x = torch.randn(4, 3).to(dtype)
    [block] = find_blocks(model, x)
    check_replay(model, x, block)
    if zero_below is None:
        assert block.activation.zero_below is None
        assert block.exact == isinstance(activation, nn.Softshrink)  # it is 0 between two numbers
    else:
        assert torch.equal(block.activation.zero_below, torch.full((7,), zero_below, dtype=dtype))


def test_an_operation_that_older_releases_of_torch_do_not_tag(monkeypatch):
    """Before torch 2.13 ``leaky_relu`` was not tagged as elementwise."""
    monkeypatch.setattr("sparsact.inference.torch_operations.torch.Tag.pointwise", None)
    [block] = find_blocks(nn.Sequential(nn.Linear(3, 7), nn.LeakyReLU(), nn.Linear(7, 5)), X)
    assert block.activation.name == "leaky_relu"


def test_units_that_are_never_off_have_no_threshold():
    """Half of the units of a PReLU have slope 0 below 0, the others have not."""
    model = nn.Sequential(nn.Linear(3, 4), nn.PReLU(4), nn.Linear(4, 5))
    model[1].weight.data[:] = torch.tensor([0.0, 0.5, 0.0, 1.0])
    [block] = find_blocks(model, torch.randn(2, 3))
    assert block.activation.zero_below.tolist() == [0.0, -torch.inf, 0.0, -torch.inf]
    assert block.private


def test_a_threshold_follows_its_parameter():
    case = cases()["jump"]
    [block] = find_blocks(case.model, case.inputs)
    z = torch.full((7,), 0.7)
    assert (block.activation.function(z) != 0).tolist() == (z > case.model.theta).tolist()
    case.model.theta.data.add_(1)
    assert not block.activation.function(z).any()


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
def test_scripted_activation():
    @torch.jit.script
    def gelu(z):
        return z * 0.5 * (1.0 + torch.erf(z / 1.41421))

    model = Written(lambda m, x: m.b(gelu(m.a(x))))
    for _ in range(4):  # until it would be compiled
        model(X)
    [block] = find_blocks(model, X)
    assert (block.up, block.down, block.activation.zero_below) == ("a", "b", None)
    assert "erf" in block.activation.name
    check_replay(model, X, block)


def test_compiled_model():
    model = nn.Sequential(nn.Linear(3, 7), nn.ReLU(), nn.Linear(7, 5))
    compiled = torch.compile(model, backend="eager")
    compiled(X)
    [block] = find_blocks(compiled, X)
    assert compiled.get_submodule(block.down) is model[2]
    torch._dynamo.reset()


@pytest.mark.grid
def test_a_trace_loads_no_compiler():
    """Torch would load its own, for seconds, to keep the tracer out of compiled code; a trace runs none."""
    code = """
import sys
import torch
from torch.nn import Linear, ReLU, Sequential
from sparsact.inference import find_blocks
assert find_blocks(Sequential(Linear(3, 7), ReLU(), Linear(7, 5)), torch.ones(2, 3))
print("torch._dynamo" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


class Counting(TorchDispatchMode):
    """A mode of the model's own, which sees its operations."""

    seen = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen += 1
        return func(*args, **(kwargs or {}))


def test_a_mode_that_the_model_enters_stays():
    """Above the tracer it sees the same operations as without, and also the operations that find the activation."""
    mode = Counting()

    def forward(m, x):
        with mode:
            return m.b(m.a(x).relu())

    model = Written(forward)
    model(X)
    once = mode.seen
    [block] = find_blocks(model, X)
    assert (block.up, block.down, block.activation.zero_below.tolist()) == ("a", "b", [0.0] * 7)
    assert mode.seen > 2 * once
    assert not torch.utils._python_dispatch._get_current_dispatch_mode()


@pytest.mark.parametrize("context", [torch.inference_mode, lambda: torch.autocast("cpu", torch.bfloat16)])
def test_inside_other_modes(context):
    model = cases()["gated"].model
    with context():
        [block] = find_blocks(model, X)
        check_replay(model, X, block)
    assert (block.gate, block.up) == ("g", "a")


@pytest.mark.parametrize("shape", [(3,), (1, 3), (0, 3), (2, 0, 3)])
def test_any_number_of_rows(shape):
    [block] = find_blocks(cases()["gated"].model, torch.randn(shape))
    assert block.gate == "g"


def test_a_layer_of_one_unit():
    [block] = find_blocks(nn.Sequential(nn.Linear(3, 1), nn.ReLU(), nn.Linear(1, 2)), torch.randn(4, 3))
    assert block.activation.zero_below.tolist() == [0.0]


def test_numbers_that_are_not():
    model = cases()["gated"].model
    model.g.weight.data.fill_(torch.nan)
    model.a.weight.data[2] = torch.inf
    [block] = find_blocks(model, X)
    assert block.exact


def test_only_the_first_batch_is_used():
    shown = iter([X, "never looked at"])
    assert find_blocks(cases()["functional"].model, shown)
    assert next(shown) == "never looked at"


@pytest.mark.parametrize("fails", [False, True])
def test_the_model_is_left_as_it_was(fails):
    model = cases()["residual"].model
    model.train()
    model.layers[1].eval()
    modes = [module.training for module in model.modules()]
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state, fast, x = torch.get_rng_state(), torch.backends.mha.get_fastpath_enabled(), X.clone()
    if fails:
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied") as caught:
            find_blocks(model, torch.ones(2, 4))
        assert any("the first batch of `inputs`" in note for note in caught.value.__notes__)
    else:
        find_blocks(model, x)
    assert [module.training for module in model.modules()] == modes
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(x, X)
    assert torch.is_grad_enabled()
    assert torch.backends.mha.get_fastpath_enabled() == fast


def test_a_block_keeps_no_activations():
    seen = []

    def forward(m, x):
        z = m.a(x)
        h = z.relu()
        seen.extend([weakref.ref(z), weakref.ref(h), weakref.ref(x)])
        return m.b(h)

    model = Written(forward)
    x = X.clone()
    blocks = find_blocks(model, x)
    assert [block.up for block in blocks] == ["a"]
    assert [reference() is x for reference in seen] == [False, False, True]
    assert [reference() is None for reference in seen] == [True, True, False]


def test_what_the_model_keeps_of_pre_activations_is_read():
    def forward(m, x):
        m.kept = m.a(x)
        return m.b(m.kept.relu())

    [block] = find_blocks(Written(forward), X)
    assert block.exact
    assert not block.private
