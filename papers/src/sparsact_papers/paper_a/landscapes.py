r"""Low degree on complete measured tables: what Lemma 7 and Theorem 8 promise, beside what least squares achieves.

A complete table has no unknown distribution: Parseval gives the weight at each degree exactly, hence the error
:math:`\text{tail}(d) = \sum_{|T| > d} \hat f(T)^2` that no polynomial of degree d can go below (Lemma 7). Least squares
on m rows pays for its N coefficients: :math:`\text{tail}(d)\, (1 + N / (m - N))`. Rows drawn without replacement from a
table of M points pay a little more on the rows left out, since what was drawn is missing there: the error of the fit is
negatively correlated with the tail, which to first order adds N / M. Both predictions are measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.fourier import Spectrum
from sparsact.hypercube import n_subsets
from sparsact.reports.figure import COLOURS, Chart, Frame, figure, scale, styled
from sparsact_papers.charts import MARKERS, curve_frame, curve_plot, curves, joined, legend, panelled, panels_of
from sparsact_papers.claims import Claim, Verdict, bounded, needed, only_if, within
from sparsact_papers.common.real_data import AMPLE, absent, near_one, ratios
from sparsact_papers.experiment import Experiment, Row, Rows, Scale
from sparsact_papers.intervals import mean_of, range_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILES: Final = {  # the package holds the third table
    "antibody S309": "landscapes/moulana2023_s309_2e15.csv.gz",
    "LLVM": "config_performance/LLVM.csv.gz",
}
BITS: Final = {"GFP brightness": 13, "antibody S309": 15, "LLVM": 10}
DEGREES: Final = (1, 2, 3, 4)
LEAST_SIZE, LEAST_ROWS_EACH = 128, 1.25  # rows; rows for each coefficient
SEEDS: Final = {Scale.SMOKE: 2, Scale.QUICK: 3, Scale.FULL: 28}
STEP: Final = {Scale.SMOKE: 16, Scale.QUICK: 4, Scale.FULL: 2}  # from each size to the next
FEW: Final = (
    0.05  # of the points of a table: so few coefficients cost half the tolerance for being drawn without replacement
)
LOW, MOST = 3, 0.9  # "low degree": most of the variance up to this degree


def parameters(scale: Scale) -> Iterator[dict[str, int | str]]:
    """A task for each table, degree, size of the training set and seed."""
    tables = ["LLVM"] if scale is Scale.SMOKE else list(BITS)
    degrees = (1, 3) if scale is Scale.SMOKE else DEGREES
    for table, degree in product(tables, degrees):
        m = 2 ** (BITS[table] - 1)
        while m >= max(LEAST_SIZE, LEAST_ROWS_EACH * n_subsets(BITS[table], degree)):
            for seed in range(SEEDS[scale]):
                yield {"table": table, "degree": degree, "n_train": m, "seed": seed}
            m //= STEP[scale]


def complete_table(table: str) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """All points of the cube as bits in table order, and the values there, standardised."""
    from sparsact.datasets import Landscape, config_performance, load_poelwijk, moulana_s309

    load: dict[str, Callable[[], Landscape]] = {
        "GFP brightness": load_poelwijk,
        "antibody S309": moulana_s309,
        "LLVM": lambda: config_performance("LLVM"),
    }
    found = load[table]()
    order = np.argsort(found.X @ (1 << np.arange(found.X.shape[1])))
    y = found.y[order]
    return found.X[order], (y - y.mean()) / y.std()


def measure(*, table: str, degree: int, n_train: int, seed: int) -> dict[str, float | list[float]]:
    """Error on the rows left out as a share of the variance, both predictions, and the whole spectrum by degree."""
    from sparsact.learners import LowDegreeRegressor

    X, y = complete_table(table)
    weights = Spectrum.of(y).weight_by_degree()
    tail = float(weights[degree + 1 :].sum())
    chosen = np.random.default_rng([seed, 1]).permutation(len(y))  # the smaller sets lie within the larger
    train, left_out = chosen[:n_train], chosen[n_train:]
    model = LowDegreeRegressor(degree=degree).fit(X[train], y[train])
    predicted, table_price = predictions(tail, X.shape[1], degree, n_train)
    return {
        "mse": float(np.mean((model.predict(X[left_out]) - y[left_out]) ** 2)),
        "tail": tail,
        "n_coefficients": n_subsets(X.shape[1], degree),
        "share_of_table": n_subsets(X.shape[1], degree) / len(y),
        "predicted": predicted,
        "predicted_finite": predicted * table_price,
        "weights": weights.tolist(),
        "average_sensitivity": float(np.arange(len(weights)) @ weights),
    }


def predictions(tail: float, n: int, degree: int, m: int) -> tuple[float, float]:
    """The error of least squares on m rows, tail (1 + N / (m - N)), and the factor M / (M - N) of a finite table.

    Were the tail noise of variance v, the table's own residual would be v (1 - N / M): dividing gives v back. The
    leave-one-out residuals of the full table, r / (1 - N / M), confirm the factor at m = M - 1 exactly.
    """
    n_coefficients, n_points = n_subsets(n, degree), 2**n
    return tail * (1 + n_coefficients / (m - n_coefficients)), n_points / (n_points - n_coefficients)


def few_coefficients(table: str, degree: int) -> bool:
    """Whether a polynomial's coefficients are few beside the points of a table."""
    return bool(n_subsets(BITS[table], degree) <= FEW * 2 ** BITS[table])


