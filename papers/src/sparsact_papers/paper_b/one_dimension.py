"""The one-dimensional example: ever more buckets of a line, against dense layers of ever more units.

Buckets hold constants, in closed form or trained as the paper trains, or lines; one is active for each input.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.dsm.training import RMSProp
from sparsact_papers.charts import Chart, Frame, curve_plot, curves, joined
from sparsact_papers.claims import Claim, Verdict, every, needed, within
from sparsact_papers.common.bucket_scalars import ScalarTraining, bucket_lines, bucket_means, trained_scalars
from sparsact_papers.common.rates import HALF
from sparsact_papers.experiment import Experiment, Rows, Scale
from sparsact_papers.intervals import median_of, slope_of

Array = NDArray[np.float64]

WAVES: Final = 3  # the target is a sum of this many cosines
N_TRAIN: Final = {Scale.SMOKE: 1 << 12, Scale.QUICK: 1 << 16, Scale.FULL: 1 << 16}
N_TEST: Final = {Scale.SMOKE: 1 << 10, Scale.QUICK: 1 << 14, Scale.FULL: 1 << 14}
BUCKETS: Final = {Scale.SMOKE: (8, 16), Scale.QUICK: (8, 16, 32, 64), Scale.FULL: (8, 16, 32, 64, 128, 256, 512)}
NARROW: Final = (1, 2, 4)  # further widths of dense layers: 1 unit is what a model of buckets has active
SEEDS: Final = {Scale.SMOKE: 2, Scale.QUICK: 3, Scale.FULL: 5}
EPOCHS: Final = {Scale.SMOKE: 2, Scale.QUICK: 10, Scale.FULL: 200}
PAPERS: Final = RMSProp(learning_rate=5e-6, rho=0.9, epsilon=1e-7)  # rho and epsilon as Keras has them
BATCH: Final = 32  # the default of Keras; the paper gives none


def parameters(scale: Scale) -> Iterator[dict[str, Any]]:
    """For each seed every model at every size."""
    for seed in range(SEEDS[scale]):
        draw = {"n_train": N_TRAIN[scale], "n_test": N_TEST[scale], "seed": seed}
        for n in BUCKETS[scale]:
            yield draw | {"model": CONSTANTS, "n_units": n, "epochs": EPOCHS[scale]}
            yield from (draw | {"model": model, "n_units": n, "epochs": 0} for model in (CONSTANTS, LINES))
        yield from (draw | {"model": DENSE, "n_units": n, "epochs": 0} for n in (*NARROW, *BUCKETS[scale]))


def measure(*, model: str, n_units: int, epochs: int, n_train: int, n_test: int, seed: int) -> dict[str, float]:
    """Mean squared error on fresh points, beside variance and best line; ``epochs`` 0 is the closed form."""
    rng = np.random.default_rng([seed, 1])  # target and points depend on the seed, not on the model
    phases, frequencies = rng.uniform(0, 2 * np.pi, WAVES), rng.uniform(1, 4, WAVES)

    def f(x: Array) -> Array:
        return np.asarray(np.cos(frequencies * x[:, None] + phases).sum(axis=1) / WAVES)

    x, new = rng.uniform(-1, 1, n_train), rng.uniform(-1, 1, n_test)
    line = np.polynomial.Polynomial.fit(x, f(x), 1)
    if model == DENSE:
        predicted = _dense(x, f(x), new, n_units, seed)
    else:
        predicted = _bucketed(x, f(x), new, n_units, seed, lines=model == LINES, epochs=epochs)
    return {
        "mse": float(np.mean((predicted - f(new)) ** 2)),
        "variance": float(f(new).var()),
        "linear_mse": float(np.mean((line(new) - f(new)) ** 2)),
    }


def _dense(x: Array, y: Array, new: Array, width: int, seed: int) -> Array:
    """A frozen random ReLU layer with biases, every unit on, solved by all but plain least squares."""
    from sparsact.learners.dsm import DSMRegressor  # draws in scikit-learn

    layer = DSMRegressor(width, width, activation="relu", bias=True, alpha=1e-12, random_state=seed)
    return np.asarray(layer.fit(x[:, None], y).predict(new[:, None]))


def _bucketed(x: Array, y: Array, new: Array, n_buckets: int, seed: int, *, lines: bool, epochs: int) -> Array:
    """Intervals of equal width with a random shift, which cuts one of them in two at the ends."""
    width = 2 / n_buckets
    shift = np.random.default_rng([seed, 2]).uniform(0, 1) * width
    places = [(points + 1 + shift) / width for points in (x, new)]
    bucket, met = (np.floor(place).astype(np.intp) for place in places)
    if lines:
        inside, seen = (place - np.floor(place) for place in places)
        heights, slopes = bucket_lines(bucket, inside, y, n_buckets + 1)
        return heights[met] + slopes[met] * seen
    if epochs:
        training, rng = ScalarTraining(PAPERS, BATCH, epochs), np.random.default_rng([seed, 3])
        return trained_scalars(bucket, y, n_buckets + 1, training, rng=rng)[met]
    return bucket_means(bucket, y, n_buckets + 1, empty=float(y.mean()))[met]


CONSTANTS, LINES, DENSE = "constants", "lines", "dense ReLU"


def of(rows: Rows, model: str, *, trained: bool = False) -> Rows:
    """Rows of a model: of the closed form, or trained."""
    return Rows(row for row in rows.where(model=model) if (row["epochs"] > 0) == trained)


def _judge_falls(rows: Rows, model: str, power: int) -> Verdict:
    found = needed(of(rows, model), f"errors of {model}")
    curves = found.groups("seed").values()
    needed(found if min(len(curve) for curve in curves) > 1 else Rows([]), "two numbers of buckets")
    slope = slope_of((curve.column("n_units"), curve.column("mse")) for curve in curves)
    verdict = within(slope, least=-power - HALF, most=-power + HALF, what="power of the buckets")
    return Verdict(verdict.outcome, f"{verdict.measured}; {_steps(found)}")


def _judge_improves(rows: Rows, *, trained: bool) -> Verdict:
    found = needed(of(rows, CONSTANTS, trained=trained), "constants").groups("n_units")
    steps = [(few, many) for (few,), (many,) in pairwise(found)]
    return every(
        *(within(median_of(_over(found[many,], found[few,])), most=1, what=f"{few} to {many}:") for few, many in steps)
    )


def _steps(found: Rows) -> str:
    """Median errors as shares of the variance, size by size."""
    sizes = found.groups("n_units")
    share = {n: float(np.median(same.array("mse / variance"))) for (n,), same in sizes.items()}
    falls = ", ".join(f"{share[a] / share[b]:.2f} ({a} to {b})" for a, b in pairwise(share))
    return f"falls of the median: {falls}"


def _judge_one_active(rows: Rows) -> Verdict:
    dense = needed(rows.where(model=DENSE, n_units=1), "dense layers of one unit")
    n = min(needed(of(rows, CONSTANTS), "constants").distinct("n_units"))
    return within(median_of(_over(of(rows, CONSTANTS).where(n_units=n), dense)), most=1, what=f"{n} buckets:")


def _judge_same_width(rows: Rows) -> Verdict:
    closed, dense = needed(of(rows, CONSTANTS), "constants"), rows.where(model=DENSE)
    return every(
        *(
            within(median_of(_over(closed.where(n_units=n), dense.where(n_units=n))), most=1, what=f"{n}:")
            for n in closed.distinct("n_units")
        )
    )


def _over(found: Rows, others: Rows) -> list[float]:
    """Errors as shares of another model's of the same seed."""
    return [row["mse"] / other["mse"] for row, other in needed(found.paired(others, "seed"), "a pair of errors")]


