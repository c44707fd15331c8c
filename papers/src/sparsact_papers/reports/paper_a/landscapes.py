"""Figures of the complete measured tables."""

from __future__ import annotations

from matplotlib.figure import Figure

from sparsact.reports.figure import COLOURS, Chart, Frame, figure, scale, styled
from sparsact_papers.experiments import Rows, mean_of
from sparsact_papers.experiments.paper_a.landscapes import BITS, one_row_each
from sparsact_papers.experiments.paper_a.predicted import AMPLE
from sparsact_papers.reports.curves import MARKERS, curves, joined, plot_curves

LEAST_WEIGHT = 1e-6  # below, rounding and noise of the measurement
PRINTED, MENDED = "tail (1 + N / (m − N))", "the same times M / (M − N)"


def weight_frame(rows: Rows) -> Frame:
    """Share of the variance at each degree, of each table."""
    if not len(rows):
        return {"series": [], "degree": [], "share": [], "low": [], "high": [], "repetitions": []}
    found = [
        (table, degree, weight)
        for table, row in one_row_each(rows).items()
        for degree, weight in enumerate(row["weights"])
        if weight > LEAST_WEIGHT
    ]
    table, degree, share = (list(column) for column in zip(*found, strict=True))
    return {
        "series": table,
        "degree": degree,
        "share": share,
        "low": share,
        "high": share,
        "repetitions": [1] * len(share),
    }


def plot_weights(frame: Frame) -> Figure:
    """Weight against degree, on a logarithmic axis."""
    return plot_curves(frame, x_label="degree", y_label="share of the variance", log_y=10)


def error_frame(rows: Rows) -> Frame:
    """Error of each table, degree and size: the mean over seeds with its interval, beside the prediction."""
    frames = []
    for (table,), group in rows.groups("table").items():
        achieved = curves(group, series=lambda row: f"degree {row['degree']}", x="n_train", y="mse", interval=mean_of)
        predicted = curves(
            group, series=lambda row: f"degree {row['degree']}", x="n_train", y="predicted_finite", interval=mean_of
        )
        frames.append(
            {"table": [table] * len(achieved["mse"])} | achieved | {"predicted": predicted["predicted_finite"]}
        )
    names = ("table", "series", "n_train", "mse", "low", "high", "repetitions", "predicted")
    return joined(*frames) if frames else {name: [] for name in names}


@styled
def plot_errors(frame: Frame) -> Figure:
    """A panel a table: marks are achieved errors, dashed lines the prediction."""
    tables = list(dict.fromkeys(frame["table"]))
    drawing = figure(3.6 * len(tables) + 0.6, 4.0)
    panels = drawing.subplots(1, len(tables), sharey=True, squeeze=False)[0]
    every_degree = sorted(set(frame["series"]))
    for axes, table in zip(panels, tables, strict=True):
        for colour, marker, degree in zip(COLOURS, MARKERS, every_degree, strict=False):
            at = [
                i for i, pair in enumerate(zip(frame["table"], frame["series"], strict=True)) if pair == (table, degree)
            ]
            if not at:
                continue
            m, mse, low, high, predicted = (
                [frame[name][i] for i in at] for name in ("n_train", "mse", "low", "high", "predicted")
            )
            axes.vlines(m, low, high, color=colour, lw=1.4)
            axes.plot(m, mse, color=colour, marker=marker, ms=5, lw=0, label=degree)
            axes.plot(m, predicted, color=colour, lw=1.2, ls=(0, (4, 2)))
        scale(axes, log_x=2, log_y=10)
        axes.set_title(f"{table}, {2 ** BITS[table]} points")
        axes.set_xlabel("training rows")
        axes.grid(visible=True)
    panels[0].set_ylabel("mean squared error / variance")
    handles = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    drawing.legend(list(handles.values()), list(handles), loc="outside upper center", ncols=4)
    return drawing


def ratio_frame(rows: Rows) -> Frame:
    """Achieved over predicted error, by either prediction, against the coefficients' share of the table."""
    ample = Rows(row for row in rows if row["n_train"] >= AMPLE * row["n_coefficients"])

    def ratios(prediction: str, says: str) -> Frame:
        return curves(
            ample,
            series=lambda _: says,
            x="share_of_table",
            y=lambda row: float(row["mse"] / row[prediction]),
            y_name="ratio",
            interval=mean_of,
        )

    return joined(ratios("predicted", PRINTED), ratios("predicted_finite", MENDED))


def plot_ratios(frame: Frame) -> Figure:
    """Both ratios on a logarithmic axis of N / M."""
    return plot_curves(
        frame,
        x_label="coefficients / points of the table, N / M",
        y_label="achieved / predicted error",
        log_x=10,
        levels={"as predicted": 1.0},
    )


CHARTS = (
    Chart(
        "weights",
        "Weight by degree of complete tables",
        "Exact, from every point of the table. Noise of the measurement alone would follow the binomial shares.",
        weight_frame,
        plot_weights,
    ),
    Chart(
        "errors",
        "Error of least squares on rows left out",
        "Marks: mean over seeds; bars: its 95 % interval; dashed: tail (1 + N / (m - N)) M / (M - N).",
        error_frame,
        plot_errors,
    ),
    Chart(
        "ratios",
        "Achieved beside predicted error",
        f"Sizes of {AMPLE} rows or more a coefficient; a mark is a table and a degree. Bars: 95 % interval.",
        ratio_frame,
        plot_ratios,
    ),
)