def _judge_prediction(rows: Rows) -> Verdict:
    found = ratios(rows, "table")
    few = {key: ratio for key, ratio in found.items() if few_coefficients(key[0], key[1])}
    many = {key: ratio for key, ratio in found.items() if key not in few}
    condition = f"coefficients are at most {FEW:.0%} of the table's points"
    return only_if(condition, near_one(few, "few coefficients"), near_one(many, "many coefficients"))


def one_row_each(rows: Rows) -> dict[str, Row]:
    """A row of each table: the spectrum is the same in all of them."""
    needed(rows, "a spectrum")
    return {table: group[0] for (table,), group in rows.groups("table").items()}


def _judge_low_degree(rows: Rows) -> Verdict:
    share = {table: sum(row["weights"][1 : LOW + 1]) for table, row in one_row_each(rows).items()}
    told = ", ".join(f"{table} {value:.3f}" for table, value in share.items())
    return within(
        range_of(list(share.values())), least=MOST, what=f"share of the variance up to degree {LOW} ({told}),"
    )


def _judge_sensitivity(rows: Rows) -> Verdict:
    looseness, scale = [], {}
    for table, row in one_row_each(rows).items():
        weights, sensitivity = np.asarray(row["weights"]), row["average_sensitivity"]
        tails = weights.sum() - np.cumsum(weights)[:-1]
        looseness += (np.arange(1, len(weights)) * tails / sensitivity).tolist()
        scale[table] = np.sqrt(sensitivity) / 2
    told = ", ".join(f"{table} {value:.2f}" for table, value in scale.items())
    return bounded(range_of(looseness), f"least k W of unit variance: {told}; tail (d + 1) / AS is")


LEAST_WEIGHT: Final = 1e-6  # below, rounding and noise of the measurement
PRINTED, MENDED = "tail (1 + N / (m − N))", "the same times M / (M − N)"


def _error_frame(rows: Rows) -> Frame:
    frames = {}
    for (table,), group in rows.groups("table").items():
        achieved = curves(group, "degree {degree}", "n_train", "mse", interval=mean_of)
        predicted = curves(group, "degree {degree}", "n_train", "predicted_finite", interval=mean_of)
        frames[table] = {**achieved, "predicted": predicted["predicted_finite"]}
    return panelled(frames, "table")


@styled
def plot_errors(frame: Frame) -> Figure:
    """A panel a table: marks are achieved errors, dashed lines the prediction."""
    tables, every_degree = panels_of(frame), sorted(set(frame["series"]))
    drawing = figure(3.6 * len(tables) + 0.6, 4.0)
    panels = drawing.subplots(1, len(tables), sharey=True, squeeze=False)[0]
    for axes, (table, part) in zip(panels, tables.items(), strict=True):
        for degree, curve in panels_of(part).items():
            m, mse, low, high, _, predicted = curve.values()
            colour, marker = ((each[every_degree.index(degree)]) for each in (COLOURS, MARKERS))
            axes.vlines(m, low, high, color=colour, lw=1.4)
            axes.plot(m, mse, color=colour, marker=marker, ms=5, lw=0, label=degree)
            axes.plot(m, predicted, color=colour, lw=1.2, ls=(0, (4, 2)))
        scale(axes, log_x=2, log_y=10)
        axes.set_title(f"{table}, {2 ** BITS[table]} points")
        axes.set_xlabel("training rows")
        axes.grid(visible=True)
    panels[0].set_ylabel("mean squared error / variance")
    legend(drawing, columns=4)
    return drawing


