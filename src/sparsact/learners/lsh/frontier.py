"""Error, bytes and microseconds of a fitted LSH model with fewer tables, stages or digits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from time import perf_counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import hashing
from sparsact.kernels.hashing import Hashes
from sparsact.learners.lsh.bucket_table import ROWS_AT_ONCE, BucketTable
from sparsact.learners.lsh.compiled import CompiledModel, Directory, Precision, TableChoice
from sparsact.learners.lsh.fixed_part import FixedPart
from sparsact.learners.lsh.layout import Array
from sparsact.learners.lsh.nearest import mean_positions
from sparsact.learners.lsh.predict import TablePredictor
from sparsact.learners.lsh.prediction_limits import Ends
from sparsact.notebook import aligned, to_pandas
from sparsact.statistics.column_scales import SMALLEST, exponents_of
from sparsact.statistics.statistic import Batch

ROWS: Final = 2048  # that errors and times are measured on, at most
QUERIES: Final = 256  # rows that are timed one by one
REPEATS: Final = 5
DTYPES: Final[tuple[Precision, ...]] = ("float32", "float64")


@dataclass(frozen=True)
class FrontierPoint:
    """Error, memory and time of a fitted model at one size.

    Attributes
    ----------
    n_stages, n_tables : int
        Number of stages that are kept, from the first on, and number of hash tables in the last of them.
    dtype : str
        Type of the coefficients.
    error : float
        Root mean square error on held-out rows, in standard deviations of the target; NaN if it was not measured.
    nbytes : int
        Bytes of the predictor's arrays.
    microseconds, query_microseconds : float
        Time for a row of a batch on one thread, and for a single row in a call from Python, measured on this machine.

    Examples
    --------
    >>> from sparsact.learners import FrontierPoint
    >>> FrontierPoint(1, 16, "float32", error=0.1, nbytes=40_000, microseconds=0.2, query_microseconds=1.5).nbytes
    40000
    """

    n_stages: int
    n_tables: int
    dtype: Precision
    error: float
    nbytes: int
    microseconds: float
    query_microseconds: float


@dataclass(frozen=True)
class Frontier:
    """Sizes of one fitted model, smallest first; see :meth:`LSHRegressor.frontier`.

    Attributes
    ----------
    points : tuple of FrontierPoint
        The sizes to choose from; ``print(frontier)`` shows them as a table.

    Examples
    --------
    >>> from sparsact.learners import Frontier, FrontierPoint
    >>> small = FrontierPoint(1, 4, "float32", error=0.2, nbytes=10_000, microseconds=0.1, query_microseconds=1.0)
    >>> large = FrontierPoint(1, 16, "float32", error=0.1, nbytes=40_000, microseconds=0.2, query_microseconds=1.5)
    >>> Frontier((small, large)).best(max_microseconds=1.2).n_tables
    4
    >>> print(Frontier((small, large)))
    stages    dtype  tables  error   bytes  us per row in a batch  us for one row
    1       float32       4    0.2  10,000                    0.1               1
    1       float32      16    0.1  40,000                    0.2             1.5
    """

    points: tuple[FrontierPoint, ...]

    def __str__(self) -> str:
        lines = [["stages", "dtype", "tables", "error", "bytes", "us per row in a batch", "us for one row"]]
        for p in self.points:
            costs = (f"{number:.3g}" for number in (p.microseconds, p.query_microseconds))
            lines.append([str(p.n_stages), p.dtype, str(p.n_tables), f"{p.error:.3g}", f"{p.nbytes:,}", *costs])
        return "\n".join(aligned(lines))

    def best(self, *, max_bytes: float | None = None, max_microseconds: float | None = None) -> FrontierPoint:
        """The point with the least error within limits on bytes and on the time of one row; the smallest of equals."""
        most, slowest = (np.inf if limit is None else limit for limit in (max_bytes, max_microseconds))
        within = [point for point in self.points if point.nbytes <= most and point.query_microseconds <= slowest]
        if not within:
            raise ValueError(
                f"no size of this model is within max_bytes={max_bytes}, max_microseconds={max_microseconds}: the "
                f"smallest takes {min(p.nbytes for p in self.points):,} bytes, and the fastest takes "
                f"{min(p.query_microseconds for p in self.points):.2g} us for one row; raise the limits, or fit with a "
                "larger `bucket_width` or a lower `degree`."
            )
        return min(within, key=lambda point: (point.error, point.nbytes))

    def to_frame(self) -> Any:
        """The points as a ``pandas.DataFrame``; needs pandas."""
        return to_pandas(list(map(asdict, self.points)), [field.name for field in fields(FrontierPoint)])


def measured_sizes(
    as_now: TablePredictor, dtypes: Sequence[Precision], held_out: Batch | None, table_errors: Array | None
) -> Frontier:
    """Cost and error of every size of a model, at held-out rows if given, else at rows that the fit left out.

    ``table_errors`` are the errors of the first 1, 2, ... tables at these rows; None if they were not measured.
    """
    ends = replace(as_now.shipped_ends(), beyond="clip", start=None, refuses=False)  # every row has a value
    if held_out is None:
        rows = _typical_rows(as_now.table, as_now.fixed)
    else:
        chosen = np.random.default_rng(0).permutation(len(held_out))[:ROWS]
        held_out = Batch(held_out.X[chosen], held_out.y[chosen], None)
        rows = held_out.X
    points = []
    for n_stages, n_tables, choice in _sizes(as_now):
        for dtype in dtypes:
            model = as_now.model.compact(dtype, n_stages, choice)
            if held_out is not None:
                error = _error(model.values(held_out.X, ends), held_out.y)
            elif n_stages <= len(as_now.fixed.stages):
                error = as_now.fixed.stages[n_stages - 1].error
            else:
                error = float("nan") if table_errors is None else float(table_errors[n_tables - 1])
            n_bytes = model.nbytes + ends.nbytes
            batch = least_microseconds(partial(model.values, rows, ends), len(rows))
            row = model.row(ends, rows.shape[1]) if as_now.takes_plain_rows else None
            few = rows[:QUERIES]
            query = least_microseconds(partial(_one_by_one, model, ends, few, row), len(few))
            points.append(FrontierPoint(n_stages, n_tables, dtype, error, n_bytes, batch, query))
    return Frontier(tuple(sorted(points, key=lambda point: point.nbytes)))


def model_of(point: FrontierPoint, as_now: TablePredictor) -> CompiledModel[Directory]:
    """The model of the size of a point of the frontier."""
    sizes = _sizes(as_now)
    chosen = next(choice for *size, choice in sizes if size == [point.n_stages, point.n_tables])
    return as_now.model.compact(point.dtype, point.n_stages, chosen)


def _sizes(as_now: TablePredictor) -> Iterator[tuple[int, int, TableChoice | None]]:
    """(stages, tables, choice) of each size: all tables of fixed stages, 1, 2, 4, ... of the last, and all."""
    *stages, last = as_now.model.tables
    for place, stage in enumerate(stages):
        yield place + 1, len(stage.hashes.seeds), None
    n_tables, owners = len(last.hashes.seeds), _owners(as_now.table)
    for few in 2 ** np.arange((n_tables - 1).bit_length()):
        yield len(stages) + 1, int(few), TableChoice(int(few), (owners < few))
    yield len(stages) + 1, n_tables, None


def _error(values: Array, y: Array) -> float:
    """Root mean square error in standard deviations of the targets."""
    exponents = -exponents_of(y)
    values, y = np.ldexp(values, exponents), np.ldexp(y, exponents)
    return float(np.sqrt(np.mean((values - y) ** 2 / np.maximum(y.var(axis=0), SMALLEST))))


def least_microseconds(call: Callable[[], object], n_rows: int) -> float:
    """Least time of a call for each of its rows, of some repetitions."""
    took = []
    for _ in range(REPEATS):
        start = perf_counter()
        call()
        took.append(perf_counter() - start)
    return 1e6 * min(took) / n_rows


def _one_by_one(
    model: CompiledModel[Directory], ends: Ends, X: Array, row: Callable[[Any], float | None] | None
) -> None:
    """Ask for the value at every row alone, by the function of one row if there is one."""
    for x in X:
        if row is None or row(x) is None:
            model.values(x[None], ends)


def _typical_rows(table: BucketTable, fixed: FixedPart) -> Array:
    """Encoded rows at the mean positions of buckets, drawn by their counts."""
    hashes, counts = table.layout.hashes, table.counts.astype(np.float64)
    chosen = np.random.default_rng(0).choice(len(counts), ROWS, p=counts / counts.sum())
    rows = np.zeros((ROWS, fixed.n_columns))
    rows[:, slice(None) if fixed.columns is None else fixed.columns] = hashes.centre + mean_positions(
        table.sums, table.layout.n_local
    )[chosen] @ np.linalg.pinv(hashes.local)
    return rows


def _owners(table: BucketTable) -> NDArray[np.int64]:
    """Hash table (B,) of each bucket, or -1 where its key does not say.

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
