"""Error of low-degree least squares against samples: Lemma 7 made sharp, with noise, and with corrupted labels.

With N monomials of degree at most d, residual variance ``tail`` beyond degree d, label noise of variance ``v`` and m
uniform samples, the coefficients' error is ``(tail + v) N / (m - N)``: that of least squares with Gaussian rows, whose
columns here are orthonormal too. Hence the error against the function itself, ``tail + (tail + v) N / (m - N)``;
against noisy labels it is larger by v, that is ``(tail + v) (1 + N / (m - N))``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.fourier import Spectrum
from sparsact.hypercube import n_subsets, points
from sparsact.reports.figure import COLOURS, GREY, Chart, Frame, figure, scale, styled
from sparsact.reports.figure import rows as rows_of
from sparsact_papers.charts import MARKERS, curve_plot, curves, frame_of, joined, legend
from sparsact_papers.claims import Claim, Verdict, bounded, needed, only_if, within
from sparsact_papers.common.learners import GATED, TARGETS, drawn, planted, squared_error
from sparsact_papers.experiment import Experiment, Row, Rows, Scale
from sparsact_papers.intervals import mean_of, median_of, range_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


CLEAN, GAUSSIAN, OBLIVIOUS, ALIGNED = "clean", "Gaussian noise", "corrupted at random", "corrupted against the degree"
REVERSED: Final = "corrupted at random, signs reversed"
FEW: Final = 8  # a sample is small compared with the cube if it is at most this part of its points


def _is_small(row: Row) -> bool:
    return bool(FEW * row["m"] <= 2 ** row["n"])


def _farthest(rows: Rows, what: str) -> Verdict:
    """The point of the curves whose mean ratio of measured to predicted is farthest from 1, with its interval."""
    groups = needed(rows, what).groups("target", "n", "degree", "ratio")
    means = [mean_of(group.array("error / predicted")) for group in groups.values()]
    worst = max(means, key=lambda mean: abs(np.log(mean.estimate)))
    return within(worst, least=0.9, most=1.1, what=f"measured / predicted farthest from 1 of {len(means)}, {what},")


def _judge_formula(rows: Rows) -> Verdict:
    asked = [row for row in rows.where(target=GATED, labels=CLEAN) if row["degree"] >= 3 and row["ratio"] >= 2]
    small = Rows(row for row in asked if _is_small(row))
    large = Rows(row for row in asked if not _is_small(row))
    condition = "the sample is at most an eighth of the cube's points"
    return only_if(condition, _farthest(small, "m <= 2^n / 8"), _farthest(large, "larger m"))


def _excess(rows: Rows, *labels: str) -> Verdict:
    """The largest excess over noise and tail of any degree, each a mean over labels, for each seed."""
    found = needed(Rows(row for row in rows if row["labels"] in labels), labels[0])
    excess: dict[int, list[float]] = {}
    for (seed, _), one in found.groups("seed", "degree").items():
        of_each = (one.array("least_risk") - one.array("noise")) / one.array("tail") - 1
        excess.setdefault(seed, []).append(float(of_each.mean()))
    largest = [max(each) for each in excess.values()]
    return within(mean_of(largest), most=0.0, what=f"largest (least risk - noise - tail) / tail, {labels[0]},")


def _judge_triangle(rows: Rows) -> Verdict:
    found = needed(Rows(row for row in rows if row["labels"] in (OBLIVIOUS, REVERSED, ALIGNED)), "corrupted labels")
    limit = (np.sqrt(found.array("noise")) + np.sqrt(found.array("tail"))) ** 2
    return bounded(range_of(found.array("least_risk") / limit), "least risk / bound")


def _judge_constant(rows: Rows) -> Verdict:
    found = [row for row in needed(rows.where(labels=CLEAN), "clean labels") if row["ratio"] >= 4]
    return within(range_of([row["error / tail"] for row in found]), most=2.0, what="error / tail")


CLAIMS: Final = (
    Claim(
        name="constant",
        place="Lemma 7",
        statement="With order of N samples, the squared error is O(tail), the weight above the degree.",
        printed="O(n^d C^2 log(1/delta) / epsilon) samples for an error of O(epsilon)",
        rule="holds if on every row without noise and with m >= 4 N the error is at most 2 tail: the tail itself, "
        "which no polynomial avoids, and as much again for the estimate",
        refuted_if="some row without noise and with m >= 4 N errs by more than twice the tail",
        judge=_judge_constant,
    ),
    Claim(
        name="formula",
        statement="Without noise the error is tail (1 + N / (m - N)), gated network, degree >= 3, m >= 2 N.",
        rule="over all n, degree >= 3 and m >= 2 N, the mean over seeds of measured / predicted that is farthest from "
        "1: holds if its 95 % interval lies within [0.9, 1.1]; judged apart for samples of at most an eighth of the "
        "cube's points, and for larger ones",
        refuted_if="measured / predicted is significantly outside the limits for small samples, too",
        judge=_judge_formula,
    ),
    Claim(
        name="noise",
        statement="With noise of variance v the error against the function is tail + (tail + v) N / (m - N).",
        rule="holds if the 95 % interval of measured / predicted, m >= 2 N, lies within [0.9, 1.1]",
        refuted_if="measured / predicted is significantly outside the limits",
        judge=lambda rows: within(
            mean_of(
                [
                    float(np.mean(one.array("error / predicted")))
                    for one in Rows(
                        [row for row in needed(rows.where(labels=GAUSSIAN), "noisy labels", 2) if row["ratio"] >= 2]
                    )
                    .groups("seed")
                    .values()
                ]
            ),
            least=0.9,
            most=1.1,
            what="measured / predicted",
        ),
    ),
    Claim(
        name="agnostic",
        statement="Where labels are corrupted the best polynomial's risk is at most the noise plus the tail.",
        rule="the largest (least risk of a degree - mean squared corruption - tail) / tail over the degrees: holds if "
        "the 95 % interval of its mean over seeds lies below 0, where corruption adds up with the tail as independent "
        "noise does; judged apart for random corruption (of each degree the mean of a draw and its reverse: what they "
        "correlate with the tail cancels), and for one that is aligned with the target's high degrees",
        refuted_if="the mean is significantly above that with corruption at random, too",
        judge=lambda rows: only_if(
            "the corruption does not depend on the target", _excess(rows, OBLIVIOUS, REVERSED), _excess(rows, ALIGNED)
        ),
    ),
    Claim(
        name="agnostic-bound",
        statement="By the triangle inequality that risk is at most (sqrt(noise) + sqrt(tail))^2, always.",
        rule="holds if no corrupted row exceeds it by more than rounding",
        refuted_if="some corrupted row exceeds the bound by more than rounding",
        judge=_judge_triangle,
    ),
)


NOISE: Final = 0.25  # variance of the Gaussian noise, in variances of the target
CORRUPTED, SHIFT = 0.1, 1.0  # share of labels that are moved, and by how many standard deviations of the target
RATIOS: Final = {
    Scale.SMOKE: (2.0, 4.0),
    Scale.QUICK: (1.25, 2.0, 4.0, 8.0),
    Scale.FULL: (1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0),
}
DEGREES: Final = {Scale.SMOKE: (3,), Scale.QUICK: (1, 2, 3, 4), Scale.FULL: (1, 2, 3, 4)}
SEEDS: Final = {Scale.SMOKE: 2, Scale.QUICK: 4, Scale.FULL: 10}
CORRUPTIONS: Final = {**SEEDS, Scale.FULL: 24}  # seeds of corrupted labels
SIZES: Final = {Scale.SMOKE: (8,), Scale.QUICK: (10, 14), Scale.FULL: (10, 12, 16)}
CORRUPTED_N: Final = {Scale.SMOKE: 8, Scale.QUICK: 12, Scale.FULL: 14}


def parameters(scale: Scale) -> Iterator[dict[str, int | float | str]]:
    """Clean curves of every target and degree; noisy and corrupted ones of the gated network."""
    for seed in range(SEEDS[scale]):
        for n in SIZES[scale]:
            largest = n == SIZES[scale][-1]
            for target, degree, ratio in product(
                TARGETS if largest and seed < 5 else (GATED,), DEGREES[scale], RATIOS[scale]
            ):
                yield _task(target, n, degree, ratio, CLEAN, seed)
        for ratio in RATIOS[scale]:
            yield _task(GATED, n, 3, ratio, GAUSSIAN, seed)
    for seed in range(CORRUPTIONS[scale]):
        for labels, degree in product((OBLIVIOUS, REVERSED, ALIGNED), (1, 2, 3, 4, 5)):
            if 4 * n_subsets(CORRUPTED_N[scale], degree) <= 2 ** CORRUPTED_N[scale]:  # else it fits the corruption
                yield _task(GATED, CORRUPTED_N[scale], degree, 4.0, labels, seed)


def _task(target: str, n: int, degree: int, ratio: float, labels: str, seed: int) -> dict[str, int | float | str]:
    return {"target": target, "n": n, "degree": degree, "ratio": ratio, "labels": labels, "seed": seed}


def measure(*, target: str, n: int, degree: int, ratio: float, labels: str, seed: int) -> dict[str, float]:
    """Exact error of the fitted polynomial over the cube, and the error by the formula."""
    from sparsact.learners import LowDegreeRegressor

    values = planted(target, n, seed)(points(n))
    N = n_subsets(n, degree)
    m = int(np.ceil(ratio * N))
    seen = drawn(n, m, seed)
    spectrum = Spectrum.of(values)
    tail, variance = spectrum.tail(degree), spectrum.variance()
    moved = corruption(spectrum, degree, labels, seed)
    noise = NOISE * variance if labels == GAUSSIAN else 0.0
    noisy = np.random.default_rng([seed, 3]).normal(size=m) * np.sqrt(noise)
    model = LowDegreeRegressor(degree=degree).fit(points(n)[seen], (values + moved)[seen] + noisy)
    estimation = N / (m - N)
    return {
        "n_monomials": N,
        "m": m,
        "error": squared_error(model, values),
        "predicted": tail + (tail + noise) * estimation,
        "tail": tail,
        "variance": variance,
        "noise": noise + float(np.mean(moved**2)),
        "risk": squared_error(model, values + moved) + noise,  # against labels as the learner sees them
        "least_risk": Spectrum.of(values + moved).tail(degree) + noise,  # of any polynomial of this degree
    }


def corruption(spectrum: Spectrum, degree: int, labels: str, seed: int) -> NDArray[np.float64]:
    """What is added to the label of each point: a tenth of the points by +-1 standard deviation, the others by 0.

    An oblivious corruption takes points and signs at random, or the reverse of these signs. The aligned one knows the
    target: it takes the points where the part above the degree is largest, and enlarges that part.
    """
    moved = np.zeros(2**spectrum.n)
    if labels == REVERSED:
        return -corruption(spectrum, degree, OBLIVIOUS, seed)
    if labels not in (OBLIVIOUS, ALIGNED):
        return moved
    n_moved, shift = round(CORRUPTED * len(moved)), SHIFT * np.sqrt(spectrum.variance())
    if labels == ALIGNED:
        high = (spectrum - spectrum.truncate(degree)).values()
        chosen = np.argsort(-np.abs(high), kind="stable")[:n_moved]
        moved[chosen] = shift * np.sign(high[chosen])
    else:
        rng = np.random.default_rng([seed, 4])
        moved[rng.choice(len(moved), n_moved, replace=False)] = shift * rng.choice([-1.0, 1.0], n_moved)
    return moved


NOISY: Final = "noise of a quarter of the variance"


def of_the_largest(rows: Rows) -> Rows:
    """The rows of the largest n, without corruption."""
    kept = Rows(row for row in rows if row["labels"] in (CLEAN, GAUSSIAN))
    return kept.where(n=max(kept.distinct("n"))) if len(kept) else kept


def _error_frame(rows: Rows) -> Frame:
    groups = of_the_largest(rows).groups("target", "degree", "labels", "ratio")
    over = [(key, group, median_of(group.array("error / variance"))) for key, group in groups.items()]
    lines = (
        (*key, one.estimate, one.low, one.high, float(group.array("predicted / variance").mean()))
        for key, group, one in over
    )
    return frame_of(lines, "target", "degree", "labels", "m / N", "error", "low", "high", "formula")


@styled
def plot_error(frame: Frame) -> Figure:
    """A panel a target: points measured, lines the formula."""
    targets = list(dict.fromkeys(frame["target"]))
    drawing = figure(3.6 * len(targets) + 0.6, 4.4)
    panels = drawing.subplots(1, len(targets), sharey=True, squeeze=False)[0]
    for axes, target in zip(panels, targets, strict=True):
        curves_of: dict[tuple[int, str], list[tuple[float, ...]]] = {}
        for name, degree, labels, *point in rows_of(frame):
            if name == target:
                curves_of.setdefault((degree, labels), []).append(tuple(point))
        for (degree, labels), curve in curves_of.items():
            x, y, low, high, formula = (list(column) for column in zip(*curve, strict=True))
            bars = [[max(a - b, 0) for a, b in zip(y, low, strict=True)], [b - a for a, b in zip(y, high, strict=True)]]
            noisy = labels == GAUSSIAN
            axes.plot(x, formula, color=GREY, lw=1.1, ls=(0, (5, 2)) if noisy else "-")
            axes.errorbar(
                x, y, bars, color=COLOURS[degree - 1], marker=MARKERS[degree - 1], ms=5.5, ls="", capsize=2.5,
                mfc="white" if noisy else None, label=f"degree {degree}" + (f", {NOISY}" if noisy else ""),
            )  # fmt: skip
        scale(axes, log_x=2, log_y=10)
        axes.set_title(target)
        axes.set_xlabel("samples m / monomials N")
        axes.grid(visible=True)
    panels[0].set_ylabel("squared error / variance")
    legend(drawing, columns=3)
    return drawing


def _corrupted_frame(rows: Rows) -> Frame:
    kept = Rows(row for row in rows if row["labels"] in (OBLIVIOUS, ALIGNED))
    least = curves(kept, "{labels}", "degree", lambda row: (row["least_risk"] - row["noise"]) / row["tail"], "excess")
    bound = curves(
        kept.where(labels=ALIGNED),
        "triangle inequality",
        "degree",
        lambda row: ((row["noise"] ** 0.5 + row["tail"] ** 0.5) ** 2 - row["noise"]) / row["tail"],
        "excess",
    )
    return joined(least, bound)


EXPERIMENT: Final = Experiment(
    name="low-degree-curves",
    paper="A",
    place="Lemma 7 and Theorem 8",
    title="Error of low-degree least squares against samples",
    summary="Networks of Appendix A (8 units behind 3 address signs) and random networks of 16 units, 1 or 2 of them "
    "active, are learned by polynomial regression of degree 1 to 4 from uniform samples. Errors are exact, over the "
    "whole cube. Also with Gaussian noise of a quarter of the variance, and with a tenth of the labels moved by one "
    "standard deviation: at random points, or by an adversary who enlarges what lies above the degree.",
    parameters=parameters,
    measure=measure,
    claims=CLAIMS,
    charts=(
        Chart(
            "error",
            "Error against samples",
            "Largest n. Points: median over seeds and its interval, exact over the cube; hollow where labels are "
            "noisy. Lines: tail + (tail + v) N / (m - N), v the noise.",
            _error_frame,
            plot_error,
        ),
        Chart(
            "formula",
            "Where the formula is right",
            "Gated network without noise: median over seeds and its interval. Where samples are no small part of the "
            "cube, repeated points make the least squares see fewer, and points already seen have less error.",
            lambda rows: curves(
                Rows(
                    row for row in rows if row["labels"] == CLEAN and "gated" in row["target"] and (row["degree"] >= 3)
                ),
                "n = {n}, degree {degree}",
                "ratio",
                "error / predicted",
                "measured / predicted",
            ),
            curve_plot(
                "samples m / monomials N",
                "measured error / tail (1 + N / (m - N))",
                log=(2, 10),
                levels={"10 % more": 1.1, "10 % less": 0.9},
            ),
        ),
        Chart(
            "corruption",
            "Corrupted labels",
            "What the best polynomial of each degree adds to the noise. A tenth of the labels is moved by one "
            "standard deviation: at random, or to enlarge what lies above the degree. Median over seeds and its "
            "interval.",
            _corrupted_frame,
            curve_plot(
                "degree of the polynomial",
                "(least risk - noise) / tail",
                lines=("triangle inequality",),
                levels={"noise plus one tail": 1.0},
                ticks=True,
            ),
        ),
    ),
    order=210,
)
