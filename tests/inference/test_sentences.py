"""What is said of models that others have wrapped, compiled or recorded gradients of, and of errors and figures."""

from __future__ import annotations

import copy
import pickle
import re
import warnings

import pytest
import torch
from sparse_models import assert_same, gated, plain, rows
from torch import nn

import sparsact as sa
from sparsact.inference import find_blocks, measure, plan_of, sparsify
from sparsact.inference.comparison import speed
from sparsact.inference.layer_facts import LayerFacts, other_forms
from sparsact.inference.output_error import row_errors

NOTICE = "sparse layers compute densely while gradients are recorded.*torch.inference_mode"


def compiled_around(model):
    return torch.compile(model, backend="eager")


def compiled_in_place(model):
    model.compile(backend="eager")
    return model


def compiled_within(model):
    return nn.Sequential(nn.Identity(), torch.compile(model, backend="eager"))


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # of torch's own code
@pytest.mark.parametrize("compile_first", [compiled_around, compiled_in_place, compiled_within])
@pytest.mark.parametrize("options", [{"method": "certified"}, {"method": "exact", "weights": "int8"}])
@torch.no_grad()
@pytest.mark.grid
def test_a_model_may_be_compiled_first_and_made_sparse_then(compile_first, options):
    torch._dynamo.reset()
    dense, part = gated(), gated()
    model, x = compile_first(part), rows(3, dense)
    assert_same(model(x), dense(x))  # its graph is dense
    assert measure(model, x).density == measure(dense, x).density
    sparsify(model, inputs=rows(64, dense), **options)
    assert {one.method for one in plan_of(model).choices} == {options["method"]}
    calls = part.down._sparse.sparse_calls
    found = model(x)
    assert part.down._sparse.sparse_calls == calls + 1
    assert_same(found, copy.deepcopy(part)(x))
    sa.densify(model)
    assert_same(model(x), dense(x))
    torch._dynamo.reset()


@pytest.mark.parametrize("weights", ["keep", "int8"])
def test_one_warning_where_gradients_are_recorded(weights):
    model, x = sparsify(plain(), "exact", rows(64, plain()), weights=weights), rows(2, plain())
    for twin in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        with pytest.warns(UserWarning, match=NOTICE) as told:
            twin(x), twin(x)
        assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fresh = sparsify(plain(), "exact", rows(64, plain()), weights=weights)
        with torch.no_grad():
            fresh(x)
        fresh.requires_grad_(False)(x)
        fresh.requires_grad_(True).train()(x)
    with pytest.warns(UserWarning, match=NOTICE):
        fresh.eval()(x)
    alone = sparsify(plain(), "exact", rows(64, plain()), weights="int8", keep_weights=False)
    with pytest.warns(UserWarning, match=NOTICE):
        alone(x.requires_grad_())


def test_hooks_of_accelerate_are_named_with_the_remedy():
    hooks = pytest.importorskip("accelerate.hooks")
    model, x = plain(), rows(4, plain())
    for layer in (model.up, model.down):
        hooks.add_hook_to_module(layer, hooks.ModelHook())
    why = r"has a forward of its own, a hook of accelerate: call accelerate\.hooks\.remove_hook_from_module"
    assert re.search(why, "".join(other_forms(model)))
    assert re.search(why, LayerFacts.of(model.up).quantizing_obstacle("int8"))
    assert all(re.search(why, layer.reason) for layer in measure(model, x).layers if layer.density < 0.4)
    for refused in (find_blocks, lambda model, x: sparsify(model, "exact", x)):
        with pytest.raises(ValueError, match=why):
            refused(model, x)
    hooks.remove_hook_from_module(model, recurse=True)
    sparsify(model, "exact", x)  # the forward of the class is still bound to the layer
    with torch.no_grad():
        model(x[:1])
    assert model.down._sparse.sparse_calls > 0
    assert_same(sa.densify(model)(x), plain()(x))


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # of torch's own code
def test_torchscript_and_what_is_no_module_are_refused():
    model, x = plain(), rows(4, plain())
    scripted = torch.jit.trace(model, x)
    for refused in (find_blocks, measure, lambda model, x: sparsify(model, "exact", x)):
        with pytest.raises(TypeError, match="compiled by TorchScript: pass the module that it was made from"):
            refused(scripted, x)
        with pytest.raises(TypeError, match=r"must be a torch\.nn\.Module in Python.*got function: pass the module"):
            refused(lambda x: x, x)
    both = nn.Sequential(gated(), torch.jit.trace(nn.Linear(22, 3), rows(1, gated())))
    plan = plan_of(sparsify(both.eval(), "exact", rows(4, gated())))
    (left,) = plan.left_dense
    assert left.startswith("1: torch.jit._trace.TopLevelTracedModule has a forward of its own, compiled by TorchScript")


class Holding(nn.Module):
    def __init__(self, *shapes):
        super().__init__()
        for i, shape in enumerate(shapes):
            self.register_parameter(f"p{i}", nn.Parameter(torch.zeros(shape)))


