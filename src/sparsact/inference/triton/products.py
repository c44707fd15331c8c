"""The products: what they take, what they refuse, and how the work is laid out on the device."""

from __future__ import annotations

import os
from typing import Final

import torch
import triton
from torch import Tensor

from sparsact.inference.triton import kernels
from sparsact.kernels.gpu import DTYPES, launch

INTERPRETED: Final = os.environ.get("TRITON_INTERPRET") == "1"  # on the CPU, in NumPy: to check results, not for speed
TOGETHER: Final = 16  # inputs that share what is read of the weights
# Sums held in registers, by inputs.
SUMS: Final = {1: {"AT_ONCE": 16, "COLUMNS": 256}, TOGETHER: {"AT_ONCE": 32, "COLUMNS": 128}}
TOTAL: Final = SUMS[1]
# Units that are searched at once, so that 3 % of them are about half the rows that are read at once.
SEGMENT: Final = 256
PROGRAMS: Final = 1024  # enough for a device to have others while one waits; more would write more partial sums
DOTS: Final = {"SEGMENT": 16, "AT_ONCE": 4, "DEPTH": 1024}


def sparse_product(h: Tensor, values: Tensor, bias: Tensor | None = None, *, together: bool = False) -> Tensor:
    r"""Second layer of a block from the rows of its active units: :math:`b + \sum_{j:\, h_{ij} \ne 0} h_{ij} v_j`.

    Parameters
    ----------
    h : Tensor of shape (m, s), float32, bfloat16 or float16
        Activations. Every number but zero is active, NaN too.
    values : Tensor of shape (s, n), contiguous
        Outgoing weights, one row a unit: a copy of the transpose of ``nn.Linear.weight``. May be narrower than ``h``.
    bias : Tensor of shape (n,), contiguous, or None
        b.
    together : bool
        Read the row of a unit once for 16 inputs, if any has it active, rather than once an input. The order of a
        sum, hence its last bits, then depends on the other inputs, and ``values`` must be finite.

    Returns
    -------
    products : Tensor of shape (m, n), of the dtype of ``h``

    Raises
    ------
    ValueError
        If shapes, dtypes or devices do not fit, or the weights are not contiguous.

    Notes
    -----
    Made for few inputs (up to 16), whose common rows meet in the cache if each reads its own. Two launches, and partial
    sums of at most ``4 m n s / 256`` bytes.
    """
    _refuse_misfits({"h": h, "values": values, "bias": bias})
    parts = None if together else triton.cdiv(h.shape[1], SEGMENT)
    return _product(h, values, bias, rows=TOGETHER if together and len(h) > 1 else 1, parts=parts)


def int8_product(x: Tensor, values: Tensor, scale: Tensor, bias: Tensor, *, gather: bool = True) -> Tensor:
    r"""Linear layer with int8 weights whose inputs are quantised as they come, by the rules of the CPU's kernels.

    Parameters
    ----------
    x : Tensor of shape (m, s), float32, bfloat16 or float16
        Inputs; the numbers of a row share one scale and zero point.
    values : Tensor of shape (s, n), int8, contiguous
        Weights, one row per input: the transpose of what ``quantized_weight`` returns. At most 65,535 rows.
    scale, bias : Tensor of shape (n,), float32, contiguous
        Scale and bias of each output.
    gather : bool
        Whether to read only the rows of inputs whose code is not that of 0.

    Returns
    -------
    outputs : Tensor of shape (m, n), of the dtype of ``x``
        To the bit the same as :class:`~sparsact.kernels.int8_linear.Int8Linear`: sums of integers have no order.

    Raises
    ------
    ValueError
        If shapes, dtypes or devices do not fit, or the weights are not contiguous.
    """
    _refuse_misfits({"x": x, "values": values, "scale": scale, "bias": bias})
    return _product(x, values, bias, rows=1 if len(x) == 1 else TOGETHER, scale=scale, gather=gather)


