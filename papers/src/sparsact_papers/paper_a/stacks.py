"""Networks of one, two and three sparsely activated layers: tail, average sensitivity, learning curve.

Beyond the paper, which has one layer. The layers, and the bound that is tested, are defined in
:mod:`sparsact_papers.common.sparse_stacks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any, Final

import numpy as np

from sparsact.bounds import stack_sensitivity
from sparsact.fourier import Spectrum
from sparsact.hypercube import points
from sparsact_papers.charts import Chart, curve_plot, curves
from sparsact_papers.claims import Claim, Verdict, bounded, every, within
from sparsact_papers.common.networks import tails
from sparsact_papers.common.sparse_stacks import path_bound, random_stack
from sparsact_papers.experiment import Experiment, MissingRowsError, Row, Rows, Scale
from sparsact_papers.intervals import Interval, mean_of, range_of

DEPTHS: Final = (1, 2, 3)
SIZES: Final = {
    Scale.SMOKE: {"n": 7, "address": 2},
    Scale.QUICK: {"n": 10, "address": 3},
    Scale.FULL: {"n": 14, "address": 4},
}
SPARSITIES: Final = {Scale.SMOKE: (2,), Scale.QUICK: (1, 4), Scale.FULL: (1, 2, 4)}
SEEDS: Final = {Scale.SMOKE: 2, Scale.QUICK: 4, Scale.FULL: 10}
STACK_STREAM, POINTS_STREAM = 4, 5
DEGREE: Final = 2
POINTS: Final = {Scale.SMOKE: 2, Scale.QUICK: 4, Scale.FULL: 6}  # sizes of the training set
LEAST_PER_MONOMIAL: Final = 2
ROUNDING: Final = 1e-9


def parameters(scale: Scale) -> Iterator[dict[str, int]]:
    """Stacks of every depth and sparsity; with the same seed they share their lower layers and their points."""
    for seed, k, depth in product(range(SEEDS[scale]), SPARSITIES[scale], DEPTHS):
        yield {**SIZES[scale], "k": k, "depth": depth, "n_sizes": POINTS[scale], "seed": seed}


def measure(*, n: int, address: int, k: int, depth: int, n_sizes: int, seed: int) -> Mapping[str, Any]:
    """Exact spectrum and sensitivity with its bound, and the error of the learner against the points it saw."""
    from sparsact.learners import LowDegreeRegressor

    stack = random_stack(n, depth, k, address, seed=seed, stream=STACK_STREAM)
    spectrum = Spectrum.of(stack)
    X = points(n)
    values = stack(X)
    most_active = stack.certify("enumeration").max_active
    sensitivity = spectrum.total_influence()
    variance = spectrum.variance()
    n_monomials = 1 + n + n * (n - 1) // 2
    sizes = [LEAST_PER_MONOMIAL * n_monomials * 2**i for i in range(n_sizes)]
    places = np.random.default_rng([seed, POINTS_STREAM]).integers(2**n, size=sizes[-1])
    errors = []
    for m in sizes:
        learner = LowDegreeRegressor(degree=DEGREE).fit(X[places[:m]], values[places[:m]])
        errors.append(float(np.mean((learner.predict(X) - values) ** 2)) / variance)
    return {
        "variance": variance,
        "tail_share": [spectrum.tail(d) / variance for d in range(n + 1)],
        "sensitivity_share": sensitivity / variance,
        "sensitivity_over_bound": sensitivity / path_bound(stack, k),
        "sensitivity_over_sharper_bound": sensitivity / stack_sensitivity(stack, most_active).average,
        "most_active": max(most_active),
        "n_points": sizes,
        "error_share": errors,
    }


def change(rows: Rows, value: Callable[[Row], float]) -> Interval:
    """Values of the deepest stacks minus values of stacks with one layer: a mean over seeds, after one over k."""
    changes = []
    for group in rows.groups("seed").values():
        pairs = [
            [value(row) for row in one.where(depth=depth)] for one in group.groups("k").values() for depth in (3, 1)
        ]
        if not all(pairs):
            raise MissingRowsError("a pair needs stacks of one and of three layers")
        changes.append(float(np.mean(pairs[::2]) - np.mean(pairs[1::2])))
    return mean_of(changes)


def _judge_learning(rows: Rows) -> Verdict:
    above = change(rows, lambda row: row["tail_share"][DEGREE])
    error = change(rows, lambda row: row["error_share"][-1])
    positive = np.nextafter(0, 1)
    return every(
        within(above, least=positive, what="tail share above degree 2, three layers less one"),
        within(error, least=positive, what="error share"),
    )


NAMES: Final = {1: "one layer", 2: "two layers", 3: "three layers"}


def _at_largest_k(rows: Rows) -> Rows:
    return rows.where(k=max(rows.distinct("k")))


def _layers(row: Row) -> str:
    return NAMES[row["depth"]]


EXPERIMENT: Final = Experiment(
    name="stacks",
    paper="A",
    place="beyond the paper (Section 3)",
    title="Stacks of sparsely activated layers",
    summary="One, two and three layers, each of k trees of gated units, k-sparse by proof on the whole cube: every "
    "layer is gated by addresses among the inputs and computes on the normalised outputs of the layer below. Spectra "
    "and sensitivities are exact. The low-degree learner has degree 2 and ever more uniform points; its error is "
    "taken over the whole cube. Shares are relative to each network's variance.",
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="sparse",
            statement="At most k units of each layer are active at any point.",
            rule="holds if the most active units over all layers and points number k or less on every row",
            refuted_if="at some point of some row more than k units of a layer are active",
            judge=lambda rows: within(range_of(rows.array("most_active / k")), most=1.0, what="most active units / k"),
        ),
        Claim(
            name="bound",
            statement="sqrt(AS) of L layers is at most the sum over l of (2k)^(L - l + 1) U omega_l v_(l+1) ... v_L: "
            "the norms of weights on the inputs times the largest weights above them.",
            rule=f"holds if the bound is not passed on any row (by more than {ROUNDING} of it, for rounding)",
            refuted_if="some row exceeds the bound by more than rounding",
            judge=lambda rows: every(
                *(
                    bounded(range_of(group.array("sensitivity_over_bound")), f"depth {depth}: AS / bound")
                    for (depth,), group in rows.groups("depth").items()
                )
            ),
        ),
        Claim(
            name="sharper-bound",
            statement="The bound of sparsact.bounds.stack_sensitivity holds, and is no larger than the sum over paths.",
            rule=f"holds if on every row it is not passed, and is not larger (by more than {ROUNDING}, for rounding)",
            refuted_if="some row exceeds the bound by more than rounding, or the sum over paths is smaller",
            judge=lambda rows: every(
                bounded(range_of(rows.array("sensitivity_over_sharper_bound")), "AS / bound"),
                bounded(
                    range_of(rows.array("sensitivity_over_bound / sensitivity_over_sharper_bound")),
                    "bound / sum over paths",
                ),
            ),
        ),
        Claim(
            name="product",
            statement="Sensitivity grows with depth as the product of the layers' norms in the bound does.",
            rule="holds if the 95 % interval of the change of log10(AS / bound) from one layer to three lies within "
            "[-1, 1]: then the bound is as tight for three layers as for one, to a factor of ten",
            refuted_if="three layers change AS / bound significantly by more than a factor of ten",
            judge=lambda rows: within(
                change(rows, lambda row: float(np.log10(row["sensitivity_over_bound"]))),
                least=-1.0,
                most=1.0,
                what="log10 of AS / bound, three layers less one",
            ),
        ),
        Claim(
            name="sensitivity-and-depth",
            statement="Deeper stacks are more sensitive, as a share of their variance.",
            rule="holds if the 95 % interval of the change of AS / variance from one layer to three lies above 0",
            refuted_if="AS / variance significantly falls from one layer to three",
            judge=lambda rows: within(
                change(rows, lambda row: row["sensitivity_share"]),
                least=np.nextafter(0, 1),
                what="AS / variance, three layers less one",
            ),
        ),
        Claim(
            name="learning-and-depth",
            statement="Deeper stacks have more weight above degree 2, and are harder for the learner of degree 2.",
            rule="holds if the 95 % intervals of both changes from one layer to three lie above 0",
            refuted_if="the tail or the error share significantly falls from one layer to three",
            judge=_judge_learning,
        ),
    ),
    charts=(
        Chart(
            "tail",
            "Weight above a degree, by depth",
            "Points: median over seeds at the largest k; bars: its interval. Shares below 1e-8 are left out.",
            lambda rows: curves(tails(_at_largest_k(rows)), _layers, "degree", "share"),
            curve_plot("degree d", "weight above degree d / variance", log=(0, 10)),
        ),
        Chart(
            "sensitivity",
            "Average sensitivity and depth",
            "Points: median over seeds; bars: its interval. The seed's stacks share their lower layers.",
            lambda rows: curves(
                Rows(row for k in rows.distinct("k") for row in rows.where(k=k)),
                "k = {k}",
                "depth",
                "sensitivity_share",
            ),
            curve_plot("layers", "average sensitivity / variance", ticks=True, bottom=0),
        ),
        Chart(
            "learning",
            "Learning curves by depth",
            "Points: median over seeds at the largest k; bars: its interval. The error is over the whole cube.",
            lambda rows: curves(
                _at_largest_k(rows).unfolded(points="n_points", share="error_share"), _layers, "points", "share"
            ),
            curve_plot(
                "training points",
                "error of degree 2 / variance",
                log=(2, 0),
                levels={"variance of the target": 1.0},
                bottom=0,
            ),
        ),
    ),
    order=150,
    version=2,
)
