"""Theorem 4.1: the error of constants in hash buckets against the number of buckets, on k-dimensional subspaces.

The learner is the theorem's: one Euclidean hash of K = 4k directions, which stay the same for all widths; a constant in
each bucket; the nearest bucket for an empty one. A table of N buckets has error of order N^(-1/k) there: a straight
line of slope -1/k on logarithmic axes. Dense networks trained on the same targets show what equal error costs them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from itertools import product
from math import inf, nextafter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact_papers.charts import Chart, Frame, by_width, curve_plot, curves, joined, level
from sparsact_papers.claims import Claim, Verdict, every, needed, within
from sparsact_papers.common.rates import HALF, RATE_REFUTED, RATE_RULE, error_curve, judge_rate
from sparsact_papers.experiment import Experiment, Row, Rows, Scale
from sparsact_papers.intervals import median_of, range_of, slope_of

Array = NDArray[np.float64]

AMBIENT, CENTRES = 16, 3
N_TEST: Final = {Scale.SMOKE: 500, Scale.QUICK: 2000, Scale.FULL: 16_384}
# One rule for every k, applied to other seeds than those below: from the width that leaves about a dozen buckets to the
# one at which 2 % of fresh points meet an empty bucket, in steps of sqrt(2) (of 2 for k = 1, where no point misses).
WIDTHS: Final = {
    1: tuple(2.0 ** -np.arange(0, 6)),
    2: tuple(2.0 ** -np.arange(-2, 4, 0.5)),
    3: tuple(2.0 ** -np.arange(-3, 2, 0.5)),
    4: tuple(2.0 ** -np.arange(-4.5, 0, 0.5)),
}
LOG2_ROWS: Final = {
    Scale.SMOKE: {1: 10, 2: 11},
    Scale.QUICK: {1: 12, 2: 13, 3: 14, 4: 14},
    Scale.FULL: {1: 16, 2: 19, 3: 20, 4: 20},
}
FINER, FINER_ROWS = (1.0, 2.0**-0.5), 1 << 22  # where the curve of k = 4 continues, with more rows
SEEDS: Final = {Scale.SMOKE: 2, Scale.QUICK: 2, Scale.FULL: 5}
TRAINED: Final = {Scale.SMOKE: (1, 4), Scale.QUICK: (1, 8), Scale.FULL: (1, 4, 16)}  # dense operations over the hash's
RANDOM: Final = {Scale.SMOKE: (1, 4), Scale.QUICK: (1, 8), Scale.FULL: (1, 4, 16, 64)}
DENSE_SEEDS: Final = {Scale.SMOKE: 2, Scale.QUICK: 2, Scale.FULL: 3}
LOG2_DENSE_ROWS: Final = {Scale.SMOKE: 10, Scale.QUICK: 12, Scale.FULL: 15}
RATES, EPOCHS = (1e-2, 1e-3, 1e-4), 40  # of Adam: rates one after the other, each with early stopping


def parameters(scale: Scale) -> Iterator[dict[str, int]]:
    """A curve for every dimension and seed, and dense networks of several widths on the same targets."""
    for seed, (k, power) in product(range(SEEDS[scale]), LOG2_ROWS[scale].items()):
        draw = {"k": k, "ambient": AMBIENT, "centres": CENTRES, "n_test": N_TEST[scale], "seed": seed}
        yield draw | {"n_directions": 4 * k, "rows": 1 << power}
        if k == 4 and scale is Scale.FULL:
            yield draw | {"n_directions": 4 * k, "rows": FINER_ROWS}
        if seed < DENSE_SEEDS[scale]:
            rows = 1 << LOG2_DENSE_ROWS[scale]
            yield from (draw | {"n_units": 4 * k * times, "rows": rows} for times in TRAINED[scale])
            yield from (draw | {"n_random_units": 4 * k * times, "rows": rows} for times in RANDOM[scale])


def measure(
    *,
    k: int,
    ambient: int,
    centres: int,
    rows: int,
    n_test: int,
    seed: int,
    n_directions: int | None = None,
    n_units: int | None = None,
    n_random_units: int | None = None,
) -> dict[str, Any]:
    """Errors on fresh points of hash tables of several widths, or of a dense layer, trained or random and solved."""
    from sparsact_papers.common.hard_families import dense_error
    from sparsact_papers.data import LowerEnvelope, random_subspace

    rng = np.random.default_rng([seed, k])
    domain = random_subspace(ambient, k, rng=rng)
    f = LowerEnvelope(domain.coordinates(domain.sample(centres, rng=rng)), rng.uniform(0, 0.5, centres))
    X, new = domain.sample(rows, rng=rng), domain.sample(n_test, rng=rng)
    y, truth = f(domain.coordinates(X)), f(domain.coordinates(new))
    if n_units is not None:
        return _trained(X, y, new, truth, n_units, seed) | _dense_cost(ambient, n_units)
    if n_random_units is not None:
        Z, at = domain.coordinates(X), domain.coordinates(new)
        error = dense_error(Z, y, at, truth, n_random_units, seed)
        return {"sup_error": error} | _dense_cost(ambient, n_random_units)
    if n_directions is None:
        raise ValueError("one of `n_directions`, `n_units` and `n_random_units` is needed; got none.")
    return _hashed(X, y, new, truth, n_directions, FINER if rows == FINER_ROWS else WIDTHS[k], seed)


def _hashed(
    X: Array, y: Array, new: Array, truth: Array, n_directions: int, widths: tuple[float, ...], seed: int
) -> dict[str, Any]:
    """Buckets, largest and mean error, and the share of points in empty buckets, for each width."""
    from sparsact.learners import LSHRegressor

    measured: dict[str, list[float]] = {name: [] for name in ("buckets", "sup_errors", "mean_errors", "rmse", "misses")}
    for width in widths:
        model = LSHRegressor(1, n_directions, width, 0, "euclidean", "nearest", seed, directions="principal").fit(X, y)
        error = np.abs(model.predict(new) - truth)
        measured["buckets"].append(model.n_buckets_)
        measured["sup_errors"].append(float(error.max()))
        measured["mean_errors"].append(float(error.mean()))
        measured["rmse"].append(float(np.sqrt(np.mean(error**2))))
        measured["misses"].append(float(np.mean(model.apply(new) < 0)))
    line = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y, rcond=None)[0]
    left = truth - np.column_stack([new, np.ones(len(new))]) @ line
    return {
        **measured,
        "widths": list(widths),
        "deviation": float(truth.std()),
        "linear_rmse": float(np.sqrt(np.mean(left**2))),
        "operations": X.shape[1] * n_directions + n_directions,
        "parameters_read": X.shape[1] * n_directions + n_directions + 1,
    }


def _trained(X: Array, y: Array, new: Array, truth: Array, n_units: int, seed: int) -> dict[str, Any]:
    """Largest and mean error of a ReLU network trained by Adam: of all rates the best on validation rows."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor
    from sklearn.preprocessing import StandardScaler

    kept, inputs, outputs = len(X) * 7 // 8, StandardScaler(), StandardScaler()
    Z, z = inputs.fit_transform(X), outputs.fit_transform(y[:, None])[:, 0]
    settings = {"early_stopping": True, "tol": 1e-5, "max_iter": EPOCHS, "warm_start": True, "random_state": seed}
    network = MLPRegressor(hidden_layer_sizes=(n_units,), **settings)
    least, found = np.inf, np.empty(0)
    for rate in RATES:  # each goes on where the one before stopped
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is a choice
            network.set_params(learning_rate_init=rate).fit(Z[:kept], z[:kept])
        left = float(np.abs(network.predict(Z[kept:]) - z[kept:]).max())
        if left < least:
            answers = outputs.inverse_transform(network.predict(inputs.transform(new))[:, None])[:, 0]
            least, found = left, np.abs(answers - truth)
    return {"sup_error": float(found.max()), "mean_error": float(found.mean())}


