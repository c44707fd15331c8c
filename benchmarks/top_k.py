"""Exact top-k selection of 1,024 among 4,096 values and its product with the weights, compared with PyTorch.

``kernels.top_k_dot(z, A, k)`` is compared with ``torch.topk`` (unsorted), gathered weights and their product, for 1,024
rows in float32 on one thread; the values come from a linear layer of d = 8 inputs. One measurement takes the values as
given, one includes their product ``z = X @ B`` on both sides. Unit: seconds, medians of repeats in turns. Target: twice
as fast. Without a target: absolute values, float64, ReLU values (half tie at 0), and places alone.

Roofline: the values read once, at the speed of ``z.sum()``.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.figures import Check, Figure
from benchmarks.harness import interleaved
from benchmarks.program import program
from sparsact import kernels

D = 8


def torch_dot(z: torch.Tensor, a: torch.Tensor, k: int, *, absolute: bool = False) -> torch.Tensor:
    """Select, gather, multiply and add."""
    values, places = torch.topk(z.abs() if absolute else z, k, dim=1, sorted=False)
    return ((z.gather(1, places) if absolute else values) * a[places]).sum(1)


def sides(X: NDArray[Any], B: NDArray[Any], a: NDArray[Any], k: int) -> dict[str, tuple[Callable[[], Any], ...]]:
    """What is measured, and ours and PyTorch's way to it."""
    A, z = a[None], X @ B
    relu, wide, wide_A = np.maximum(z, 0), z.astype(np.float64), A.astype(np.float64)
    X_, B_, a_, z_, relu_, wide_ = (torch.from_numpy(array) for array in (X, B, a, z, relu, wide))
    return {
        "select + dot": (lambda: kernels.top_k_dot(z, A, k), lambda: torch_dot(z_, a_, k)),
        "product + select + dot": (lambda: kernels.top_k_dot(X @ B, A, k), lambda: torch_dot(X_ @ B_, a_, k)),
        "by absolute value": (
            lambda: kernels.top_k_dot(z, A, k, absolute=True),
            lambda: torch_dot(z_, a_, k, absolute=True),
        ),
        "float64": (lambda: kernels.top_k_dot(wide, wide_A, k), lambda: torch_dot(wide_, a_.double(), k)),
        "ReLU values": (lambda: kernels.top_k_dot(relu, A, k), lambda: torch_dot(relu_, a_, k)),
        "places alone": (lambda: kernels.top_k(z, k), lambda: torch.topk(z_, k, dim=1, sorted=False).indices),
    }


def measure(m: int, t: int, k: int, repeats: int) -> list[Figure]:
    """Every figure of one size."""
    rng = np.random.default_rng(2022)
    X, B, a = (rng.normal(size=size).astype(np.float32) for size in ((m, D), (D, t), (t,)))
    z = X @ B
    work, figures = f"top-k d={D} t={t:,} k={k:,} m={m:,}", []
    for name, (ours, theirs) in sides(X, B, a, k).items():
        times = interleaved({"ours": ours, "torch": theirs}, repeats)
        figures += [Figure.of(work, f"{name}: {side}, seconds", taken, "s") for side, taken in times.items()]
        bar = 2 if name in ("select + dot", "product + select + dot") else None
        figures.append(Figure.ratio(work, f"{name}: times as fast", times["torch"], times["ours"], least=bar))
    floor = interleaved({"sum": z.sum}, repeats)["sum"]
    places = kernels.top_k(z, k)
    exact = (np.take_along_axis(z, places, axis=1).astype(np.float64) * a[places]).sum(axis=1)
    error = float(np.abs(kernels.top_k_dot(z, a[None], k)[:, 0] - exact).max() / np.abs(exact).max())
    return [
        *figures,
        Figure.of(work, "roofline: the values read once, seconds", floor, "s"),
        Check(work, "error of float32 sums over the largest", error, "", most=1e-5),
    ]


@program(repeats=9)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    size = (64, 1024, 256) if arguments.quick else (1024, 4096, 1024)
    return measure(*size, arguments.repeats)