MEDIANS: Final = "by the interval of the median over seeds of errors paired by seed"
CLAIMS: Final = (
    Claim(
        name="improves",
        place="Section 1",
        statement="More buckets approximate better.",
        printed="a figure without numbers",
        rule=f"closed form; holds if each number of buckets has no more error than half as many, {MEDIANS}",
        refuted_if="some number of buckets significantly errs more than half as many",
        judge=partial(_judge_improves, trained=False),
    ),
    Claim(
        name="improves-trained",
        place="Section 1 with the training of A.1",
        statement="More buckets approximate better when the constants are trained as the paper trains them.",
        printed="a figure without numbers",
        rule="the same, of RMSProp",
        refuted_if="some number of buckets significantly errs more than half as many",
        judge=partial(_judge_improves, trained=True),
    ),
    Claim(
        name="fourfold",
        statement="The squared error falls like 1/buckets^2, fourfold per doubling: the square of Theorem 4.1's rate.",
        rule="slope of log squared error in log buckets of each seed, closed form; holds if the 95 % interval of its "
        "mean lies within 1/2 of -2",
        refuted_if="the slope is significantly farther than 1/2 from -2",
        judge=partial(_judge_falls, model=CONSTANTS, power=2),
    ),
    Claim(
        name="one-active-unit",
        place="Section 1",
        statement="With one active unit a model of buckets has less error than a dense layer.",
        printed="a figure without numbers",
        rule=f"holds if the fewest buckets have at most the error of a frozen ReLU layer of one unit, {MEDIANS}",
        refuted_if="the fewest buckets significantly err more than the frozen unit",
        judge=_judge_one_active,
    ),
    Claim(
        name="same-width",
        statement="N constants, one of them active, have no more error than N frozen ReLU units that are all active.",
        rule=f"holds if it is so at every N, {MEDIANS}",
        refuted_if="at some N the constants significantly err more than the frozen units",
        judge=_judge_same_width,
    ),
    Claim(
        name="sixteenfold",
        statement="With a line in each bucket (degree 1) the squared error falls like 1/buckets^4, sixteenfold per "
        "doubling.",
        rule="the same; holds if the 95 % interval lies within 1/2 of -4",
        refuted_if="the slope is significantly farther than 1/2 from -4",
        judge=partial(_judge_falls, model=LINES, power=4),
    ),
)


