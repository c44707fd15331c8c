"""Mixtures of hashed experts on manifolds: their rate, and the number of active experts at equal active parameters.

A mixture has t tables. Each is a Euclidean hash of its own and has in each bucket an expert with p coefficients: a
constant and p - 1 random projections of the point. At a point t experts are active and their outputs are added; all
coefficients together are the least squares solution on the rows. Active parameters number t p at a point, and all
parameters t p N for N buckets a table: one expert with A coefficients and A experts with one have equally many of both.

Fine granularity can be worth exponentially many experts on functions that are made for it (arXiv 2505.06839), and a
mixture may have the rate of the manifold's dimension (arXiv 2505.24205). Here both are looked for on ordinary targets.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsact_papers.charts import Chart, Frame, curve_plot, curves
from sparsact_papers.claims import Claim, Verdict, every, needed, within
from sparsact_papers.common.rates import HALF, SIDE
from sparsact_papers.experiment import Experiment, Row, Rows, Scale
from sparsact_papers.intervals import mean_of, slope_of

Array = NDArray[np.float64]
AMBIENT: Final = 8
DIMENSIONS: Final = {"circle": 1, "sphere": 2}
SPLITS: Final = {"circle": ((1, 1), (1, 3), (3, 1)), "sphere": ((1, 1), (1, 4), (2, 2), (4, 1))}  # t and p
KINKED, SMOOTH = "kinked", "smooth"
WIDTHS: Final = {"circle": tuple(2.0 ** -np.arange(1, 7)), "sphere": tuple(2.0 ** -np.arange(1, 3.5, 0.5))}
ROWS: Final = {Scale.SMOKE: 1 << 11, Scale.QUICK: 1 << 14, Scale.FULL: 1 << 15}
FRESH: Final = {Scale.SMOKE: 1000, Scale.QUICK: 4096, Scale.FULL: 16_384}
SEEDS: Final = {Scale.SMOKE: 2, Scale.QUICK: 3, Scale.FULL: 10}
AMPLE: Final = 8  # rows a coefficient: with fewer it is the rows that limit the error, and not the buckets
N_WAVES, FREQUENCY = 6, 3.0  # of the smooth target
DAMPING, STEPS = 1e-6, 300  # of least squares
THIN: Final = 0.01  # of a width: a direction in which the rows of a bucket spread less has no coefficient


def parameters(scale: Scale) -> Iterator[dict[str, Any]]:
    """A curve over widths for each manifold, target, seed and split of the active parameters."""
    size = {"ambient": AMBIENT, "rows": ROWS[scale], "fresh": FRESH[scale]}
    for seed, manifold, target in product(range(SEEDS[scale]), DIMENSIONS, (KINKED, SMOOTH)):
        for t, p in SPLITS[manifold]:
            yield {"manifold": manifold, "target": target, "t": t, "p": p, **size, "seed": seed}


def measure(
    *, manifold: str, target: str, t: int, p: int, ambient: int, rows: int, fresh: int, seed: int
) -> dict[str, Any]:
    """For each width: buckets a table, error on fresh points whose buckets all have rows, and the share of others."""
    from sparsact_papers.data import Circle, Sphere

    rng = np.random.default_rng([seed, list(DIMENSIONS).index(manifold)])
    domain = (Circle(ambient) if manifold == "circle" else Sphere(2, ambient)).rotated(rng=rng)
    f = _target(target, domain.sample(3, rng=rng), rng)
    X, new = domain.sample(rows, rng=rng), domain.sample(fresh, rng=rng)
    measured: dict[str, list[float]] = {"scales": [], "buckets": [], "rmse": [], "misses": []}
    for width in WIDTHS[manifold]:
        predicted, hit, buckets = mixture(X, f(X), new, width, t, p, np.random.default_rng([seed, 7]))
        measured["scales"].append(1 / width)
        measured["buckets"].append(buckets)
        measured["rmse"].append(float(np.sqrt(np.mean((predicted - f(new))[hit] ** 2))))
        measured["misses"].append(float(1 - hit.mean()))
    return measured | {"deviation": float(f(new).std())}


def _target(name: str, centres: Array, rng: np.random.Generator) -> Any:
    """A function of points: the lower envelope of three cones, or a sum of six waves."""
    from sparsact_papers.data import LowerEnvelope

    if name == KINKED:
        return LowerEnvelope(centres, rng.uniform(0, 0.5, len(centres)))
    waves = rng.normal(size=(N_WAVES, centres.shape[1]))
    waves *= FREQUENCY / np.linalg.norm(waves, axis=1, keepdims=True)
    phases = rng.uniform(0, 2 * np.pi, N_WAVES)
    return lambda X: np.cos(X @ waves.T + phases).mean(axis=1)


def mixture(
    X: Array, y: Array, new: Array, width: float, t: int, p: int, rng: np.random.Generator
) -> tuple[Array, NDArray[np.bool_], float]:
    """Predictions at new points, which of them have rows in all of their buckets, and the mean buckets of a table."""
    from scipy.sparse.linalg import lsmr

    frame = np.linalg.svd(X[:1000], full_matrices=False)[2]
    span = int((np.linalg.norm(X[:1000] @ frame.T, axis=0) > 1e-9).sum())
    seen, unseen = X @ frame[:span].T, new @ frame[:span].T  # coordinates in the space that the manifold spans
    entries: dict[str, list[Array]] = {"seen": [], "unseen": []}  # of a row of the design, table by table
    places: dict[str, list[NDArray[np.int64]]] = {"seen": [], "unseen": []}
    hits, n_places, buckets = np.ones(len(new), dtype=bool), 0, 0
    for _ in range(t):
        directions, offsets = rng.normal(size=(span, span)), rng.uniform(0, width, span)
        mixing = np.linalg.qr(rng.normal(size=(span, span)))[0][:, : p - 1]
        codes = np.floor((np.concatenate([seen, unseen]) @ directions + offsets) / width).astype(np.int64)
        place = np.unique(codes, axis=0, return_inverse=True)[1].ravel()
        at, size = place[: len(X)], int(place.max()) + 1
        count = np.bincount(at, minlength=size)
        hits &= count[place[len(X) :]] > 0
        buckets += int(np.count_nonzero(count))
        centres = np.column_stack([np.bincount(at, column, size) for column in seen.T]) / np.maximum(count, 1)[:, None]
        basis = _orthonormal(_columns(seen, at, centres, mixing / width), at, size)
        for name, points, bucket in (("seen", seen, at), ("unseen", unseen, place[len(X) :])):
            entries[name].append(
                np.einsum("ij,ijk->ik", _columns(points, bucket, centres, mixing / width), basis[bucket])
            )
            places[name].append((n_places + bucket[:, None]) * p + np.arange(p))
        n_places += size
    design, test = (_rows(entries[name], places[name], n_places * p) for name in entries)
    mean = float(y.mean())
    solution = lsmr(design, y - mean, damp=DAMPING, atol=1e-10, btol=1e-10, maxiter=STEPS)[0]
    return mean + np.asarray(test @ solution), hits, buckets / t


def _rows(entries: list[Array], places: list[NDArray[np.int64]], n_columns: int) -> sp.csr_array[np.float64]:
    """The sparse matrix with these entries of each row, at these columns."""
    values, columns = np.concatenate(entries, axis=1), np.concatenate(places, axis=1)
    pointers = np.arange(len(values) + 1) * values.shape[1]
    return sp.csr_array((values.ravel(), columns.ravel(), pointers), (len(values), n_columns))


def _columns(points: Array, at: NDArray[np.int64], centres: Array, mixing: Array) -> Array:
    """A constant, and projections (in widths) about the mean of the rows of a point's bucket."""
    return np.column_stack([np.ones(len(points)), (points - centres[at]) @ mixing])


