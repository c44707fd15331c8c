"""Triton's products against dense ones in float64: on the GPU or, where there is none, in Triton's interpreter."""

from __future__ import annotations

import importlib
import re
import sys

import gpu_products
import numpy as np
import pytest
import torch
from grids import few_of

from sparsact.inference.weights.int8 import quantized_weight
from sparsact.kernels.int8_linear import Int8Linear

WITHOUT = "Triton has wheels for Linux alone; it comes with the extra `gpu`"
EPSILON = {name: torch.finfo(getattr(torch, name)).eps for name in ("float32", "bfloat16", "float16")}
# (m, s, n, density): several segments of units and tiles of columns, more segments and rows than are added at once.
BLOCKS = [
    (1, 601, 37, 0.03),
    (3, 300, 270, 0.5),
    (16, 33, 29, 1),
    (2, 40, 7, 0),
    (1, 4200, 5, 0.03),
    (1, 19, 1030, 0.5),
]
INT8_BLOCKS = (BLOCKS[0], BLOCKS[1], BLOCKS[5], (17, 301, 45, 0.3))  # seconds each in the interpreter
EMPTY = [(0, 5, 6), (3, 0, 6), (3, 5, 0)]


@pytest.fixture(scope="module")
def product():
    pytest.importorskip("triton", reason=WITHOUT)
    run = gpu_products.device()
    return lambda *arguments, **options: run(gpu_products.product, options, *arguments)


def block(m, s, n, density, dtype="float32"):
    """Activations h (m, s), values (s, n), bias (n,); inputs x (m, n), bias (s,), mask (m, s)."""
    rng = np.random.default_rng([m, s, n])
    on = rng.random((m, s)) < density
    draws = [rng.standard_normal(shape) for shape in ((m, s), (s, n), (n,), (m, n), (s,))]
    h, values, bias, x, thresholds = (gpu_products.rounded(array, dtype) for array in draws)
    return np.where(on, h, np.float32(0)), values, bias, x, thresholds, on.astype(np.uint8)


def assert_close(found, inputs, weights, bias, dtype):
    """To within the rounding of sums of float32 in any order, and once to the precision of the result."""
    a, W, b = (array.astype(np.float64) for array in (inputs, weights, bias))
    exact, size = a @ W + b, abs(a) @ abs(W) + abs(b)
    limit = (len(W) + 2) * 2.0**-24 * size + EPSILON[dtype] * abs(exact)
    assert found.shape == exact.shape
    assert np.all(abs(found - exact) <= limit)


@pytest.mark.parametrize(
    ("sizes", "dtype"),
    few_of(
        [*((sizes, "float32") for sizes in BLOCKS), (BLOCKS[1], "bfloat16")],
        [(BLOCKS[i], "float32") for i in (0, 2, 3)],
    ),
    ids=str,
)
def test_sparse_product_is_the_dense_one(product, sizes, dtype):
    h, values, bias, *_ = block(*sizes, dtype)
    for together in (False, True):
        found = product("sparse_product", dtype, h, values, bias, together=together)
        assert_close(found, h, values, bias, dtype)


