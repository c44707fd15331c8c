"""Low degree on Boolean functions of circuits: predicted from uniform rows before a fit, and achieved (Theorem 8).

The functions come from the IWLS 2020 contest, known by 6,400 uniform rows for training and as many for validation.
Weight by degree is estimated without bias from pairs of training rows (see :mod:`sparsact.bounds.unexplained`), which
also predicts the error of least squares on that many rows, degree by degree, before any is fitted. Parity is the hard
function of Theorem 3: all of its weight is at degree n, so no lower degree does better than a constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np

from sparsact.hypercube import bits_to_signs, n_subsets
from sparsact.reports.figure import COLOURS, INK, Chart, Frame, figure, list_axis, styled
from sparsact_papers.charts import MARKERS, curves, frame_of, joined, panel_plot, panelled
from sparsact_papers.claims import Claim, Verdict, every, needed, within
from sparsact_papers.common.real_data import AMPLE, TOLERANCE, absent, near_one, ratios
from sparsact_papers.experiment import Experiment, Rows, Scale
from sparsact_papers.intervals import mean_of, normal_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILE: Final = "iwls2020/iwls2020.npz"
# The first of each kind (the contest numbers ten of a kind in a row), parity, the first symmetric function, and the
# widest adder and comparator. Number of the example: kind, coordinates.
EXAMPLES: Final = {
    0: ("adder", 32),
    9: ("wide adder", 512),
    10: ("divider", 32),
    20: ("multiplier", 16),
    30: ("comparator", 20),
    39: ("wide comparator", 200),
    40: ("square root", 16),
    50: ("PicoJava", 19),
    60: ("i10", 43),
    70: ("MCNC", 23),
    74: ("parity", 16),
    75: ("symmetric", 16),
}
PARITY: Final = 74
MOST_DEGREE: Final = 4
LEAST_ROWS_EACH: Final = 1.25  # for each coefficient
ALL: Final = 6400
SIZES: Final = {Scale.SMOKE: (800,), Scale.QUICK: (1600,), Scale.FULL: (800, 1600, 3200, ALL)}
SEEDS: Final = {Scale.SMOKE: 2, Scale.QUICK: 3, Scale.FULL: 16}
LOW, HALF = 2, 0.5  # "low degree": more than half of the variance at degree 1 and 2
ERRORS: Final = 2  # standard errors on each side of an estimated weight
REGRET: Final = 1.05  # times the least error of any degree


def parameters(scale: Scale) -> Iterator[dict[str, int]]:
    """A task for each function, size and seed; all training rows can be drawn in one way only."""
    for example, n_train in product((20, PARITY) if scale is Scale.SMOKE else EXAMPLES, SIZES[scale]):
        for seed, degree in product(range(SEEDS[scale] if n_train < ALL else 1), range(MOST_DEGREE + 1)):
            if n_train >= LEAST_ROWS_EACH * n_subsets(EXAMPLES[example][1], degree):
                yield {"example": example, "degree": degree, "n_train": n_train, "seed": seed}


def measure(*, example: int, degree: int, n_train: int, seed: int) -> dict[str, float | str | list[float] | None]:
    """Error of one degree on the validation rows and its prediction, as shares of the variance; weights, estimated."""
    from sparsact.bounds import unexplained_variance
    from sparsact.datasets import iwls2020
    from sparsact.learners import LowDegreeRegressor

    rng = np.random.default_rng([seed, 1])
    train, valid = iwls2020(example), iwls2020(example, "valid")
    chosen = rng.permutation(len(train.X))[:n_train]  # the smaller sets lie within the larger
    X, y = train.X[chosen], 1 - 2 * train.y[chosen]
    unexplained = unexplained_variance(bits_to_signs(X), y, rng=rng)
    variance = float((1 - 2 * valid.y).var())
    model = LowDegreeRegressor(degree=degree).fit(X, y)
    squares = (model.predict(valid.X) - (1 - 2 * valid.y)) ** 2 / variance
    weights, errors = unexplained.weights()[:MOST_DEGREE], unexplained.weight_errors[:MOST_DEGREE]
    both = len(weights) > 1  # with few rows for many columns the weight at degree 2 is beyond an estimate
    return {
        "function": EXAMPLES[example][0],
        "n": X.shape[1],
        "mse": float(squares.mean()),
        "mse_error": float(squares.std() / np.sqrt(len(squares))),
        "predicted": float(unexplained.predicted_errors(n_train)[degree] / unexplained.values[0]),
        "n_coefficients": n_subsets(X.shape[1], degree),
        "variance": variance,
        "weights": (weights / unexplained.values[0]).tolist(),
        "weight_errors": (errors / unexplained.values[0]).tolist(),
        "up_to_2": float(sum(weights[:2]) / unexplained.values[0]) if both else None,
        "up_to_2_error": float(unexplained.standard_errors[2] / unexplained.values[0]) if both else None,
        "bias_score": unexplained.bias_score,
    }


def most_rows(rows: Rows) -> dict[str, Rows]:
    """For each function, the rows with the largest training set."""
    needed(rows, "a function")
    largest = max(rows.column("n_train"))
    return {function: group for (function,), group in rows.where(n_train=largest).groups("function").items()}


def _judge_low_degree(rows: Rows) -> Verdict:
    judged = {}
    for function, group in most_rows(rows).items():
        share, error = group[0]["up_to_2"], group[0]["up_to_2_error"]
        interval = normal_of(share, error)
        judged[function] = (interval, within(interval, least=HALF))
    told = ", ".join(f"{function} {interval}" for function, (interval, _) in judged.items())
    return Verdict(every(*(verdict for _, verdict in judged.values())).outcome, f"weight at degree 1 and 2: {told}")


def _judge_parity(rows: Rows) -> Verdict:
    draws = rows.where(example=PARITY).groups("n_train", "seed")
    best = [min(row["mse"] for row in draw if row["degree"] > 0) for draw in draws.values()]
    noise = max(row["mse_error"] for row in rows.where(example=PARITY))
    return within(mean_of(best), least=1 - ERRORS * noise, what="least error / variance")


def _judge_mean_prediction(rows: Rows) -> Verdict:
    """For each function the achieved over the predicted error, a mean over degrees and sizes for each training set."""
    ample = Rows(row for row in rows if AMPLE * row["n_coefficients"] <= row["n_train"] < ALL)
    means = {
        function: mean_of([float(np.mean(one.array("mse / predicted"))) for one in group.groups("seed").values()])
        for (function,), group in needed(ample, "predictions").groups("function").items()
    }
    verdicts = {name: within(mean, least=1 - TOLERANCE, most=1 + TOLERANCE) for name, mean in means.items()}
    worst = max(means, key=lambda name: abs(means[name].estimate - 1))
    told = f"{len(means)} functions; the farthest from 1 is {verdicts[worst].measured}: {worst}"
    return Verdict(every(*verdicts.values()).outcome, told)


def _judge_choice(rows: Rows) -> Verdict:
    regrets: dict[str, list[float]] = {}
    for (function, _, _), draw in rows.groups("function", "n_train", "seed").items():
        chosen = min(draw, key=lambda row: row["predicted"])
        regrets.setdefault(function, []).append(chosen["mse"] / min(draw.column("mse")))
    needed(rows, "a choice")
    means = {function: mean_of(values) for function, values in regrets.items()}
    worst = max(means, key=lambda function: means[function].estimate)
    verdicts = {function: within(mean, most=REGRET) for function, mean in means.items()}
    told = f"{len(means)} functions; the largest regret is {verdicts[worst].measured}: {worst}"
    return Verdict(every(*verdicts.values()).outcome, told)


COLUMNS: Final = 4  # panels side by side
WIDEST: Final = 0.25  # standard error of a weight that is not worth drawing


def _weight_frame(rows: Rows) -> Frame:
    lines = (
        (function, group[0]["n"], degree, weight, error)
        for function, group in (most_rows(rows) if len(rows) else {}).items()
        for degree, (weight, error) in enumerate(zip(group[0]["weights"], group[0]["weight_errors"], strict=True), 1)
        if error < WIDEST
    )
    return frame_of(lines, "function", "coordinates", "degree", "weight", "standard_error")


@styled
def plot_weights(frame: Frame) -> Figure:
    """A line a function, a mark a degree."""
    functions = list(dict.fromkeys(frame["function"]))
    n = dict(zip(frame["function"], frame["coordinates"], strict=True))
    degrees = sorted(set(frame["degree"]))
    drawing = figure(6.0, 1.2 + 0.42 * len(functions))
    axes = drawing.subplots()
    for i, degree in enumerate(degrees):
        at = [j for j, each in enumerate(frame["degree"]) if each == degree]
        axes.errorbar(
            [frame["weight"][j] for j in at],
            [functions.index(frame["function"][j]) + 0.18 * (i - (len(degrees) - 1) / 2) for j in at],
            xerr=[ERRORS * frame["standard_error"][j] for j in at],
            color=COLOURS[i],
            marker=MARKERS[i],
            ms=4.5,
            lw=0,
            elinewidth=1.3,
            label=f"degree {degree}",
        )
    axes.axvline(0, color=INK, lw=0.8)
    list_axis(axes, [f"{function}, n = {n[function]}" for function in functions])
    axes.set_xlabel("share of the variance")
    drawing.legend(fontsize=8.5, loc="outside upper center", ncols=4)
    return drawing


def _error_frame(rows: Rows) -> Frame:
    sizes = {function: _size(group) for (function,), group in rows.groups("function").items()}
    columns = {"achieved": "mse", "predicted": "predicted"}
    return panelled(
        {
            function: joined(
                *(curves(size, name, "degree", y, "error", interval=mean_of) for name, y in columns.items())
            )
            for function, size in sizes.items()
        },
        "function",
    )


def _size(group: Rows) -> Rows:
    """Rows of the largest training set that was drawn more than once, or the largest."""
    several = [n for (n,), found in group.groups("n_train").items() if len(found.distinct("seed")) > 1]
    return group.where(n_train=max(several or group.column("n_train")))


EXPERIMENT: Final = Experiment(
    name="circuits",
    paper="A",
    place="Theorems 3 and 8",
    title="Low degree on functions of circuits",
    summary="Twelve Boolean functions of the IWLS 2020 contest: the first of each kind, parity, a symmetric function, "
    "the widest adder and comparator. Least squares of degree d learns values +-1 from m of the 6,400 training rows "
    "and is tested on the 6,400 validation rows; its error is predicted from the same training rows before the fit.",
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="low-degree",
            statement="Functions of real circuits have more than half of their variance at degree 1 and 2.",
            rule="holds if for every function the 95 % interval of the estimated share, by its standard "
            "error, lies above one half",
            refuted_if="the share of some function is significantly below one half",
            judge=_judge_low_degree,
        ),
        Claim(
            name="parity",
            place="Theorem 3, Section 4",
            statement="No polynomial of low degree predicts parity better than a constant.",
            printed="hard for statistical queries, learnt by no low degree",
            rule=f"holds if the 95 % interval of the least error of degree 1 to {MOST_DEGREE}, a mean over training "
            f"sets, lies above the variance less {ERRORS} standard errors of an error on the validation rows",
            refuted_if="the least error is significantly below that",
            judge=_judge_parity,
        ),
        Claim(
            name="prediction",
            place="Lemma 7",
            statement="In the mean over degrees and sizes the error is known before the fit, from the same rows.",
            printed="tail plus epsilon from O(n^d / epsilon) rows, with an unspecified constant",
            rule="achieved / predicted, a mean over degrees and m >= 2 N of each draw of training sets: holds if the "
            "95 % interval of its mean lies within [0.9, 1.1] for every function",
            refuted_if="the mean of achieved / predicted is significantly outside the limits for some function",
            judge=_judge_mean_prediction,
        ),
        Claim(
            name="each-prediction",
            place="Lemma 7",
            statement="The error of each single degree and size is known so, too.",
            printed="tail plus epsilon from O(n^d / epsilon) rows, with an unspecified constant",
            rule="holds if the 95 % interval of achieved / predicted, a mean over training sets, lies within [0.9, "
            "1.1] for every function, degree and m >= 2 N",
            refuted_if="achieved / predicted is significantly outside the limits for some function, degree and m",
            judge=lambda rows: near_one(ratios(Rows(row for row in rows if row["n_train"] < ALL), "function"), "all"),
        ),
        Claim(
            name="choice",
            statement="The degree of least predicted error is as good as the best degree.",
            rule=f"holds if for every function the mean of its error over the best degree's is below {REGRET}",
            refuted_if="for some function the chosen degree significantly errs by more than the limit over the best "
            "degree",
            judge=_judge_choice,
        ),
    ),
    charts=(
        Chart(
            "weights",
            "Weight by degree of circuits' functions",
            f"Estimated without bias from training rows; bars: {ERRORS} standard errors. Wider than ±0.5: left out.",
            _weight_frame,
            plot_weights,
        ),
        Chart(
            "errors",
            "Error by degree, predicted and achieved",
            "Marks: mean over training sets on the validation rows; bars: its 95 % interval. Errors above 2 are cut "
            "off.",
            _error_frame,
            panel_plot(
                "degree",
                "mean squared error / variance",
                lines=("predicted",),
                levels={"variance": 1.0},
                columns=COLUMNS,
                panel=(2.3, 2.0),
                limits=(0, 2),
            ),
        ),
    ),
    order=410,
    unmet=lambda: absent(FILE),
)
