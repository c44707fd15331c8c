"""Error against bytes against microseconds: what a fitted LSH model costs with fewer tables, stages or digits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from time import perf_counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact import registry
from sparsact.kernels import bucket_statistics, hashing
from sparsact.kernels.hashing import BucketPlaces, Hashes
from sparsact.learners.lsh.bucket_table import ROWS_AT_ONCE, BucketTable
from sparsact.learners.lsh.compact import CompactModel, TableChoice
from sparsact.learners.lsh.compiled import CompiledModel
from sparsact.learners.lsh.ends import Ends
from sparsact.learners.lsh.layout import Array
from sparsact.learners.lsh.nearest import mean_positions
from sparsact.notebook import to_pandas
from sparsact.statistics.statistic import Batch
from sparsact.statistics.units import SMALLEST

ROWS: Final = 2048  # that errors and times are measured on, at most
REPEATS: Final = 5
DTYPES: Final = ("float32", "float64")


@dataclass(frozen=True)
class FrontierPoint:
    """One size of a model.

    Attributes
    ----------
    n_stages : int
        Stages that are kept, from the first on.
    n_tables : int
        Hash tables of the last one.
    dtype : str
        Of its coefficients.
    error : float
        Root mean square error on rows left out, in standard deviations of the target.
    nbytes : int
        Bytes of the predictor's arrays.
    microseconds : float
        For a row of a batch on one thread, measured here.

    Examples
    --------
    >>> from sparsact.learners import FrontierPoint
    >>> FrontierPoint(n_stages=1, n_tables=16, dtype="float32", error=0.1, nbytes=40_000, microseconds=0.2).nbytes
    40000
    """

    n_stages: int
    n_tables: int
    dtype: str
    error: float
    nbytes: int
    microseconds: float


@dataclass(frozen=True)
class Frontier:
    """Sizes of one fitted model, smallest first; see :meth:`LSHRegressor.frontier`.

    Attributes
    ----------
    points : tuple of FrontierPoint
        What there is to choose from.

    Examples
    --------
    >>> from sparsact.learners import Frontier, FrontierPoint
    >>> small = FrontierPoint(1, 4, "float32", error=0.2, nbytes=10_000, microseconds=0.1)
    >>> large = FrontierPoint(1, 16, "float32", error=0.1, nbytes=40_000, microseconds=0.2)
    >>> Frontier((small, large)).best(max_bytes=20_000).n_tables
    4
    """

    points: tuple[FrontierPoint, ...]

    def best(self, *, max_bytes: float | None = None, max_microseconds: float | None = None) -> FrontierPoint:
        """The point of least error within limits; of several, the one of fewest bytes.

        Raises
        ------
        ValueError
            If none lies within them; says which would be the smallest and the fastest.
        """
        most, slowest = (np.inf if limit is None else limit for limit in (max_bytes, max_microseconds))
        within = [point for point in self.points if point.nbytes <= most and point.microseconds <= slowest]
        if not within:
            raise ValueError(
                f"no size of this model is within max_bytes={max_bytes}, max_microseconds={max_microseconds}: the "
                f"smallest takes {min(p.nbytes for p in self.points):,} bytes, the fastest "
                f"{min(p.microseconds for p in self.points):.2g} us a row; raise the limits, or fit with a larger "
                "`bucket_width` or a lower `degree`."
            )
        return min(within, key=lambda point: (point.error, point.nbytes))

    def to_frame(self) -> Any:
        """The points as a ``pandas.DataFrame``; wants pandas."""
        return to_pandas(list(map(asdict, self.points)), [field.name for field in fields(FrontierPoint)])

    def plot(self, **options: Any) -> Any:
        """Draw error against ``cost="nbytes"`` or ``"microseconds"``, on new axes or on ``ax``; wants matplotlib."""
        return registry.find(registry.DISPLAYS["frontier"]).from_frontier(self, **options)


def first_table_errors(table: BucketTable, rows: Batch, targets: Array, alpha: float, min_count: int) -> Array:
    """Leave-one-out error (T,) of the first 1, ..., T tables together, in standard deviations of ``targets`` (m, T).

    Of at most 2,048 of the rows, which the table holds; each is taken out of its buckets before they answer.
    """
    chosen = np.random.default_rng(0).permutation(len(rows))[:ROWS]
    X, Y, weights = (np.ascontiguousarray(part[chosen]) for part in (rows.X, rows.y, rows.row_weights()))
    layout = table.layout
    found = hashing.places(X, layout.hashes)
    ids, residual = table.index.find(found.keys), layout.residual(X, Y)
    share, scaled = weights / weights.sum(), targets[chosen] / layout.unit
    variance = np.maximum(share @ (scaled - share @ scaled) ** 2, SMALLEST)
    sums, total, errors = np.zeros(residual.shape), np.zeros(len(X)), []
    for t in range(layout.n_tables):
        own = BucketPlaces(found.Z, np.ascontiguousarray(found.V[:, [t % found.V.shape[1]]]), found.keys[:, [t]])
        values, behind = bucket_statistics.leave_one_out(
            own,
            np.ascontiguousarray(ids[:, [t]]),
            residual,
            weights,
            layout.degree,
            alpha,
            min_count,
            table.counts,
            table.sums,
        )
        sums, total = sums + behind[:, None] * values, total + behind
        left = residual - sums / np.where(total > 0, total, 1.0)[:, None]
        errors.append(np.sqrt((share @ left**2 / variance).mean()))
    return np.array(errors)


def sizes(compiled: CompiledModel, table: BucketTable) -> Iterator[tuple[int, int, TableChoice | None]]:
    """(stages, tables, choice) of each size: all tables of frozen stages, 1, 2, 4, ... of the last, and all."""
    for n_stages in range(1, len(compiled.tables)):
        yield n_stages, len(compiled.tables[n_stages - 1].hashes.seeds), None
    n_tables = table.layout.n_tables
    owners = _owners(table)
    for few in 2 ** np.arange((n_tables - 1).bit_length()):
        yield len(compiled.tables), int(few), TableChoice(int(few), (owners < few))
    yield len(compiled.tables), n_tables, None


def resized(compiled: CompiledModel, ends: Ends, n_stages: int, choice: TableChoice | None, dtype: Any) -> CompactModel:
    """A model of the first stages, and of the last one's tables that are chosen."""
    backup = compiled.backup if n_stages == len(compiled.tables) else None  # it stands in for the last stage
    return CompactModel.of(replace(compiled, tables=compiled.tables[:n_stages], backup=backup), ends, dtype, choice)


