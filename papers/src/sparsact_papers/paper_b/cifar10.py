"""Figure 5 and Table 2: a convolutional network on CIFAR-10 whose penultimate layer is dense or sparsely activated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product
from statistics import stdev
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sparsact.reports.figure import COLOURS, INK, Chart, Frame, figure, rows, styled
from sparsact_papers.charts import MARKERS, curve_plot, curves, frame_of, panel_plot, panelled
from sparsact_papers.claims import Claim, Verdict, every, needed, within
from sparsact_papers.common.convolutional import Epoch, accuracy, network, trained
from sparsact_papers.common.real_data import unmet_training
from sparsact_papers.data.files import Images, cifar10_missing, load_cifar10
from sparsact_papers.experiment import Experiment, Parameter, Rows, Scale
from sparsact_papers.intervals import mean_of, range_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


DENSE, HALF, QUARTER = "dense", "DSM 50%", "DSM 25%"
TIMES: Final = {DENSE: 1, HALF: 2, QUARTER: 4}  # units for each active one
PRINTED: Final = {  # Table 2: accuracy in percent by active units
    DENSE: {256: 69.79, 512: 70.79},
    HALF: {256: 70.74, 512: 71.33},
    QUARTER: {256: 69.8, 512: 71.68},
}
TABLE: Final = tuple((model, n_active) for n_active in (256, 512) for model in PRINTED)
TOTAL: Final = 1024  # the width in the text on Figure 5
NEAR, MATCHES = 2.0, 1.0  # points of accuracy


Cell = tuple[str, int]  # model and active units


def judge_gain(rows: Rows, pairs: Sequence[tuple[Cell, Cell]], what: str, **limits: float) -> Verdict:
    """Points by which models are better than others: averaged over the pairs, in each seed that has all of them."""
    found = []
    for group in rows.groups("seed").values():
        cells = [[group.where(model=model, n_active=n) for model, n in pair] for pair in pairs]
        if all(one and other for one, other in cells):
            found.append(sum(one[0]["accuracy"] - other[0]["accuracy"] for one, other in cells) / len(cells))
    spread = stdev(needed(found, f"a comparison of {what}", 2))
    return within(mean_of(found), **limits, what=f"{what}, points (paired standard deviation {spread:.3g}):")


def judge_equal_active(rows: Rows) -> Verdict:
    """Each sparsity against dense at equal active units, averaged over the table's columns."""
    pairs = {model: [((model, n), (DENSE, n)) for n in PRINTED[model]] for model in (HALF, QUARTER)}
    return every(*(judge_gain(rows, found, f"{model} minus dense", least=0.0) for model, found in pairs.items()))


