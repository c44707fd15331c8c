"""The int8 copy of a weight matrix that a screen reads, with bounds on the rest, in the notation of its proof."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from sparsact.kernels.screen import SCREEN_BLOCK

ROUND_UP = 1 + 2.0**-30  # covers the rounding of a sum of 2^16 terms, and of its root
N_DIRECTIONS = 16
CLIPS = (1.0, 0.85, 0.7, 0.55, 0.4)  # of the largest weight of a row: what 127 stands for
SPREAD_POWERS = (0.0, 0.5)  # powers of the inputs' spread that are tried as column scales
CHUNK = 1024  # rows at a time
LARGEST_FLOAT = torch.finfo(torch.float32).max  # a coefficient is clipped to it, and the excess stays in the rest
LARGEST_EXPONENT = 60  # of a column scale: a product with it then neither over- nor underflows in float64


@dataclass(frozen=True, eq=False)
class Int8Copy:
    r"""A weight matrix by rows, :math:`w'_j = a_j q_j + M^T G_j + r'_j`.

    Attributes
    ----------
    rows : Tensor of shape (s, width), uint8
        q + 128, and 128 from d on.
    a, Q, R : Tensor of shape (s,), float64
        Scales, and bounds of :math:`\|a_j q_j\|` and :math:`\|r'_j\|`; NaN in ``R`` of rows that are not finite.
    along : Tensor of shape (s, k), float32
        G.
    leak : float
        :math:`\delta`, with :math:`|\langle r'_j, m_t\rangle| \le \delta R_j`.
    """

    rows: Tensor
    a: Tensor
    Q: Tensor
    R: Tensor
    along: Tensor
    leak: float


def int8_copy(weight: Tensor, columns: Tensor, directions: Tensor) -> Int8Copy:
    """The copy of ``weight`` (s, d) under column scales c (d,), float64, with directions M (k, d), float32.

    Notes
    -----
    A row's scale is that among ``CLIPS`` with the smallest residual. About ``10 s d`` operations in float64, on
    ``CHUNK`` rows at a time.
    """
    s, d = weight.shape
    copy = torch.full((s, -(-d // SCREEN_BLOCK) * SCREEN_BLOCK), 128, dtype=torch.uint8)
    numbers = torch.empty(4, s, dtype=torch.float64)
    along = torch.empty(s, len(directions), dtype=torch.float32)
    M = directions.double()
    for begin, rows in _scaled_rows(weight, columns):
        here = slice(begin, begin + len(rows))
        a, integers = _rounded(rows)
        rest = rows - a[:, None] * integers
        along[here] = (rest @ M.T).clamp(-LARGEST_FLOAT, LARGEST_FLOAT).float()
        G = along[here].double()
        outside = rest - G @ M
        R = ROUND_UP * (outside.norm(dim=1) + 2.0**-16 * (G.abs().sum(1) + rest.norm(dim=1)))
        leaks = (outside @ M.T).abs().amax(1) / R if len(M) else torch.zeros_like(R)
        copy[here, :d] = (integers + 128).to(torch.uint8)
        numbers[:, here] = torch.stack([a, ROUND_UP * a * integers.norm(dim=1), R, leaks])
    a, Q, R, leaks = numbers
    return Int8Copy(copy, a, Q, R, along, float(leaks.nan_to_num(0.0, 0.0).max() if s else 0.0) + 2.0**-26)


def column_scales(weight: Tensor, sample: Tensor) -> Tensor:
    """Powers of two c (d,) that minimise the bound of what the copy leaves out on a sample of inputs (n, d)."""
    spread = sample.double().square().mean(0).sqrt()
    positive = spread[spread > 0]
    if not len(positive):
        return torch.ones(weight.shape[1], dtype=torch.float64)
    exponents = torch.where(spread > 0, spread, positive.min()).log2()
    choices = [
        torch.exp2((power * exponents).round().clamp(-LARGEST_EXPONENT, LARGEST_EXPONENT)) for power in SPREAD_POWERS
    ]
    some = weight[:: -(-len(weight) // CHUNK)]
    left_out = [_left_out(some, columns, sample) for columns in choices]
    return choices[left_out.index(min(left_out))]


def main_directions(sample: Tensor, columns: Tensor) -> Tensor:
    """Orthonormal directions M (k, d), float32, along which normalised inputs x / c of a sample (n, d) are longest."""
    points = sample.double() / columns
    points = points / points.norm(dim=1, keepdim=True).clamp(min=1e-300)
    k = min(N_DIRECTIONS, *points.shape)
    vectors: Tensor = torch.linalg.svd(points, full_matrices=False)[2]
    return vectors[:k].float().contiguous()


def _left_out(weight: Tensor, columns: Tensor, sample: Tensor) -> float:
    """Mean over rows and inputs of R N."""
    directions = main_directions(sample, columns)
    R = int8_copy(weight, columns, directions).R
    points = sample.double() / columns
    M = directions.double()
    return float(R[R.isfinite()].mean() * (points - points @ M.T @ M).norm(dim=1).mean())


def _scaled_rows(weight: Tensor, columns: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Rows w' = w c, exactly in float64, in chunks with their first row's number; rows that are not finite are NaN."""
    for begin in range(0, len(weight), CHUNK):
        rows = weight[begin : begin + CHUNK].double() * columns
        rows[~rows.isfinite().all(1)] = torch.nan
        yield begin, rows


def _rounded(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Scales a (rows,) and integers q of the smallest residual, as float64; q is 0 in a row of NaN."""
    largest = rows.abs().amax(1)
    best = torch.full_like(largest, torch.inf)
    a, integers = torch.ones_like(largest), torch.zeros_like(rows)
    for clip in CLIPS:
        scale = torch.where(largest > 0, clip / 127 * largest, 1.0)
        scale = (scale.view(torch.int64) & -(2**16)).view(torch.float64)  # 37 bits: products with integers are exact
        candidate = (rows / scale[:, None]).round().clamp(-127, 127)
        residual = (rows - scale[:, None] * candidate).norm(dim=1)
        better = residual < best  # False where it is NaN
        best, a = torch.where(better, residual, best), torch.where(better, scale, a)
        integers[better] = candidate[better]
    return a, integers