def _dense_cost(ambient: int, width: int) -> dict[str, int]:
    return {"operations": (ambient + 1) * width, "parameters_read": (ambient + 2) * width + 1}


DIMENSIONS: Final = (1, 2, 3, 4)


def tables(rows: Rows) -> Rows:
    """Rows of hash tables."""
    return Rows(row for row in rows if "buckets" in row.values)


def dense(rows: Rows) -> Rows:
    """Rows of dense layers, trained or random."""
    return Rows(row for row in rows if "n_units" in row.parameters or "n_random_units" in row.parameters)


def _judge_cost(rows: Rows) -> Verdict:
    parts = []
    for (k,), networks in needed(dense(rows), "dense layers").groups("k").items():
        ratios, out_of_reach = [], 0
        for (seed,), of_seed in networks.groups("seed").items():
            hashed = needed(tables(rows).where(k=k, seed=seed), f"tables with k = {k}, seed {seed}")
            error = error_curve(hashed)[1].min()
            serving = [row for row in of_seed if row["sup_error"] <= error]
            least = min(serving or [max(of_seed, key=_operations)], key=_operations)
            ratio = _operations(least) / _operations(hashed[0])
            ratios.append(ratio if serving else nextafter(ratio, inf))  # more than that
            out_of_reach += not serving
        verdict = within(range_of(ratios), least=nextafter(1.0, inf), what=f"k = {k}, dense / hash:")
        more = f", more in {out_of_reach} of {len(ratios)} seeds, where no width served" if out_of_reach else ""
        parts.append(Verdict(verdict.outcome, verdict.measured + more))
    return every(*parts)