def _orthonormal(columns: Array, at: NDArray[np.int64], size: int) -> Array:
    """For each bucket the matrix (p, p) that makes the columns of its rows orthonormal; thin directions get 0.

    Least squares over all tables then takes few steps.
    """
    p = columns.shape[1]
    gram = np.zeros((size, p, p))
    for i, j in product(range(p), repeat=2):
        gram[:, i, j] = np.bincount(at, columns[:, i] * columns[:, j], size)
    values, vectors = np.linalg.eigh(gram)
    kept = values > THIN**2 * values.max(axis=1, keepdims=True)
    return np.asarray(vectors * np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)[:, None, :])


def _curve(row: Row, k: int) -> tuple[list[float], list[float]]:
    """Buckets a table and errors, from tables of 8^k buckets on, as far as there are ample rows for a coefficient."""
    kept = [i for i, n in enumerate(row["buckets"]) if SIDE**k <= n <= row["rows"] / (AMPLE * row["t"] * row["p"])]
    return [row["buckets"][i] for i in kept], [row["rmse"][i] for i in kept]


def _judge_rate(rows: Rows) -> Verdict:
    parts = []
    for manifold, k in DIMENSIONS.items():
        for target, (t, p) in product((KINKED, SMOOTH), SPLITS[manifold]):
            what = f"{manifold}, {target}, {t} x {p}:"
            found = needed(rows.where(manifold=manifold, target=target, t=t, p=p), what)
            curves = [curve for row in found if len((curve := _curve(row, k))[0]) > 2]
            parts.append(within(slope_of(needed(curves, f"{what} three widths")), most=-1 / (k + HALF), what=what))
    return every(*parts)


