"""What sparsify refuses, and what it says then."""

from __future__ import annotations

import pytest
import torch
from sparse_models import gated, jump, plain, rows, squared
from torch import nn

from sparsact.inference import find_blocks, plan_of, sparsify
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


@pytest.mark.parametrize(("other", "width", "message"), [(gated, 22, "of this model"), (jump, 23, "for each unit")])
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


def test_a_first_batch_without_rows_is_not_what_is_verified():
    model = squared()
    sparsify(model, "certified", [rows(0, model), rows(30, model)])
    assert plan_of(model).choices[0].method == "certified"
