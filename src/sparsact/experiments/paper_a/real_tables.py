"""Configurable software: low degree, the sparse class by empirical risk minimisation, a dense network and a forest.

Rows of real tables are not uniform: four of the five obey constraints between switches, so that Theorem 8 says nothing
of them and Theorem 17, for any distribution, does. What is compared is the error on test folds at several sizes of the
training set, and, for the sparse networks, how many units fire: on the rows fitted, where the class bounds it, on fresh
rows of the same table, and on uniform points, which the constraints forbid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.experiments import (
    Claim,
    Experiment,
    Interval,
    Rows,
    Scale,
    Verdict,
    mean_of,
    needed,
    only_if,
    within,
)
from sparsact.experiments.real_data import absent
from sparsact.hypercube import bits_to_signs

TABLES = ("Apache", "BDBC", "BDBJ", "LLVM", "x264")
LOW_DEGREE, DENSE, FOREST = "low degree", "dense network", "forest"
SPARSE = {"sparse, k = 1": 1, "sparse, k = 4": 4}
MODELS = ("degree 1", "degree 2", LOW_DEGREE, *SPARSE, DENSE, FOREST)
FOLDS = 5
SPLIT = 0  # seed of the folds, which share no rows; a fold is the seed of what learns and of the uniform points
WIDTH = 32  # units of the sparse networks and of the dense one
N_UNIFORM = 4096
SHARES = {Scale.SMOKE: (0.125,), Scale.QUICK: (0.125, 0.25), Scale.FULL: (0.125, 0.25, 0.5, 1.0)}
CHOICE = {Scale.SMOKE: ("BDBJ",), Scale.QUICK: ("Apache", "BDBJ"), Scale.FULL: TABLES}
MEASURED_FOLDS = {Scale.SMOKE: 1, Scale.QUICK: 2, Scale.FULL: FOLDS}
LEAST_ERROR = 1e-6  # of the variance: repeated measurements of software differ by more
LEAK = 0.01  # share of points at which more than k units may be on


def parameters(scale: Scale) -> Iterator[dict[str, str | float | int]]:
    """A task for each table, size, fold and model."""
    for table in CHOICE[scale]:
        for share in SHARES[scale]:
            for fold in range(MEASURED_FOLDS[scale]):
                for model in MODELS:
                    yield {"table": table, "model": model, "share": share, "fold": fold}


def measure(*, table: str, model: str, share: float, fold: int) -> dict[str, Any]:
    """Error on the test fold as a share of its variance; of sparse networks also how many units fire, and where."""
    from sparsact.datasets import config_performance

    data = config_performance(table)
    order = np.random.default_rng([SPLIT, 1]).permutation(len(data.y))
    folds = np.array_split(order, FOLDS)
    train = np.concatenate([part for i, part in enumerate(folds) if i != fold])
    train, test = np.sort(train[: round(share * len(train))]), folds[fold]
    signs = bits_to_signs(data.X).astype(np.float64)
    centre, spread = data.y[train].mean(), data.y[train].std()
    learner = estimator(model, fold).fit(signs[train], (data.y[train] - centre) / spread)
    errors = centre + spread * learner.predict(signs[test]) - data.y[test]
    measured: dict[str, Any] = {
        "mse": float(np.mean(errors**2) / data.y[test].var()),
        "n_train": len(train),
        "n": signs.shape[1],
    }
    if model in SPARSE:
        uniform = bits_to_signs(np.random.default_rng([fold, 2]).integers(0, 2, (N_UNIFORM, signs.shape[1])))
        for where, points in (("train", signs[train]), ("test", signs[test]), ("uniform", uniform)):
            found = firing(learner.network_.active(points), SPARSE[model])
            measured |= {f"{name}_{where}": value for name, value in found.items()}
        measured["n_units"] = learner.network_.s
    return measured


def estimator(model: str, seed: int) -> Any:
    """A learner by name. Those with a choice to make, make it by cross-validation within the training rows."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.model_selection import GridSearchCV
    from sklearn.neural_network import MLPRegressor

    from sparsact.learners import LowDegreeRegressorCV, SparselyActivatedRegressor

    if model in SPARSE:
        return SparselyActivatedRegressor(WIDTH, SPARSE[model], n_restarts=1, max_iter=100, random_state=seed)
    if model == DENSE:
        network = MLPRegressor(hidden_layer_sizes=(WIDTH,), solver="lbfgs", max_iter=500, tol=1e-6, random_state=seed)
        return _Quiet(GridSearchCV(network, {"alpha": [1e-4, 1e-2, 1.0]}, cv=3, scoring="neg_mean_squared_error"))
    if model == FOREST:
        return RandomForestRegressor(200, random_state=seed)
    degrees = (1, 2, 3) if model == LOW_DEGREE else (int(model.split()[1]),)
    return LowDegreeRegressorCV(degrees=degrees, random_state=seed)


