"""Learning curves of risk minimisation in H_{n,s,k} against dense networks and polynomials: Theorems 5, 16 and 17.

By the theorems the sparse class _needs of order k s n samples where the dense class of s units _needs of order s^2: but
these are bounds, and of the best network in the class, which no algorithm is known to find. Here learners that run are
compared, on networks of the sparse class, with the same points and the same labels for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np

from sparsact.bounds import sparse_complexity_bound
from sparsact.constructions import random_network
from sparsact.hypercube import points
from sparsact_papers.charts import Chart, Frame, curve_frame, curve_plot, curves, joined, panel_plot, panelled
from sparsact_papers.common.learners import DENSE, GATED, LEARNERS, SPARSE, fitted, planted
from sparsact_papers.experiment import Experiment, Row, Rows, Scale
from sparsact_papers.intervals import mean_of, median_of
from sparsact_papers.paper_a.erm_claims import CLAIMS, FLOOR, NOISE, RANDOM
from sparsact_papers.paper_a.uniform_and_general import CORRELATED, ENOUGH, UNIFORM, probabilities, samples_needed

Cell = tuple[str, int, int, float, str]  # target, units, active units, noise, distribution
CELLS: tuple[Cell, ...] = (
    *((RANDOM, s, 1, 0.0, UNIFORM) for s in (4, 8, 16)),
    (GATED, 8, 1, 0.0, UNIFORM),
    *((RANDOM, s, 2, 0.0, UNIFORM) for s in (4, 8)),
    *((RANDOM, 8, k, NOISE, UNIFORM) for k in (1, 2)),
    (GATED, 8, 1, NOISE, UNIFORM),
)
SIZES = {Scale.SMOKE: 5, Scale.QUICK: 8, Scale.FULL: 12}
SAMPLES = {Scale.SMOKE: (8, 16), Scale.QUICK: (32, 128), Scale.FULL: (64, 128, 256, 512, 1024)}
FURTHER = {Scale.SMOKE: (), Scale.QUICK: (), Scale.FULL: (2048, 4096)}  # to see how many samples 16 units need
SEEDS = {Scale.SMOKE: 1, Scale.QUICK: 2, Scale.FULL: 5}


def parameters(scale: Scale) -> Iterator[dict[str, int | float | str]]:
    """A task for each target, learner, number of samples and seed."""
    cells = (CELLS[0], *CELLS[6:8]) if scale is Scale.SMOKE else CELLS
    for seed, (target, s, k, noise, distribution) in product(range(SEEDS[scale]), cells):
        network: dict[str, int | float | str] = {"target": target, "n": SIZES[scale], "s": s, "k": k}
        labels: dict[str, int | float | str] = {"noise": noise, "distribution": distribution}
        plain = not noise and distribution == UNIFORM
        for m in (*SAMPLES[scale], *(FURTHER[scale] if plain and k == 1 else ())):
            for learner in LEARNERS[:2] if m in FURTHER[scale] else LEARNERS if plain else LEARNERS[:3]:
                yield {**network, **labels, "learner": learner, "m": m, "seed": seed}


def measure(
    *, target: str, n: int, s: int, k: int, noise: float, distribution: str, learner: str, m: int, seed: int
) -> dict[str, float]:
    """Exact error against the function under the distribution, and the mean squared error on the labels seen."""
    cube = points(n)
    network = (
        planted(target, n, seed) if target == GATED else random_network(n, s, k, rng=np.random.default_rng([seed, 1]))
    )
    values = network(cube)
    chances = probabilities(distribution, n, seed)
    variance = float(chances @ (values - chances @ values) ** 2)
    seen = np.random.default_rng([seed, 2]).choice(2**n, size=m, p=chances)
    labels = values[seen] + np.random.default_rng([seed, 3]).normal(size=m) * np.sqrt(noise * variance)
    model = fitted(learner, s, k, cube[seen], labels, seed)
    error = float(chances @ (model.predict(cube) - values) ** 2)
    train = float(np.mean((model.predict(cube[seen]) - labels) ** 2))
    return {
        "error": error,
        "train": train,
        "variance": variance,
        "share": max(error / variance, FLOOR),
        "gap": (error + noise * variance - train) / variance,  # on new labels less on those seen
    }


PANELS: dict[str, Cell] = {
    "4 units, k = 1": (RANDOM, 4, 1, 0.0, UNIFORM),
    "8 units, k = 1": (RANDOM, 8, 1, 0.0, UNIFORM),
    "16 units, k = 1": (RANDOM, 16, 1, 0.0, UNIFORM),
    "gated, 8 units, k = 1": (GATED, 8, 1, 0.0, UNIFORM),
    "4 units, k = 2": (RANDOM, 4, 2, 0.0, UNIFORM),
    "8 units, k = 2": (RANDOM, 8, 2, 0.0, UNIFORM),
    "8 units, k = 1, noise": (RANDOM, 8, 1, NOISE, UNIFORM),
    "8 units, k = 2, noise": (RANDOM, 8, 2, NOISE, UNIFORM),
    "8 units, k = 1, correlated signs": (RANDOM, 8, 1, 0.0, CORRELATED),
}
PLAIN = tuple(name for name, cell in PANELS.items() if cell[3:] == (0.0, UNIFORM))
MOST = 10.0  # errors above are drawn here
SHAPE = "shape of Theorem 19"


def _of(rows: Rows, cell: Cell) -> Rows:
    target, s, k, noise, distribution = cell
    found = rows.where(target=target, s=s, k=k, noise=noise, distribution=distribution)
    return Rows(row for name in LEARNERS for row in found.where(learner=name))


def _share(column: str, row: Row) -> float:
    return float(min(max(row[column], FLOOR), MOST))


def _ratios(rows: Rows) -> Frame:
    found: list[Frame] = []
    for name in PLAIN:
        own = _of(rows, PANELS[name])
        dense = {(row["m"], row["seed"]): row["share"] for row in own.where(learner=DENSE)}
        paired = Rows(
            row.with_values(log_ratio=np.log2(row["share"] / dense[row["m"], row["seed"]]))
            for row in own.where(learner=SPARSE)
            if (row["m"], row["seed"]) in dense
        )
        one = curves(paired, name, "m", "log_ratio", "ratio", interval=mean_of)
        found.append(one | {part: np.exp2(one[part]).tolist() for part in ("ratio", "low", "high")})
    return joined(*found)


def _needs(rows: Rows) -> Frame:
    found = [
        (learner, s, median_of(samples_needed(own)))
        for learner in (SPARSE, DENSE)
        for s in (4, 8, 16)
        if (own := _of(rows, (RANDOM, s, 1, 0.0, UNIFORM)).where(learner=learner))
    ]
    return curve_frame(found, "s", "samples")


def _gaps(rows: Rows) -> Frame:
    noisy = _of(rows, PANELS["8 units, k = 1, noise"])
    frame = curves(noisy, "{learner}", "m", partial(_share, "gap"), "gap / variance")
    if not noisy:
        return frame
    n, first = noisy[0]["n"], float(frame["gap / variance"][0])
    sizes = noisy.distinct("m")
    bound = [sparse_complexity_bound(n, 8, 1, 1.0, 1.0, np.sqrt(n), m) for m in sizes]
    shape = [first * each / bound[0] for each in bound]
    line: Frame = {"series": [SHAPE] * len(sizes), "m": sizes, "gap / variance": shape, "low": shape, "high": shape}
    return joined(frame, {**line, "repetitions": [0] * len(sizes)})


MEDIANS = "Medians over seeds and their intervals."


EXPERIMENT = Experiment(
    name="erm-curves",
    paper="A",
    place="Theorems 5 and 19",
    title="Samples: the sparse class against the dense one",
    summary="Random networks on 12 signs (4, 8 and 16 units, one active; 4 and 8, two active) and a gated one of 8 "
    "are learned by a search for the least training error in the class (told s and k; 3 restarts), by a dense ReLU "
    "network of s units (the least training error of 4 starts of L-BFGS), by one of 64 units (weight decay by 3-fold "
    "cross-validation), and by a polynomial (degree 1 to 4 and penalty by 5-fold cross-validation). All see the same "
    "points. Errors are exact over the cube. Also with noise of a quarter of the variance, without the wide network.",
    parameters=parameters,
    measure=measure,
    claims=CLAIMS,
    charts=(
        Chart(
            "errors",
            "Error against samples: the sparse class, dense networks, polynomials",
            f"{MEDIANS} Exact, under the distribution of the points. Errors below a thousandth of the variance, or "
            "above ten times, are drawn at these limits.",
            lambda rows: panelled(
                {
                    name: curves(_of(rows, cell), "{learner}", "m", partial(_share, "share"), "error / variance")
                    for name, cell in PANELS.items()
                },
                "network",
            ),
            panel_plot(
                "samples m",
                "squared error / variance",
                log_x=2,
                log_y=10,
                levels={"a tenth of the variance": ENOUGH},
                columns=3,
                panel=(3.2, 2.5),
            ),
        ),
        Chart(
            "ratios",
            "Error of the sparse learner over that of the dense one of as many units",
            "Geometric means over seeds with 95 % intervals; the same points for both, no noise. Errors below a "
            "thousandth of the variance count as this.",
            _ratios,
            curve_plot("samples m", "sparse / dense squared error", log_x=2, log_y=10, levels={"equal errors": 1.0}),
        ),
        Chart(
            "needs",
            "Samples needed against the number of units, one of them active",
            f"{MEDIANS} Samples from which on the error is at most a tenth of the variance; a network not learned "
            "from the most samples counts as twice these.",
            _needs,
            curve_plot("units s", "samples needed", log_x=2, log_y=2),
        ),
        Chart(
            "gaps",
            "Error on new labels less that on the labels seen, with noise",
            f"{MEDIANS} Random networks of 8 units, k = 1, noise of a quarter of the variance. The line has the shape "
            "sqrt(log(m (R + B)) / m), drawn through the first value of the sparse learner. Gaps above ten times the "
            "variance are drawn at this limit.",
            _gaps,
            curve_plot("samples m", "gap / variance of the target", log_x=2, log_y=10, lines=(SHAPE,)),
        ),
    ),
    order=330,
)