def _operations(row: Row) -> int:
    return int(row["operations"])


def _judge_growth(rows: Rows) -> Verdict:
    layers = needed(Rows(row for row in rows if "n_random_units" in row.parameters), "random layers")
    parts = []
    for (k,), group in layers.groups("k").items():
        curves = [(one.column("operations"), one.column("sup_error")) for one in group.groups("seed").values()]
        whole = [curve for curve in curves if len(curve[0]) > 1]
        parts.append(within(slope_of(whole), least=-1 / (k - HALF), what=f"k = {k}, against {-1 / k:.3g}:"))
    return every(*parts)


def _rate(k: int) -> Claim:
    return Claim(
        name=f"rate-{k}",
        place="Theorem 4.1",
        statement=f"A largest error of eps takes O(1 / eps^k) buckets: k = {k}.",
        printed="O(L sqrt(d)^k / eps^k) buckets",
        rule=RATE_RULE,
        refuted_if=RATE_REFUTED,
        judge=lambda rows: judge_rate(needed(tables(rows).where(k=k), f"tables with k = {k}"), k, f"k = {k}:"),
    )


CLAIMS: Final = (
    *(_rate(k) for k in DIMENSIONS),
    Claim(
        name="cost",
        place="Section 4, after Theorem 4.2",
        statement="At equal largest error a forward pass costs a dense model more operations than the hash.",
        printed="O(dk log(1/eps)) against Omega(d (2 sqrt(d)/(C eps))^k)",
        rule="multiply-adds of the narrowest dense layer, trained or random, whose largest error is at most that of "
        "the finest table, over the hash's d K + K (the widest layer's where none serves); holds if above 1 for every "
        "k and seed. Parameters read, (d + 2) w + 1 against K (d + 1) + 1, have the same ratios within 6 %",
        refuted_if="for some k and seed a dense layer of the hash's operations has the finest table's error",
        judge=_judge_cost,
    ),
    Claim(
        name="cost-growth",
        statement="On this easy target too, not only on the hardest of Theorem 4.2, the operations of a dense model "
        "with a random bottom layer grow like (1/eps)^k.",
        rule="slope of log largest error in log operations over all widths of random layers, fitted for each seed; "
        "holds if the 95 % interval of its mean lies above -1/(k - 1/2) for each k",
        refuted_if="for some k the error falls significantly faster than operations^(-1/(k - 1/2))",
        judge=_judge_growth,
    ),
)


