"""Integer weights of awkward numbers, of tied and transposed layers, and in copies that torch's modes make."""

from __future__ import annotations

import io
import pickle
from copy import deepcopy

import pytest
import torch
from torch import nn

import sparsact as sa
from sparsact.inference.plan_file import load_plan, save_plan
from sparsact.inference.smoothing import column_scales
from sparsact.inference.sparse_linear import MAX_ROWS, SparseLinear
from sparsact.inference.weights import INTEGERS

D, S, OUT = 40, 130, 23


def block(activation: nn.Module | None = None) -> nn.Sequential:
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(D, S), activation or nn.ReLU(), nn.Linear(S, OUT)).eval()


def rows(m: int) -> torch.Tensor:
    return torch.randn(m, D, generator=torch.Generator().manual_seed(m))


def relative(found, exact):
    return float((found - exact).double().norm() / exact.double().norm())


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("by_input", [False, True])
@pytest.mark.parametrize("m", [1, 3, 50])
def test_outputs_are_finite_where_the_product_is(kind, by_input, m):
    """Outputs of small weights beside large ones, for inputs of any size: zeros, signs and one number each."""
    for x_size in (0.0, 1e-38, 1e-20, 1.0, 1e20, 1e37, 3e38):
        for w_size in (0.0, 1e-38, 1e-20, 1.0, 1e9, 1e38):
            weight = torch.zeros(5, D)
            weight[1], weight[2, ::2], weight[3, 1::2] = w_size, -w_size, w_size
            weight[4, 7] = 1.0
            layer = INTEGERS[kind].of(weight, torch.tensor([0.5, -1.0, 0.0, 2.0, 3.0]), by_input=by_input)
            for signs in (torch.ones(D), torch.tensor([1.0, 0.0] * (D // 2)), torch.tensor([1.0, -1.0] * (D // 2))):
                x = (x_size * signs).expand(m, D).contiguous()
                exact = x.double() @ weight.double().T
                found = layer.all(x, m)
                safe = exact.abs() + x.double().abs() @ weight.double().abs().T < 3e38  # no part overflows either
                assert found[safe].isfinite().all(), (x_size, w_size)
                assert torch.equal(found[:, 0], torch.full((m,), 0.5))


@pytest.mark.parametrize("place", ["inputs", "units", "negative inputs"])
@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_a_few_large_channels_leave_the_others_their_digits(place, weights, tmp_path):
    """The model computes what it would without them: columns and rows are scaled by powers of two."""
    plain = block()
    model, x = deepcopy(plain), rows(30)
    with torch.no_grad():
        if place == "units":
            model[0].weight[[3, 70]] *= 512
            model[0].bias[[3, 70]] *= 512
            model[2].weight[:, [3, 70]] /= 512
        else:
            model[0].weight[:, [3, 11]] /= 512
    y = x.clone()
    if place != "units":
        y[:, [3, 11]] *= 512
    if place == "negative inputs":
        x, y = -x.abs(), -y.abs()
    shown = list(y.split(1))
    usual = sa.plan_of(sa.sparsify(plain, "exact", list(x.split(1)), weights=weights)).output_error
    exact = deepcopy(model)(y).detach()
    untouched = deepcopy(model)
    plan = sa.plan_of(sa.sparsify(model, "exact", shown, weights=weights, keep_weights=False))
    assert plan.output_error < 2 * usual
    assert [one.smoothed for one in plan.layers] == [place != "units", place == "units"]
    assert "inputs scaled before they are quantised in" in str(plan)
    with torch.no_grad():
        found = model(y)
        assert relative(found, exact) == pytest.approx(plan.output_error, rel=1e-3)
        assert torch.equal(found, torch.cat([model(row) for row in shown]))
        assert torch.equal(pickle.loads(pickle.dumps(model))(y), found)
        save_plan(model, tmp_path / "plan")
        loaded = load_plan(untouched, tmp_path / "plan", shown)
        assert torch.equal(loaded(y), found)
        assert sa.plan_of(loaded).layers == plan.layers
        assert relative(sa.densify(model)(y), exact) < 2 * usual


def test_column_scales_are_powers_of_two_that_make_columns_alike():
    weight = rows(17) * torch.logspace(-3, 3, D)
    sizes = torch.logspace(4, -2, D, dtype=torch.float64)
    scales = column_scales(weight, sizes)
    assert torch.equal(scales.log2(), scales.log2().round())
    inputs, columns = sizes * scales, weight.abs().amax(0) / scales
    assert float((inputs / columns).max() / (inputs / columns).min()) <= 4  # half a power of two off at most, twice
    assert float(columns.max()) <= 1.5 * float(weight.abs().max())
    for awkward in (torch.zeros(D, dtype=torch.float64), sizes * (torch.arange(D) % 3 > 0)):
        assert column_scales(weight * 0, awkward).isfinite().all()
        assert (column_scales(weight, awkward) > 0).all()


class Noise(nn.Module):
    """The difference of two numbers that agree to three digits: no scale saves it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.wide = nn.Linear(D, OUT, bias=False)
        with torch.no_grad():
            self.wide.weight[:, D // 2 :] = -self.wide.weight[:, : D // 2] * (1 + 1e-3 * torch.randn(OUT, D // 2))

    def forward(self, x):
        return self.wide(x)


@pytest.mark.parametrize(("weights", "remedy"), [("int8", 'pass weights="keep"'), ("int4", 'pass weights="int8"')])
def test_errors_that_stay_large_are_warned_of(weights, remedy):
    model = nn.Sequential(Noise(), block()[1], nn.Linear(OUT, 7)).eval()
    half = rows(20)[:, : D // 2]
    with pytest.warns(UserWarning, match=rf"outputs should change by at most .* layers 0\.wide \(\d+%\).*{remedy}"):
        sa.sparsify(model, "exact", torch.cat([half, half], dim=1), weights=weights)


FORMS = [("exact", "keep", True), ("certified", "keep", True), ("exact", "int8", False), ("exact", "int8", True)]
FORMS += [("exact", "int4", False), ("exact", "int4", True)]


def by_pickle(model, path):
    return pickle.loads(pickle.dumps(model))


def by_torch(model, path):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def by_plan(model, path):
    save_plan(model, path)
    return load_plan(block(), path, rows(3))


@pytest.mark.parametrize("copy", [by_pickle, by_torch, by_plan, lambda model, path: deepcopy(model)])
@pytest.mark.parametrize(("method", "weights", "keep_weights"), FORMS)
def test_copies_that_are_made_in_inference_mode_compute_the_same_everywhere(
    copy, method, weights, keep_weights, tmp_path
):
    model = block()
    nn.init.constant_(model[0].bias, -0.8)
    base = deepcopy(model.state_dict())
    if copy is by_plan:
        model = block()
    sa.sparsify(model, method, list(rows(9).split(1)), weights=weights, keep_weights=keep_weights)
    with torch.inference_mode():
        other = copy(model, tmp_path / "plan")
        inside = other(rows(1))
    assert base.keys() >= other.state_dict().keys()
    for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad):
        for m in (1, 3, MAX_ROWS + 5):
            with mode():
                for layer in (model, other):
                    layer.requires_grad_(False)
                assert torch.equal(other(rows(m)), model(rows(m)))
    assert torch.equal(inside, other(rows(1)))
    quantised = [layer for layer in other if isinstance(layer, SparseLinear)]
    assert all(layer._sparse.sparse_calls for layer in quantised)
    with torch.inference_mode():
        sa.densify(other)
    assert not any(parameter.is_inference() for layer in quantised for parameter in layer.parameters())


class Tied(nn.Module):
    """A language model's ends: the head is the embedding."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(8)
        self.embedding, self.body, self.head = nn.Embedding(OUT, D), block(), nn.Linear(D, OUT, bias=False)
        self.back = nn.Linear(OUT, D)
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        return self.head(self.back(self.body(self.embedding(ids))))


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_tied_weights_stay_tied(weights):
    model, ids = Tied().eval(), torch.arange(OUT)[:, None]
    embedding = model.embedding.weight.detach().clone()
    names = list(model.state_dict())
    sa.sparsify(model, "exact", list(ids), weights=weights, keep_weights=False)
    expected = [name for name in names if name not in ("body.0.weight", "body.2.weight", "back.weight")]
    assert list(model.state_dict()) == expected
    with torch.no_grad():
        found = model(ids)
    with torch.inference_mode():
        copies = [by_pickle(model, None), by_torch(model, None), deepcopy(model)]
        for other in copies:
            assert torch.equal(other(ids), found)
    for other in (model, *copies):
        assert other.head.weight is other.embedding.weight
        sa.densify(other)
        assert list(other.state_dict()) == names
        assert other.head.weight is other.embedding.weight
        assert torch.equal(other.embedding.weight, embedding)


def test_layers_that_are_called_by_name_are_quantised():
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = block()

        def forward(self, x):
            return self.body[2](input=self.body[0](input=x).relu())

    plan = sa.plan_of(sa.sparsify(Named().eval(), "exact", rows(4), weights="int8"))
    assert [0 < one.error < 0.05 for one in plan.layers] == [True, True]


@pytest.mark.parametrize("keep_weights", [True, False])
@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_transposed_layers_are_quantised_as_plain_ones(weights, keep_weights, tmp_path):
    """``Conv1D`` of transformers holds the transpose of the weight of ``nn.Linear``."""
    kind = pytest.importorskip("transformers.pytorch_utils").Conv1D
    plain = block()
    model = nn.Sequential(kind(S, D), nn.ReLU(), kind(OUT, S)).eval()
    with torch.no_grad():
        for mine, other in zip(model, plain, strict=True):
            if isinstance(mine, kind):
                mine.weight.copy_(other.weight.t())
                mine.bias.copy_(other.bias)
    dense = deepcopy(model)
    for one in (model, plain):
        sa.sparsify(one, "exact", list(rows(9).split(1)), weights=weights, keep_weights=keep_weights)
    with torch.no_grad():
        for m in (1, 5, 40):
            assert torch.equal(model(rows(m)), plain(rows(m)))
        save_plan(model, tmp_path / "plan")
        assert torch.equal(load_plan(deepcopy(dense), tmp_path / "plan", rows(4))(rows(5)), plain(rows(5)))
    sa.densify(model)
    sa.densify(plain)
    assert [type(layer) for layer in model] == [kind, nn.ReLU, kind]
    assert all(torch.equal(model[i].weight, plain[i].weight.t()) for i in (0, 2))
    assert model[0].weight.is_contiguous()
