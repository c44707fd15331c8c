"""Row functions, masks and batch norms between linear layers: blocks are found, and compute what torch computes."""

from __future__ import annotations

import pickle
from contextlib import suppress
from copy import deepcopy

import pytest
import torch
from inference.zoo import Written, X
from torch import nn
from torch.nn import functional as F  # noqa: N812 # as torch writes it

import sparsact as sa
from sparsact.inference import find_blocks
from sparsact.inference.find_blocks import blocks_or_reason
from sparsact.inference.methods import screen_of
from sparsact.inference.selectors import ActiveInputs, Everything, GateThenUp, WhereGateIsOn
from sparsact.inference.sparse_linear import SparseLinear

D, S, K = 12, 70, 9
DTYPES = [torch.float32, torch.bfloat16, torch.float64]


def gaussian_top_k(z):
    """As in Gemma 3n, whose multiplier is computed in each call."""
    share = torch.tensor(0.9, dtype=torch.float32)
    multiplier = torch.distributions.normal.Normal(0, 1).icdf(share).type(z.dtype)
    cutoff = z.mean(dim=-1, keepdim=True) + z.std(dim=-1, keepdim=True, unbiased=False) * multiplier
    return F.gelu(F.relu(z - cutoff), approximate="tanh")


def scattered(z):
    values, places = z.topk(K, dim=-1)
    return torch.zeros_like(z).scatter_(-1, places, values.relu())


def masked(z):
    kept = torch.zeros(z.shape, dtype=torch.bool).scatter(-1, z.abs().topk(K).indices, True)
    return z.masked_fill(~kept, 0.0)


def largest_half(z):
    return F.relu(z - z.max(-1).values.unsqueeze(-1) / 2)


ROW_FUNCTIONS = {
    "Gaussian top-k": gaussian_top_k,
    "scatter": scattered,
    "masked": masked,
    "kth value": lambda z: z * (z >= z.kthvalue(S - K + 1, keepdim=True).values),
    "last of the largest": lambda z: z * (z >= z.topk(K)[0][..., -1, None]),
    "half of the largest": largest_half,
    "sorted": lambda z: torch.where(z >= z.sort(-1, descending=True).values[..., K - 1 : K], z, 0.0),
    "shrunk": lambda z: F.softshrink(z, 1.5),
    "above": lambda z: F.relu(-z - 1),
}


class Gated(nn.Module):
    """V (f(G x) * (W x)), with G and W in one layer if ``halves``."""

    def __init__(self, f, halves=False):
        super().__init__()
        self.f, self.halves = f, halves
        self.up, self.gate = nn.Linear(D, 2 * S if halves else S), nn.Linear(D, S)
        self.down = nn.Linear(S, 5)

    def forward(self, x):
        gate, up = self.up(x).chunk(2, dim=-1) if self.halves else (self.gate(x), self.up(x))
        return self.down(self.f(gate) * up)


