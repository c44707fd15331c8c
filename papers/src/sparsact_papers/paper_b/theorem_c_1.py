"""Theorem C.1: constants in several hash tables on curved manifolds, their sizes, and what pruning costs.

The hash is the proof's: D = d directions in all d columns, so that a bucket is cut by more directions than the manifold
has dimensions, and ceil(k ln d) tables, averaged. The theorem's error is uniform; N buckets a table ought to give an
error of order N^(-1/k).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from math import ceil, log
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.bounds import manifold_table_size, manifold_table_size_proof
from sparsact_papers.charts import Chart, Frame, by_width, curve_plot, joined, level
from sparsact_papers.claims import Claim, Verdict, every, needed, within
from sparsact_papers.common.rates import RATE_REFUTED, RATE_RULE, judge_rate, window
from sparsact_papers.experiment import Experiment, Row, Rows, Scale
from sparsact_papers.intervals import mean_of, median_of, share_of

DIMENSIONS: Final = {"circle": 1, "sphere": 2, "swiss roll": 2}
AMBIENTS: Final = (8, 16)
FEW: Final = 8  # rows: a bucket of fewer is pruned
PROBABILITY: Final = 0.8  # of the theorem


def _judge_columns(rows: Rows) -> Verdict:
    parts = []
    for (manifold,), found in needed(rows, "curves").groups("manifold").items():
        k = DIMENSIONS[manifold]
        pairs = [pair for pair in found.groups("seed").values() if pair.distinct("ambient") == list(AMBIENTS)]
        powers = [
            (_log_constant(pair.where(ambient=AMBIENTS[1]), k) - _log_constant(pair.where(ambient=AMBIENTS[0]), k))
            / np.log(AMBIENTS[1] / AMBIENTS[0])
            for pair in pairs
        ]
        parts.append(within(mean_of(powers), most=k / 2, what=f"{manifold}: power of d against {k / 2:g},"))
    return every(*parts)


def _log_constant(curve: Rows, k: int) -> float:
    """Mean of log(buckets * error^k) over the window of a curve."""
    buckets, errors = window(curve, k)
    return float(np.mean(np.log(buckets) + k * np.log(errors)))


def _judge_pruning(rows: Rows) -> Verdict:
    lost = [most for row in needed(rows, "curves") if (most := _most_lost(row)) is not None]
    kept = sum(most == 0 for most in lost)
    what = f"draws in which no point is lost; at most {max(lost, default=0):.2%} of the points are,"
    return within(share_of(kept, len(lost)), least=PROBABILITY, what=what)


def _most_lost(row: Row) -> float | None:
    """Largest share of lost points at the widths that leave FEW rows in a bucket of the proof's least volume."""
    k, d = row["k"], row["ambient"]
    # least volume (width / (d sqrt(k)))^k, as a share of the (2 sqrt(d))^k that the domain has at most
    shares = [(width / (d * k**0.5) / (2 * d**0.5)) ** k for width in row["widths"]]
    lost = [lost for lost, share in zip(row["pruned_by_all"], shares, strict=True) if row["rows"] * share >= FEW]
    return max(lost, default=None)


def _rate(manifold: str, k: int) -> Claim:
    return Claim(
        name=f"rate-{manifold.replace(' ', '-')}",
        place="Theorem C.1",
        statement=f"On a {manifold} (k = {k}) a table needs O(1 / eps^k) buckets for a largest error of eps.",
        printed="O(sqrt(dk)^k / eps^k) buckets",
        rule=f"{RATE_RULE}, in both ambient dimensions",
        refuted_if=f"{RATE_REFUTED}, in some ambient dimension",
        judge=lambda rows: every(
            *(
                judge_rate(group, DIMENSIONS[manifold], f"{manifold}, d = {d}:")
                for (d,), group in needed(rows.where(manifold=manifold), f"curves on a {manifold}")
                .groups("ambient")
                .items()
            )
        ),
    )


