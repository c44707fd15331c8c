"""What sparsify refuses, and what it says then."""

from __future__ import annotations

import warnings

import pytest
import torch
from sparse_models import gated, jump, plain, rows, squared
from torch import nn

from sparsact.inference import find_blocks, measure, plan_of, sparsify
from sparsact.inference.sparse_linear import SparseLinear

BAD = {
    "no row": ({"inputs": torch.zeros(0, 24)}, ValueError, "pass batches with rows"),
    "array": ({"inputs": torch.zeros(2, 24).numpy()}, TypeError, "torch.as_tensor"),
    "list of lists": ({"inputs": [[torch.zeros(2, 24)]]}, TypeError, "a batch must be a tensor"),
    "no block": ({"blocks": []}, ValueError, "at least one"),
    "options": ({"density": 0.9}, ValueError, "takes no density: it computes"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("method", ["auto", "exact"])
def test_what_is_wrong_is_refused(name, method):
    given, kind, message = BAD[name]
    model = plain()
    with pytest.raises(kind, match=message):
        sparsify(model, method, **{"inputs": rows(4, model)} | given)
    assert type(model.down) is nn.Linear


@pytest.mark.parametrize(("other", "width", "message"), [(gated, 22, "of this model"), (jump, 23, "and thresholds")])
@pytest.mark.parametrize("method", ["auto", "exact"])
def test_blocks_of_another_model_are_refused(other, width, message, method):
    model = plain()
    with pytest.raises(ValueError, match=message):
        sparsify(model, method, rows(4, model), blocks=find_blocks(other(), torch.zeros(1, width)))
    assert type(model.down) is nn.Linear


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "fast", "inputs": torch.zeros(1, 12)}, "must be one of auto"),
        ({"method": "exact"}, "`inputs` are needed"),
        ({"method": "exact", "inputs": torch.randn(8, 12)}, "never exactly zero"),
        ({"method": "certified", "inputs": torch.randn(8, 12)}, "never exactly zero"),
        ({"method": "exact", "inputs": torch.randn(8, 12)}, 'method="approximate" and weights="int8" take any'),
    ],
)
def test_clear_errors(arguments, message):
    model = nn.Sequential(nn.Linear(12, 20), nn.GELU(), nn.Linear(20, 5))
    with pytest.raises(ValueError, match=message):
        sparsify(model, **arguments)
    assert not any(isinstance(module, SparseLinear) for module in model.modules())


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("auto", {"density": 0.1}, 'method="auto" takes no density'),
        ("exact", {"density": 0.9, "error": 0.1}, 'method="exact" takes no density and no error'),
        ("certified", {"error": 0.1}, 'method="certified" takes no error'),
        ("approximate", {}, 'method="approximate" takes one target, density or error; got none'),
    ],
)
def test_an_option_of_another_method_is_refused(method, options, message):
    model = plain()
    with pytest.raises(ValueError, match=message):
        sparsify(model, method, rows(64, model), **options)
    assert not any(isinstance(module, SparseLinear) for module in model.modules())


@pytest.mark.parametrize("given", [torch.zeros(64, 24), plain()])
def test_inputs_in_the_place_of_the_method_are_not_printed(given):
    with pytest.raises(TypeError, match=r"inputs by name, sparsify\(model, inputs=x\)") as caught:
        sparsify(plain(), given)
    assert len(str(caught.value)) < 200


WRONG = {
    "float64": (lambda x: x.double(), RuntimeError, "pass x.float()"),
    "width": (lambda x: x[:, :5], RuntimeError, "rows of 24 numbers"),
    "ids": (lambda x: torch.tensor([[3, 29]]), IndexError, "Token ids must lie in 0 to 28"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("function", [measure, lambda model, x: sparsify(model, inputs=x)])
def test_inputs_that_the_model_cannot_take_come_with_a_remedy(name, function):
    wrong, kind, remedy = WRONG[name]
    model = nn.Sequential(nn.Embedding(29, 24), plain()) if name == "ids" else plain()
    with pytest.raises(kind) as caught:
        function(model, wrong(rows(4, plain())))
    assert any(remedy in note for note in caught.value.__notes__)


def test_text_is_to_be_tokenised():
    with pytest.raises(TypeError, match="tokenise it"):
        measure(plain(), "some words")


def test_a_model_in_training_mode_warns_once():
    model = sparsify(plain().train(), "exact", rows(64, plain()))
    with pytest.warns(UserWarning, match=r"in training mode: call model\.eval\(\)") as caught, torch.inference_mode():
        list(map(model, [rows(2, model)] * 2))
    assert len(caught) == 1
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("error")
        model.eval()(rows(2, model))


@pytest.mark.filterwarnings("ignore:.*quantiz:DeprecationWarning", "ignore:.*quantiz:UserWarning")
@pytest.mark.parametrize("function", [measure, lambda model, x: sparsify(model, inputs=x)])
def test_a_model_that_torch_has_quantised_is_named(function):
    quantised = nn.Sequential(nn.Linear(24, 3))
    quantised[0] = torch.ao.nn.quantized.dynamic.Linear(24, 3)
    with pytest.raises(ValueError, match='pass the float model, and use weights="int8"'):
        function(quantised, rows(4, plain()))


def test_a_first_batch_without_rows_is_not_what_is_verified():
    model = squared()
    sparsify(model, "certified", [rows(0, model), rows(30, model)])
    assert plan_of(model).choices[0].method == "certified"