def log_ratio(several: Row, single: Row, k: int) -> float | None:
    """log2 of one mixture's error over another's at the largest number of buckets that both curves have, if any."""
    curves = [_curve(row, k) for row in (several, single)]
    if not all(n for n, _ in curves):
        return None
    buckets = min(max(n) for n, _ in curves)
    one, other = (float(np.interp(np.log2(buckets), np.log2(n), np.log2(error))) for n, error in curves)
    return one - other


def _judge_number(rows: Rows, *, of_constants: bool) -> Verdict:
    parts = []
    for (manifold, k), target in product(DIMENSIONS.items(), (KINKED, SMOOTH)):
        (_, alone, *_, several) = SPLITS[manifold]
        few = (1, 1) if of_constants else alone
        own = rows.where(manifold=manifold, target=target)
        one, other = (own.where(t=t, p=p) for t, p in (few, several))
        ratios = [ratio for pair in other.paired(one, "seed") if (ratio := log_ratio(*pair, k)) is not None]
        needed(ratios, f"{manifold}: pairs of mixtures")
        parts.append(within(mean_of(ratios), most=0, what=f"{manifold}, {target}: {several[0]} x 1 over 1 x {few[1]}"))
    return every(*parts)


def _frame(rows: Rows, target: str) -> Frame:
    found = rows.where(target=target).unfolded(scale="scales", error="rmse")
    return curves(found, "{manifold}, {t} x {p}", "scale", "error")


AT: Final = "at the largest number of buckets a table that both have with 8 rows a coefficient"
BELOW: Final = "holds if the 95 % interval of its mean lies below 0 for every manifold and target"
EXPERIMENT: Final = Experiment(
    name="granular-experts",
    paper="B",
    place="Theorems 4.1 and C.1, and beyond the paper",
    title="Mixtures of hashed experts: how many at equal active parameters",
    summary="Points are uniform on a circle or a sphere in 8 dimensions; targets are the lower envelope of three cones "
    "and the mean of six waves. A mixture of t tables has an expert with p coefficients in each bucket, t of them "
    "active at a point and added; all are fitted together by least squares to 32,768 rows. 1 x 4 is one linear "
    "expert, 4 x 1 four constants with as many parameters, active and in all. Errors are root mean squares at 16,384 "
    "fresh points whose buckets have rows. Directions in which the rows of a bucket spread by less than a hundredth of "
    "its width have no coefficient (in a first run, which is not kept, a few points in thin buckets made up the "
    "errors, and tables with few rows a coefficient counted). Widths were fixed on other seeds.",
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="rate",
            statement="Mixtures have the rate of the manifold, whatever the number of active experts: error eps takes "
            "O(1 / eps^k) buckets a table.",
            rule="slope of log root mean squared error in log buckets a table, over tables of 8^k buckets or "
            "more with 8 rows a coefficient or more, for "
            "each seed; holds if the 95 % interval of its mean lies below -1/(k + 1/2) for every manifold, target and "
            "split",
            refuted_if="for some manifold, target and split the slope is significantly above -1/(k + 1/2)",
            judge=_judge_rate,
        ),
        Claim(
            name="more-constants",
            statement="Of experts of one coefficient several active ones err less than one, at equal buckets a table.",
            rule=f"log2 of the ratio of errors {AT}, in pairs of one seed: {BELOW}",
            refuted_if="several active constants significantly err more for some manifold and target",
            judge=partial(_judge_number, of_constants=True),
        ),
        Claim(
            name="granularity",
            statement="At equal parameters, active and in all, many small experts err less than one large one, on "
            "ordinary targets too.",
            rule=f"log2 of the ratio of errors {AT}, A constants over one expert with A coefficients, in pairs of one "
            f"seed: {BELOW}",
            refuted_if="the small experts significantly err more for some manifold and target",
            judge=partial(_judge_number, of_constants=False),
        ),
    ),
    charts=tuple(
        Chart(
            target,
            f"Error of mixtures, {target} target",
            "Median over seeds with its interval; t x p: t active experts with p coefficients each.",
            partial(_frame, target=target),
            curve_plot("1 / width of the buckets", "root mean squared error", log=(2, 10)),
        )
        for target in (KINKED, SMOOTH)
    ),
    order=35,
    version=2,
)
