"""What every form of weights promises, whatever its numbers are: also one of a test, that the library lacks."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from sparse_models import plain, rows
from torch import Tensor
from torch.nn import functional as F

from sparsact.inference.apply import Replacement, applied
from sparsact.inference.selectors import ActiveInputs, Everything
from sparsact.inference.sparse_linear import LayerState, SparseLinear
from sparsact.inference.weights import FloatWeights, Int4Weights, Int8Weights, WeightForm

OUTPUTS, INPUTS = 35, 41


class Eighths(WeightForm):
    """Weights rounded to eighths: a form that the library lacks."""

    rounded = True
    counted = False
    kernel = None

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = (8 * weight.detach()).round() / 8, None if bias is None else bias.detach()

    @classmethod
    def of(
        cls, weight: Tensor, bias: Tensor | None, *, by_input: bool = False, whole: bool = False, device: str = "cpu"
    ) -> Eighths:
        return cls(weight, bias)

    def all(self, x: Tensor, m: int) -> Tensor:
        return F.linear(x.view(m, -1), self.weight.to(x.dtype), self.bias)

    def columns(self, x: Tensor, m: int, share: float) -> Tensor:
        return self.all(x, m)

    def rows(self, x: Tensor, active: Tensor, m: int, share: float) -> Tensor:
        return self.all(x, m) * active.view(m, -1)


# Relative errors of products with random weights: rounding of sums, of 4 bits, of 8 bits, and to eighths.
FORMS = {FloatWeights: 1e-6, Int4Weights: 0.2, Int8Weights: 0.03, Eighths: 0.1}
forms = pytest.mark.parametrize("form", FORMS)
biases = pytest.mark.parametrize("with_bias", [False, True])


def numbers(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def layer(with_bias: bool) -> tuple[Tensor, Tensor | None]:
    return numbers(OUTPUTS, INPUTS), numbers(OUTPUTS, seed=2) if with_bias else None


def is_near(found: Tensor, wanted: Tensor, form: type[WeightForm]) -> bool:
    return float((found - wanted).norm()) <= FORMS[form] * float(wanted.norm())


@forms
@biases
@pytest.mark.parametrize("m", [1, 3])
def test_columns_are_the_product_of_inputs_that_are_mostly_0(m, with_bias, form):
    weight, bias = layer(with_bias)
    x = numbers(m, INPUTS, seed=3) * (torch.arange(INPUTS) % 5 == 0)
    of = form.of(weight, bias, by_input=True)
    found = of.columns(x, m, 0.5)
    assert found.shape == (m, OUTPUTS)
    assert is_near(found, F.linear(x, weight, bias), form)
    if form.rounded:
        assert torch.equal(found, of.all(x, m))


@forms
@biases
@pytest.mark.parametrize("m", [1, 3])
def test_rows_are_the_outputs_of_a_mask_and_0_elsewhere(m, with_bias, form):
    weight, bias = layer(with_bias)
    x, active = numbers(m, INPUTS, seed=3), (numbers(m, OUTPUTS, seed=4) > 0.8).to(torch.uint8)
    of = form.of(weight, bias)
    found = of.rows(x, active, m, 0.5)
    assert (found[active == 0] == 0).all()
    assert is_near(found, F.linear(x, weight, bias) * active, form)
    if form.rounded:
        assert torch.equal(found, of.all(x, m) * active)


@forms
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_outputs_have_the_dtype_of_inputs_whose_shape_does_not_matter(dtype, form):
    weight, _ = layer(False)
    of = form.of(weight.to(dtype), None, by_input=True)
    x = (numbers(6, INPUTS, seed=3) * (torch.arange(INPUTS) % 5 == 0)).to(dtype)
    found = of.columns(x.view(2, 3, INPUTS), 6, 0.5)
    assert found.dtype == dtype
    assert torch.equal(found, of.columns(x, 6, 0.5))


@forms
def test_a_layer_of_a_model_takes_the_form(form):
    """And returns to what it was; copies and pickles rebuild the form from their own weights."""
    model, dense = plain(), plain()
    x = rows(3, model)
    state = {"down": LayerState(form, ActiveInputs(), max_share=1.0)}
    if form.rounded:
        state["up"] = LayerState(form, Everything())
    with torch.no_grad(), applied(model, [Replacement(state)]):
        found = model(x)
        assert is_near(found, dense(x), form)
        assert type(model.down) is SparseLinear
        assert isinstance(model.down.weights, form)
        assert model.down._sparse.sparse_calls == 1
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            other.down.bias.add_(1)
            torch.testing.assert_close(other(x), found + 1)
    with torch.no_grad():
        assert torch.equal(model(x), dense(x))