def judge_total_width(rows: Rows) -> Verdict:
    """DSM of the total width against dense of the same."""
    pairs = {model: [((model, TOTAL // TIMES[model]), (DENSE, TOTAL))] for model in (HALF, QUARTER)}
    return every(*(judge_gain(rows, found, f"{model} minus dense", least=-MATCHES) for model, found in pairs.items()))


def judge_same_width(rows: Rows) -> Verdict:
    """DSM 50 % against dense of the same total width, and what twice the width gives dense."""
    pairs = [((HALF, n), (DENSE, 2 * n)) for n in PRINTED[HALF]]
    verdict = judge_gain(rows, pairs, f"{HALF} minus dense of the same width", most=0.0)
    wider = judge_gain(rows, [((DENSE, 2 * n), (DENSE, n)) for n in PRINTED[HALF]], "dense minus dense half as wide")
    return replace(verdict, measured=f"{verdict.measured}; {wider.measured}")


def judge_quality(rows: Rows) -> Verdict:
    """Our accuracies less the printed ones, a seed's mean over the table's cells."""
    beyond = []
    for seed in rows.groups("seed").values():
        cells = [
            row["accuracy"] - PRINTED[row["model"]][row["n_active"]]
            for row in seed
            if row["n_active"] in PRINTED[row["model"]]
        ]
        if len(cells) == len(TABLE):
            beyond.append(sum(cells) / len(cells))
    return within(
        mean_of(needed(beyond, "all of Table 2", 2)),
        least=-NEAR,
        most=NEAR,
        what="ours minus printed, points:",
    )


FIGURE: Final = (*TABLE, (DENSE, 1024))
SIZES: Final[dict[Scale, dict[str, Parameter]]] = {
    Scale.SMOKE: {"n_train": 64, "n_validation": 8, "n_test": 64, "epochs": 1},
    Scale.QUICK: {"n_train": 2000, "n_validation": 200, "n_test": 1000, "epochs": 2},
    Scale.FULL: {"n_train": 50_000, "n_validation": 5000, "n_test": 10_000, "epochs": 50},
}
CHOSEN: Final[dict[str, Parameter]] = {"activation": "relu", "batch": 64, "learning_rate": 1e-3, "patience": 5}
SEEDS: Final = {Scale.SMOKE: 2, Scale.QUICK: 2, Scale.FULL: 10}


def parameters(scale: Scale) -> Iterator[dict[str, Parameter]]:
    """Each model at each number of active units, one seed after the other."""
    for seed, (model, n_active) in product(range(SEEDS[scale]), FIGURE):
        width = TIMES[model] * n_active
        yield {"model": model, "n_active": n_active, "width": width, **CHOSEN, **SIZES[scale], "seed": seed}


def measure(
    *,
    model: str,
    n_active: int,
    width: int,
    activation: str,
    n_train: int,
    n_validation: int,
    n_test: int,
    patience: int,
    seed: int,
    **training: Any,
) -> dict[str, Any]:
    """Test accuracy in percent after the epoch that is best on the validation images; ``model`` names ``n_active``.

    The last ``n_validation`` of ``n_train`` images validate. Training ends when ``patience`` epochs were no better.
    """
    import torch

    data = _images(n_train, n_test)
    convolutional = network(width=width, n_active=n_active, activation=activation, seed=seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    images, labels = data.train_images, data.train_labels
    train, validation = ((images[of], labels[of]) for of in (slice(-n_validation), slice(-n_validation, None)))
    history: list[Epoch] = []
    best, tested = 0, 0.0
    for epoch in trained(convolutional, train, validation, device=device, seed=seed, **training):
        if not history or epoch.accuracy > history[best].accuracy:
            best = len(history)
            tested = 100 * accuracy(convolutional, data.test_images, data.test_labels, device=device)
        history.append(epoch)
        if len(history) - 1 - best == patience:
            break
    return {
        "validation": [100 * epoch.accuracy for epoch in history],
        "losses": [epoch.loss for epoch in history],
        "accuracy": tested,
        "epoch": best + 1,
        "seconds_per_epoch": sum(epoch.seconds for epoch in history) / len(history),
        "device": torch.cuda.get_device_name() if device == "cuda" else device,
    }


@cache
def _images(n_train: int, n_test: int) -> Images:
    """The first images of the set, read once a process."""
    return load_cifar10(n_train=n_train, n_test=n_test)


PERCENT: Final = "test accuracy in %"
MEDIANS: Final = "Median over seeds; bars: least and greatest."


def _accuracy_frame(found: Rows, x: str) -> Frame:
    return curves(found, "{model}", x, "accuracy", interval=range_of)


def _epochs_frame(found: Rows, history: str, y_name: str) -> Frame:
    epochs = Rows(
        row.with_values(**{"epoch": i, y_name: value}) for row in found for i, value in enumerate(row[history], start=1)
    )
    return panelled(
        {
            n_active: curves(epochs.where(n_active=n_active), "{model}", "epoch", y_name, interval=range_of)
            for n_active in PRINTED[DENSE]
        },
        "n_active",
    )


def _table_frame(found: Rows) -> Frame:
    cells = ((model, n, found.where(model=model, n_active=n)) for model, n in TABLE)
    over = [(model, n, range_of(cell.array("accuracy"))) for model, n, cell in cells if cell]
    lines = ((model, n, here.estimate, here.low, here.high, PRINTED[model][n]) for model, n, here in over)
    return frame_of(lines, "model", "n_active", "accuracy", "low", "high", "printed")


@styled
def plot_table(frame: Frame) -> Figure:
    """A place for each cell of the table; measured and printed side by side."""
    drawing = figure(6.4, 4.2)
    axes = drawing.subplots()
    cells = list(rows(frame))
    places = np.arange(len(cells))
    here, low, high, printed = (np.array(column, dtype=float) for column in list(zip(*cells, strict=True))[2:])
    bars = [here - low, high - here]
    axes.errorbar(
        *(places - 0.1, here, bars), color=COLOURS[0], marker=MARKERS[0], ms=6, ls="none", capsize=2.5, label="here"
    )
    axes.plot(places + 0.1, printed, color=INK, marker="D", mfc="white", ms=6, ls="none", label="printed")
    axes.set_xticks(places, [f"{model}\n{n_active}" for model, n_active, *_ in cells])
    axes.set_xlabel("model and active units")
    axes.set_ylabel(PERCENT)
    axes.grid(visible=True, axis="y")
    drawing.legend(fontsize=8.5, loc="outside upper center", ncols=2)
    return drawing


EXPERIMENT: Final = Experiment(
    name="cifar10",
    paper="B",
    place="Appendix A.3, Figure 5 and Table 2",
    title="CIFAR-10 with a sparsely activated penultimate layer",
    summary="Convolutions of 3 x 3 with 32, 64 and 64 filters and ReLU, 2 x 2 max-pooling after the first two, a "
    "layer of units with ReLU and ten logits; DSM keeps the units with the largest 50 % or 25 % of the "
    "pre-activations, then applies ReLU. Adam with step 0.001, batches of 64, pixels from 0 to 1, weights drawn as "
    "PyTorch draws them, no decay. The paper states Adam, 50 epochs, no augmentation, three convolutional layers with "
    "max-pooling, and nothing of the rest. At full size 45,000 images train and the last 5,000 of the training set "
    "validate; a model is trained for 50 epochs, or until five were no better on the validation images, and judged on "
    "the 10,000 test images after the epoch that is best on the validation images. Models of one seed start from the "
    "same convolutions and see the images in the same order. Trains on a GPU of CUDA where there is one.",
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="equal-active",
            place="Table 2, Figure 5",
            statement="DSMs outperform dense models at the same number of activated units.",
            printed="at 256 and 512 active units: dense 69.79, 70.79; DSM 50 % 70.74, 71.33; DSM 25 % 69.8, 71.68",
            rule="fixed before the runs: test accuracy after the epoch that is best on the validation images; a seed's "
            "difference DSM minus dense is averaged over 256 and 512 active units; holds if its 95 % interval over "
            "seeds lies above 0 for both sparsities, fails if one lies below",
            refuted_if="the difference of accuracies is significantly below 0 for one of the sparsities",
            judge=judge_equal_active,
        ),
        Claim(
            name="sparser-and-wider",
            place="Table 2, caption",
            statement="Wider and sparser models outperform narrow and dense ones.",
            printed="DSM 25 % at 512 active units 71.68, dense at 256 69.79: 1.89 points",
            rule="holds if the 95 % interval of DSM 25 % at 512 minus dense at 256, paired by seed, lies above 0",
            refuted_if="the wider and sparser model is significantly less accurate",
            judge=lambda rows: judge_gain(
                rows, [((QUARTER, 512), (DENSE, 256))], f"{QUARTER} at 512 minus dense at 256", least=0.0
            ),
        ),
        Claim(
            name="total-width",
            place="Figure 5",
            statement="DSM with total width 1024 improves upon or matches the dense model.",
            printed="a figure without numbers",
            rule=f"against dense of width {TOTAL}, paired by seed: holds if the 95 % interval of "
            f"the difference lies above -{MATCHES:g} point for both sparsities",
            refuted_if="a DSM is significantly more than a point less accurate",
            judge=judge_total_width,
        ),
        Claim(
            name="same-width",
            statement="What DSM 50 % gains at equal active units is the gain of a wider layer: it is no better than "
            "a dense layer of the same total width.",
            rule="DSM 50 % minus dense of the same total width, paired by seed and averaged over the widths 512 and "
            "1024: holds if the 95 % interval lies below 0. Beside it is reported what dense layers gain by twice the "
            "width",
            refuted_if="DSM 50 % is significantly more accurate than dense of the same total width",
            judge=judge_same_width,
        ),
        Claim(
            name="quality",
            place="Table 2",
            statement="The accuracy of all six models is about 70 %.",
            printed="69.79 to 71.68",
            rule="ours minus printed, a seed's mean over the six cells: holds if its 95 % interval "
            f"lies within {NEAR:g} points of 0",
            refuted_if="the mean difference from the printed accuracies is significantly more than 2 points",
            judge=judge_quality,
        ),
    ),
    charts=(
        Chart(
            "active-units",
            "Figure 5: accuracy against active units",
            f"{MEDIANS} The paper's comparison: DSM has two or four units for each active one.",
            partial(_accuracy_frame, x="n_active"),
            curve_plot("active units", PERCENT, log=(2, 0)),
        ),
        Chart(
            "width",
            "Accuracy against the width of the layer",
            f"{MEDIANS} The same networks by all their units: the parameters that they have.",
            partial(_accuracy_frame, x="width"),
            curve_plot("units of the penultimate layer", PERCENT, log=(2, 0)),
        ),
        Chart(
            "table-2",
            "Table 2: measured and printed",
            MEDIANS,
            _table_frame,
            plot_table,
        ),
        Chart(
            "epochs",
            "Validation accuracy while training",
            f"{MEDIANS} Of the seeds that are still trained.",
            partial(_epochs_frame, history="validation", y_name="accuracy"),
            panel_plot("epoch", "validation accuracy in %", panel=(3.8, 3.4), title="{} active units"),
        ),
        Chart(
            "loss",
            "Training loss",
            f"{MEDIANS} Mean cross-entropy of the images as they are met in the epoch.",
            partial(_epochs_frame, history="losses", y_name="loss"),
            panel_plot("epoch", "cross-entropy in nats", panel=(3.8, 3.4), title="{} active units"),
        ),
    ),
    order=70,
    unmet=lambda: unmet_training(cifar10_missing()),
)
