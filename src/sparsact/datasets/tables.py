"""Tables on disk as batches of bits or numbers: a first pass decides the encoding, then batches stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets.columns import Points
from sparsact.datasets.encoding import Encoding
from sparsact.datasets.parts import Data, Parts
from sparsact.datasets.table_survey import TableSurvey, close
from sparsact.validation.former_names import renamed

BATCH_ROWS = 65536
OnRows = Callable[[int], object]


@dataclass(frozen=True)
class Table:
    r"""A table that has been looked at: its encoding, its length, and its rows as a stream.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "t.csv"
    >>> _ = path.write_text("genotype,colour,y\n010,red,0.5\n110,blue,1.5\n011,blue,1\n")
    >>> table = open_table(path, target="y")
    >>> table.feature_names
    ('genotype[0]', 'genotype[1]', 'genotype[2]', 'colour')
    >>> [(X.tolist(), y.tolist()) for X, y in table.batches()]
    [([[0, 1, 0, 1], [1, 1, 0, 0], [0, 1, 1, 0]], [0.5, 1.5, 1.0])]
    """

    parts: Parts
    encoding: Encoding
    n_rows: int | None
    batch_rows: int = BATCH_ROWS

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name of every column of X."""
        return self.encoding.feature_names

    def batches(self, first_row: int = 0) -> Iterator[tuple[Points, NDArray[np.float64]]]:
        """Points and targets, in the order of the file; from a row on at which a batch begins."""
        columns = [*self.encoding.source_columns, *self.encoding.target_names]
        for batch, place in self.parts.batches(columns, self.batch_rows, first_row):
            with place:
                X, y = self.encoding.points(batch, place.row), self.encoding.answers(batch, place.row)
            yield X, y

    def points(self) -> Iterator[Points]:
        """Points only, as a prediction needs them."""
        for batch, place in self.parts.batches(self.encoding.source_columns, self.batch_rows):
            with place:
                X = self.encoding.points(batch, place.row)
            yield X


@renamed(on_rows="progress")
def open_table(
    paths: Data,
    target: str | Sequence[str],
    columns: Sequence[str] | None = None,
    batch_rows: int = BATCH_ROWS,
    *,
    ignore: Sequence[str] = (),
    domain: str = "cube",
    task: str = "auto",
    strict: bool = False,
    progress: OnRows = lambda count: None,
) -> Table:
    """Look through a table once and decide how each column becomes bits.

    Parameters
    ----------
    paths : str or Path, or a sequence of them, or a table in memory
        A ``.csv``, ``.tsv`` (also ``.gz``), ``.parquet`` or ``.npz`` file; several files, or patterns such as
        ``"parts/*.parquet"``, are one table: see :func:`sparsact.datasets.files`. Or a pandas or polars DataFrame, or
        a ``pyarrow.Table``.
    target : str or sequence of str
        Column to learn, or several. In an NPZ file the name of a matrix stands for all of its columns.
    columns : sequence of str, optional
        Feature columns; default every column that is neither a target nor ignored.
    batch_rows : int
        Most rows of a batch.
    ignore : sequence of str
        Columns to leave out.
    domain : {"cube", "real", "auto"}
        ``"cube"`` refuses a column of numbers with more than two values; ``"real"`` uses it as it is; ``"auto"`` takes
        its mean off and divides by its standard deviation.
    task : {"auto", "regression", "classification"}
        ``"auto"`` learns classes where a target is text or boolean, else a number.
    strict : bool
        Refuse columns that would be left out, with a note in the encoding: identifiers (texts nearly all different,
        and row numbers in a column named so), and columns that repeat others. Always so where ``columns`` are named.
    progress : callable
        Told the number of rows of each batch that has been looked at.

    Returns
    -------
    table : Table
        Knows its columns and streams its rows.

    Raises
    ------
    ValueError
        If a column is missing, a value is missing or is not a bit, a target is constant, or there are no rows.
    """
    survey = TableSurvey.of(
        Parts.open(paths), target, columns, batch_rows, ignore=ignore, domain=domain, task=task, strict=strict
    )
    for batch, place in survey.batches():
        survey.update(batch, place)
        progress(batch.num_rows)
    return Table(survey.parts, survey.encoding(), survey.n_rows, survey.batch_rows)


def encoded_table(paths: Data, encoding: Encoding, batch_rows: int = BATCH_ROWS) -> Table:
    """A table read by an encoding made earlier; it may lack the targets (then only ``points`` streams).

    Parameters
    ----------
    paths : path-like or a sequence of them, or a table in memory
        The file, or files and patterns that make one table; or a DataFrame or ``pyarrow.Table``.
    encoding : Encoding
        That of the table which a model was fitted on.
    batch_rows : int
        Rows read at once.

    Returns
    -------
    table : Table
        Streams rows in that encoding.
    """
    source = Parts.open(paths)
    missing = [name for name in encoding.source_columns if name not in source.names]
    if missing:
        near = close(missing[0], source.names)
        raise ValueError(f"{source.name} has no column {missing[0]!r}, which the model needs{near}")
    return Table(source, encoding, source.n_rows, batch_rows)