def _product(
    h: Tensor,
    values: Tensor,
    bias: Tensor | None,
    *,
    rows: int,
    parts: int | None = None,
    scale: Tensor | None = None,
    gather: bool = True,
) -> Tensor:
    """Products of ``rows`` inputs at a time; partial sums of ``parts``, by default as many as keep a device busy."""
    (m, s), n = h.shape, values.shape[1]
    if len(values) != s or any(one is not None and one.shape != (n,) for one in (scale, bias)):
        raise ValueError(f"h of {s} units needs values ({s}, n) and a bias (n,); got {_shapes(values, bias)}.")
    h, settings = h.contiguous(), SUMS[rows]
    segments, groups, tiles = triton.cdiv(s, SEGMENT), triton.cdiv(m, rows), triton.cdiv(n, settings["COLUMNS"])
    span = triton.cdiv(segments, parts or max(1, PROGRAMS // max(1, groups * tiles))) if segments else 1
    parts, out = triton.cdiv(segments, span), h.new_empty((m, n))
    partial = h.new_empty((parts, m, n), dtype=torch.float32 if scale is None else torch.int32)
    narrow = scale is not None or (h.dtype == values.dtype and not INTERPRETED)  # which takes bfloat16 for integers
    ends = (None, None) if scale is None or not h.numel() else torch.aminmax(h, dim=1)
    launch(
        kernels.partial_sums, (groups, parts, tiles), h, *ends, values, partial, m, s, n, span * SEGMENT,
        contiguous=False, SEGMENT=SEGMENT, ROWS=rows, GATHER=gather, NARROW=narrow, **settings,
    )  # fmt: skip
    grid = m, triton.cdiv(n, TOTAL["COLUMNS"])
    launch(kernels.total, grid, partial, *ends, scale, bias, out, n, parts, contiguous=False, **TOTAL)
    return out


def active_dot(x: Tensor, weight: Tensor, bias: Tensor | None, mask: Tensor, *, gate: bool = False) -> Tensor:
    r"""First layer of a block at its active units: :math:`\langle x_i, w_j \rangle + b_j` where the mask is on, else 0.

    Reads the rows of units that some input needs, once per input, as :func:`sparse_product` does. One launch.

    Parameters
    ----------
    x : Tensor of shape (m, d), float32, bfloat16 or float16
        Inputs.
    weight : Tensor of shape (s, d), contiguous
        One row a unit. May be narrower than ``x``.
    bias : Tensor of shape (s,), contiguous, or None
        b.
    mask : Tensor of shape (m, s), uint8 or bool
        Not zero where a unit is wanted.
    gate : bool
        Whether a gate multiplies the outputs that is 0 where the mask is off: for an input that is not finite they are
        NaN there instead of 0, so that their product is what it is in the dense block.

    Returns
    -------
    dots : Tensor of shape (m, s), of the dtype of ``x``

    Raises
    ------
    ValueError
        If shapes, dtypes or devices do not fit, or the weights are not contiguous.
    """
    _refuse_misfits({"x": x, "weight": weight, "bias": bias})
    (m, d), s = x.shape, len(weight)
    if weight.shape[1] != d or (bias is not None and bias.shape != (s,)):
        raise ValueError(f"x of {d} numbers needs weight (s, {d}) and a bias (s,); got {_shapes(weight, bias)}.")
    if mask.shape != (m, s) or mask.dtype not in (torch.uint8, torch.bool) or mask.device != x.device:
        raise ValueError(
            f"`mask` must be uint8 or bool, ({m}, {s}), on {x.device}; got {mask.dtype}, {tuple(mask.shape)}, "
            f"on {mask.device}."
        )
    x, on, out = x.contiguous(), mask.contiguous().view(torch.uint8), x.new_empty((m, s))
    grid = m, triton.cdiv(s, DOTS["SEGMENT"])
    launch(kernels.dots, grid, x, weight, bias, on, out, s, d, contiguous=False, GATE=gate, **DOTS)
    return out


def _refuse_misfits(tensors: dict[str, Tensor | None]) -> None:
    """Refuse what the kernels cannot read, and weights that every call would copy. The first is the input."""
    given = [(name, tensor) for name, tensor in tensors.items() if tensor is not None]
    (first, inputs), *weights = given
    if inputs.device.type != "cuda" and not INTERPRETED:
        raise ValueError(f"`{first}` must be on a CUDA device, not on {inputs.device}: there use sparsact.kernels.")
    for name, tensor in given:
        dtypes, need = DTYPES, "float32, bfloat16 or float16"
        if "scale" in tensors and name != first:
            need = "int8" if name == "values" else "float32"
            dtypes = (getattr(torch, need),)
        if tensor.dtype not in dtypes or tensor.ndim != (1 if name in ("scale", "bias") else 2):
            raise ValueError(
                f"`{name}` must be {need}, inputs and weights as matrices; got {tensor.dtype} of shape "
                f"{tuple(tensor.shape)}."
            )
    for name, tensor in weights:
        if tensor.device != inputs.device or not tensor.is_contiguous():
            raise ValueError(
                f"`{name}` must be contiguous on {inputs.device}, where the input is; got strides {tensor.stride()} "
                f"on {tensor.device}: move it once, by `.to({str(inputs.device)!r}).contiguous()`."
            )


def _shapes(weights: Tensor, bias: Tensor | None) -> str:
    return f"{tuple(weights.shape)} and {None if bias is None else tuple(bias.shape)}"
