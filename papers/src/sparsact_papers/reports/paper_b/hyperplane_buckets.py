"""Figures of hyperplane LSH."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from matplotlib.figure import Figure

from sparsact.reports.figure import Chart, Frame
from sparsact_papers.experiments import Row, Rows
from sparsact_papers.experiments.paper_b.hyperplane_claims import TARGETS, hashed
from sparsact_papers.reports.curves import curves, joined, plot_curves

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


def training_frame(rows: Rows, target: str) -> Frame:
    """The trained error beside the closed form's, of those draws that were trained on."""
    trained = hashed(rows, target=target, trained=True)
    drawn = set(trained.column("seed"))
    closed = Rows(row for row in hashed(rows, target=target) if row["seed"] in drawn)

    def linear(row: Row) -> float:
        return float(row["linear_mse"] / row["variance"])

    return joined(
        curves(closed, series=lambda _: "LSH, closed form", x="n_units", y=_share, y_name="share"),
        curves(
            trained,
            series=lambda row: f"LSH, RMSProp, {row['epochs']} epochs",
            x="n_units",
            y=_share,
            y_name="share",
        ),
        curves(closed, series=lambda _: LINEAR, x="n_units", y=linear, y_name="share"),
    )


def share_frame(rows: Rows, share: Callable[[Row], float]) -> Frame:
    """Median over draws of a share in percent."""
    return curves(
        solved(rows),
        series=lambda row: f"hyperplanes {THROUGH[row['offset']]}",
        x="n_units",
        y=lambda row: 100 * share(row),
        y_name="percent",
    )


def flops_frame(rows: Rows) -> Frame:
    """Median over draws of the error as a share of the variance, by operations of a forward pass."""
    dense = (rows.where(model="dense ReLU", offset=offset) for offset in LAYERS)
    return joined(
        curves(hashed(rows), series=lambda row: f"LSH, {row['target']}", x="flops", y=_share, y_name="share"),
        *(
            curves(
                part,
                series=lambda row: f"{LAYERS[row['offset']]}, {row['target']}",
                x="flops",
                y=_share,
                y_name="share",
            )
            for part in dense
        ),
    )


def plot_flops(frame: Frame) -> Figure:
    """Error against operations."""
    return plot_curves(
        frame,
        x_label="operations of a forward pass, hashing included / FLOPs",
        y_label="mean squared error / variance",
        log_x=10,
        levels={"variance of the target": 1.0},
        size=(6.0, 4.6),
    )


def missed(row: Row) -> float:
    """Test points whose bucket no training row met."""
    return float(row["missed"])


def unmet(row: Row) -> float:
    """Patterns that no point has, of training or test."""
    return float(1 - row["n_non_empty"] / row["n_units"])


def plot_share(frame: Frame, y_label: str) -> Figure:
    """Shares on a linear axis."""
    return plot_curves(frame, x_label=BUCKETS, y_label=y_label, log_x=2, size=(5.2, 4.0))


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
        size=(6.4, 4.6),
    )


NAMES = dict(zip(TARGETS, ("random polynomial", "hypercube function"), strict=True))
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
        for target, name in NAMES.items()
    ),
    *(
        Chart(
            f"training-{target}",
            f"The paper's training against the closed form ({name})",
            f"{BARS} Hyperplanes through the origin; both curves are of the same draws.",
            partial(training_frame, target=target),
            plot_error,
        )
        for target, name in NAMES.items()
    ),
    Chart(
        "flops",
        "Error against the cost of a forward pass",
        f"{BARS} Hyperplanes through the origin. A product of 8 numbers for each hyperplane, and no more however many "
        "buckets; a dense layer pays for each unit.",
        flops_frame,
        plot_flops,
    ),
    Chart(
        "missed",
        "Test points in empty buckets",
        f"{BARS} Both targets together. No training row fell into these buckets.",
        partial(share_frame, share=missed),
        partial(plot_share, y_label="test points in empty buckets / %"),
    ),
    Chart(
        "unmet",
        "Sign patterns of no point",
        f"{BARS} Both targets together. Hyperplanes in 8 dimensions do not make all patterns, and few points lie in "
        "most of the cells that there are.",
        partial(share_frame, share=unmet),
        partial(plot_share, y_label="patterns of no point / %"),
    ),
    Chart(
        "choices",
        "Choices that the paper leaves open",
        f"{BARS} Hyperplanes through the origin. Shrinkage towards the overall mean is chosen by leave-one-out error.",
        choices_frame,
        plot_choices,
    ),
)
