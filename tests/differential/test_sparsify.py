"""A sparsified model beside a dense one with the same parameters, after anything that changes or reads its weights."""

from __future__ import annotations

import copy
import inspect
import random

import pytest
import torch
from sparse_models import gated, gated_up_first, jump, plain, reads, squared
from sparse_pairs import assert_as_dense, rows, sparse_and_dense
from torch import nn
from torch.nn.modules import module as modules
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from sparsact.inference import densify, sparsify
from sparsact.inference.selectors import SwitchedOn
from sparsact.inference.sparse_linear import SparseLinear

MODELS = {"plain": plain, "squared": squared, "jump": jump, "gated": gated, "gated, up first": gated_up_first}
BY_NAME = pytest.mark.parametrize("make", [pytest.param(plain, marks=pytest.mark.slow), gated])


def optimisers():
    for name, kind in vars(torch.optim).items():
        if inspect.isclass(kind) and issubclass(kind, torch.optim.Optimizer) and kind is not torch.optim.Optimizer:
            if name == "SparseAdam":  # takes sparse gradients, which linear layers do not have
                continue
            known = inspect.signature(kind).parameters
            for option in ("plain", "foreach", "fused"):
                if option in (*known, "plain"):  # torch counts the writes of the first two
                    yield pytest.param(name, option, marks=[] if option == "fused" else pytest.mark.slow)


@pytest.mark.parametrize(("name", "option"), list(optimisers()))
@BY_NAME
def test_after_steps_of_an_optimiser(make, name, option):
    """Gradients are given: no forward pass of the model's, no change of mode warns the layers."""
    model, dense = sparse_and_dense(make)
    parameters = [p for p in model.parameters() if p.ndim == 2 or name != "Muon"]
    settings = {} if option == "plain" else {option: True}
    try:
        optimiser = getattr(torch.optim, name)(parameters, lr=0.1, **settings)
    except RuntimeError as error:
        assert option in str(error)  # noqa: PT017 # it is not for the CPU
        pytest.skip(str(error))
    for step in range(3):
        for i, parameter in enumerate(parameters):
            parameter.grad = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(10 * step + i))
        before = model.down.weight.detach().clone()
        optimiser.step(lambda: torch.tensor(1.0))
        assert not torch.equal(before, model.down.weight)
        assert_as_dense(model, dense, 1)


def _fused(model):
    values = list(model.parameters())
    gradients, first, second = ([torch.ones_like(p) for p in values] for _ in range(3))
    steps = [torch.tensor(1.0) for _ in values]
    with torch.no_grad():
        torch._fused_adamw_(
            *(values, gradients, first, second, [], steps),
            lr=0.1,
            beta1=0.9,
            beta2=0.99,
            weight_decay=0.1,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )


def _averaged(model):
    average = torch.optim.swa_utils.AveragedModel(model, avg_fn=lambda old, new, n: old + new)
    average.update_parameters(model)
    average.update_parameters(model)
    for mine, other in zip(model.parameters(), average.module.parameters(), strict=True):
        mine.data.copy_(other)


def _swapped(model):
    for layer in (m for m in model.modules() if isinstance(m, nn.Linear)):
        torch.utils.swap_tensors(layer.weight, nn.Parameter(-layer.weight.detach()))


def _turned(model):
    layer = model.down
    layer.weight.data = layer.weight.detach().clone().t().contiguous().t()
    layer.weight.data.mul_(-2)


def _negate_by_numpy(values):
    if values.dtype == torch.bfloat16:  # which NumPy has not
        values.view(torch.int16).numpy().__ixor__(-(2**15))
    else:
        values.numpy().__imul__(-1)