class _Quiet:
    """A learner that may stop at its most iterations: that is part of its budget, and no news."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner

    def fit(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> Any:
        """The learner itself, fitted."""
        import warnings

        from sklearn.exceptions import ConvergenceWarning

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return self.learner.fit(X, y)


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


def error_ratios(rows: Rows, model: str, other: str, share: float) -> dict[str, float]:
    """Of each table the geometric mean, over folds, of one model's error over another's on the same rows."""
    found = {}
    for (table,), group in rows.where(share=share).groups("table").items():
        error, others = (
            {row["fold"]: max(row["mse"], LEAST_ERROR) for row in group.where(model=name)} for name in (model, other)
        )
        both = sorted(error.keys() & others.keys())
        if both:
            found[table] = float(np.exp(np.mean([np.log(error[fold] / others[fold]) for fold in both])))
    return found


def no_more(rows: Rows, model: str, other: str, pick: Callable[[list[float]], float]) -> Verdict:
    """Whether one model errs no more than another, at the share of the training rows that is picked.

    The folds of a table share rows, so the repetitions are the tables.
    """
    share = pick(needed(rows, "an error").column("share"))
    ratios = error_ratios(rows, model, other, share)
    mean = mean_of(np.log(list(ratios.values())))
    estimate, low, high = (float(np.exp(value)) for value in (mean.estimate, mean.low, mean.high))
    interval = Interval(estimate, low, high, mean.n, "95 % interval of the geometric mean over tables")
    told = ", ".join(f"{table} {ratio:.3g}" for table, ratio in ratios.items())
    return within(interval, most=1, what=f"error of {model} / {other} ({told}), at {share:.3g} of the training rows,")


def judge_few_rows(rows: Rows) -> Verdict:
    """The 1-sparse network beside the dense one of the same width, at the smallest training sets."""
    return no_more(rows, "sparse, k = 1", DENSE, min)


def judge_low_degree(rows: Rows) -> Verdict:
    """Low degree beside the dense network, at the largest training sets."""
    return no_more(rows, LOW_DEGREE, DENSE, max)


def judge_any_distribution(rows: Rows) -> Verdict:
    """Sparse beside low degree. Which k is better cannot be chosen afterwards: the class of k = 4 holds that of 1."""
    return no_more(rows, "sparse, k = 4", LOW_DEGREE, max)


def of_tables(rows: Rows, name: str, model: str | None = None) -> Interval:
    """Mean over tables of what sparse networks do; of each table all folds and sizes count together."""
    sparse = Rows(row for row in rows if (row["model"] in SPARSE if model is None else row["model"] == model))
    groups = needed(sparse, "a sparse network").groups("table").values()
    found = [[row[name] for row in group if row[name] is not None] for group in groups]
    means = [float(np.mean(values)) for values in found if values]
    return mean_of(means)


def judge_fresh_rows(rows: Rows) -> Verdict:
    """The share of points at which more than k units are on: fresh rows of the table, and uniform points."""
    fresh, uniform = (
        within(of_tables(rows, f"above_k_{where}"), most=LEAK, what=f"share with more than k units on, {called}:")
        for where, called in (("test", "fresh rows"), ("uniform", "uniform points"))
    )
    return only_if("the points come from the table's own distribution", fresh, uniform)


def judge_exclusion(rows: Rows) -> Verdict:
    """Variance of the number of active units beside that of independent units."""
    return within(of_tables(rows, "dispersion_test", "sparse, k = 4"), most=1, what="dispersion on fresh rows")


EXPERIMENT = Experiment(
    name="real-tables",
    paper="A",
    place="Theorems 5, 8 and 17",
    title="Sparse, low degree, dense and forest on real tables",
    summary=(
        "The measured cost of five configurable programs by their switches (180 to 2,560 rows, 8 to 17 switches, most "
        "with constraints), by five folds and four sizes of the training set. Degree and ridge of low degree and the "
        f"penalty of the dense network are cross-validated within it; networks have {WIDTH} units."
    ),
    version=1,
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="few-rows",
            place="Theorems 5 and 17, beyond the paper",
            statement="With few rows a 1-sparse network errs less than a dense one of the same width.",
            printed="O(k n s / eps^2) samples for the sparse class, Omega(s^2 / eps^2) for the dense",
            rule=(
                "holds if the 95 % interval of the error ratio, a geometric mean over tables at an eighth of the "
                "training rows, lies below 1; errors below 1e-6 of the variance count as that"
            ),
            refuted_if="the 1-sparse network significantly errs more than the dense one",
            judge=judge_few_rows,
        ),
        Claim(
            name="low-degree",
            place="Theorem 8, beyond the paper",
            statement="On real tables low degree errs no more than a dense network.",
            printed="",
            rule="as for few-rows, at all training rows",
            refuted_if="low degree significantly errs more than the dense network",
            judge=judge_low_degree,
        ),
        Claim(
            name="any-distribution",
            place="Theorem 17, beyond the paper",
            statement="Where rows are not uniform, the sparse class errs no more than low degree.",
            printed="O((W R + B)^2 k s n / eps^2) samples for any distribution, exponential time",
            rule="as for few-rows, k = 4 and at all training rows",
            refuted_if="the sparse class significantly errs more than low degree",
            judge=judge_any_distribution,
        ),
        Claim(
            name="fresh-rows",
            place="Section 6, Remark 11",
            statement="A network that is k-sparse on the rows fitted is k-sparse on nearly all others.",
            printed="",
            rule=(
                f"holds if the 95 % interval, over tables, of the mean share of points with more than k active units "
                f"lies below {LEAK:.0%}; judged apart on test folds and on uniform points"
            ),
            refuted_if="the mean share of points with more than k active units is significantly above the limit on "
            "test folds",
            judge=judge_fresh_rows,
        ),
        Claim(
            name="exclusion",
            place="beyond the paper",
            statement="Units of a 4-sparse network exclude each other: their number varies less than if independent.",
            printed="",
            rule="holds if the 95 % interval, over tables, of Var(number active) / sum p (1 - p) lies below 1",
            refuted_if="Var(number active) / sum p (1 - p) is significantly above 1",
            judge=judge_exclusion,
        ),
    ),
    order=420,
    unmet=lambda: absent(*(f"config_performance/{table}.csv.gz" for table in TABLES)),
)
