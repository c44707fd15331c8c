"""What units, sparsity and inputs cost when samples grow in proportion to k s n, and what k does to the sensitivity.

By Theorem 17 of the order of k s n samples are enough for the sparse class. So with m = 6 k s n the error should stay
where it is when s, k or n grow; a class that needs s^2 samples would err in proportion to s. The rule tells the first
from the second, halfway: a power below 1/2. It does not show that the power is 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

import numpy as np

from sparsact_papers.charts import Chart, Frame, curve_plot, curves
from sparsact_papers.claims import Claim, Verdict, needed, within
from sparsact_papers.common.distributions import UNIFORM, draw
from sparsact_papers.common.learners import DENSE, SPARSE, chosen
from sparsact_papers.common.networks import with_unit_scale
from sparsact_papers.common.planted import ROTATED, sample, sum_of_gated
from sparsact_papers.experiment import Experiment, Rows, Scale
from sparsact_papers.intervals import Interval, mean_of, slope_of
from sparsact_papers.paper_a.correlated_activations import sensitivity

CENTRE: Final = {"n": 24, "s": 8, "k": 1}
SWEEPS: Final[dict[Scale, dict[str, tuple[int, ...]]]] = {
    Scale.SMOKE: {"s": (2, 4)},
    Scale.QUICK: {"s": (2, 4, 8)},
    Scale.FULL: {"s": (4, 8, 16, 32), "k": (1, 2, 4), "n": (12, 24, 48)},
}
SEEDS: Final = {Scale.SMOKE: 1, Scale.QUICK: 2, Scale.FULL: 12}
SAMPLES: Final = 6  # times k s n
NOISE: Final = 0.3  # standard deviation, relative to the target's
FLIPPED: Final = 2000  # points for the sensitivity
LEARNERS: Final = (SPARSE, DENSE)
HALF: Final = 0.5  # halfway between a power of 0 and of 1


def parameters(scale: Scale) -> Iterator[dict[str, int | str]]:
    """Units, active units and inputs varied one at a time; each network with the points of its seed."""
    for seed in range(SEEDS[scale]):
        for varied, sizes in SWEEPS[scale].items():
            for size in sizes:
                for learner in LEARNERS:
                    yield {**CENTRE, varied: size, "learner": learner, "seed": seed}


def measure(*, n: int, s: int, k: int, learner: str, seed: int) -> Mapping[str, float]:
    """Error at new points, and the sensitivity of the network on the cube, before it is rotated, with W = 1."""
    from sparsact.learners import SparselyActivatedRegressor

    m = SAMPLES * k * s * n
    network, X, new = sample(ROTATED, n, s, k, m, seed)
    truth = network(new)
    labels = network(X) + NOISE * truth.std() * np.random.default_rng([seed, 3]).normal(size=m)
    if learner == SPARSE:
        model = SparselyActivatedRegressor(s, k, random_state=seed).fit(X, labels)
    else:
        model = chosen(learner, s, k, X, labels, seed)
    gates = with_unit_scale(sum_of_gated(n, s, k, np.random.default_rng([seed, 1])))
    return {
        "m": m,
        "share": float(np.mean((model.predict(new) - truth) ** 2) / truth.var()),
        "sensitivity": sensitivity(gates, draw(UNIFORM, n, FLIPPED, seed, np.random.default_rng([seed, 4]))),
    }


def sweep(rows: Rows, varied: str, learner: str) -> list[Rows]:
    """For each seed, rows of a learner in which only one size differs from the centre."""
    found = rows.where(learner=learner, **{name: size for name, size in CENTRE.items() if name != varied})
    return [group for group in found.groups("seed").values() if len(group.distinct(varied)) > 1]


def power(rows: Rows, varied: str, column: str, learner: str = SPARSE) -> Interval:
    """Power of a size with which a column grows, over seeds."""
    found = needed(sweep(rows, varied, learner), f"seeds with several {varied}", 1)
    return slope_of((one.column(varied), one.column(column)) for one in found)


def _judge_dense(rows: Rows) -> Verdict:
    slopes = {
        learner: [
            float(np.polyfit(np.log(one.array("s")), np.log(one.array("share")), 1)[0])
            for one in needed(sweep(rows, "s", learner), "seeds with several s")
        ]
        for learner in LEARNERS
    }
    return within(mean_of(np.subtract(slopes[DENSE], slopes[SPARSE])), least=0, what="power of s, dense less sparse")


def _proportional(varied: str, says: str) -> Claim:
    return Claim(
        name=f"proportional-{varied}",
        place="Theorem 17",
        statement="With samples in proportion to k s n the error of the sparse class grows more slowly than the "
        f"square root of {says}.",
        printed="O((W R + B)^2 k s n / epsilon^2) samples",
        rule=f"power of {varied} in the error at new points of each seed: holds if the 95 % interval of its mean lies "
        "below 1/2, nearer to 0 than to 1 (as if the samples needed grew as the square)",
        refuted_if="the power is significantly above 1/2",
        judge=lambda rows: within(power(rows, varied, "share"), most=HALF, what=f"power of {varied}"),
    )


LABELS: Final = {"s": "units s", "k": "active units k", "n": "inputs n"}


def _frame(rows: Rows, varied: str) -> Frame:
    found = Rows(row for learner in LEARNERS for one in sweep(rows, varied, learner) for row in one)
    return curves(found, "{learner}", varied, "share", "error / variance")


EXPERIMENT: Final = Experiment(
    name="units-and-sparsity",
    paper="A",
    place="Theorems 5 and 17, Lemma 9",
    title="Units, active units and inputs with samples in proportion",
    summary="Sums of k gated networks rotated in space, from m = 6 k s n samples with noise of 0.3 standard "
    "deviations. One size at a time varies about s = 8, k = 1, n = 24. The search for the least training error in the "
    "class is given s and k; dense networks choose width and penalty on held-out rows. Errors are against the function "
    "at 4,000 new points. Sensitivities of the same networks are taken on the cube, with W = 1, at 2,000 points.",
    parameters=parameters,
    measure=measure,
    claims=(
        _proportional("s", "the units"),
        _proportional("k", "the active units"),
        _proportional("n", "the inputs"),
        Claim(
            name="dense",
            place="Theorem 5",
            statement="With samples in proportion to s the error of dense networks grows faster with s than that of "
            "the sparse class.",
            printed="O(k s n / epsilon^2) samples against Omega(s^2 / epsilon^2)",
            rule="power of s in the error, dense networks less sparse class, of each seed: holds if the 95 % interval "
            "of its mean lies above 0",
            refuted_if="the error of the sparse class significantly grows faster",
            judge=_judge_dense,
        ),
        Claim(
            name="sparsity-and-sensitivity",
            place="Lemma 9",
            statement="At fixed s more active units make a network more sensitive, at most as k^2.",
            printed="O(k^4 W^2 sqrt(n) log(n s) + k^3 B^2 sqrt(log s))",
            rule="holds if the 95 % interval of the fitted power of k lies between 0 and 2",
            refuted_if="the fitted power of k is significantly below 0 or above 2",
            judge=lambda rows: within(
                power(rows, "k", "sensitivity"), least=np.nextafter(0, 1), most=2, what="power of k in AS"
            ),
        ),
    ),
    charts=tuple(
        Chart(
            f"against-{varied}",
            f"Error against {label}, samples in proportion",
            "Median over seeds and its interval, from m = 6 k s n samples, at new points.",
            partial(_frame, varied=varied),
            curve_plot(label, "squared error / variance", log=(2, 10), ticks=True),
        )
        for varied, label in LABELS.items()
    ),
    order=140,
    version=2,
)