WRITES = {
    "data.add_": lambda model: [p.data.add_(0.3) for p in model.parameters()],
    "data.copy_": lambda model: [p.data.copy_(-p.detach()) for p in model.parameters()],
    "data.neg_": lambda model: [p.data.neg_() for p in model.parameters()],
    "data =": lambda model: [setattr(p, "data", p.detach() * -2) for p in model.parameters()],
    "numpy": lambda model: [_negate_by_numpy(p.detach()) for p in model.parameters()],
    "foreach": lambda model: torch._foreach_mul_([p.data for p in model.parameters()], -2.0),
    "fused": _fused,
    "averaged": _averaged,
    "swapped": _swapped,
    "turned": _turned,
    "vector": lambda model: nn.utils.vector_to_parameters(
        -nn.utils.parameters_to_vector(model.parameters()), model.parameters()
    ),
    "vector in place": lambda model: [
        p.data.copy_(torch.linspace(-1, 1, p.numel()).view(p.shape)) for p in model.parameters()
    ],
    "state": lambda model: model.load_state_dict({k: v * -2 for k, v in model.state_dict().items()}),
    "state assigned": lambda model: model.load_state_dict(
        {k: v * -2 for k, v in model.state_dict().items()}, assign=True
    ),
    "storage": lambda model: [p.untyped_storage().copy_((-p.detach()).untyped_storage()) for p in model.parameters()],
    "one unit": lambda model: [
        (model.gate or model.up).weight.data[5].mul_(-9),
        model.down.weight.data[:, 5].add_(7),
    ],
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize(
    "make",
    [pytest.param(make, id=name, marks=[] if make is gated else pytest.mark.slow) for name, make in MODELS.items()],
)
def test_after_writes_that_torch_may_not_count(make, name):
    """These weights are small: two calls in a row read all lines of each."""
    model, dense = sparse_and_dense(make)
    WRITES[name](model)
    with torch.no_grad():
        if name == "one unit":  # a call reads one stripe: only all stripes are certain to differ
            versions = [m._sparse.version for m in model.modules() if isinstance(m, SparseLinear) and m._sparse.version]
            for _ in range(max(version._fingerprint.stripes for version in versions)):
                model(rows(1, dense.d))
    assert_as_dense(model, dense)


@pytest.mark.parametrize("announce", ["train and eval", "gradients"])
@BY_NAME
def test_the_smallest_write_is_seen_after_a_change_of_mode_or_a_pass_with_gradients(make, announce):
    model, dense = sparse_and_dense(lambda: make())
    switch = model.gate or model.up
    switch.weight.data[7, 3] = 400.0
    switch.bias.data[9] = 30.0
    model.down.weight.data[2, 9] = 500.0
    if announce == "gradients":
        model(rows(1, dense.d))
    else:
        model.train().eval()
    assert_as_dense(model, dense, 1)


READERS = {
    "hook": lambda act, see: act.register_forward_hook(lambda module, given, output: see(given[0])),
    "pre-hook": lambda act, see: act.register_forward_pre_hook(lambda module, given: see(given[0])),
    "global hook": lambda act, see: modules.register_module_forward_hook(
        lambda module, given, output: see(given[0]) if module is act else None
    ),
    "global pre-hook": lambda act, see: modules.register_module_forward_pre_hook(
        lambda module, given: see(given[0]) if module is act else None
    ),
}


class Wrapped(nn.Module):
    """An activation that is a module in another."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.ReLU(), nn.Dropout(0.1))

    def forward(self, z):
        return self.inner(z)


@pytest.mark.parametrize("gate", [False, True])
@pytest.mark.parametrize("inner", ["", "inner.0"])
@pytest.mark.parametrize("name", READERS)
def test_readers_of_pre_activations_see_what_they_saw(name, inner, gate):
    """Hooks on activations, registered after the model was made sparse."""
    make = gated if gate else plain
    model, dense = sparse_and_dense(lambda: make(activation=Wrapped()))
    x, seen = rows(2, dense.d, 5), []
    for one in (model, dense):
        act = one.activation.get_submodule(inner)
        handle = READERS[name](act, lambda z: seen.append(z.clone()))
        with torch.no_grad():
            one(x)
        handle.remove()
    mine, wanted = seen
    torch.testing.assert_close(mine, wanted)
    before = model.down._sparse.sparse_calls
    assert_as_dense(model, dense, 1)
    assert model.down._sparse.sparse_calls == before + 1
    model.activation = nn.Softplus()
    dense.activation = nn.Softplus()
    assert_as_dense(model, dense, 1)


class Functions(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func is nn.functional.relu:
            self.seen.append(args[0].clone())
        return result


class Operations(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.relu.default:
            self.seen.append(args[0].clone())
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", [Functions, Operations])
@BY_NAME
def test_modes_see_what_they_saw(make, mode):
    model, dense = sparse_and_dense(make)
    seen = []
    for one in (model, dense):
        with torch.no_grad(), mode() as watching:
            one(rows(2, dense.d, 5))
        seen += watching.seen
    torch.testing.assert_close(*seen)
    before = model.down._sparse.sparse_calls
    with torch.no_grad(), torch.device("cpu"):
        model(rows(1, dense.d))
    assert model.down._sparse.sparse_calls == before + 1


@pytest.mark.parametrize("trained", ["up.bias", "up.weight", "gate.weight", "gate.bias", "down.bias", "down.weight"])
@BY_NAME
def test_what_is_trained_alone_gets_its_gradient(make, trained):
    """BitFit and its kin: all but one parameter are frozen, in evaluation mode."""
    model, dense = sparse_and_dense(make)
    gradients = []
    for one in (model, dense):
        one.requires_grad_(False)
        parameters = dict(one.named_parameters())
        if trained not in parameters:
            pytest.skip("the model has no such parameter")
        parameters[trained].requires_grad_()
        out = one(rows(2, dense.d, 5))
        assert out.requires_grad
        out.square().sum().backward()
        gradients.append(parameters[trained].grad)
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-5)


def test_an_activation_that_is_trained_gets_its_gradient():
    """PReLU with slope 0 is a ReLU, whose gradient in the slope needs what is off."""

    def make():
        return plain(activation=nn.PReLU(init=0.0))

    model, dense = sparse_and_dense(make)
    assert reads(model.up, SwitchedOn)
    gradients = []
    for one in (model, dense):
        one.up.requires_grad_(False)
        one.down.requires_grad_(False)
        one(rows(2, dense.d, 5)).sum().backward()
        gradients.append(one.activation.weight.grad)
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-5)
    assert gradients[0].abs() > 0
    with torch.no_grad():
        model.activation.weight.fill_(0.5)
    assert_as_dense(model, dense, 1)


ACTIONS = {
    **{
        name: write
        for name, write in WRITES.items()
        if name not in ("one unit", "averaged", "fused", "storage", "vector")
    },
    "train": lambda model: model.train(),
    "eval": lambda model: model.eval(),
    "freeze": lambda model: model.requires_grad_(False),
    "thaw": lambda model: model.requires_grad_(True),
    "copy": copy.deepcopy,
    "float64": lambda model: model.double(),
    "bfloat16": lambda model: model.bfloat16(),
    "float32": lambda model: model.float(),
    "hook": lambda model: model.down.register_forward_hook(lambda *given: None),
    "densify": densify,
    "step": lambda model: _step(model),
}


def _step(model):
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3, fused=model.down.weight.dtype != torch.bfloat16)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimiser.step()


TIGHT = {torch.float32: 1e-4, torch.float64: 1e-10, torch.bfloat16: 0.05}


def wander(seed, length):
    """Random actions on a sparse model, compared after each with a dense one that is given its parameters."""
    draw = random.Random(seed)
    make, method = draw.choice(list(MODELS.values())), draw.choice(["exact", "certified"])
    model, dense = sparse_and_dense(make, method)
    done = []
    for _ in range(length):
        done.append(name := draw.choice([*ACTIONS, "sparsify"]))
        if name == "sparsify" and model.down.weight.dtype == torch.float32:
            model.eval()
            sparsify(model, "exact", rows(64, dense.d))
        elif name != "sparsify":
            result = ACTIONS[name](model)
            model = result if isinstance(result, nn.Module) else model
        dtype = model.down.weight.dtype
        dense = dense.to(dtype)
        dense.load_state_dict(copy.deepcopy(model.state_dict()))
        dense.train(model.training)
        x = rows(draw.choice([1, 2, 16, 17, 64]), dense.d, draw.randrange(99)).to(dtype)
        with torch.no_grad():
            found, wanted = model(x).double(), dense(x).double()
        assert (found - wanted).norm() <= TIGHT[dtype] * wanted.norm(), (seed, done)


@pytest.mark.parametrize("seed", range(4))
def test_random_actions(seed):
    wander(seed, 12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 400))
def test_more_random_actions(seed):
    wander(seed, 40)