@pytest.mark.grid
@pytest.mark.parametrize("m", few_of(range(1, 18), (3, 17)))
def test_a_union_of_any_number_of_inputs(product, m):
    """Some inputs have no unit active, some all."""
    h, values, bias, *_ = block(m, 290, 131, 0.02)
    h[m // 2] = 0
    h[m // 3] = values[:, 0]
    for dtype in ("float32", "bfloat16", "float16"):
        rounded = [gpu_products.rounded(array, dtype) for array in (h, values, bias)]
        assert_close(product("sparse_product", dtype, *rounded, together=True), *rounded, dtype)


@pytest.mark.parametrize(
    ("sizes", "dtype"),
    [
        (BLOCKS[0], "float32"),
        (BLOCKS[3], "bfloat16"),
        (BLOCKS[5], "float32"),
        ((3, 23, 270, 0.5), "bfloat16"),
        ((16, 18, 29, 1), "float32"),
    ],
    ids=str,
)
def test_active_dot_is_the_dense_one_under_a_mask(product, sizes, dtype):
    _, weight, _, x, bias, on = block(*sizes, dtype)
    dots = product("active_dot", dtype, x, weight, bias, on)
    assert np.array_equal(dots[on == 0], np.zeros((on == 0).sum()))
    dense = np.where(on, dots, x.astype(np.float64) @ weight.T.astype(np.float64) + bias)
    assert_close(dense, x, weight.T, bias, dtype)


def test_half_precision_no_bias_and_a_mask_of_bools(product):
    h, values, _, x, _, on = block(2, 21, 35, 0.4, "float16")
    assert_close(product("sparse_product", "float16", h, values, None), h, values, np.zeros(35), "float16")
    dots = product("active_dot", "float16", x, values, None, on == 1)
    assert_close(np.where(on, dots, x.astype(np.float64) @ values.T), x, values.T, np.zeros(21), "float16")


def test_narrow_weights_and_wide_activations(product):
    """Only the rows are stored in half the bytes: h stays float32, and so does the result."""
    h, values, bias, *_ = block(2, 21, 35, 0.4, "bfloat16")
    h += np.float32(1e-4) * (h != 0)
    narrow = torch.from_numpy(values).bfloat16().view(torch.uint16).numpy()
    assert_close(product("sparse_product", "float32", h, narrow, bias), h, values, bias, "float32")


@pytest.mark.grid
def test_rows_of_other_units_are_not_read(product):
    """They hold NaN, which would show in the sums: for each input only the rows of its own active units are read."""
    h, values, bias, x, thresholds, on = block(3, 300, 37, 0.03)
    others = np.where(on.any(axis=0)[:, None], values, np.float32(np.nan))
    alone = product("sparse_product", "float32", h, values, bias)
    assert np.array_equal(product("sparse_product", "float32", h, others, bias), alone)
    dots = product("active_dot", "float32", x, values, thresholds, on)
    assert np.array_equal(product("active_dot", "float32", x, others, thresholds, on), dots)
    union = [product("sparse_product", "float32", h, one, bias, together=True) for one in (values, others)]
    assert np.array_equal(*union)
    unit = np.flatnonzero(on[1] & ~on[0] & ~on[2])[0]
    others[unit] = np.inf
    found = product("sparse_product", "float32", h, others, bias)
    assert np.array_equal(found[[0, 2]], alone[[0, 2]])
    assert not np.isfinite(found[1]).any()


@pytest.mark.grid
def test_nan_is_active_and_stays_in_its_row(product):
    h, values, bias, x, thresholds, on = block(3, 70, 37, 0.2)
    h[[0, 2], 69] = 1  # a union is then of the same units
    for together in (False, True):
        h[1, 69] = 2
        clean = product("sparse_product", "float32", h, values, bias, together=together)
        h[1, 69] = np.nan
        found = product("sparse_product", "float32", h, values, bias, together=together)
        assert np.isnan(found[1]).all()
        assert np.array_equal(found[[0, 2]], clean[[0, 2]])
    for number in (np.nan, np.inf):
        x[1, 5] = number
        dots = product("active_dot", "float32", x, values, thresholds, on)
        assert np.array_equal(np.isfinite(dots), (np.arange(3)[:, None] != 1) | (on == 0))
        gated = product("active_dot", "float32", x, values, thresholds, on, gate=True)
        assert np.array_equal(gated, np.where((np.arange(3)[:, None] == 1) & (on == 0), np.nan, dots), equal_nan=True)


def quantized(m, s, n, density, size=1.0):
    """Inputs (m, s), int8 weights (s, n), scales and bias (n,)."""
    h, values, bias, *_ = block(m, s, n, density)
    integers, scale = quantized_weight(torch.from_numpy(values.T))
    return np.float32(size) * h, integers.T.contiguous().numpy(), scale.numpy(), bias


@pytest.mark.parametrize(
    "sizes", [BLOCKS[2], BLOCKS[3], *(pytest.param(sizes, marks=pytest.mark.grid) for sizes in INT8_BLOCKS)], ids=str
)
def test_int8_outputs_match_the_cpu_to_the_bit(product, sizes):
    for size, dtype in ((1, "float32"), (1, "bfloat16"), (1e-7, "float32"), (3e37, "float32")):
        h, weights, scale, bias = quantized(*sizes, size)
        h = gpu_products.rounded(h, dtype)
        found = Int8Linear(np.ascontiguousarray(weights.T), scale, bias)
        expected = np.empty((len(h), len(scale)), dtype=np.float32)
        found.rows(h.ctypes.data, len(h), expected.ctypes.data, 1)
        for gather in (True, False)[: 2 if size == 1 else 1]:
            outputs = product("int8_product", dtype, h, weights, scale, bias, gather=gather)
            if dtype == "float32":
                assert np.array_equal(outputs, expected)
            else:  # the interpreter cuts numbers off where a GPU rounds them
                assert np.all(abs(outputs - expected) <= EPSILON[dtype] * abs(expected))
        if size == 1:  # inputs are at most half a step off, the steps 127 for their range, and 0 a step of its own
            step = (max(h.max(), 0) - min(h.min(), 0)) / 127
            exact = h.astype(np.float64) @ (weights * scale.astype(np.float64)) + bias
            error = step * (abs(weights * scale.astype(np.float64)).sum(axis=0) + 1e-3)
            assert np.all(abs(outputs - exact) <= error + 8 * EPSILON[dtype] * abs(exact))


ENDS = [(0.0, 0.0), (-1.0, 0.0), (0.0, 3.7), (-2.5, 2.5), (-1e-9, 3e-9), (0.0, 1e-42), (-3e-41, 0.0), (7.75e-3, 9e-3)]
ENDS += [(-3.3e38, 3.3e38), (0.0, np.inf), (-np.inf, 0.0), (np.nan, 1.0)]


@pytest.mark.parametrize("ends", ENDS, ids=str)
def test_int8_inputs_of_any_range(product, ends):
    """Constant, tiny and huge, with one sign or both, and not finite: then all outputs are NaN."""
    h = np.linspace(0, 1, 3 * 34, dtype=np.float32).reshape(3, 34) ** 2
    with np.errstate(over="ignore", invalid="ignore"):
        h = np.clip(h * (np.float32(ends[1]) - np.float32(ends[0])) + np.float32(ends[0]), *np.sort(np.float32(ends)))
    h[2, 33], h[0, 0] = ends
    _, weights, scale, bias = quantized(3, 34, 21, 1)
    expected = np.empty((3, 21), dtype=np.float32)
    Int8Linear(np.ascontiguousarray(weights.T), scale, bias).rows(h.ctypes.data, 3, expected.ctypes.data, 1)
    assert np.array_equal(product("int8_product", "float32", h, weights, scale, bias), expected, equal_nan=True)


@pytest.mark.grid
def test_an_input_has_the_same_bits_alone_and_again(product):
    h, values, bias, x, thresholds, on = block(3, 300, 37, 0.3)
    for name, rows, rest in (
        ("sparse_product", (h,), (values, bias)),
        ("active_dot", (x, on[:, :40]), (values[:40], thresholds[:40])),
    ):
        first, *masks = rows
        together = [product(name, "float32", first, *rest, *masks) for _ in range(2)]
        alone = [
            product(name, "float32", first[i : i + 1], *rest, *(mask[i : i + 1] for mask in masks)) for i in range(3)
        ]
        assert np.array_equal(*together)
        assert np.array_equal(np.concatenate(alone), together[0])


@pytest.mark.parametrize("sizes", EMPTY, ids=str)
def test_nothing_to_add(product, sizes):
    h, values, bias, x, thresholds, on = block(*sizes, 1)
    for together in (False, True):
        found = product("sparse_product", "float32", h, values, bias, together=together)
        assert np.allclose(found, h @ values + bias, atol=1e-5)
    found = product("int8_product", "float32", h, values.astype(np.int8), bias, bias)
    assert np.allclose(found, h @ values.astype(np.int8) * bias + bias, atol=1e-5)
    dots = product("active_dot", "float32", x, values, thresholds, on)
    assert np.allclose(dots, x @ values.T + thresholds, atol=1e-5)


@pytest.mark.grid
def test_inputs_may_have_any_strides_and_weights_not(product):
    h, values, bias, x, thresholds, on = block(3, 40, 7, 0.5)
    strided = [np.asfortranarray(array) for array in (h, x, on)]
    assert_close(product("sparse_product", "float32", strided[0], values, bias), h, values, bias, "float32")
    dots = product("active_dot", "float32", strided[1], values, thresholds, strided[2])
    assert np.array_equal(dots, product("active_dot", "float32", x, values, thresholds, on))
    with pytest.raises(ValueError, match="`values` must be contiguous"):
        product("sparse_product", "float32", h, np.asfortranarray(values), bias)


def test_misfits_are_refused(product):
    h, values, bias, x, thresholds, on = block(3, 40, 7, 0.5)
    with pytest.raises(ValueError, match=r"h of 40 units needs values \(40, n\) .* got \(39, 7\)"):
        product("sparse_product", "float32", h, values[:39], bias)
    with pytest.raises(ValueError, match=r"a bias \(n,\); got \(40, 7\) and \(6,\)"):
        product("sparse_product", "float32", h, values, bias[:6])
    with pytest.raises(ValueError, match=r"`h` must be float32, bfloat16 or float16.*got torch.float64"):
        product("sparse_product", "float32", h.astype(np.float64), values, bias)
    with pytest.raises(ValueError, match=r"as matrices; got .* of shape \(40,\)"):
        product("sparse_product", "float32", h[0], values, bias)
    with pytest.raises(ValueError, match=r"`values` must be int8, inputs and weights as matrices; got torch.float32"):
        product("int8_product", "float32", h, values, bias, bias)
    with pytest.raises(ValueError, match=r"h of 40 units needs values \(40, n\)"):
        product("int8_product", "float32", h, values.astype(np.int8), bias[:6], bias)
    with pytest.raises(ValueError, match=r"x of 7 numbers needs weight \(s, 7\)"):
        product("active_dot", "float32", x, values[:, :6].copy(), thresholds, on)
    with pytest.raises(ValueError, match=r"`mask` must be uint8 or bool, \(3, 40\)"):
        product("active_dot", "float32", x, values, thresholds, on[:2])
    with pytest.raises(ValueError, match="`mask` must be uint8 or bool"):
        product("active_dot", "float32", x, values, thresholds, on.astype(np.int64))


def test_tensors_of_the_cpu_are_sent_to_the_kernels_of_the_cpu(monkeypatch):
    pytest.importorskip("triton", reason=WITHOUT)
    from sparsact.inference.triton import products

    monkeypatch.setattr(products, "INTERPRETED", False)
    with pytest.raises(ValueError, match=r"`h` must be on a CUDA device, not on cpu: there use sparsact.kernels"):
        products.sparse_product(torch.zeros(1, 3), torch.zeros(3, 2))


def test_without_triton_the_import_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("sparsact.inference.triton")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(ImportError, match=r'pip install "sparsact\[gpu\]"'):
        importlib.import_module("sparsact.inference.triton")


SUMS = {"partial": "*fp32", **dict.fromkeys(("m", "s", "n", "span"), "i32")}
WHOLE = {"least": None, "largest": None}
ENDS_GIVEN = {"least": "*bf16", "largest": "*bf16"}
TOTAL = {"partial": "*fp32", "out": "*bf16", "n": "i32", "parts": "i32"}
LAUNCHES = {
    "one input": ("partial_sums", SUMS | {"h": "*bf16", "values": "*bf16"}, WHOLE | {"ROWS": 1, "NARROW": True}),
    "union": ("partial_sums", SUMS | {"h": "*bf16", "values": "*bf16"}, WHOLE | {"ROWS": 16, "NARROW": True}),
    "union, wide": ("partial_sums", SUMS | {"h": "*fp32", "values": "*bf16"}, WHOLE | {"ROWS": 16, "NARROW": False}),
    **{
        f"int8, {rows}": (
            "partial_sums",
            SUMS | ENDS_GIVEN | {"h": "*bf16", "values": "*i8", "partial": "*i32"},
            {"ROWS": rows, "NARROW": True},
        )
        for rows in (1, 16)
    },
    "total": ("total", TOTAL, WHOLE | {"scales": None, "bias": None}),
    "int8 total": ("total", TOTAL | ENDS_GIVEN | {"partial": "*i32", "scales": "*fp32", "bias": "*fp32"}, {}),
    "dots": (
        "dots",
        {**dict.fromkeys(("x", "weight", "bias", "out"), "*bf16"), "on": "*u8", "s": "i32", "d": "i32"},
        {"GATE": True},
    ),
}


@pytest.mark.parametrize("name", few_of(LAUNCHES, ["union", "int8, 16", "total", "int8 total", "dots"]))
@pytest.mark.grid
def test_the_kernels_compile_for_a_gpu_that_is_not_here(name, tmp_path, monkeypatch):
    """Rows are read by 16 bytes, nothing is added atomically, and all that a program holds fits into registers.

    Unions use the units of matrices, and rounding to integers by adding is left as it is written.
    """
    triton = pytest.importorskip("triton", reason=WITHOUT)
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from sparsact.inference.triton import kernels, products
    from sparsact.kernels import gpu

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    function, types, constants = LAUNCHES[name]
    kernel = getattr(kernels, function)
    if function == "partial_sums":
        constants = constants | products.SUMS[constants["ROWS"]] | {"SEGMENT": products.SEGMENT, "GATHER": True}
    else:
        constants = constants | (products.DOTS if function == "dots" else products.TOTAL)
    source = ASTSource(
        fn=kernel,
        signature={argument: types.get(argument, "constexpr") for argument in kernel.arg_names},
        constexprs={(kernel.arg_names.index(argument),): value for argument, value in constants.items()},
        attrs={(kernel.arg_names.index(argument),): [["tt.divisibility", 16]] for argument in types},
    )
    assembly = triton.compile(source, target=GPUTarget("cuda", 80, 32), options=gpu.FUSED).asm["ptx"]
    assert "ld.global.v4" in assembly
    assert not re.search(r"\b(atom|red)\.global", assembly)
    assert ".local" not in assembly
    assert ("mma.sync" in assembly) == (constants.get("ROWS") == 16 and constants["NARROW"])
    assert ("add.f32" in assembly and "0fCB400000" in assembly) == ("values" in types and types["values"] == "*i8")