CLAIMS: Final = (
    *(_rate(manifold, k) for manifold, k in DIMENSIONS.items()),
    Claim(
        name="columns",
        place="Theorem C.1",
        statement="At equal largest error the buckets of a table grow no faster than d^(k/2), although each table has "
        "d directions.",
        printed="O(sqrt(dk)^k / eps^k), and in the proof (d^2 sqrt(k) / eps)^k: not exponential in d",
        rule="mean of log(buckets * error^k) over the same tables, at d = 16 less at d = 8, the same manifold and "
        "seed, over log 2; holds if the 95 % interval of its mean over seeds lies below k/2 for every manifold",
        refuted_if="for some manifold the power of d is significantly above k/2",
        judge=_judge_columns,
    ),
    Claim(
        name="pruning",
        place="Theorem C.1, proof",
        statement="When sparse buckets are pruned, every point still has a kept bucket in at least one table, with "
        "probability 0.8.",
        printed="we only include buckets with volume at least (Omega(eps / (d sqrt(k))))^k",
        rule=f"pruned are buckets with fewer than {FEW} rows, at widths eps for which (eps / (d sqrt(k)))^k of the (2 "
        f"sqrt(d))^k that the domain's volume is at most holds {FEW} rows or more; holds if the 95 % interval "
        "(Clopper and Pearson) of the share of draws in which all test points have a kept bucket lies above 0.8",
        refuted_if="the share of draws in which all points keep a bucket is significantly below 0.8",
        judge=_judge_pruning,
    ),
)


Array = NDArray[np.float64]

CENTRES, N_WIDTHS = 3, 6
# Log2 of the coarsest width and of the finest, at d = 8 and 2^19 rows. Chosen before any error was looked at: from
# about a dozen buckets to a few per cent of misses.
ENDS: Final = {"circle": (1.0, -11.0), "sphere": (3.0, -4.25), "swiss roll": (2.0, -4.25)}
LOG2_ROWS: Final = {Scale.SMOKE: 11, Scale.QUICK: 14, Scale.FULL: 19}
N_TEST: Final = {Scale.SMOKE: 500, Scale.QUICK: 4096, Scale.FULL: 16_384}
SEEDS: Final = {Scale.SMOKE: 2, Scale.QUICK: 3, Scale.FULL: 5}


def parameters(scale: Scale) -> Iterator[dict[str, Any]]:
    """A curve for every seed, ambient dimension and manifold."""
    for seed, ambient, (manifold, k) in product(range(SEEDS[scale]), AMBIENTS, DIMENSIONS.items()):
        yield {
            "manifold": manifold,
            "k": k,
            "ambient": ambient,
            "centres": CENTRES,
            "rows": 1 << LOG2_ROWS[scale],
            "n_test": N_TEST[scale],
            "seed": seed,
        }


def widths(manifold: str, ambient: int, rows: int) -> list[float]:
    """Gaps of the hyperplanes, coarse to fine, in proportion to d; as fine as leaves the same rows a bucket."""
    coarse, fine = ENDS[manifold]
    fewer = (LOG2_ROWS[Scale.FULL] - np.log2(rows)) / DIMENSIONS[manifold]
    return [float(w) for w in ambient / min(AMBIENTS) * 2.0 ** np.linspace(coarse, fine + fewer, N_WIDTHS)]


def measure(*, manifold: str, k: int, ambient: int, centres: int, rows: int, n_test: int, seed: int) -> dict[str, Any]:
    """For each width: buckets a table, errors on fresh points, misses, printed table sizes, losses by pruning."""
    from sparsact_papers.data import LowerEnvelope

    rng = np.random.default_rng([seed, list(DIMENSIONS).index(manifold)])
    domain = _domain(manifold, ambient).rotated(rng=rng)
    f = LowerEnvelope(domain.sample(centres, rng=rng), rng.uniform(0, 0.5, centres))
    X, new = domain.sample(rows, rng=rng), domain.sample(n_test, rng=rng)
    y, truth = f(X), f(new)
    n_tables = ceil(k * log(ambient))
    gaps = widths(manifold, ambient, rows)
    found = [_at_width(gap, n_tables, X, y, new, truth, seed) for gap in gaps]
    told = {name: [one[name] for one in found] for name in found[0]}
    line = np.linalg.lstsq(np.column_stack([X, np.ones(rows)]), y, rcond=None)[0]
    left = truth - np.column_stack([new, np.ones(n_test)]) @ line
    return {
        **told,
        "widths": gaps,
        "n_tables": n_tables,
        "printed_sizes": [manifold_table_size(ambient, k, e) for e in told["sup_errors"]],
        "proof_sizes": [manifold_table_size_proof(ambient, k, e) for e in told["sup_errors"]],
        "deviation": float(truth.std()),
        "linear_rmse": float(np.sqrt(np.mean(left**2))),
    }