def _ratio_frame(rows: Rows) -> Frame:
    ample = Rows(row for row in rows if row["n_train"] >= AMPLE * row["n_coefficients"])

    def ratios(prediction: str, says: str) -> Frame:
        return curves(ample, says, "share_of_table", f"mse / {prediction}", "ratio", interval=mean_of)

    return joined(ratios("predicted", PRINTED), ratios("predicted_finite", MENDED))


EXPERIMENT: Final = Experiment(
    name="landscapes",
    paper="A",
    place="Lemma 7, Theorem 8",
    title="Low degree on complete measured tables",
    summary="Two protein landscapes (2^13 brightnesses, 2^15 affinities) and the cost of LLVM under 2^10 settings, "
    "each measured at every point of the cube, hence with exact Fourier weights. Least squares of degree d learns "
    "from m rows drawn without replacement and is tested on all others; errors are shares of the variance.",
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="low-degree",
            statement="Measured functions of bits have nearly all of their variance at low degree.",
            rule=f"holds if degree 1 to {LOW} holds at least {MOST:.0%} of the variance of every table",
            refuted_if="degree 1 to 3 holds less than the limit in some table",
            judge=_judge_low_degree,
        ),
        Claim(
            name="sensitivity",
            place="Theorem 8 by the sharper Lemma 9",
            statement="The weight above degree d is at most AS / (d + 1), so a function no more sensitive than a "
            "k-sparse network of scale W, AS <= 4 k^2 W^2, has low degree.",
            printed="AS = O(k^4 W^2 ...) up to logarithms",
            rule="holds if tail (d + 1) / AS is at most 1 at every degree of every table",
            refuted_if="tail (d + 1) / AS exceeds 1 at some degree of some table",
            judge=_judge_sensitivity,
        ),
        Claim(
            name="prediction",
            place="Lemma 7",
            statement="Least squares of degree d on m rows errs by tail(d) (1 + N / (m - N)), N its coefficients.",
            printed="tail plus epsilon from O(n^d / epsilon) rows, with an unspecified constant",
            rule="holds if the 95 % interval of achieved / predicted, a mean over seeds, lies within [0.9, 1.1] for "
            "every table, degree and m >= 2 N; judged apart where N is at most 5 % of the table and elsewhere",
            refuted_if="achieved / predicted is significantly outside the limits for some table, degree and m, for "
            "few coefficients too",
            judge=_judge_prediction,
        ),
        Claim(
            name="finite-table",
            statement="For rows drawn without replacement from M points the error is M / (M - N) times that.",
            rule="as for the prediction, for every table, degree and m >= 2 N",
            refuted_if="achieved / predicted is significantly outside the limits for some table, degree and m",
            judge=lambda rows: near_one(ratios(rows, "table", "predicted_finite"), "all"),
        ),
    ),
    charts=(
        Chart(
            "weights",
            "Weight by degree of complete tables",
            "Exact, from every point of the table. Noise of the measurement alone would follow the binomial shares.",
            lambda rows: curve_frame(
                [
                    (table, degree, range_of([weight]))
                    for table, row in (one_row_each(rows) if rows else {}).items()
                    for degree, weight in enumerate(row["weights"])
                    if weight > LEAST_WEIGHT
                ],
                "degree",
                "share",
            ),
            curve_plot("degree", "share of the variance", log=(0, 10)),
        ),
        Chart(
            "errors",
            "Error of least squares on rows left out",
            "Marks: mean over seeds; bars: its 95 % interval; dashed: tail (1 + N / (m - N)) M / (M - N).",
            _error_frame,
            plot_errors,
        ),
        Chart(
            "ratios",
            "Achieved beside predicted error",
            f"Sizes of {AMPLE} rows or more a coefficient; a mark is a table and a degree. Bars: 95 % interval.",
            _ratio_frame,
            curve_plot(
                "coefficients / points of the table, N / M",
                "achieved / predicted error",
                log=(10, 0),
                levels={"as predicted": 1.0},
            ),
        ),
    ),
    order=400,
    unmet=lambda: absent(*FILES.values()),
)
