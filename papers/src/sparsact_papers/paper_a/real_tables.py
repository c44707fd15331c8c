"""Configurable software: low degree, the sparse class by empirical risk minimisation, a dense network and a forest.

Rows of real tables are not uniform: four of the five obey constraints between switches, so that Theorem 8 says nothing
of them and Theorem 17, for any distribution, does. What is compared is the error on test rows at several sizes of the
training set, and, for the sparse networks, how many units fire: on the rows fitted, where the class bounds it, on fresh
rows of the same table, and on uniform points, which the constraints forbid.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import bits_to_signs
from sparsact.reports.figure import COLOURS, Chart, Frame, figure, list_axis, styled
from sparsact_papers.charts import MARKERS, curves, frame_of, panel_plot, panelled
from sparsact_papers.claims import Claim, Verdict, every, needed, only_if, within
from sparsact_papers.common.learners import fitted
from sparsact_papers.common.real_data import absent
from sparsact_papers.experiment import Experiment, Rows, Scale
from sparsact_papers.intervals import Interval, mean_of, mean_of_splits, range_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TABLES: Final = ("Apache", "BDBC", "BDBJ", "LLVM", "x264")
LOW_DEGREE, DENSE, FOREST = "low degree", "dense network", "forest"
SPARSE: Final = {"sparse, k = 1": 1, "sparse, k = 4": 4}
MODELS: Final = ("degree 1", LOW_DEGREE, *SPARSE, DENSE, FOREST)
HELD_OUT: Final = 0.2  # of a table's rows, drawn anew for each seed
WIDTHS: Final = (4, 12, 32)  # most units of the sparse networks, units of the dense one
ALPHAS: Final = (1e-4, 1e-2, 1.0)  # penalties of the dense network
N_UNIFORM: Final = 4096
SHARES: Final = {Scale.SMOKE: (0.125,), Scale.QUICK: (0.125, 0.25), Scale.FULL: (0.125, 1.0)}
CHOICE: Final = {Scale.SMOKE: ("BDBJ",), Scale.QUICK: ("Apache", "BDBJ"), Scale.FULL: TABLES}
SEEDS: Final = {Scale.SMOKE: 1, Scale.QUICK: 2, Scale.FULL: 10}
LEAST_ERROR: Final = 1e-6  # of the variance: repeated measurements of software differ by more
RULE: Final = (
    "log2 of the ratio of errors (those below 1e-6 of the variance count as this) at {}, a mean over random splits: "
    "holds if its 95 % interval, corrected for rows that splits share, lies below 0"
)
LEAK: Final = 0.01  # share of points at which more than k units may be on
TWICE: Final = 2.0


def parameters(scale: Scale) -> Iterator[dict[str, str | float | int]]:
    """A task for each table, size, split and model."""
    for seed, table, share, model in product(range(SEEDS[scale]), CHOICE[scale], SHARES[scale], MODELS):
        yield {"table": table, "model": model, "share": share, "seed": seed}


def split(n_rows: int, share: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of the rows to learn from, a share of four fifths of the table, and of the fifth to test on.

    They are in random order: cross-validation takes blocks, which in the table's order differ by a switch.
    """
    order = np.random.default_rng([seed, 1]).permutation(n_rows)
    n_test = round(HELD_OUT * n_rows)
    return order[n_test:][: round(share * (n_rows - n_test))], order[:n_test]


def measure(*, table: str, model: str, share: float, seed: int) -> dict[str, Any]:
    """Error on the test rows as a share of their variance; of sparse networks also how many units fire, and where."""
    from sparsact.datasets import config_performance

    data = config_performance(table)
    train, test = split(len(data.y), share, seed)
    signs = bits_to_signs(data.X).astype(np.float64)
    centre, spread = data.y[train].mean(), data.y[train].std()
    learner = fitted(estimator(model, seed), signs[train], (data.y[train] - centre) / spread)
    errors = centre + spread * learner.predict(signs[test]) - data.y[test]
    measured: dict[str, Any] = {
        "mse": float(np.mean(errors**2) / data.y[test].var()),
        "n_train": len(train),
        "n": signs.shape[1],
    }
    if model in SPARSE:
        network = learner.best_estimator_.network_
        uniform = bits_to_signs(np.random.default_rng([seed, 2]).integers(0, 2, (N_UNIFORM, signs.shape[1])))
        for where, points in (("train", signs[train]), ("test", signs[test]), ("uniform", uniform)):
            found = firing(network.active(points), SPARSE[model])
            measured |= {f"{name}_{where}": value for name, value in found.items()}
        measured["n_units"] = network.s
    return measured


