r"""Theorem 4.1 in practice: how many samples leave how many empty buckets, and the literal learner against its rivals.

A point falls into a bucket that m samples left empty with probability :math:`\sum_b p_b (1 - p_b)^m`. The literal
learner is one Euclidean table of constants; the rivals are nearest neighbours and the library's LSHRegressor as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise, product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from sparsact.bounds import table_samples
from sparsact_papers.charts import Chart, Frame, by_width, curve_plot, curves, joined
from sparsact_papers.claims import Claim, Verdict, every, needed, within
from sparsact_papers.experiment import Experiment, Rows, Scale
from sparsact_papers.intervals import mean_of, slope_of

Array = NDArray[np.float64]

PLANE: Final = {"k": 2, "ambient": 16, "n_directions": 8}
WIDTHS: Final = {Scale.SMOKE: (1.0, 0.5), Scale.QUICK: (1.0, 0.5, 0.25), Scale.FULL: (0.5, 0.25, 0.125)}
LOG2_SAMPLES: Final = {
    Scale.SMOKE: (6, 11),
    Scale.QUICK: (8, 15),
    Scale.FULL: (10, 18),
}  # the fewest and the most, at the finest width
LARGE: Final = 4  # the sample that tells the probabilities, and the fresh points, in multiples of the most samples
INTRINSIC, CENTRES = 4, 64
AMBIENTS: Final = (16, 64)
LOG2_ROWS: Final = {Scale.SMOKE: (10,), Scale.QUICK: (11, 13), Scale.FULL: (14, 15, 16)}
N_TEST: Final = {Scale.SMOKE: 500, Scale.QUICK: 2000, Scale.FULL: 8192}
SEEDS: Final = {Scale.SMOKE: 1, Scale.QUICK: 3, Scale.FULL: 5}


def parameters(scale: Scale) -> Iterator[dict[str, Any]]:
    """For every seed a curve of misses, and all rivals on the same rows for each size."""
    fewest, most = LOG2_SAMPLES[scale]
    for seed in range(SEEDS[scale]):
        for width in WIDTHS[scale]:
            fewer = round((width / WIDTHS[scale][-1]) ** PLANE["k"])  # buckets
            samples = {"fewest": 1 << fewest, "most": (1 << most) // fewer, "large": (LARGE << most) // fewer}
            yield {"part": MISSES, **PLANE, "width": width, **samples, "seed": seed}
        for ambient, power in product(AMBIENTS, LOG2_ROWS[scale]):
            sizes = {"rows": 1 << power, "n_test": N_TEST[scale], "seed": seed}
            yield {"part": RIVALS, "k": INTRINSIC, "ambient": ambient, "centres": CENTRES, **sizes}


def measure(*, part: str, **sizes: Any) -> dict[str, Any]:
    """Measure one part of the experiment."""
    return misses(**sizes) if part == MISSES else rivals(**sizes)


def misses(
    *, k: int, ambient: int, n_directions: int, width: float, fewest: int, most: int, large: int, seed: int
) -> dict[str, Any]:
    """Share of fresh points in empty buckets as samples double, beside two predictions from another sample."""
    from sparsact.learners import LSHRegressor
    from sparsact_papers.data import random_subspace

    rng = np.random.default_rng([seed, k])
    domain = random_subspace(ambient, k, rng=rng)
    other, X, new = (domain.sample(m, rng=rng) for m in (large, most, large))
    whole = LSHRegressor(1, n_directions, width, 0, "euclidean", "nearest", seed, directions="principal")
    counts = whole.fit(other, np.zeros(large)).bucket_counts_
    samples = [fewest << i for i in range((most // fewest).bit_length())]
    model, shares = whole.blank(), []  # the same buckets, none of the rows
    for start, stop in pairwise((0, *samples)):
        model.partial_fit(X[start:stop], np.zeros(stop - start))
        shares.append(float(np.mean(model.apply(new) < 0)))
    proof = table_samples(ambient, k, 1.0, width)
    return {
        "samples": samples,
        "misses": shares,
        "predicted": [plug_in(counts, m) for m in samples],
        "unbiased": [unbiased(counts, m) for m in samples],
        "buckets": len(counts),
        "proof_samples": proof,
        "proof_misses": unbiased(counts, round(proof)),
    }


def plug_in(counts: NDArray[np.int64], m: int) -> float:
    r"""The sum :math:`\sum_b p_b (1 - p_b)^m` with the shares of a sample for the probabilities."""
    p = counts / counts.sum()
    return float(p @ (1 - p) ** m)


def unbiased(counts: NDArray[np.int64], m: int) -> float:
    r"""The mean share of misses after m of a sample's N rows, over all choices of these and of another row of it.

    .. math:: \sum_b \frac{n_b}{N} \binom{N - n_b}{m} \Big/ \binom{N - 1}{m}

    Its expectation is :math:`\sum_b p_b (1 - p_b)^m` exactly, for m below N.
    """
    total = counts.sum()
    outside = total - counts  # rows that are in other buckets
    reached = outside >= m
    n, outside = counts[reached], outside[reached]
    ways = gammaln(outside + 1) - gammaln(outside - m + 1) - gammaln(total) + gammaln(total - m)
    return float(n @ np.exp(ways) / total)


def rivals(*, k: int, ambient: int, centres: int, rows: int, n_test: int, seed: int) -> dict[str, Any]:
    """Root mean squared errors of the literal learner, of nearest neighbours and of the recommended one."""
    from sklearn.linear_model import LinearRegression
    from sklearn.neighbors import KNeighborsRegressor

    from sparsact.learners import LSHRegressor
    from sparsact_papers.data import LowerEnvelope, random_subspace

    rng = np.random.default_rng([seed, ambient])
    domain = random_subspace(ambient, k, rng=rng)
    f = LowerEnvelope(domain.sample(centres, rng=rng), rng.uniform(0, 0.5, centres))
    new, X = domain.sample(n_test, rng=rng), domain.sample(rows, rng=rng)
    models = {
        "literal": LSHRegressor(1, "auto", "auto", 0, "euclidean", "nearest", seed),
        "nearest": KNeighborsRegressor(1),
        "eight_nearest": KNeighborsRegressor(8),
        "recommended": LSHRegressor(random_state=seed),
        "linear_rmse": LinearRegression(),
    }
    y, truth = f(X), f(new)
    errors = {name: model.fit(X, y).predict(new) - truth for name, model in models.items()}
    errors_of = {name: float(np.sqrt(np.mean(error**2))) for name, error in errors.items()}
    literal = models["literal"]
    return {**errors_of, "deviation": float(truth.std()), "width": literal.bucket_width_, "buckets": literal.n_buckets_}


MISSES, RIVALS = "misses", "rivals"
NOTICEABLE: Final = 0.001  # share of misses from which on a prediction is compared
NEAR: Final = 0.1


def finest(rows: Rows) -> Rows:
    """Curves of misses at the least width."""
    found = needed(rows.where(part=MISSES), "curves of misses", 2)
    return found.where(width=min(found.column("width")))


def _judge_prediction(rows: Rows) -> Verdict:
    curves = finest(rows)
    parts = []
    for i, m in enumerate(curves[0]["samples"]):
        average = mean_of([row["misses"][i] for row in curves]).estimate
        if average > NOTICEABLE:
            excess = mean_of([(row["unbiased"][i] - row["misses"][i]) / average for row in curves])
            parts.append(within(excess, least=-NEAR, most=NEAR, what=f"{m} samples:"))
    return every(*parts)


def _judge_proof(rows: Rows) -> Verdict:
    curves = needed(rows.where(part=MISSES), "curves of misses", 2).groups("seed").values()
    needed(rows if min(len(curve) for curve in curves) > 1 else Rows([]), "two widths of a seed")
    slope = slope_of((curve.column("width"), curve.column("proof_misses")) for curve in curves)
    verdict = within(slope, least=0.0, what="power of the width in the misses:")
    last = finest(rows)
    share = mean_of(last.array("proof_misses"))
    return Verdict(verdict.outcome, f"{verdict.measured}; at width {last[0]['width']:g} {share} of the points")


def _judge_ratio(rows: Rows, model: str, rival: str, **limits: float) -> Verdict:
    found = needed(rows.where(part=RIVALS), "tasks with rivals", 2)
    return every(
        *(
            within(mean_of([row[model] / row[rival] for row in group]), what=f"d = {d}, {m} rows:", **limits)
            for (d, m), group in found.groups("ambient", "rows").items()
        )
    )


CLAIMS: Final = (
    Claim(
        name="misses",
        statement="The share of fresh points in empty buckets is sum_b p_b (1 - p_b)^m, which another sample of four "
        "times the most samples predicts without bias.",
        rule="predicted less measured share, over the mean measured one; holds if the 95 % interval of its mean over "
        f"seeds lies within +- {NEAR:g} at every number of samples that leaves more than {NOTICEABLE:.1%} of misses "
        "on average, at the finest width",
        refuted_if="at some number of samples the predicted share is significantly farther from the measured one than "
        "the limit",
        judge=_judge_prediction,
    ),
    Claim(
        name="samples-of-the-proof",
        place="Theorem 4.1, proof",
        statement="After the proof's k V ln V samples empty buckets are a rare scenario: ever rarer as eps falls.",
        printed="a rare scenario; V = O((2 Gamma L sqrt(d) / eps)^k)",
        rule="share of misses at k V ln V samples, eps the gap of the hyperplanes, L = 1 and the constant Gamma 1, "
        "predicted without bias from another sample; holds if the 95 % interval of the mean over seeds of the slope "
        "of its logarithm in log eps lies above 0",
        refuted_if="the share of misses grows significantly as eps falls",
        judge=_judge_proof,
    ),
    Claim(
        name="literal-and-nearest",
        statement="The literal learner, one table of constants with the best gap, loses to the nearest neighbour.",
        rule="its root mean squared error over that of 1-NN on the same rows; holds if the 95 % interval of the mean "
        "over seeds lies above 1 at every size",
        refuted_if="the literal learner significantly errs less than the nearest neighbour at some size",
        judge=lambda rows: _judge_ratio(rows, "literal", "nearest", least=1.0),
    ),
    Claim(
        name="recommended-and-eight-nearest",
        statement="The recommended learner, 16 adapted tables of lines, beats the mean of eight nearest neighbours.",
        rule="its root mean squared error over that of 8-NN on the same rows; holds if the 95 % interval of the mean "
        "over seeds lies below 1 at every size",
        refuted_if="the recommended learner significantly errs more than eight nearest neighbours at some size",
        judge=lambda rows: _judge_ratio(rows, "recommended", "eight_nearest", most=1.0),
    ),
)


PLUG_IN, UNBIASED = "sum of p(1 - p)^m, p estimated", "the same without bias"
COLUMNS: Final = {"measured": "misses", PLUG_IN: "predicted", UNBIASED: "unbiased"}
DEVIATION, LINEAR = "standard deviation of the target", "best linear function"
NAMES: Final = {
    "literal": "one table, constants",
    "nearest": "nearest neighbour",
    "eight_nearest": "8 nearest neighbours",
    "recommended": "LSHRegressor, defaults",
    "linear_rmse": LINEAR,
}


def _errors_frame(rows: Rows, ambient: int) -> Frame:
    found = rows.where(part=RIVALS, ambient=ambient)

    def share(column: str) -> Frame:
        return curves(found, lambda _: NAMES[column], "rows", f"{column} / deviation", "share")

    return joined(*(share(column) for column in NAMES))


EXPERIMENT: Final = Experiment(
    name="theorem-4-1-practice",
    paper="B",
    place="Theorem 4.1",
    title="Samples that fill the buckets, and the literal learner against its rivals",
    summary="Misses: one Euclidean hash of 8 directions and gap 1/2, 1/4 or 1/8 on random planes within [-1, 1]^16; "
    "the buckets' probabilities are estimated from 2^16, 2^18 or 2^20 rows, misses are counted on as many fresh ones. "
    "Rivals: random 4-dimensional subspaces, lower envelopes of 64 cones about their points. Literal: one table of 16 "
    "directions, constants, the nearest bucket for an empty one, the gap of least leave-one-out error. Nearest "
    "neighbours are scikit-learn's; recommended is LSHRegressor with its defaults (16 adapted grids, lines).",
    parameters=parameters,
    measure=measure,
    claims=CLAIMS,
    charts=(
        Chart(
            "misses",
            "Misses against samples",
            "Median over seeds with its interval, on a plane (k = 2) in R^16. Lines: predictions from another sample.",
            lambda rows: by_width(finest(rows), {f"{name}, ": column for name, column in COLUMNS.items()}, "samples"),
            curve_plot(
                "samples",
                "share of fresh points in empty buckets",
                log=(2, 10),
                lines=lambda name: name.startswith((PLUG_IN, UNBIASED)),
            ),
        ),
        *(
            Chart(
                f"errors-{d}",
                f"The literal learner and its rivals in R^{d}",
                "Median over seeds with its interval; 4-dimensional subspaces, lower envelope of 64 cones.",
                partial(_errors_frame, ambient=d),
                curve_plot(
                    "rows",
                    "rms error / standard deviation of the target",
                    log=(2, 10),
                    lines=(LINEAR,),
                    levels={DEVIATION: 1.0},
                ),
            )
            for d in AMBIENTS
        ),
    ),
    order=42,
)
