"""Row functions, masks and batch norms between linear layers: blocks are found, and compute what torch computes."""

from __future__ import annotations

import pickle
from copy import deepcopy

import pytest
import torch
from inference.row_cases import D, Gated, K, S, check_equal
from inference.zoo import Written, X
from torch import nn
from torch.nn import functional as F

import sparsact as sa
from sparsact.inference import find_blocks
from sparsact.inference.find_blocks import blocks_or_reason
from sparsact.inference.selectors import ActiveInputs, Everything, GateThenUp, WhereGateIsOn

DTYPES = [torch.float32, torch.bfloat16, torch.float64]


def gaussian_top_k(z):
    """The activation of Gemma 3n, whose multiplier is computed in each call."""
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


def hostile(dtype):
    """Rows that switch all units alike, rows with ties, and rows that are not finite."""
    x = torch.randn(6, D, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    x[1], x[2], x[3, 2], x[4, 5], x[5] = 0.0, 1e30 if dtype != torch.float64 else 1e200, torch.nan, torch.inf, x[0]
    return x.to(dtype)


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
        (lambda m, x: m.b(m.a(x) - m.a(x).mean(-1, keepdim=True)), "one or two layers before its activation"),
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