def estimator(model: str, seed: int) -> Any:
    """A learner by name. Those with a choice to make, make it by cross-validation within the training rows."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.model_selection import GridSearchCV
    from sklearn.neural_network import MLPRegressor

    from sparsact.learners import LowDegreeRegressorCV, SparselyActivatedRegressor

    by_error = partial(GridSearchCV, cv=3, scoring="neg_mean_squared_error")
    if model in SPARSE:
        network = SparselyActivatedRegressor(max_active=SPARSE[model], n_restarts=1, max_iter=100, random_state=seed)
        return by_error(network, {"n_units": WIDTHS})
    if model == DENSE:
        network = MLPRegressor(solver="lbfgs", max_iter=500, tol=1e-6, random_state=seed)
        return by_error(network, {"alpha": ALPHAS, "hidden_layer_sizes": [(width,) for width in WIDTHS]})
    if model == FOREST:
        return RandomForestRegressor(200, random_state=seed)
    degrees = (1, 2, 3) if model == LOW_DEGREE else (int(model.split()[1]),)
    return LowDegreeRegressorCV(degrees=degrees, random_state=seed)


def firing(active: NDArray[np.bool_], k: int) -> dict[str, float | int | None]:
    """How many units are on at points (m, s), and how this number varies beside independent units of the same rates.

    ``dispersion`` is Var(number on) / sum p (1 - p): below 1 units exclude each other, above they fire together. None
    where every unit is always on or always off.
    """
    number, rates = active.sum(axis=1), active.mean(axis=0)
    independent = float((rates * (1 - rates)).sum())
    return {
        "most": int(number.max()),
        "mean": float(number.mean()),
        "above_k": float((number > k).mean()),
        "dispersion": float(number.var() / independent) if independent else None,
    }


def log_ratios(rows: Rows, model: str, other: str, share: float) -> list[float]:
    """log2 of one model's error over another's on the same rows, for each split."""
    found = [rows.where(model=name, share=share) for name in (model, other)]
    error, others = ({row["seed"]: max(row["mse"], LEAST_ERROR) for row in part} for part in found)
    return [float(np.log2(error[seed] / others[seed])) for seed in sorted(error.keys() & others.keys())]


def _judge_errors(rows: Rows, *, table: str, model: str, other: str, pick: Callable[[list[float]], float]) -> Verdict:
    share = pick(needed(rows.where(table=table), table).column("share"))
    ratios = log_ratios(rows.where(table=table), model, other, share)
    return within(mean_of_splits(ratios, HELD_OUT), most=0, what=f"log2 of the error of {model} / {other}:")


def firing_of(rows: Rows, table: str, name: str, models: Collection[str]) -> Interval:
    """What the sparse networks of a table do, a mean over models and sizes for each split."""
    found = Rows(row for row in rows.where(table=table) if row["model"] in models and row[name] is not None)
    splits = needed(found, f"sparse networks on {table}").groups("seed").values()
    return mean_of_splits([float(one.array(name).mean()) for one in splits], HELD_OUT)


def _judge_fresh_rows(rows: Rows, *, table: str) -> Verdict:
    fresh, uniform = (
        within(firing_of(rows, table, f"above_k_{where}", SPARSE), most=LEAK, what=f"{called}: more than k on at")
        for where, called in (("test", "fresh rows"), ("uniform", "uniform points"))
    )
    return only_if("the points come from the table's own distribution", fresh, uniform)


def _judge_activity(rows: Rows) -> Verdict:
    """Active units on fresh rows over those on the rows fitted, a mean over sizes for each split, table and k."""
    verdicts = []
    for (table, model), group in (
        Rows(row for name in SPARSE for row in rows.where(model=name)).groups("table", "model").items()
    ):
        splits = needed(Rows(row for row in group if row["mean_train"]), f"sparse networks on {table}").groups("seed")
        ratios = [float(one.array("mean_test / mean_train").mean()) for one in splits.values()]
        verdicts.append(within(mean_of_splits(ratios, HELD_OUT), most=TWICE, what=f"{table}, {model}:"))
    return every(*verdicts)


FRESH_ACTIVITY: Final = Claim(
    name="fresh-activity",
    place="Section 6, Remark 11",
    statement="On fresh rows of every table a sparse network has less than twice the active units that it has on the "
    "rows fitted.",
    rule="ratio of the mean numbers of active units, a mean over sizes for each split: holds if the 95 % interval over "
    "splits lies below 2 for every table and k (the factor of the theorem that sparsity generalises; the rows were "
    "there before the rule)",
    judge=_judge_activity,
    refuted_if="the mean ratio is significantly above 2 for some table and k",
)


def claims_of(table: str) -> tuple[Claim, ...]:
    """What is claimed of one table."""
    name = table.lower()
    errs_less = partial(_judge_errors, table=table)
    return (
        Claim(
            name=f"few-rows-{name}",
            place="Theorems 5 and 17, beyond the paper",
            statement=f"{table}: with few rows a 1-sparse network errs less than a dense one.",
            printed="O(k n s / eps^2) samples for the sparse class, Omega(s^2 / eps^2) for the dense",
            rule=RULE.format("an eighth of the training rows"),
            judge=partial(errs_less, model="sparse, k = 1", other=DENSE, pick=min),
            refuted_if="the 1-sparse network significantly errs more",
        ),
        Claim(
            name=f"low-degree-{name}",
            place="Theorem 8, beyond the paper",
            statement=f"{table}: low degree errs no more than a dense network.",
            rule=RULE.format("all training rows"),
            judge=partial(errs_less, model=LOW_DEGREE, other=DENSE, pick=max),
            refuted_if="low degree significantly errs more",
        ),
        Claim(
            name=f"any-distribution-{name}",
            place="Theorem 17, beyond the paper",
            statement=f"{table}: the sparse class (k = 4, which holds that of k = 1) errs no more than low degree.",
            printed="O((W R + B)^2 k s n / eps^2) samples for any distribution, exponential time",
            rule=RULE.format("all training rows"),
            judge=partial(errs_less, model="sparse, k = 4", other=LOW_DEGREE, pick=max),
            refuted_if="the sparse class significantly errs more",
        ),
        Claim(
            name=f"fresh-rows-{name}",
            place="Section 6, Remark 11",
            statement=f"{table}: a network that is k-sparse on the rows fitted is k-sparse on nearly all others.",
            rule="holds if the 95 % interval over splits of the mean share of points with more than k active units is "
            f"below {LEAK:.0%}; judged apart on test rows and on uniform points",
            judge=partial(_judge_fresh_rows, table=table),
            refuted_if="the mean share is significantly above the limit on test rows",
        ),
        Claim(
            name=f"exclusion-{name}",
            statement=f"{table}: units of a 4-sparse network exclude each other: fewer fire together than by chance.",
            rule="holds if the 95 % interval over splits of Var(number active) / sum p (1 - p) lies below 1",
            judge=lambda rows: within(
                firing_of(rows, table, "dispersion_test", ["sparse, k = 4"]), most=1, what="dispersion on fresh rows"
            ),
            refuted_if="Var(number active) / sum p (1 - p) is significantly above 1",
        ),
    )


PLACES: Final = {"train": "rows fitted", "test": "fresh rows", "uniform": "uniform points"}


def _firing_frame(rows: Rows) -> Frame:
    sparse = Rows(row for row in rows if row["model"] in SPARSE).groups("table", "model")
    lines = (
        (
            f"{name}, k = {SPARSE[model]}",
            called,
            *(mean_of(group.array(f"{number}_{place}")).estimate for number in ("most", "mean", "above_k")),
            mean_of(group.array("n_units")).estimate,
        )
        for ((name, model), group), (place, called) in product(sparse.items(), PLACES.items())
    )
    return frame_of(lines, "network", "points", "most", "mean", "share_above_k", "units")


@styled
def plot_firing(frame: Frame) -> Figure:
    """A line a network: filled marks the most, hollow marks the mean."""
    networks = list(dict.fromkeys(frame["network"]))
    drawing = figure(6.4, 1.4 + 0.36 * len(networks))
    axes = drawing.subplots()
    for i, place in enumerate(PLACES.values()):
        at = [j for j, each in enumerate(frame["points"]) if each == place]
        lines = [networks.index(frame["network"][j]) + 0.2 * (i - 1) for j in at]
        style: dict[str, Any] = {"lw": 0, "marker": MARKERS[i], "ms": 5.5, "color": COLOURS[i]}
        for name, face in (("most", COLOURS[i]), ("mean", "white")):
            axes.plot([frame[name][j] for j in at], lines, mfc=face, label=f"{name}, {place}", **style)
    list_axis(axes, networks)
    axes.set_xlim(left=0)
    axes.set_xlabel("active units")
    drawing.legend(fontsize=8.5, loc="outside upper center", ncols=3)
    return drawing


EXPERIMENT: Final = Experiment(
    name="real-tables",
    paper="A",
    place="Theorems 5, 8 and 17",
    title="Sparse, low degree, dense and forest on real tables",
    summary="The measured cost of five configurable programs by their switches (180 to 2,560 rows, 8 to 17 switches, "
    "most with constraints), by random splits: a fifth to test on, and the rest or an eighth of it to learn from. "
    "Degree and ridge of low degree, the widths of the networks, sparse and dense the same ones, and the dense one's "
    "penalty are cross-validated within the latter.",
    parameters=parameters,
    measure=measure,
    claims=(*(claim for table in TABLES for claim in claims_of(table)), FRESH_ACTIVITY),
    charts=(
        Chart(
            "errors",
            "Error against training rows",
            "Marks: median over splits; bars: least and greatest. Errors below 1e-6 of the variance are drawn there.",
            lambda rows: panelled(
                {
                    table: curves(group, "{model}", "n_train", "error", interval=range_of)
                    for (table,), group in Rows(row.with_values(error=max(row["mse"], LEAST_ERROR)) for row in rows)
                    .groups("table")
                    .items()
                },
                "table",
            ),
            panel_plot(
                "training rows",
                "mean squared error / variance",
                log=(2, 10),
                levels={"variance": 1.0},
                columns=3,
                panel=(3.4, 3.0),
            ),
        ),
        Chart(
            "firing",
            "How many units of the sparse networks fire",
            "Means over splits and sizes. The class bounds the number on the rows fitted only.",
            _firing_frame,
            plot_firing,
        ),
    ),
    order=420,
    version=2,
    unmet=lambda: absent(*(f"config_performance/{table}.csv.gz" for table in TABLES)),
)