LISTS: Final = ("buckets", "sup_errors", "mean_errors", "misses")
DEVIATION, LINEAR = "standard deviation of the target", "best linear function, root mean square"


def whole_curves(rows: Rows) -> Rows:
    """One row for each dimension and seed, in which the lists of rows that continue each other are joined."""
    found = []
    for parts in tables(rows).groups("k", "seed").values():
        ordered = sorted(parts, key=lambda row: int(row["rows"]))
        lists = {name: [value for row in ordered for value in row[name]] for name in LISTS}
        found.append(ordered[0].with_values(**lists))
    return Rows(found)


def _errors_frame(rows: Rows, errors: str) -> Frame:
    found = whole_curves(rows)
    frame = by_width(found, {"": errors}, "buckets")
    heights = {DEVIATION: "deviation", LINEAR: "linear_rmse"}
    return joined(frame, *(level(name, median_of(found.array(column)), frame) for name, column in heights.items()))


def _operations_frame(rows: Rows) -> Frame:
    layers = dense(rows).groups("k", "seed", "operations").values()
    better = Rows(min(group, key=lambda row: float(row["sup_error"])) for group in layers)
    hashed = Rows(row.with_values(sup_error=row["sup_errors"][-1]) for row in whole_curves(rows))
    return joined(
        curves(better, "dense, k = {k}", "operations", "sup_error"),
        curves(hashed, "finest table, k = {k}", "operations", "sup_error"),
    )


OVER: Final = "Median over seeds with its interval; a point for each width of the hash."


EXPERIMENT: Final = Experiment(
    name="theorem-4-1",
    paper="B",
    place="Theorem 4.1",
    title="Constants in hash buckets on a subspace",
    summary="Points are uniform on the part of a random k-dimensional subspace within [-1, 1]^16, and the target is "
    "the lower envelope of three cones, exactly 1-Lipschitz. One Euclidean hash of 4k normal directions in all 16 "
    "columns, as the theorem has it, constants, the nearest bucket for an empty one. Widths run from about a dozen "
    "buckets to the first with 2 % of misses (for k = 4 further, on 2^22 rows). Dense layers of ReLU units, on 2^15 "
    "rows: scikit-learn's MLPRegressor with 4k, 16k and 64k units, all weights trained by Adam on standardised "
    "columns with rates .01, .001 and .0001 one after the other, each until early stopping or 40 epochs, the state "
    "with the least largest error on validation rows; and random units, up to 256k, whose kinks are spread over the "
    "points, under the best linear layer. Test points: 16,384 fresh ones.",
    parameters=parameters,
    measure=measure,
    claims=CLAIMS,
    charts=(
        Chart(
            "sup",
            "Largest error against buckets",
            OVER + " Theory: slope -1/k.",
            partial(_errors_frame, errors="sup_errors"),
            curve_plot("buckets", "largest error", log=(10, 10), lines=(DEVIATION, LINEAR)),
        ),
        Chart(
            "mean",
            "Mean error against buckets",
            OVER,
            partial(_errors_frame, errors="mean_errors"),
            curve_plot("buckets", "mean absolute error", log=(10, 10), lines=(DEVIATION, LINEAR)),
        ),
        Chart(
            "misses",
            "Misses against buckets",
            OVER + " A miss goes to the nearest bucket.",
            lambda rows: by_width(whole_curves(rows), {"": "misses"}, "buckets"),
            curve_plot("buckets", "share of points in empty buckets", log=(10, 0)),
        ),
        Chart(
            "operations",
            "Largest error of dense layers against their operations",
            "Median over seeds with its interval. Dense: one hidden layer of ReLU units, trained or random (the "
            "widest only random), whichever errs less. A table costs the operations of its hash, whatever its width.",
            _operations_frame,
            curve_plot("multiply-adds of a forward pass", "largest error", log=(10, 10), size=(5.4, 5.0)),
        ),
    ),
    order=40,
)
