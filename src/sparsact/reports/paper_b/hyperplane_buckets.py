"""Figures of hyperplane LSH."""

from __future__ import annotations

from functools import partial

from matplotlib.figure import Figure

from sparsact.experiments import Row, Rows
from sparsact.experiments.paper_b.hyperplane_claims import TARGETS, hashed
from sparsact.reports.chart import Chart
from sparsact.reports.curves import curves, joined, plot_curves
from sparsact.reports.frame import Frame

LINEAR = "best linear predictor"
LAYERS = {"none": "ReLU without biases", "uniform": "ReLU with biases"}
THROUGH = {"none": "through the origin", "uniform": "with offsets"}
BUCKETS = "buckets (2 to the number of hyperplanes)"


def solved(rows: Rows) -> Rows:
    """Closed forms of LSH, with both kinds of hyperplanes."""
    return Rows([*hashed(rows), *hashed(rows, offset="uniform")])


def _share(row: Row) -> float:
    return float(row["mse"] / row["variance"])


def error_frame(rows: Rows, target: str) -> Frame:
    """Median over draws of the error as a share of the variance, a row a number of buckets."""
    own = rows.where(target=target)
    found = curves(
        solved(own), series=lambda row: f"LSH {THROUGH[row['offset']]}", x="n_units", y=_share, y_name="share"
    )
    linear = curves(
        hashed(own), series=lambda _: LINEAR, x="n_units", y=lambda r: r["linear_mse"] / r["variance"], y_name="share"
    )
    return joined(found, linear, *(_level(own, offset) for offset in LAYERS))


def _level(rows: Rows, offset: str) -> Frame:
    """A dense layer's error, repeated at every number of buckets."""
    layer = rows.where(model="dense ReLU", offset=offset)
    level = curves(
        layer, series=lambda row: f"{LAYERS[offset]}, {row['n_units']} units", x="n_units", y=_share, y_name="share"
    )
    buckets = hashed(rows).distinct("n_units") if len(layer) else []
    repeated = {name: [value for value in column for _ in buckets] for name, column in level.items()}
    return repeated | {"n_units": buckets}


def plot_error(frame: Frame) -> Figure:
    """Error against buckets; references as lines."""
    lines = [name for name in dict.fromkeys(frame["series"]) if not name.startswith("LSH")]
    return plot_curves(
        frame,
        x_label=BUCKETS,
        y_label="mean squared error / variance",
        log_x=2,
        lines=lines,
        levels={"variance of the target": 1.0},
        size=(5.6, 4.6),
    )


def training_frame(rows: Rows) -> Frame:
    """Median over draws of the trained error over the closed form's of the same draw."""
    best = {(row["target"], row["n_units"], row["seed"]): row["mse"] for row in hashed(rows)}
    trained = Rows(row for row in hashed(rows, trained=True) if (row["target"], row["n_units"], row["seed"]) in best)

    def ratio(row: Row) -> float:
        return float(row["mse"] / best[row["target"], row["n_units"], row["seed"]])

    def least(row: Row) -> float:
        return float(row["variance"] / best[row["target"], row["n_units"], row["seed"]])

    return joined(
        curves(trained, series=lambda row: f"RMSProp, {row['target']}", x="n_units", y=ratio, y_name="ratio"),
        curves(trained, series=lambda row: f"variance, {row['target']}", x="n_units", y=least, y_name="ratio"),
        curves(
            trained,
            series=lambda row: f"{LINEAR}, {row['target']}",
            x="n_units",
            y=lambda row: row["linear_mse"] / row["mse"] * ratio(row),
            y_name="ratio",
        ),
    )


def plot_training(frame: Frame) -> Figure:
    """Ratios to the closed form, with what predicting the mean and a line reach."""
    lines = [name for name in dict.fromkeys(frame["series"]) if not name.startswith("RMSProp")]
    return plot_curves(
        frame,
        x_label=BUCKETS,
        y_label="error / error of the closed form",
        log_x=2,
        lines=lines,
        levels={"closed form": 1.0},
        size=(5.6, 4.8),
    )


def missed_frame(rows: Rows) -> Frame:
    """Median over draws: test points whose bucket no row met; and patterns that no point met."""

    def missed(row: Row) -> float:
        return float(100 * row["missed"])

    def unmet(row: Row) -> float:
        return float(100 * (1 - row["n_non_empty"] / row["n_units"]))

    return joined(
        *(
            curves(
                solved(rows),
                series=lambda row, what=what: f"{what}, {THROUGH[row['offset']]}",  # type: ignore[misc]
                x="n_units",
                y=share,
                y_name="percent",
            )
            for what, share in (("points missed", missed), ("patterns unmet", unmet))
        )
    )


def plot_missed(frame: Frame) -> Figure:
    """Shares on a linear axis."""
    return plot_curves(frame, x_label=BUCKETS, y_label="share / %", log_x=2, size=(5.6, 4.4))


def choices_frame(rows: Rows) -> Frame:
    """Ratios to bucket means with the mean of all rows where a bucket is empty."""

    def at_zero(row: Row) -> float:
        return float(row["mse_empty_zero"] / row["mse"])

    def shrunken(row: Row) -> float:
        return float(row["mse_shrunken"] / row["mse"])

    return joined(
        *(
            curves(
                hashed(rows),
                series=lambda row, what=what: f"{what}, {row['target']}",  # type: ignore[misc]
                x="n_units",
                y=ratio,
                y_name="ratio",
            )
            for what, ratio in (("empty buckets 0", at_zero), ("shrunken means", shrunken))
        )
    )


def plot_choices(frame: Frame) -> Figure:
    """Ratios on a linear axis."""
    return plot_curves(
        frame,
        x_label=BUCKETS,
        y_label="error / error of bucket means",
        log_x=2,
        levels={"bucket means, empty ones the overall mean": 1.0},
        size=(5.6, 4.6),
    )


BARS = "Points: median over draws of target, points and hyperplanes; bars: its interval."
CHARTS = (
    *(
        Chart(
            f"error-{target}",
            f"Error against buckets ({name})",
            f"{BARS} Scalars in closed form. Lines: medians, of dense layers over fewer draws. With offsets, each "
            "hyperplane passes through a uniform point of the cube.",
            partial(error_frame, target=target),
            plot_error,
        )
        for target, name in zip(TARGETS, ("random polynomial", "hypercube function"), strict=True)
    ),
    Chart(
        "training",
        "The paper's training against the closed form",
        f"{BARS} Hyperplanes through the origin; ratios of errors of the same draw. Above its line of the variance a "
        "model is worse than the mean.",
        training_frame,
        plot_training,
    ),
    Chart(
        "missed",
        "Empty buckets",
        f"{BARS} Both targets. Points missed: test points in buckets without a training row. Patterns unmet: sign "
        "patterns of no point at all.",
        missed_frame,
        plot_missed,
    ),
    Chart(
        "choices",
        "Choices that the paper leaves open",
        f"{BARS} Hyperplanes through the origin. Shrinkage towards the overall mean is chosen by leave-one-out error.",
        choices_frame,
        plot_choices,
    ),
)