def _domain(manifold: str, ambient: int) -> Any:
    from sparsact_papers.data import Circle, Sphere, SwissRoll

    return {"circle": Circle(ambient), "sphere": Sphere(2, ambient), "swiss roll": SwissRoll(ambient)}[manifold]


def _at_width(width: float, n_tables: int, X: Array, y: Array, new: Array, truth: Array, seed: int) -> dict[str, float]:
    from sparsact.learners import LSHRegressor

    def fitted(min_count: int) -> LSHRegressor:
        # Directions of a Euclidean hash are normal in all columns; `directions` names only how it tells what is near.
        return LSHRegressor(
            n_tables, X.shape[1], width, 0, "euclidean", "nearest", seed, directions="principal", min_count=min_count
        ).fit(X, y)

    model = fitted(1)
    error = np.abs(model.predict(new) - truth)
    held = np.append(model.bucket_counts_, 0)[model.apply(new)]  # the place -1 is an empty bucket's
    return {
        "buckets": model.n_buckets_ / n_tables,
        "mean_errors": float(error.mean()),
        "sup_errors": float(error.max()),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "misses": float(np.mean(held == 0)),
        "missed_by_all": float(np.mean((held == 0).all(axis=1))),
        "pruned_buckets": float(np.mean(model.bucket_counts_ < FEW)),
        "pruned_points": float(np.mean(held < FEW)),
        "pruned_by_all": float(np.mean((held < FEW).all(axis=1))),
        "pruned_mean_errors": float(np.abs(fitted(FEW).predict(new) - truth).mean()),
    }


TABLE, LINEAR = "buckets of a table", "best linear"
DEVIATION: Final = "standard deviation of the target"
SIZES: Final = {"printed_sizes": "statement, ", "proof_sizes": "proof, "}


def _with(rows: Rows, name: str, of: Callable[[Row], Any]) -> Rows:
    """Rows with one more value."""
    return Rows(row.with_values(**{name: of(row)}) for row in rows)


def _manifolds(rows: Rows, columns: dict[str, str], x: str) -> Frame:
    """The columns of each manifold, in the least ambient dimension."""
    least = rows.where(ambient=min(rows.distinct("ambient")))
    return joined(
        *(
            by_width(group, {f"{manifold}, {name}": column for name, column in columns.items()}, x)
            for (manifold,), group in least.groups("manifold").items()
        )
    )


def _share_frame(rows: Rows, column: str) -> Frame:
    """An error as a share of the target's deviation, with that of the best linear function as lines."""
    shares = _with(rows, "share", lambda row: [e / row["deviation"] for e in row[column]])
    frame = _manifolds(shares, {"": "share"}, "buckets")
    lines = (
        level(f"{LINEAR}, {manifold}", median_of([row["linear_rmse / deviation"] for row in group]), frame)
        for (manifold,), group in rows.groups("manifold").items()
    )
    return joined(frame, *lines)


def _sizes_frame(rows: Rows) -> Frame:
    inverse = _with(rows, "inverse", lambda row: [1 / e for e in row["sup_errors"]])
    printed = inverse.where(ambient=min(rows.distinct("ambient")))
    printed = Rows(row for row in printed if row["manifold"] != "swiss roll")  # as the sphere's: k is the same
    return joined(
        _manifolds(inverse, {"": "buckets"}, "inverse"),
        by_width(printed, {name: column for column, name in SIZES.items()}, "inverse"),
    )