def hostile(dtype):
    """Rows that switch all units alike, rows with ties, and rows that are not finite."""
    x = torch.randn(6, D, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    x[1], x[2], x[3, 2], x[4, 5], x[5] = 0.0, 1e30 if dtype != torch.float64 else 1e200, torch.nan, torch.inf, x[0]
    return x.to(dtype)


def check_equal(model, dense, x):
    with torch.no_grad():
        wanted, found = dense(x), model(x)
    assert torch.equal(found.isfinite(), wanted.isfinite())
    eps = {torch.float32: 1e-5, torch.bfloat16: 0.03, torch.float64: 1e-12}[x.dtype]
    size = wanted.nan_to_num(0.0, 0.0, 0.0).abs().amax(-1, keepdim=True)
    error = (found.double() - wanted.double()).abs().nan_to_num(0.0, 0.0, 0.0)
    assert bool((error <= eps * (1 + size)).all())


@pytest.mark.filterwarnings("ignore:std.*degrees of freedom:UserWarning")  # of no rows
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ROW_FUNCTIONS)
@pytest.mark.parametrize("halves", [False, True])
def test_the_up_projection_is_computed_where_the_row_function_is_not_zero(name, dtype, halves):
    torch.manual_seed(0)
    dense = Gated(ROW_FUNCTIONS[name], halves).to(dtype).eval()
    x = torch.randn(40, D).to(dtype)
    [block] = find_blocks(dense, x)
    assert block.exact
    assert block.private
    assert block.activation.zero_below is None
    assert block.activation.zeros_elsewhere
    z = torch.randn(3, 5, S).to(dtype)
    assert torch.equal(block.activation.function(z), ROW_FUNCTIONS[name](z))
    model = sa.sparsify(deepcopy(dense), "exact", [x[:1], x[:3]])
    for rows in (x[:1], x[1:2], x[:3], x[None, 3:7], x, x[:0], x[0]):
        check_equal(model, dense, rows)
    for one in hostile(dtype).split(1):
        check_equal(model, dense, one)
    check_equal(model, dense, hostile(dtype))
    kind = GateThenUp if halves else WhereGateIsOn
    assert isinstance(model.up._sparse.selector, kind)
    copied = pickle.loads(pickle.dumps(model.down)), deepcopy(model)
    check_equal(copied[1], dense, x[:2])
    assert model.down._sparse.sparse_calls > 0


def test_the_up_projection_reads_only_rows_that_are_on():
    """Its other rows may hold anything that is finite: sums with them would show."""
    torch.manual_seed(0)
    dense = Gated(gaussian_top_k).eval()
    x = torch.randn(1, D)
    on = gaussian_top_k(dense.gate(x))[0] != 0
    assert 0 < int(on.sum()) < S / 4
    model = sa.sparsify(deepcopy(dense), "exact", x)
    outputs = []
    model.down.register_forward_pre_hook(lambda module, args: outputs.append(args[0]))
    calls = []
    handle = model.up._sparse.weights.get(model.up._sparse.weight_version(model.up))
    rows = handle.rows
    handle.rows = lambda x, active, m, share: calls.append(active.clone()) or rows(x, active, m, share)
    check_equal(model, dense, x)
    assert torch.equal(calls[0][0].bool(), on)


