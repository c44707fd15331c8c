"""The two products: what they take, what they refuse, and how the work is laid out on the device."""

from __future__ import annotations

import os

import torch
import triton
from torch import Tensor

from sparsact.inference.triton import kernels

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # on the CPU, in NumPy: to check results, not for speed
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
SUMS = {"AT_ONCE": 16, "COLUMNS": 256}  # rows and columns that a program holds in registers
SEGMENT = 256  # units a program, so that 3 % of them are about half the rows that are read at once
DOTS = {"SEGMENT": 16, "AT_ONCE": 4, "DEPTH": 1024}
FUSED = {"enable_fp_fusion": True}  # else each version of Triton has a default of its own


def sparse_product(h: Tensor, values: Tensor, bias: Tensor | None = None) -> Tensor:
    r"""Second layer of a block from the rows of its active units: :math:`b + \sum_{j:\, h_{ij} \ne 0} h_{ij} v_j`.

    Parameters
    ----------
    h : Tensor of shape (m, s), float32, bfloat16 or float16
        Activations. Every number but zero is active, NaN too.
    values : Tensor of shape (s, n), contiguous
        Outgoing weights, one row a unit: a copy of the transpose of ``nn.Linear.weight``. May be narrower than ``h``.
    bias : Tensor of shape (n,), contiguous, or None
        b.

    Returns
    -------
    products : Tensor of shape (m, n), of the dtype of ``h``

    Raises
    ------
    ValueError
        If shapes, dtypes or devices do not fit, or the weights are not contiguous.

    Notes
    -----
    Reads the rows of units that some input has active, once an input: made for few inputs (up to 16), whose common rows
    meet in the cache. Two launches, and partial sums of ``4 m n s / 256`` bytes.
    """
    _refuse_misfits({"h": h, "values": values} | ({} if bias is None else {"bias": bias}))
    (m, s), n = h.shape, values.shape[1]
    if len(values) != s or (bias is not None and bias.shape != (n,)):
        raise ValueError(f"h of {s} units needs values ({s}, n) and a bias (n,); got {_shapes(values, bias)}.")
    h, segments, tiles = h.contiguous(), triton.cdiv(s, SEGMENT), triton.cdiv(n, SUMS["COLUMNS"])
    partial, out = h.new_empty((segments, m, n), dtype=torch.float32), h.new_empty((m, n))
    with torch.cuda.device(h.get_device()):
        if partial.numel():
            kernels.partial_sums[m, segments, tiles](h, values, partial, s, n, SEGMENT=SEGMENT, **SUMS, **FUSED)
        if out.numel():
            kernels.total[m, tiles](partial, bias, out, n, segments, **SUMS, **FUSED)
    return out


def active_dot(x: Tensor, weight: Tensor, bias: Tensor | None, mask: Tensor) -> Tensor:
    r"""First layer of a block at its active units: :math:`\langle x_i, w_j \rangle + b_j` where the mask is on, else 0.

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

    Returns
    -------
    dots : Tensor of shape (m, s), of the dtype of ``x``

    Raises
    ------
    ValueError
        If shapes, dtypes or devices do not fit, or the weights are not contiguous.

    Notes
    -----
    Reads the rows of units that some input wants, once an input, as :func:`sparse_product` does. One launch.
    """
    _refuse_misfits({"x": x, "weight": weight} | ({} if bias is None else {"bias": bias}))
    (m, d), s = x.shape, len(weight)
    if weight.shape[1] != d or (bias is not None and bias.shape != (s,)):
        raise ValueError(f"x of {d} numbers needs weight (s, {d}) and a bias (s,); got {_shapes(weight, bias)}.")
    if mask.shape != (m, s) or mask.dtype not in (torch.uint8, torch.bool) or mask.device != x.device:
        raise ValueError(
            f"`mask` must be uint8 or bool, ({m}, {s}), on {x.device}; got {mask.dtype}, {tuple(mask.shape)}, "
            f"on {mask.device}."
        )
    x, on, out = x.contiguous(), mask.contiguous().view(torch.uint8), x.new_empty((m, s))
    if out.numel():
        with torch.cuda.device(x.get_device()):
            kernels.dots[m, triton.cdiv(s, DOTS["SEGMENT"])](x, weight, bias, on, out, s, d, **DOTS, **FUSED)
    return out


def _refuse_misfits(tensors: dict[str, Tensor]) -> None:
    """Refuse what the kernels cannot read, and weights that every call would copy. The first is the input."""
    (name, inputs), *weights = tensors.items()
    if inputs.device.type != "cuda" and not INTERPRETED:
        raise ValueError(f"`{name}` must be on a CUDA device, not on {inputs.device}: there use sparsact.kernels.")
    for name, tensor in tensors.items():
        if tensor.dtype not in DTYPES or tensor.ndim != (1 if name == "bias" else 2):
            raise ValueError(
                f"`{name}` must be float32, bfloat16 or float16, inputs and weights as matrices; got {tensor.dtype} "
                f"of shape {tuple(tensor.shape)}."
            )
    for name, tensor in weights:
        if tensor.device != inputs.device or not tensor.is_contiguous():
            raise ValueError(
                f"`{name}` must be contiguous on {inputs.device}, where the input is; got strides {tensor.stride()} "
                f"on {tensor.device}: move it once, by `.to({str(inputs.device)!r}).contiguous()`."
            )


def _shapes(weights: Tensor, bias: Tensor | None) -> str:
    return f"{tuple(weights.shape)} and {None if bias is None else tuple(bias.shape)}"
