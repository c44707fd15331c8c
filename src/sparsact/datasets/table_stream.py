"""Tables as batches of bits or numbers: a first pass decides the encoding, then batches stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets.cell_values import listed
from sparsact.datasets.column_survey import MAX_CATEGORIES, ColumnSurvey, IdentifierError, UnfitError
from sparsact.datasets.columns import Bit, Classes, Column, Encoding, OneHot, Points, Real
from sparsact.datasets.repeated_columns import aliases, column_notes, without_constants
from sparsact.datasets.side_columns import SideColumns, without_side_columns
from sparsact.datasets.sites import BitString, LetterString, Mutations
from sparsact.datasets.table_files import BATCH_ROWS, Data, Parts, PlacedRows, did_you_mean, resolve, resolve_patterns
from sparsact.datasets.targets import TargetSurvey
from sparsact.datasets.value_counts import MODULUS, MOST_ROWS, RowNumbers
from sparsact.datasets.wild_type import wild_letters

if TYPE_CHECKING:  # checks of arrays bring SciPy, which many users of the data sets need not load
    from sparsact.saving.schema import Arrays, State

MOST_TEXTS: Final = 4096  # of a column, by which it is judged whether texts are identifiers
MOST_TEXTS_OF_ALL: Final = 1 << 22  # of all columns
MOST_VALUES: Final = 1 << 24  # of a batch: an eighth of a gigabyte as float64


@dataclass
class TableSurvey:
    """Running summaries of the columns of a table, and the rows that they have seen.

    ``strict`` refuses columns that would be left out; ``named`` are columns that the caller named in full, which are
    left out for repeating others only; ``given`` is an encoding that stands, so that only targets are looked at.
    """

    parts: Parts
    surveys: list[ColumnSurvey]
    answers: list[TargetSurvey]
    batch_rows: int
    strict: bool = False
    named: frozenset[str] = frozenset()
    n_rows: int = 0
    digest: int = 0  # of all rows
    given: Encoding | None = None

    @classmethod
    def of(
        cls,
        parts: Parts,
        target: str | Sequence[str],
        columns: Sequence[str] | None,
        batch_rows: int = BATCH_ROWS,
        *,
        ignore: Sequence[str] = (),
        domain: str = "cube",
        task: str = "auto",
        strict: bool = False,
        encoding: Encoding | None = None,
        wild_type: str | None = None,
        keep_missing: bool = False,
    ) -> TableSurvey:
        """A survey that has seen no row; see :func:`sparsact.datasets.open_table`.

        With an encoding only the targets are looked at. ``keep_missing`` lets features lack values. A table of very
        many columns is read in batches of fewer rows than asked for.
        """
        targets = resolve([target] if isinstance(target, str) else target, parts.names, "target")
        in_full: Sequence[str] = ()
        if encoding is not None:
            if tuple(targets) != encoding.target_names:
                named = ", ".join(encoding.target_names)
                raise ValueError(
                    f"the encoding was learned for target {named}, not {', '.join(targets)}; fit that target, or "
                    "leave out the encoding."
                )
            features = resolve(encoding.source_columns, parts.names, "column")
            task = "regression" if isinstance(encoding.targets[0], Real) else "classification"
        else:
            others = {*targets, *resolve_patterns(ignore, parts.names)[0]}
            chosen, in_full = (parts.names, ()) if columns is None else resolve_patterns(columns, parts.names)
            features = [name for name in chosen if name not in others]
        if not features:
            raise ValueError(
                "no column is left to learn from; a table needs one besides the targets and ignored columns."
            )
        most_texts = max(MAX_CATEGORIES, min(MOST_TEXTS, MOST_TEXTS_OF_ALL // len(features)))
        surveys = [
            ColumnSurvey(name, domain, most_texts, wild_type=wild_type, keep_missing=keep_missing)
            for name in (features if encoding is None else ())
        ]
        answers = [TargetSurvey(name, task) for name in targets]
        most = min(batch_rows, max(1, min(MOST_ROWS, MOST_VALUES // (len(features) + len(targets)))))
        return cls(parts, surveys, answers, most, strict, frozenset(in_full), given=encoding)

    @property
    def everything(self) -> list[ColumnSurvey | TargetSurvey]:
        """The targets first: what is wrong with them is reported first."""
        return [*self.answers, *self.surveys]

    def batches(self, first_row: int = 0) -> Iterator[PlacedRows]:
        """The columns that are looked at; from a row on at which a batch begins."""
        return self.parts.batches([survey.name for survey in self.everything], self.batch_rows, first_row)

    def add(self, batch: PlacedRows) -> None:
        """Look at the next batch."""
        rows = RowNumbers.of(batch.overall, len(batch))
        columns = dict(zip(batch.columns.schema.names, batch.columns.columns, strict=True))
        with batch:
            for answer in self.answers:
                answer.update(columns[answer.name], batch.row)
            for survey in self.surveys:
                survey.update(columns[survey.name], batch.row, batch.file, batch.overall, rows)
        self.digest = (self.digest + int(rows.numbers.sum())) % MODULUS
        self.n_rows = batch.overall + len(batch)

    def encoding(self) -> Encoding:
        """How every column becomes bits or numbers."""
        if self.n_rows == 0:
            raise ValueError(f"{self.parts.name} has no rows below its header; a table needs at least one.")
        if self.given is not None:
            for answer in self.answers:
                answer.column()  # refuses a constant
            return self.given
        sides = SideColumns(self.surveys, [answer.name for answer in self.answers], self.n_rows)
        weighted = bool(self.answers[0].numeric)
        surveys, notes = without_side_columns(sides, self.named, strict=self.strict, weighted=weighted)
        found = replace(self, surveys=surveys)._decide()
        return replace(found, notes=(*notes, *found.notes))

    def state(self) -> tuple[State, Arrays]:
        """Return all that was seen as JSON; there are no arrays."""
        state = {
            "columns": [survey.state() for survey in self.everything],
            "lengths": list(self.parts.lengths),
            "n_rows": self.n_rows,
            "digest": str(self.digest),
        }
        return state, {}

    def restore(self, state: State, arrays: Arrays) -> None:
        """Restore the survey of the same columns from a saved state."""
        for survey, seen in zip(self.everything, state["columns"], strict=True):
            survey.restore(seen)
        self.parts.lengths[:] = state["lengths"]
        self.n_rows, self.digest = int(state["n_rows"]), int(state["digest"])

    def _decide(self) -> Encoding:
        targets = tuple(answer.column() for answer in self.answers)
        if len(targets) > 1 and any(isinstance(target, Classes) for target in targets):
            raise ValueError("several targets must all be numbers; fit classes one target at a time.")
        found, left_out = self._columns()
        columns = [first for first, *_ in found]
        wild = {survey.name: survey.wild_type for survey in self.surveys if survey.wild_type is not None}
        letters = {column.name: wild_letters(column, wild.get(column.name)) for column in columns if wild}
        odd: list[str] = []
        if wild and not any(isinstance(one, LetterString | Mutations) for one in columns):
            odd = [f"column {one.name!r}: {why}" for one in self.surveys if (why := one.odd_rows())]
        if wild and (odd or not any(map(any, letters.values()))):
            why = odd[0] if odd else "leave it out"
            raise ValueError(f"a wild type is given, but no column holds sequences or mutations; {why}.")
        surveys = [survey for survey in self.surveys if survey.name not in left_out]
        repeated = aliases(columns, surveys, self.digest)
        if repeated and self.strict:
            raise UnfitError(repeated[0].name, f" repeats {', '.join(repeated[0].repeats)}")
        alone = {survey.name for survey in self.surveys if len(survey.values) + survey.lacking == 1}
        one_value = [column for column in columns if isinstance(column, Bit | BitString | OneHot)]
        constant = [column.name for column in one_value if column.name in alone]
        if constant and self.strict:
            raise UnfitError(constant[0], " is the same in every row")
        useless = len(constant) == len(columns)
        gone = {*(() if useless else constant), *(alias.name for alias in repeated)}
        kept = tuple(column for several in found for column in several if column.name not in gone)
        notes = [note for answer in self.answers for note in answer.notes]
        notes += [f"left out, since it{error.fact}: {listed([name])}." for name, error in left_out.items()]
        if repeated:
            notes.append(f"left out, since other columns are equal or opposite: {listed(list(map(str, repeated)))}.")
        notes += column_notes([column for column in kept if column.name not in alone], self.surveys[0].domain)
        names = {column.name for column in kept if isinstance(column, OneHot)}
        slips = ((one.name, one.odd_rows()) for one in self.surveys if one.name in names)
        notes += [f"{name} is not read as sequences: {why}." for name, why in slips if why]
        for column, survey in zip(columns, surveys, strict=True):
            if column in kept and isinstance(column, LetterString | Mutations):
                notes += survey.words.notes(column, survey.wild_type)
        if constant:
            what = "nothing can be learned from columns that are" if useless else "left out, since they are"
            notes.append(f"{what} the same in every row: {listed(constant)}.")
        encoding = Encoding(kept, targets, tuple(notes))
        reference = [letter for column in kept for letter in letters.get(column.name, ())]
        return replace(encoding, reference=tuple(reference) if any(reference) and not encoding.real else ())

    def _columns(self) -> tuple[list[list[Column]], dict[str, UnfitError]]:
        """What the columns become, and identifiers to leave out; any other unfit column is refused."""
        columns: list[list[Column]] = []
        unfit: dict[str, UnfitError] = {}
        for survey in self.surveys:
            try:
                first, *marks = survey.columns(self.n_rows)
                columns.append([without_constants(first, survey, self.digest), *marks])
            except UnfitError as error:
                unfit[survey.name] = error
        if not columns and not self.strict:
            raise ValueError(f"no column is left to learn from: {self._why_none(list(unfit.values()))}")
        may_go = {name for name, error in unfit.items() if isinstance(error, IdentifierError)} - self.named
        refused = [error for name, error in unfit.items() if self.strict or name not in may_go]
        if refused:
            others = ", ".join(repr(error.name) for error in refused[1:])
            raise ValueError(f"{refused[0]}" + (f" (The same holds for {others}.)" if others else ""))
        return columns, unfit

    def _why_none(self, unfit: Sequence[UnfitError]) -> str:
        """Why no column is fit, by the first of them."""
        survey = next(survey for survey in self.surveys if survey.name == unfit[0].name)
        if survey.words.odd and not survey.odd_rows(few=False):
            return f"column {survey.name!r}, {survey.words.odd}; a sequence needs a letter at each site in every row."
        if not survey.letters or not isinstance(unfit[0], IdentifierError):
            return str(unfit[0])
        fact = f"column {survey.name!r}{unfit[0].fact}"
        return f"{fact}; if its texts are sequences, write each of their {survey.letters} letters in its own column."


@dataclass(frozen=True)
class Table:
    r"""A table after its first pass: its encoding, its number of rows, and its rows as a stream.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "t.csv"
    >>> _ = path.write_text("genotype,colour,y\n010,red,0.5\n110,blue,1.5\n001,blue,1\n")
    >>> table = open_table(path, target="y")
    >>> table.feature_names
    ('genotype[1]', 'genotype[2]', 'genotype[3]', 'colour')
    >>> [(X.tolist(), y.tolist()) for X, y in table.batches()]
    [([[0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 0]], [0.5, 1.5, 1.0])]
    """

    parts: Parts
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
        for batch in self.parts.batches(columns, self.batch_rows):
            with batch:
                X, y = self.encoding.points(batch), self.encoding.answers(batch)
            yield X, y

    def points(self) -> Iterator[Points]:
        """Points only, as a prediction needs them."""
        for batch in self.parts.batches(self.encoding.source_columns, self.batch_rows):
            with batch:
                X = self.encoding.points(batch)
            yield X


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
) -> Table:
    """Look through a table once and decide how each column becomes bits.

    Parameters
    ----------
    paths : str or Path, or a sequence of them, or a table in memory
        As the ``data`` of :func:`sparsact.fit_table`.
    target : str or sequence of str
        Column to learn, or several. In an NPZ file the name of a matrix stands for all of its columns.
    columns : sequence of str, optional
        Feature columns, lists of them with commas, or patterns such as ``"s*"``; default every column that is neither a
        target nor ignored.
    batch_rows : int
        Most rows of a batch.
    ignore : sequence of str
        Columns to leave out, spelled as ``columns``.
    domain : {"cube", "real", "auto"}
        ``"cube"`` refuses a column of numbers with more than two values; ``"real"`` uses it as it is; ``"auto"`` takes
        its mean off and divides by its standard deviation.
    task : {"auto", "regression", "classification"}
        ``"auto"`` learns classes where a target is text or boolean, else a number.
    strict : bool
        Refuse columns that would be left out, with a note in the encoding: identifiers (texts nearly all different,
        and row numbers in a column named so), columns that repeat others, and columns that look like counts, errors,
        splits or plates. Columns that ``columns`` names in full are never left out.

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
    for batch in survey.batches():
        survey.add(batch)
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
        near = did_you_mean(missing[0], source.names)
        raise ValueError(f"{source.name} has no column {missing[0]!r}, which the model needs{near}")
    return Table(source, encoding, source.n_rows, batch_rows)
