"""Tables on disk as batches of bits or numbers: a first pass decides the encoding, then batches stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparsact.datasets.columns import Classes, Points, as_number
from sparsact.datasets.encoding import Encoding
from sparsact.datasets.sources import DAMAGE, Source, one_line, open_source
from sparsact.datasets.survey import ColumnSurvey, TargetSurvey, UnfitError, numbers_note

BATCH_ROWS = 65536
OnRows = Callable[[int], object]


@dataclass(frozen=True)
class Table:
    r"""A table that has been looked at: its encoding, its length, and its rows as a stream.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "t.csv"
    >>> _ = path.write_text("genotype,colour,y\n010,red,0.5\n110,blue,1.5\n")
    >>> table = open_table(path, target="y")
    >>> table.feature_names
    ('genotype[0]', 'genotype[1]', 'genotype[2]', 'colour')
    >>> [(X.tolist(), y.tolist()) for X, y in table.batches()]
    [([[0, 1, 0, 1], [1, 1, 0, 0]], [0.5, 1.5])]
    """

    source: Source
    encoding: Encoding
    n_rows: int | None
    batch_rows: int = BATCH_ROWS

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name of every column of X."""
        return self.encoding.feature_names

    def batches(self) -> Iterator[tuple[Points, NDArray[np.float64]]]:
        """Points and targets, in the order of the file."""
        columns = [*self.encoding.source_columns, *self.encoding.target_names]
        for batch, first_row in _rows(self.source, columns, self.batch_rows):
            yield self.encoding.points(batch, first_row), self.encoding.answers(batch, first_row)

    def points(self) -> Iterator[Points]:
        """Points only, as a prediction needs them."""
        for batch, first_row in _rows(self.source, self.encoding.source_columns, self.batch_rows):
            yield self.encoding.points(batch, first_row)


def open_table(
    path: str | Path,
    target: str | Sequence[str],
    columns: Sequence[str] | None = None,
    batch_rows: int = BATCH_ROWS,
    *,
    ignore: Sequence[str] = (),
    domain: str = "cube",
    task: str = "auto",
    on_rows: OnRows = lambda count: None,
) -> Table:
    """Look through a table once and decide how each column becomes bits.

    Parameters
    ----------
    path : str or Path
        A ``.csv``, ``.tsv`` (also ``.gz``), ``.parquet`` or ``.npz`` file.
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
    on_rows : callable
        Told the number of rows of each batch that has been looked at.

    Raises
    ------
    ValueError
        If a column is missing, a value is missing or is not a bit, a target is constant, or there are no rows.
    """
    source = open_source(path)
    targets = _resolve([target] if isinstance(target, str) else target, source.names, "target")
    ignored = _resolve(ignore, source.names, "column")
    chosen = source.names if columns is None else _resolve(columns, source.names, "column")
    features = [name for name in chosen if name not in {*targets, *ignored}]
    if not features:
        raise ValueError(
            "no column is left to learn from; a table needs one beside its targets and the ignored columns."
        )
    surveys = [ColumnSurvey(name, domain) for name in features]
    answers = [TargetSurvey(name, task) for name in targets]
    everything: list[ColumnSurvey | TargetSurvey] = [*answers, *surveys]
    n_rows = 0
    for batch, first_row in _rows(source, [*features, *targets], batch_rows):
        for survey in everything:
            survey.update(batch.column(survey.name), first_row)
        n_rows = first_row + batch.num_rows
        on_rows(batch.num_rows)
    if n_rows == 0:
        raise ValueError(f"{Path(path).name} has no rows below its header; a table needs at least one.")
    return Table(source, _decide(surveys, answers), n_rows, batch_rows)


def encoded_table(path: str | Path, encoding: Encoding, batch_rows: int = BATCH_ROWS) -> Table:
    """A table read by an encoding made earlier; it may lack the targets (then only ``points`` streams)."""
    source = open_source(path)
    missing = [name for name in encoding.source_columns if name not in source.names]
    if missing:
        near = _close(missing[0], source.names)
        raise ValueError(f"{Path(path).name} has no column {missing[0]!r}, which the model needs{near}")
    return Table(source, encoding, source.n_rows, batch_rows)


def _decide(surveys: list[ColumnSurvey], answers: list[TargetSurvey]) -> Encoding:
    kept, unfit = [], []
    targets = tuple(answer.column() for answer in answers)
    if len(targets) > 1 and any(isinstance(target, Classes) for target in targets):
        raise ValueError("several targets must all be numbers; learn classes one target at a time.")
    for survey in surveys:
        try:
            kept.append(survey.column())
        except UnfitError as error:
            unfit.append(error)
    if unfit:
        others = ", ".join(repr(error.name) for error in unfit[1:])
        more = f" (The same holds for {others}.)" if others else ""
        raise ValueError(f"{unfit[0]}{more}")
    constant = [survey.name for survey in surveys if len(survey.values) == 1 and not survey.width]
    notes = [note for survey in surveys if survey.name not in constant and (note := survey.note())]
    if constant:
        notes.append(f"the same in every row, kept as constant bits: {', '.join(constant)}.")
    return Encoding(tuple(kept), targets, (*numbers_note(kept, surveys[0].domain), *notes))


def _rows(source: Source, columns: Sequence[str], batch_rows: int) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Batches with the number of rows before each."""
    first_row = 0
    batches = source.batches(list(dict.fromkeys(columns)), batch_rows)
    while True:
        try:
            batch = next(batches, None)
        except DAMAGE as error:
            remedy = (
                "; correct the file." if isinstance(error, pa.ArrowInvalid) or not isinstance(error, ValueError) else ""
            )
            raise ValueError(f"{source.path.name}, after row {first_row}: {one_line(error)}{remedy}") from error
        if batch is None:
            return
        yield batch, first_row
        first_row += batch.num_rows


def _resolve(wanted: Sequence[str], names: Sequence[str], role: str) -> list[str]:
    """Columns that the wanted names stand for, in the order asked."""
    found: list[str] = []
    for name in wanted:
        members = [name] if name in names else [column for column in names if _is_member(column, name)]
        if not members:
            raise ValueError(f"no {role} {name!r} in the table{_close(name, names)}")
        found += [column for column in members if column not in found]
    return found


def _is_member(column: str, array: str) -> bool:
    return column.startswith(f"{array}[") and column.endswith("]") and column[len(array) + 1 : -1].isdigit()


def _close(name: str, names: Sequence[str]) -> str:
    if all(as_number(column) is not None for column in names):
        return f"; its first row holds numbers ({', '.join(names[:3])}, ...) where names are due: add a row of names."
    nearest = get_close_matches(name, names, n=3, cutoff=0.5)
    if nearest:
        return f"; did you mean {' or '.join(map(repr, nearest))}?"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"; its columns are {shown}."
