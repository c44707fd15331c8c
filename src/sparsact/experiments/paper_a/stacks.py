"""Stacks of one to three sparsely activated layers: what depth does to spectrum, sensitivity and learning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sparsact.experiments import Claim, Experiment, Rows, Scale, Verdict, mean_of, needed, range_of, within
from sparsact.experiments.stack import random_stack
from sparsact.fourier import Spectrum
from sparsact.hypercube import n_subsets, points

DEPTHS = (1, 2, 3)
UNITS = 64
SPARSITY = {Scale.SMOKE: (2,), Scale.QUICK: (2, 32), Scale.FULL: (1, 2, 4, 8, 32)}
N = {Scale.SMOKE: 7, Scale.QUICK: 10, Scale.FULL: 12}
SEEDS = {Scale.SMOKE: 2, Scale.QUICK: 3, Scale.FULL: 10}
DEGREE = 2
RATIOS = (1.5, 2.0, 4.0, 8.0)  # samples in numbers of monomials


def parameters(scale: Scale) -> Iterator[dict[str, int]]:
    """Every depth and sparsity, a seed after the other."""
    for seed in range(SEEDS[scale]):
        for k in SPARSITY[scale]:
            for n_layers in DEPTHS:
                yield {"n": N[scale], "s": UNITS, "k": k, "n_layers": n_layers, "degree": DEGREE, "seed": seed}


def measure(*, n: int, s: int, k: int, n_layers: int, degree: int, seed: int) -> dict[str, Any]:
    """Spectrum and sensitivity of a stack of variance 1, its activity, and the error of low-degree least squares."""
    from sparsact import LowDegreeRegressor

    stack = random_stack(n, s, k, n_layers, rng=np.random.default_rng([seed, k]))
    spectrum = Spectrum.of(stack.values)
    X, draws = points(n), np.random.default_rng([seed, 1])
    order = draws.integers(len(X), size=int(RATIOS[-1] * n_subsets(n, degree)))
    samples = [int(ratio * n_subsets(n, degree)) for ratio in RATIOS]
    fits = [LowDegreeRegressor(degree=degree).fit(X[order[:m]], stack.values[order[:m]]) for m in samples]
    return {
        "weights": spectrum.weight_by_degree(),
        "tail": spectrum.tail(degree),
        "sensitivity": spectrum.total_influence(),
        "bound": stack.bound,
        "mean_active": [float(active.mean()) for active in stack.n_active],
        "most_active": [int(active.max()) for active in stack.n_active],
        "samples": samples,
        "errors": [float(np.mean((fit.predict(X) - stack.values) ** 2)) for fit in fits],
    }


def judge_bound(rows: Rows) -> Verdict:
    """Sensitivity over its bound, of every row with more than one layer."""
    deep = needed(Rows(row for row in rows if row["n_layers"] > 1), "stacks of two layers or more")
    return within(range_of(deep.array("sensitivity") / deep.array("bound")), most=1 + 1e-9, what="AS / bound:")


def judge_growth(rows: Rows) -> Verdict:
    """Sensitivity of three layers over that of one, paired by seed, of stacks with one unit in sixteen on or fewer."""
    return within(mean_of(_ratios(rows, "sensitivity")), least=1.0, what="AS of 3 layers / AS of 1:")


def judge_tail(rows: Rows) -> Verdict:
    """Tail of three layers over that of one, likewise."""
    return within(mean_of(_ratios(rows, "tail")), least=1.0, what=f"tail beyond degree {DEGREE}, 3 layers / 1:")


def _ratios(rows: Rows, name: str) -> list[float]:
    """Three layers over one, the mean over the sparsities of each seed."""
    found: dict[int, list[float]] = {}
    for (seed, k), group in rows.groups("seed", "k").items():
        one, three = group.where(n_layers=1), group.where(n_layers=3)
        if one and three and 16 * k <= group[0]["s"]:
            found.setdefault(seed, []).append(three[0][name] / one[0][name])
    needed(rows, "one and three layers of a seed", 1 if found else len(rows) + 1)
    return [float(np.mean(ratios)) for ratios in found.values()]


EXPERIMENT = Experiment(
    name="stacks",
    paper="A",
    place="beyond the paper: more than one layer",
    title="Stacks of sparsely activated layers",
    summary=(
        "One to three layers of 64 units. The first is k-sparse at every point by proof; units of the others are on at "
        "a share k/64 of the cube's points. Between layers, activations are centred and scaled to the norm of a point. "
        "The output has variance 1. What the theory of one layer promises, 4 k^2 W^2, has no counterpart here but the "
        "product of the layers' Lipschitz constants, which is proved in the module's docstring and far from tight."
    ),
    version=1,
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="product-bound",
            place="beyond the paper",
            statement="The sensitivity of a stack is at most the product of its layers' squared Lipschitz constants "
            "times that of the first layer.",
            printed="",
            rule="holds if AS / bound is at most 1 on every row with two layers or more",
            judge=judge_bound,
        ),
        Claim(
            name="sensitivity-grows",
            place="beyond the paper",
            statement="Three sparse layers are more sensitive than one.",
            printed="",
            rule="AS at variance 1, three layers over one, averaged over k <= s/16 for each seed; holds if the 95 % "
            "interval of the mean over seeds lies above 1",
            judge=judge_growth,
        ),
        Claim(
            name="tail-grows",
            place="beyond the paper",
            statement="Three sparse layers have more weight beyond degree 2 than one.",
            printed="",
            rule="the tail beyond degree 2 at variance 1, three layers over one, judged in the same way",
            judge=judge_tail,
        ),
    ),
    order=90,
)
