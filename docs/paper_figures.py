"""Figures of ``papers_of_our_own``: proved bounds beside exact values of the networks that attain or approach them."""

from __future__ import annotations

from math import e, log, pi, sqrt
from pathlib import Path
from typing import Final

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import gammaln
from scipy.stats import binom

from sparsact import SparselyActivatedNetwork
from sparsact.bounds import dense_complexity_bound, rademacher_sparse_free_of_dimension, tail_bound
from sparsact.constructions import random_network
from sparsact.fourier import Spectrum
from sparsact.hypercube import points
from sparsact.reports.figure import BLUE, COLOURS, GREEN, GREY, INK, ORANGE, PURPLE, STYLE, VERMILION

_HOUSE: Final = STYLE | {
    "axes.grid": True,
    "axes.prop_cycle": cycler(color=COLOURS),
    "figure.constrained_layout.use": True,
    "text.parse_math": True,  # logarithmic axes write powers
}
_COPIES: Final = 1000


def exact_degrees(path: Path) -> None:
    """Weight above a degree over k²W²: extremal networks, majority units and random networks beside the bounds."""
    with mpl.rc_context(_HOUSE):
        figure = Figure(figsize=(5.8, 4.4))
        ax = figure.subplots()
        d = np.unique(np.geomspace(1, 1000, 120).astype(int))
        ax.plot(d, [tail_bound(1, 1.0, int(degree)) for degree in d], color=BLUE, label="Corollary 1, any s")
        for share, name, colour in ((1, "s = k", GREY), (2**20, "s = 2²⁰ k", INK)):
            bound = 18 * np.sqrt(log(e * share) / d) / (d + 1)
            ax.plot(d[d >= 2], bound[d >= 2], "--", color=colour, label=f"Theorem 4, {name}")
        attained = [_weight_above(_extremal(degree), degree) for degree in range(1, 9)]
        ax.plot(range(1, 9), attained, "o", color=VERMILION, label="Theorem 2")
        ax.plot(d, _majority(d), color=GREEN, label="majority unit, s = k")
        for seed in range(3):
            network = random_network(12, 48, 3, rng=np.random.default_rng(seed))
            weights = [_weight_above(network, degree) for degree in range(1, 12)]
            ax.plot(range(1, 12), weights, ".-", color=ORANGE, label=None if seed else "random networks")
        ax.set(xscale="log", yscale="log", ylim=(1e-7, 100), xlabel="degree d", ylabel="weight above d, over k²W²")
        ax.legend(loc="upper right", fontsize=9)
        figure.savefig(path, dpi=200)


def _weight_above(network: SparselyActivatedNetwork, degree: int) -> float:
    """Weight above the degree over k²W², by the values at all points."""
    X = points(network.n)
    return Spectrum.of(network(X)).tail(degree) / (int(network.n_active(X).max()) * network.scale().W) ** 2


def _extremal(degree: int) -> SparselyActivatedNetwork:
    """The network of Theorem 2 with k = 1 and W = 1: a unit for each point of the cube of degree + 1 signs."""
    p = degree + 1
    corners = points(p).astype(np.float64)
    return SparselyActivatedNetwork(corners.prod(axis=1) / sqrt(p), corners, np.full(2**p, p - 2.0))


def _majority(degrees: NDArray[np.int64]) -> NDArray[np.float64]:
    """Weight of ReLU above degrees from 1 on, in the Hermite basis: ((2i - 3)!!)² / (2 pi (2i)!) at level 2i."""
    i = np.arange(1, 10**5)
    odd = gammaln(2 * i - 1) - (i - 1) * log(2) - gammaln(i)  # ln (2i - 3)!!
    level = np.exp(2 * odd - gammaln(2 * i + 1)) / (2 * pi)
    above: NDArray[np.float64] = level[::-1].cumsum()[::-1][degrees // 2]
    return above


def rademacher(path: Path) -> None:
    """Complexity over (WR + B) sqrt(sk/m): what sparsity in the mean reaches, and proved bounds."""
    with mpl.rc_context(_HOUSE):
        figure = Figure(figsize=(5.8, 6.8))
        reached, proved = figure.subplots(2)
        M = np.geomspace(2, 2**16, 60)
        reached.plot(M, _mean_largest(M), color=VERMILION, label="Theorem 4 (b): sparse in the mean")
        reached.plot(M, np.sqrt(2 * np.log(M)), ":", color=INK, label="√(2 ln(s/k))")
        reached.plot(M, np.sqrt(np.log(M)), "--", color=GREY, label="√ln(s/k)")
        reached.plot(M, _mean_largest(np.ones(len(M))), color=GREEN, label="Theorem 4 (a): sparse at every point")
        reached.set(xscale="log", ylim=(0, 6.5), xlabel="s/k", ylabel="complexity, over WR √(sk/m)")
        reached.legend(loc="upper left")

        sizes = {"s": 4096, "W": 1.0, "B": 0.0, "R": 1.0}
        m = np.geomspace(1e4, 1e16, 80)
        unit = np.sqrt(sizes["s"] / m)
        proved.plot(m, 400 * np.sqrt(np.log(2 * m)), color=PURPLE, label="Theorem 3")
        dense = [dense_complexity_bound(**sizes, m=int(one)) for one in m]
        proved.plot(m, dense / unit, color=GREY, label="dense class")
        chain = [rademacher_sparse_free_of_dimension(**sizes, k=1, m=int(one)) for one in m]
        proved.plot(m, chain / unit, color=BLUE, label="Theorem 1")
        proved.set(xscale="log", yscale="log", ylim=(1, 1e4), xlabel="points m", ylabel="bound, over (WR + B) √(sk/m)")
        proved.legend(ncols=3, loc="lower right")
        figure.savefig(path, dpi=200)


def _mean_largest(M: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of the largest magnitude of M independent sums of r = 1000 signs over sqrt(r), from the distribution."""
    half = np.arange(_COPIES // 2 + 1)
    within = 1 - 2 * binom.sf(_COPIES // 2 + half, _COPIES, 0.5)  # P(|S| <= 2 t)
    means: NDArray[np.float64] = 2 * (1 - within ** M[:, None]).sum(axis=1) / sqrt(_COPIES)
    return means
