"""The int8 copy of a weight matrix that a screen reads, with bounds on the rest, in the notation of its proof."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from sparsact.kernels.int8_linear import in_large_pages
from sparsact.kernels.screen import SCREEN_BLOCK

ROUND_UP: Final = 1 + 2.0**-30  # covers the rounding of a sum of 2^16 terms, and of its root
N_DIRECTIONS: Final = 16
CLIPS: Final = (1.0, 0.85, 0.7, 0.55, 0.4)  # of the largest weight of a row: what 127 stands for
SPREAD_POWERS: Final = (0.0, 0.5)  # powers of the inputs' spread that are tried as column scales
CHUNK: Final = 2**17  # weights at a time, which stay in the cache
SAMPLE_ROWS: Final = 128  # of weights, on which column scales are chosen, and of inputs, which give the directions
LARGEST_FLOAT: Final = torch.finfo(
    torch.float32
).max  # a coefficient is clipped to it, and the excess stays in the rest
LARGEST_EXPONENT: Final = 60  # of a column scale: a product with it then neither over- nor underflows in float64


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
    A row's scale is that among ``CLIPS`` with the smallest residual. About ``15 s d``
    operations in float64, on ``CHUNK`` weights at a time, and three products with M.
    """
    s, d = weight.shape
    # In large pages, so that fewer addresses are looked up while rows are read in order.
    memory = in_large_pages(s, -(-d // SCREEN_BLOCK) * SCREEN_BLOCK)
    copy = torch.from_numpy(memory).view(torch.uint8).fill_(128)
    numbers = torch.empty(4, s, dtype=torch.float64)
    along = torch.empty(s, len(directions), dtype=torch.float32)
    M = directions.double()
    for begin, rows in _scaled_rows(weight, columns):
        here = slice(begin, begin + len(rows))
        a, integers = _rounded(rows)
        rest = torch.addcmul(rows, a[:, None], integers, value=-1)
        along[here] = (rest @ M.T).clamp(-LARGEST_FLOAT, LARGEST_FLOAT).float()
        G = along[here].double()
        outside = torch.addmm(rest, G, M, alpha=-1)
        R = ROUND_UP * (outside.norm(dim=1) + 2.0**-16 * (G.abs().sum(1) + rest.norm(dim=1)))
        leaks = (outside @ M.T).abs().amax(1) / R if len(M) else torch.zeros_like(R)
        numbers[:, here] = torch.stack([a, ROUND_UP * a * integers.norm(dim=1), R, leaks])
        copy[here, :d] = integers.add_(128)
    a, Q, R, leaks = numbers
    return Int8Copy(copy, a, Q, R, along, float(leaks.nan_to_num(0.0, 0.0).max() if s else 0.0) + 2.0**-26)


def scales_and_directions(weight: Tensor, sample: Tensor) -> tuple[Tensor, Tensor]:
    """Powers of two c (d,) that minimise the bound on the copy's error for a sample of inputs (n, d), and M."""
    spread = sample.double().square().mean(0).sqrt()
    positive = spread[spread > 0]
    if not len(positive):
        ones = torch.ones(weight.shape[1], dtype=torch.float64)
        return ones, main_directions(sample, ones)
    exponents = torch.where(spread > 0, spread, positive.min()).log2()
    choices = [
        torch.exp2((power * exponents).round().clamp(-LARGEST_EXPONENT, LARGEST_EXPONENT)) for power in SPREAD_POWERS
    ]
    some = weight[:: -(-len(weight) // SAMPLE_ROWS)]
    found = [(columns, main_directions(sample, columns)) for columns in choices]
    left_out = [_left_out(some, *one, sample) for one in found]
    return found[left_out.index(min(left_out))]


def main_directions(sample: Tensor, columns: Tensor) -> Tensor:
    """Orthonormal directions M (k, d), float32, along which normalised inputs x / c of a sample (n, d) are longest."""
    points = sample[:: -(-len(sample) // SAMPLE_ROWS)].double() / columns
    points = points / points.norm(dim=1, keepdim=True).clamp(min=1e-300)
    k = min(N_DIRECTIONS, *points.shape)
    vectors = torch.linalg.eigh(points @ points.T)[1][:, -k:]  # of n numbers each: n is smaller than d, mostly
    found: Tensor = torch.linalg.qr(points.T @ vectors)[0].T.float().contiguous()
    return found


def _left_out(weight: Tensor, columns: Tensor, directions: Tensor, sample: Tensor) -> float:
    """Mean over rows and inputs of R N."""
    R = int8_copy(weight, columns, directions).R
    points = sample.double() / columns
    M = directions.double()
    return float(R[R.isfinite()].mean() * (points - points @ M.T @ M).norm(dim=1).mean())


def _scaled_rows(weight: Tensor, columns: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Rows w' = w c, exactly in float64, in chunks with their first row's number; rows that are not finite are NaN."""
    step = max(1, CHUNK // weight.shape[1])
    for begin in range(0, len(weight), step):
        rows = weight[begin : begin + step].double().mul_(columns)
        finite = rows.sum(1).isfinite()  # sums of halves and float32 times 2^60 do not overflow
        if not finite.all():
            rows[~finite] = torch.nan
        yield begin, rows


def _rounded(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Scales a (rows,) and integers q, as float64, of a small residual; q is 0 in a row of NaN."""
    largest = torch.maximum(rows.amax(1), -rows.amin(1))
    some = (rows / largest.clamp(min=1e-300)[:, None]).float()
    residuals = []
    for clip in CLIPS:
        candidate = (some * (127 / clip)).round_().clamp_(-127, 127)
        residuals.append(torch.add(some, candidate, alpha=-clip / 127, out=candidate).norm(dim=1))
    clips = torch.tensor(CLIPS, dtype=torch.float64)[torch.stack(residuals).argmin(0)]
    a = torch.where(largest > 0, clips / 127 * largest, 1.0)
    a = (a.view(torch.int64) & -(2**16)).view(torch.float64)  # 37 bits: products with integers are exact
    integers = (rows / a[:, None]).round_().clamp_(-127, 127)
    unknown = largest.isnan()
    if unknown.any():
        integers[unknown] = 0
    return a, integers