share_plot = partial(
    curve_plot,
    TABLE,
    log=(10, 10),
    lines=lambda name: name.startswith(LINEAR),
    levels={DEVIATION: 1.0},
    size=(5.6, 4.8),
)
linear_plot = partial(curve_plot, TABLE, log=(10, 0), size=(5.6, 4.6))
OVER: Final = "Median over seeds with its interval; a point for each width. "
LEAST: Final = OVER + "Ambient dimension 8. "


EXPERIMENT: Final = Experiment(
    name="theorem-c-1",
    paper="B",
    place="Theorem C.1",
    title="Constants in hash buckets on curved manifolds",
    summary="Points are uniform on a circle, a sphere or a swiss roll within the unit ball, in a random frame of R^8 "
    "or R^16, and the target is the lower envelope of three cones about points of the manifold, exactly 1-Lipschitz. "
    "Euclidean hashes of D = d directions in all d columns, the same for all widths; ceil(k ln d) tables, averaged "
    "with the numbers of rows as weights (the proof leaves open how they are put together); the nearest bucket where "
    f"all are empty. A table's buckets are counted as the mean over tables. Pruned: buckets of fewer than {FEW} rows. "
    "Test points: 16,384 fresh ones.",
    parameters=parameters,
    measure=measure,
    claims=CLAIMS,
    charts=(
        Chart(
            "mean",
            "Mean error against buckets",
            LEAST + "Theory: slope -1/k.",
            lambda rows: _share_frame(rows, "mean_errors"),
            share_plot("mean absolute error / standard deviation"),
        ),
        Chart(
            "sup",
            "Largest error against buckets",
            LEAST + "Theory: slope -1/k.",
            lambda rows: _share_frame(rows, "sup_errors"),
            share_plot("largest error / standard deviation"),
        ),
        Chart(
            "sizes",
            "Buckets at equal largest error, and the printed table sizes",
            LEAST + "Lines: (sqrt(dk) / eps)^k of the statement and (d^2 sqrt(k) / eps)^k of the proof, constants 1.",
            _sizes_frame,
            curve_plot(
                "1 / largest error",
                "buckets of a table",
                log=(10, 10),
                lines=lambda name: name.startswith(tuple(SIZES.values())),
                size=(5.6, 4.8),
            ),
        ),
        Chart(
            "misses",
            "Misses against buckets",
            LEAST + "Of one table.",
            lambda rows: _manifolds(rows, {"": "misses"}, "buckets"),
            linear_plot("share of points in empty buckets of a table"),
        ),
        Chart(
            "pruning",
            "Buckets lost by pruning",
            LEAST + f"Pruned: buckets of fewer than {FEW} rows.",
            lambda rows: _manifolds(rows, {"": "pruned_buckets"}, "buckets"),
            linear_plot("share of buckets pruned"),
        ),
        Chart(
            "lost",
            "Points lost by pruning",
            LEAST + f"Points whose buckets hold fewer than {FEW} rows: in one table (mean over tables) and in all.",
            lambda rows: _manifolds(rows, {"one table, ": "pruned_points", "all tables, ": "pruned_by_all"}, "buckets"),
            linear_plot("share of points without a kept bucket"),
        ),
        Chart(
            "ambient",
            "Buckets in two ambient dimensions",
            OVER + "D = d directions; curves of one manifold that coincide mean (d / width)^k buckets.",
            lambda rows: joined(
                *(
                    by_width(group, {f"{manifold}, d = {ambient}, ": "buckets"}, "gaps")
                    for (manifold, ambient), group in _with(
                        rows, "gaps", lambda row: [row["ambient"] / width for width in row["widths"]]
                    )
                    .groups("manifold", "ambient")
                    .items()
                )
            ),
            curve_plot("ambient dimension d / width", "buckets of a table", log=(10, 10), size=(5.6, 4.8)),
        ),
    ),
    order=45,
)