def microseconds(model: CompactModel, X: Array) -> float:
    """Least time for a row of a batch on one thread, of some repetitions."""
    model.values(X)
    took = []
    for _ in range(REPEATS):
        start = perf_counter()
        model.values(X)
        took.append(perf_counter() - start)
    return 1e6 * min(took) / len(X)


def typical_rows(table: BucketTable, columns: NDArray[np.int64] | None, n_columns: int) -> Array:
    """Rows (m, n_columns) at the mean positions of buckets, drawn by their counts."""
    hashes, counts = table.layout.hashes, table.counts.astype(np.float64)
    chosen = np.random.default_rng(0).choice(len(counts), ROWS, p=counts / counts.sum())
    rows = np.zeros((ROWS, n_columns))
    rows[:, slice(None) if columns is None else columns] = hashes.centre + mean_positions(
        table.sums, table.layout.n_local
    )[chosen] @ np.linalg.pinv(hashes.local)
    return rows


def _owners(table: BucketTable) -> NDArray[np.int64]:
    """Hash table (B,) of each bucket, or -1 where its key does not tell.

    A cell of a grid holds the mean position of its rows, which therefore has its key.
    """
    hashes, owners = table.layout.hashes, np.full(len(table.index), -1)
    if hashes.grid:
        p = hashes.local.shape[1]
        local = Hashes(np.zeros(p), np.eye(p), *hashes[2:])
        positions = mean_positions(table.sums, p)
        for start in range(0, len(owners), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            same = hashing.places(positions[part], local).keys == table.index.keys[part, None]
            owners[part] = np.where(same.any(axis=1), same.argmax(axis=1), -1)
    return owners