LINE, FOURFOLD = "best linear function", "fourfold per doubling"
NAMES: Final = {CONSTANTS: "constants, closed form", LINES: "lines, closed form", DENSE: "dense ReLU, all units active"}


def _frame(rows: Rows) -> Frame:
    found = (of(rows, CONSTANTS), of(rows, CONSTANTS, trained=True), of(rows, DENSE), of(rows, LINES))
    models = [
        curves(
            part,
            lambda row: f"constants, RMSProp, {row['epochs']} epochs" if row["epochs"] else NAMES[row["model"]],
            "n_units",
            "mse / variance",
            "share",
        )
        for part in found
    ]
    line = curves(of(rows, DENSE), LINE, "n_units", "linear_mse / variance", "share")
    return joined(*models, line, _fourfold(models[0]))


def _fourfold(means: Frame) -> Frame:
    """The line that falls fourfold from the first point on."""
    buckets = means["n_units"]
    ideal = [means["share"][0] * (buckets[0] / n) ** 2 for n in buckets]
    return means | {"series": [FOURFOLD] * len(ideal), "share": ideal, "low": ideal, "high": ideal}


EXPERIMENT: Final = Experiment(
    name="one-dimension",
    paper="B",
    place="Section 1, the one-dimensional example",
    title="Buckets of a line",
    summary="A sum of three cosines of random frequency and phase on [-1, 1] is learned by a constant in each of N "
    "buckets of equal width with a random shift: in closed form, and by the paper's RMSProp with learning rate 5e-6 "
    "and 200 epochs. The paper states neither target nor buckets, nor the batches (32) and the start (0). Beside "
    "them: a line in each bucket, and frozen random ReLU layers with biases, solved by ridge with a relative penalty "
    "of 1e-12.",
    version=2,
    parameters=parameters,
    measure=measure,
    claims=CLAIMS,
    charts=(
        Chart(
            "error",
            "Error against buckets",
            "Points: median over seeds; bars: its interval. Each seed has its own target, points and shift.",
            _frame,
            curve_plot(
                "buckets, one active; or dense units, all active",
                "mean squared error / variance",
                log=(2, 10),
                lines=(LINE, FOURFOLD),
                levels={"variance of the target": 1.0},
                size=(5.8, 5.0),
            ),
        ),
    ),
    order=10,
)