@pytest.mark.parametrize(
    ("shapes", "role"),
    [
        ([(3, 40, 12), (3, 12, 20)], "experts"),  # as of Mixtral
        ([(3, 12, 40), (3, 20, 12)], "experts"),  # as of Llama 4
        ([(1, 1, 12)] * 3, "other"),  # as RWKV mixes a token with the one before it
        ([(1, 9, 6)] * 2, "other"),  # relative positions of VITS
        ([(4, 9, 6)] * 2, "other"),
        ([(1, 5, 12), (1, 1, 12)], "other"),  # positions and a class token
    ],
)
def test_experts_are_matrices_that_go_together(shapes, role):
    assert LayerFacts.of(Holding(*shapes)).role == role


class Language(nn.Module):
    """Logits of 11 words besides a hidden state, which the error leaves out."""

    def __init__(self):
        super().__init__()
        self.block, self.head = plain(), nn.Linear(18, 11)

    def forward(self, x):
        hidden = self.block(x)
        return SimpleOutput(logits=self.head(hidden), hidden=1e6 * hidden)


class SimpleOutput(dict):
    """What models of transformers return: a mapping whose entries are attributes too."""

    __getattr__ = dict.__getitem__


@torch.no_grad()
def test_the_error_of_a_quantised_model_is_of_the_rows_of_its_logits():
    model, dense = Language().eval(), Language().eval()
    dense.load_state_dict(model.state_dict())
    shown = [rows(m, model.block, seed=m).view(1, m, -1) for m in (3, 8)]
    plan = plan_of(sparsify(model, "exact", shown, weights="int4"))
    before, after = (torch.cat([one(x).logits[0] for x in shown]).double() for one in (dense, model))
    usual = before.square().sum(1).mean().sqrt()
    errors = torch.stack([(a - b).norm() / usual for a, b in zip(after, before, strict=True)])
    assert plan.output_error == pytest.approx(float(errors.square().mean().sqrt()), rel=1e-9)
    assert plan.worst_output_error == pytest.approx(float(errors.max()), rel=1e-9)
    told = plan.to_dict()
    assert (told["output_error"], told["worst_output_error"]) == (plan.output_error, plan.worst_output_error)
    assert f"the model's {plan.output_error:.2%} on average and {plan.worst_output_error:.2%} in the worst" in str(plan)


def test_errors_of_rows():
    before = [torch.tensor([[3.0, 4.0, -torch.inf]]), torch.tensor(5.0)]
    after = [torch.tensor([[3.0, 4.5, -torch.inf]]), torch.tensor(5.0)]
    assert row_errors(before, after) == pytest.approx(((0.25 / 50) ** 0.5, 0.1))
    assert row_errors(before, [torch.tensor([[3.0, torch.nan, 0.0]]), before[1]])[0] != 0.0
    assert all(one != one for one in row_errors([], []))


def test_headings_have_units_and_the_whole_model_one_figure():
    model, x = plain(), rows(64, plain())
    found = measure(model, x)
    text = str(sparsify(model, "exact", x) and plan_of(model))
    heading, _, *legend = text.splitlines()
    for unit in ("density %", "pays to %", "calls %", "dense µs", "sparse µs", "gain x", "bound x"):
        assert unit in heading
    for column in ("density", "pays to", "rows", "calls", "dense, sparse", "gain", "bound"):
        assert f"{column}: " in " ".join(legend)
    [whole] = [line for line in str(found).splitlines() if "whole model" in line.lower()]
    best = max(found.bound("exact"), found.bound("certified"))
    assert whole.startswith(f"whole model: at most {best:.2f} times as fast, by certified (")
    assert whole.split(" (")[0] in found._repr_html_()


def test_a_dense_plan_says_so_and_why():
    on, smooth = (nn.Sequential(nn.Linear(24, 60), f, nn.Linear(60, 3)).eval() for f in (nn.ReLU(), nn.GELU()))
    on[0].bias.data.fill_(1.0)
    for model, why in ((on, "more than 40% of its units are active"), (smooth, 'weights="int8" take any activation')):
        plan = plan_of(sparsify(model, inputs=rows(8, plain()), time_limit=0))
        assert plan.choices[0].reason.endswith(why)
        assert str(plan).endswith("\nwhole model: left dense")


def test_rows_of_a_call_are_counted():
    model = plain()
    text = str(measure(model, list(rows(3, model).split(1))))
    assert "\nCalls have 1 row. exact and certified would compute 100% of them sparsely (at most 16 rows" in text
    assert "\nCalls have 2 to 40 rows. exact and certified would compute 50%" in str(
        measure(model, [rows(2, model), rows(40, model)])
    )


def test_a_sparse_model_is_said_to_be_sparse_already():
    model, x = sparsify(plain(), "exact", rows(64, plain())), rows(4, plain())
    *_, down = measure(model, x).layers
    assert re.search(r"is sparse already: call sparsact\.densify\(model\) first", down.reason)
    sparsify(model, "exact", x, weights="int8", keep_weights=False)
    with pytest.raises(ValueError, match="float weights, now dropped: sparsify with keep_weights=True"):
        speed(model, [x])


def test_a_forward_bound_to_another_module_is_its_own():
    layer = nn.Linear(3, 4)
    layer.forward = nn.Linear(3, 4).forward
    assert not LayerFacts.of(layer).is_plain
    layer.forward = type(layer).forward.__get__(layer)
    assert LayerFacts.of(layer).is_plain