@pytest.mark.filterwarnings("ignore:outputs should change by at most:UserWarning")
@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_row_functions_under_rounded_weights(weights):
    torch.manual_seed(0)
    model = Gated(gaussian_top_k).eval()
    x = torch.randn(30, D)
    sa.sparsify(model, "exact", list(x.split(1)), weights=weights)
    layers = model.gate, model.up, model.down
    assert isinstance(model.up._sparse.selector, WhereGateIsOn)
    with torch.no_grad():
        found = torch.cat([model(row) for row in x.split(1)])
        for layer in layers:
            layer._sparse.selector, layer._sparse.direct = Everything(), None
        wanted = torch.cat([model(row) for row in x.split(1)])
    assert wanted.any()
    assert torch.allclose(found, wanted, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_batch_norms_shift_the_threshold_of_each_unit(sign, dtype):
    torch.manual_seed(1)
    norm = nn.BatchNorm1d(S)
    for part in (norm.running_mean, norm.bias.data):
        part.normal_()
    norm.bias.data -= 1.5
    norm.running_var.uniform_(0.5, 2)
    norm.weight.data.uniform_(0.5, 2).mul_(sign)
    dense = nn.Sequential(nn.Linear(D, S), norm, nn.ReLU(), nn.Linear(S, 5)).to(dtype).eval()
    x = torch.randn(40, D).to(dtype)
    [block] = find_blocks(dense, x)
    assert (block.up, block.down, block.activation.name) == ("0", "3", "native_batch_norm, relu")
    assert block.exact
    with torch.no_grad():
        assert torch.equal(block.activation.function(x @ dense[0].weight.t()), dense[2](norm(x @ dense[0].weight.t())))
        edge = norm.running_mean - norm.bias * (norm.running_var + norm.eps).sqrt() / norm.weight
    below = block.activation.zero_below
    if sign > 0 and dtype == torch.float64:
        known = below.isfinite()
        assert known.any()
        assert torch.allclose(below[known], edge[known], rtol=1e-6)
    if sign < 0:  # units are off above it
        assert below is None
        assert block.activation.zeros_elsewhere
    bounds = sa.measure(dense, x).blocks[0].roofline()
    assert (bounds.certified == bounds.exact) == (sign < 0)
    model = sa.sparsify(deepcopy(dense), "exact", x[:1])
    for rows in (x[:1], x[:9], hostile(dtype)):
        check_equal(model, dense, rows)
    assert isinstance(model[3]._sparse.selector, ActiveInputs)
    assert model[3]._sparse.sparse_calls > 0
    norm_of_model = model[1]
    norm_of_model.bias.data += 1
    dense[1].bias.data += 1
    check_equal(model, dense, x[:3])


MASKS = {
    "factor of each row": lambda h, x: h * (x[..., :1] > 0),
    "factor of each unit and row": lambda h, x: h * x.repeat(1, 1, 3)[..., :7],
    "masked_fill": lambda h, x: h.masked_fill(x[..., :1] > 0, 0.0),
    "in place": lambda h, x: h.masked_fill_(x[..., :1] > 0, 0.0),
    "where": lambda h, x: torch.where(x[..., :1] > 0, h, 0.0),
    "where, other order": lambda h, x: torch.where(x[..., :1] > 0, torch.zeros(7), h),
    "divided": lambda h, x: h / (1 + x.square().sum(-1, keepdim=True)),
    "by position": lambda h, x: h * torch.arange(5.0)[:, None],
    "random": lambda h, x: h * torch.rand(7),
    "mask of units": lambda h, x: h * torch.tensor([1.0, 0, 1, 1, 0, 1, 1]),
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("gated", [False, True])
def test_masks_and_factors_keep_zeros(name, gated):
    def forward(m, x):
        h = F.relu(m.g(x)) * m.a(x) if gated else F.relu(m.a(x))
        return m.b(MASKS[name](h, x))

    dense = Written(forward).eval()
    [block] = find_blocks(dense, X)
    assert (block.gate, block.up, block.down) == ("g" if gated else None, "a", "b")
    assert block.activation.zero_below[0] == 0
    assert block.activation.scaled == (name != "mask of units")
    assert block.private
    if name == "random":
        return
    model = sa.sparsify(deepcopy(dense), "exact", X)
    x = torch.randn(4, 5, 3)
    x[0, 0, 0], x[1, 1, 1] = torch.nan, torch.inf
    for row in x.unsqueeze(1):
        with torch.no_grad():
            assert torch.allclose(model(row), dense(row), rtol=1e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize(
    ("forward", "why"),
    [
        (lambda m, x: m.b(F.silu(m.a(x)) * x.repeat(1, 1, 3)[..., :7]), "other numbers of the input multiply"),
        (lambda m, x: m.b(m.a(x).masked_fill(x[..., :1] > 0, 1.0)), "depends on other numbers of the input"),
        (lambda m, x: m.b(F.relu(m.a(x) * x[..., :1])), "depends on other numbers of the input"),
        (lambda m, x: m.b(m.a(x) - m.a(x).mean(-1, keepdim=True)), "one layer before its activation, or two"),
        (lambda m, x: m.b(m.a(x).softmax(-1)), "through softmax, which is not of each unit alone"),
        (lambda m, x: m.b(F.relu(x @ m.c + 1)), "b reads a product with the parameter c"),
    ],
)
def test_what_is_no_block(forward, why):
    model = Written(forward)
    model.c = nn.Parameter(torch.ones(3, 7))
    with pytest.raises(ValueError, match=why):
        find_blocks(model, X)


def test_a_threshold_on_normalised_pre_activations_is_none_on_them():
    """What is above .5 after the norm may be below .5 before it."""

    def forward(m, x):
        z = m.g(x)
        return m.b(F.relu(z * torch.rsqrt(z.square().mean(-1, keepdim=True)) - 0.5) * m.a(x))

    dense = Written(forward).eval()
    dense.g.weight.data *= 0.01
    dense.g.bias.data.zero_()
    [block] = find_blocks(dense, X)
    assert block.activation.zero_below is None
    assert block.activation.zeros_elsewhere
    model = sa.sparsify(deepcopy(dense), "exact", X[:1])
    x = torch.randn(1, 3)
    with torch.no_grad():
        assert dense.g(x).abs().max() < 0.5
        assert torch.allclose(model(x), dense(x), atol=1e-6)
    assert model.up._sparse.sparse_calls if hasattr(model, "up") else True


class AcrossRows(Gated):
    """The largest of all rows together, which one row does not show."""

    def __init__(self):
        super().__init__(self.largest)

    def largest(self, z):
        flat = z.reshape(1, -1)
        values, places = flat.topk(K * (flat.shape[1] // S))
        return torch.zeros_like(flat).scatter(-1, places, values).view(z.shape)


def test_what_one_row_did_not_show_of_several():
    torch.manual_seed(2)
    dense = AcrossRows().eval()
    x = torch.randn(7, D) * torch.linspace(0.1, 3, 7)[:, None]
    [block] = find_blocks(dense, x[:1])
    assert block.activation.of_one_row
    model = sa.sparsify(deepcopy(dense), "exact", x[:1])
    for rows in (x[:1], x[:3], x):
        check_equal(model, dense, rows)
    assert [block.up for block in find_blocks(dense, x)] == [None]  # its zeros are seen, not where they come from
    axis = Gated(lambda z: F.relu(z - z.mean(1, keepdim=True))).eval()  # of units or of tokens
    assert all(block.up is None for block in blocks_or_reason(axis, x)[0])


def test_what_else_reads_the_up_projection_of_a_row_function_keeps_it_whole():
    def forward(m, x):
        z = m.a(x)
        return m.b(gaussian_top_k(m.g(x)) * z), z.mean(-1)

    [block] = find_blocks(Written(forward), X)
    assert block.exact
    assert not block.private


def test_another_module_in_the_place_of_the_activation():
    dense = Gated(nn.Sequential(nn.Softshrink(0.3))).eval()
    x = torch.randn(2, D)
    model = sa.sparsify(deepcopy(dense), "exact", x)
    check_equal(model, dense, x)
    model.f[0] = dense.f[0] = nn.Sigmoid()
    check_equal(model, dense, x)


class Jump(Gated):
    """The model itself holds the threshold."""

    def __init__(self, shape):
        super().__init__(None)
        self.theta = nn.Parameter(torch.full(shape, 0.5), requires_grad=False)

    def forward(self, x):
        z = self.gate(x)
        return self.down(z * (z > self.theta) * self.up(x))


@pytest.mark.parametrize("method", ["exact", "certified"])
@pytest.mark.parametrize("shape", [(S,), (1, 1, S)])
def test_a_copy_of_a_model_whose_threshold_has_changed(shape, method):
    dense = Jump(shape).eval()
    dense.gate.bias.data -= 0.5
    x = torch.randn(1, 2, D)
    model = sa.sparsify(deepcopy(dense), method, x)
    check_equal(deepcopy(model), dense, x)
    for one in (dense, model):
        one.theta.data.fill_(-0.2)
    for copied in (model, deepcopy(model), pickle.loads(pickle.dumps(model))):
        check_equal(copied, dense, x)


def test_literals_that_are_written_to_are_none():
    def forward(m, x):
        mask = torch.zeros(x.shape[0], 7)
        view = mask[:]
        mask.add_(x.sum(-1, keepdim=True))
        return m.b(F.relu(m.a(x) + view))

    with pytest.raises(ValueError, match="b reads a through add, with other numbers"):
        find_blocks(Written(forward), torch.randn(1, 3))


def test_autoencoders_of_parameters_are_named():
    class Autoencoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.W_enc, self.W_dec = nn.Parameter(torch.randn(3, 7)), nn.Parameter(torch.randn(7, 3))

        def forward(self, x):
            return F.relu(x @ self.W_enc) @ self.W_dec

    with pytest.raises(ValueError, match=r"multiplies by parameters of other modules: W_enc, W_dec"):
        find_blocks(Autoencoder(), X)


def switched_off(weight, bias):
    """Most units off, at inputs whose first number is 2."""
    weight.data[:, 0] = -0.4
    bias.data += 0.2


def inputs_of(rows, size=1.0):
    x = torch.randn(rows, D)
    x[:, 0] = 2
    return x * size


CLIPPED = {
    "norm": lambda h: F.relu(h) * (1000 / h.norm(dim=-1, keepdim=True)).clamp(max=1),
    "mean": lambda h: F.relu(h + F.relu(-10 - h.mean(-1, keepdim=True))),
    "sum": lambda h: F.relu(h) * (1 + F.relu(h.sum(-1, keepdim=True))),
}


@pytest.mark.parametrize("name", CLIPPED)
def test_a_clip_far_from_usual_numbers_needs_the_units_that_are_off(name):
    torch.manual_seed(0)
    dense = Written(lambda m, x: m.b(CLIPPED[name](m.a(x))))
    dense.a, dense.b = nn.Linear(D, S), nn.Linear(S, 5)
    dense.eval()
    switched_off(dense.a.weight, dense.a.bias)
    with pytest.raises(ValueError, match='method="certified" applies to none'):
        sa.sparsify(deepcopy(dense), "certified", inputs_of(4))
    model = sa.sparsify(deepcopy(dense), "exact", inputs_of(4))
    for size in (1.0, 1e3, 1e5):
        check_equal(model, dense, inputs_of(4, size))


def by_position(h):
    return torch.where(torch.arange(h.shape[-2])[:, None] < 4, F.relu(h), h)


def first_rows(h):
    h[:4].relu_()
    return h


@pytest.mark.parametrize("f", [by_position, first_rows])
def test_rows_further_on_than_those_seen(f):
    """Of the first four rows the activation is a ReLU."""
    torch.manual_seed(0)
    dense = Written(lambda m, x: m.b(f(m.a(x))))
    dense.a, dense.b = nn.Linear(D, S), nn.Linear(S, 5)
    dense.eval()
    dense.a.weight.data *= 0.5  # so that the screen proves most of them off
    switched_off(dense.a.weight, dense.a.bias)
    model = sa.sparsify(deepcopy(dense), "exact", inputs_of(4))
    assert model.b._sparse.max_rows >= 9
    check_equal(model, dense, inputs_of(9))
    with suppress(ValueError):  # refused
        model = sa.sparsify(deepcopy(dense), "certified", inputs_of(4))
        check_equal(model, dense, inputs_of(9))


def test_a_dropout_in_training_mode_between_layers_in_evaluation_mode():
    torch.manual_seed(0)
    dense = nn.Sequential(nn.Linear(D, S), nn.Dropout(0.5), nn.Threshold(0.4, 0.0), nn.Linear(S, 5)).eval()
    switched_off(dense[0].weight, dense[0].bias)
    model = sa.sparsify(deepcopy(dense).train(), "certified", inputs_of(9)).eval()
    x = inputs_of(8)
    for mode in (False, True, False):
        for one in (dense, model):
            one[1].train(mode)
        for _ in range(3):  # the second is direct
            outputs = []
            for one in (dense, model):
                torch.manual_seed(1)
                with torch.no_grad():
                    outputs.append(one(x))
            assert torch.allclose(*outputs, atol=1e-5)
    assert model[0]._sparse.sparse_calls > 0


def test_casts_that_the_type_of_the_trace_did_not_show():
    """In bfloat16 the model compares numbers in float32, which the trace in float32 cast nowhere."""
    torch.manual_seed(0)

    def largest(z):
        wide = z.float()
        return (wide * (wide > wide.mean(-1, keepdim=True) + wide.std(-1, keepdim=True))).to(z.dtype)

    dense = Gated(largest).eval()
    model = sa.sparsify(deepcopy(dense), "exact", torch.randn(3, D))
    assert isinstance(model.up._sparse.selector, WhereGateIsOn)
    dense.bfloat16()
    model.bfloat16()
    for x in torch.randn(200, 4, D).bfloat16():
        check_equal(model, dense, x)


def test_pre_activations_of_another_type_are_rounded_past_thresholds():
    model = nn.Sequential(nn.Linear(D, S), nn.Threshold(0.4, 0.0), nn.Linear(S, 5)).eval()
    [block] = find_blocks(model, torch.randn(3, D))
    weight, bias = model[0].weight.detach(), model[0].bias.detach()
    thresholds, rows = block.activation.zero_below, torch.empty(0, D)
    assert screen_of(weight, bias, thresholds, rows) is not None
    assert screen_of(weight.bfloat16(), bias.bfloat16(), thresholds, rows) is None
    assert screen_of(weight.bfloat16(), bias.bfloat16(), 0 * thresholds, rows) is not None


def test_blocks_that_were_found_before_the_threshold_changed():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(D, S), nn.BatchNorm1d(S), nn.ReLU(), nn.Linear(S, 5)).eval()
    switched_off(model[0].weight, model[0].bias)
    model[1].running_mean.fill_(0.4)
    blocks = find_blocks(model, inputs_of(4))
    assert isinstance(sa.sparsify(deepcopy(model), "certified", inputs_of(4))[0], SparseLinear)
    model[1].running_mean.fill_(0.39)
    with pytest.raises(ValueError, match='method="certified" applies to none'):
        sa.sparsify(model, "certified", inputs_of(4), blocks=blocks)
    model[1].running_mean.fill_(0.41)
    dense = deepcopy(model)
    sa.sparsify(model, "certified", inputs_of(4), blocks=blocks)  # units below .4 are off still
    assert isinstance(model[0], SparseLinear)
    for _ in range(20):
        check_equal(model, dense, inputs_of(4))


def test_zeros_that_no_module_registers_may_be_written_to():
    torch.manual_seed(0)
    shift = torch.zeros(S)
    dense = Written(lambda m, x: m.b(F.relu(m.a(x) - shift)))
    dense.a, dense.b = nn.Linear(D, S), nn.Linear(S, 5)
    dense.eval()
    switched_off(dense.a.weight, dense.a.bias)
    with pytest.raises(ValueError, match='method="certified" applies to none'):
        sa.sparsify(deepcopy(dense), "certified", inputs_of(4))
    model = sa.sparsify(deepcopy(dense), "exact", inputs_of(4))
    shift.fill_(-0.4)
    check_equal(model, dense, inputs_of(4))


@pytest.mark.filterwarnings("ignore:`torch.jit.*` is deprecated:DeprecationWarning")
def test_a_scripted_module_between_layers_takes_no_hooks():
    torch.manual_seed(0)
    scripted = torch.jit.script(nn.Sequential(nn.Identity(), nn.ReLU()))
    model = nn.Sequential(nn.Linear(D, S), scripted, nn.Linear(S, 5)).eval()
    switched_off(model[0].weight, model[0].bias)
    x = inputs_of(8)
    with torch.no_grad():
        hidden, wanted = model[1](model[0](x)), model(x)
    found = sa.measure(model, x)
    assert found.density == pytest.approx(float((hidden != 0).float().mean()))
    sa.sparsify(model, "certified", x)
    with torch.no_grad():
        assert torch.allclose(model(x), wanted, atol=1e-5)
        assert model[0]._sparse.sparse_calls > 0
        model[1] = nn.Threshold(-0.5, 0.0)
        assert torch.allclose(
            model(x), nn.Linear.forward(model[2], model[1](nn.Linear.forward(model[0], x))), atol=1e-5
        )
