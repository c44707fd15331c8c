"""The first pass over a table: what every column and every target holds, and what follows for the encoding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparsact.datasets.columns import Bit, Classes, Column, Real, numbers, refuse_missing
from sparsact.datasets.encoding import Encoding
from sparsact.datasets.parts import Parts, Place
from sparsact.datasets.related_columns import aliases
from sparsact.datasets.row_digests import MODULUS, MOST_ROWS, RowNumbers
from sparsact.datasets.spelling import as_number, identities, is_infinite, spelling
from sparsact.datasets.survey import (
    MAX_CATEGORIES,
    ColumnSurvey,
    IdentifierError,
    UnfitError,
    column_note,
    in_order,
    listed,
    numbers_note,
    texts_of,
)


@dataclass
class TargetSurvey:
    """Running summary of a target column."""

    name: str
    task: str = "auto"
    low: float = np.inf
    high: float = -np.inf
    classes: set[str] = field(default_factory=set)  # as spelled
    numeric: bool | None = None  # decided by the first row

    def update(self, array: pa.Array, first_row: int) -> None:
        """Add the next piece of the column."""
        refuse_missing(array, self.name, first_row)
        if not len(array):
            return
        if self.numeric is None:
            self.numeric = self.task != "classification" and self._is_number(array)
        if self.numeric:
            values = numbers(array, self.name, first_row)
            self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
        else:
            self._see_classes(array)

    def _is_number(self, array: pa.Array) -> bool:
        text = spelling(array[0].as_py())
        return self.task == "regression" or as_number(text) is not None or is_infinite(text)

    def _see_classes(self, array: pa.Array) -> None:
        for text in texts_of(pc.unique(array)):
            self.classes.add(text)
            if len(self.classes) > MAX_CATEGORIES:
                raise ValueError(
                    f"target {self.name!r} holds more than {MAX_CATEGORIES} classes; "
                    "choose a target with fewer, or --task regression if it is a number."
                )

    def state(self) -> dict[str, Any]:
        """All that was seen, as JSON spells it."""
        return {
            "low": float.hex(self.low),
            "high": float.hex(self.high),
            "classes": sorted(self.classes),
            "numeric": self.numeric,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Have seen what another survey of the column had seen."""
        self.low, self.high = float.fromhex(state["low"]), float.fromhex(state["high"])
        self.classes, self.numeric = set(state["classes"]), state["numeric"]

    def column(self) -> Real | Classes:
        """The kind of target; a constant one is refused."""
        classes = set(identities(self.classes).values())
        constant = self.low == self.high if self.numeric else len(classes) == 1
        if constant:
            value = f"{self.low:g}" if self.numeric else next(iter(classes))
            raise ValueError(f"target {self.name!r} is constant ({value} in every row): there is nothing to learn.")
        return Real(self.name) if self.numeric else Classes(self.name, tuple(in_order(classes)))


MOST_TEXTS = 4096  # of a column, by which it is judged whether texts are identifiers
MOST_TEXTS_OF_ALL = 1 << 22  # of all columns
MOST_VALUES = 1 << 24  # of a batch: an eighth of a gigabyte as float64


@dataclass
class TableSurvey:
    """Running summaries of the columns of a table, and the rows that they have seen.

    ``strict`` refuses columns that would be left out; ``named`` are columns that were asked for one by one, of which
    none is left out as an identifier; ``given`` is an encoding that stands, so that only targets are looked at.
    """

    parts: Parts
    surveys: list[ColumnSurvey]
    answers: list[TargetSurvey]
    batch_rows: int
    strict: bool = False
    named: bool = False
    n_rows: int = 0
    digest: int = 0  # of all rows
    given: Encoding | None = None

    @classmethod
    def of(
        cls,
        parts: Parts,
        target: str | Sequence[str],
        columns: Sequence[str] | None,
        batch_rows: int,
        *,
        ignore: Sequence[str] = (),
        domain: str = "cube",
        task: str = "auto",
        strict: bool = False,
        encoding: Encoding | None = None,
    ) -> TableSurvey:
        """A survey that has seen no row; see :func:`sparsact.datasets.open_table`.

        With an encoding only the targets are looked at. A table of very many columns is read in batches of fewer rows
        than asked for.
        """
        targets = resolve([target] if isinstance(target, str) else target, parts.names, "target")
        if encoding is not None:
            if tuple(targets) != encoding.target_names:
                named = ", ".join(encoding.target_names)
                raise ValueError(
                    f"the encoding is of target {named}, not {', '.join(targets)}; learn that, or leave it out."
                )
            resolve(encoding.source_columns, parts.names, "column")
            task = "regression" if isinstance(encoding.targets[0], Real) else "classification"
            most = _most_rows(batch_rows, len(encoding.source_columns) + len(targets))
            return cls(parts, [], [TargetSurvey(name, task) for name in targets], most, given=encoding)
        ignored = resolve(ignore, parts.names, "column")
        chosen = parts.names if columns is None else resolve(columns, parts.names, "column")
        others = {*targets, *ignored}
        features = [name for name in chosen if name not in others]
        if not features:
            raise ValueError(
                "no column is left to learn from; a table needs one besides its targets and the ignored columns."
            )
        most_texts = max(MAX_CATEGORIES, min(MOST_TEXTS, MOST_TEXTS_OF_ALL // len(features)))
        surveys = [ColumnSurvey(name, domain, most_texts) for name in features]
        answers = [TargetSurvey(name, task) for name in targets]
        most = _most_rows(batch_rows, len(features) + len(targets))
        return cls(parts, surveys, answers, most, strict, columns is not None)

    @property
    def everything(self) -> list[ColumnSurvey | TargetSurvey]:
        """The targets first: what is wrong with them is reported first."""
        return [*self.answers, *self.surveys]

    def batches(self, first_row: int = 0) -> Iterator[tuple[pa.RecordBatch, Place]]:
        """The columns that are looked at; from a row on at which a batch begins."""
        names = [survey.name for survey in self.everything]
        return self.parts.batches(names, self.batch_rows, first_row)

    def update(self, batch: pa.RecordBatch, place: Place) -> None:
        """Look at the next batch."""
        rows = RowNumbers.of(place.overall, batch.num_rows)
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        with place:
            for answer in self.answers:
                answer.update(columns[answer.name], place.row)
            for survey in self.surveys:
                survey.update(columns[survey.name], place.row, place.file, place.overall, rows)
        self.digest = (self.digest + int(rows.numbers.sum())) % MODULUS
        self.n_rows = place.overall + batch.num_rows

    def add(self, batch: pa.RecordBatch, place: Place, first: int) -> None:
        """Look at the next batch, as a pass over the rows hands it over."""
        self.update(batch, place)

    def encoding(self) -> Encoding:
        """How every column becomes bits or numbers."""
        if self.n_rows == 0:
            raise ValueError(f"{self.parts.name} has no rows below its header; a table needs at least one.")
        if self.given is not None:
            for answer in self.answers:
                answer.column()  # refuses a constant
            return self.given
        return self._decide()

    def state(self, arrays: dict[str, Any]) -> dict[str, Any]:
        """All that was seen, as JSON spells it; no arrays."""
        return {
            "columns": [survey.state() for survey in self.everything],
            "lengths": list(self.parts.lengths),
            "n_rows": self.n_rows,
            "digest": str(self.digest),
        }

    def restore(self, state: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Have seen what another survey of the same columns had seen."""
        for survey, seen in zip(self.everything, state["columns"], strict=True):
            survey.restore(seen)
        self.parts.lengths[:] = state["lengths"]
        self.n_rows, self.digest = int(state["n_rows"]), int(state["digest"])

    def _decide(self) -> Encoding:
        targets = tuple(answer.column() for answer in self.answers)
        if len(targets) > 1 and any(isinstance(target, Classes) for target in targets):
            raise ValueError("several targets must all be numbers; learn classes one target at a time.")
        columns, left_out = self._columns()
        repeated = aliases(columns, [survey for survey in self.surveys if survey.name not in left_out], self.digest)
        if repeated and self.strict:
            raise UnfitError(repeated[0].name, f" repeats {', '.join(repeated[0].repeats)}")
        gone = {alias.name for alias in repeated}
        kept = tuple(column for column in columns if column.name not in gone)
        alone = {survey.name for survey in self.surveys if len(survey.values) == 1}
        constant = [column.name for column in kept if isinstance(column, Bit) and column.name in alone]
        notes = [f"left out, since it{error.fact}: {listed([name])}." for name, error in left_out.items()]
        if repeated:
            notes.append(
                f"left out, since other columns hold the same or its opposite: {listed(list(map(str, repeated)))}."
            )
        notes += numbers_note(kept, self.surveys[0].domain)
        notes += [note for column in kept if column.name not in alone and (note := column_note(column))]
        if constant:
            notes.append(f"the same in every row, kept as constant bits: {listed(constant)}.")
        return Encoding(kept, targets, tuple(notes))

    def _columns(self) -> tuple[list[Column], dict[str, UnfitError]]:
        """What the columns become, and identifiers to leave out; any other unfit column is refused."""
        columns: list[Column] = []
        unfit: dict[str, UnfitError] = {}
        for survey in self.surveys:
            try:
                columns.append(survey.column(self.n_rows))
            except UnfitError as error:
                unfit[survey.name] = error
        if not columns and not self.strict:
            raise ValueError(f"no column is left to learn from: {self._why_none(list(unfit.values()))}")
        keep_error = self.strict or self.named
        refused = [error for error in unfit.values() if keep_error or not isinstance(error, IdentifierError)]
        if refused:
            others = ", ".join(repr(error.name) for error in refused[1:])
            raise ValueError(f"{refused[0]}" + (f" (The same holds for {others}.)" if others else ""))
        return columns, unfit

    def _why_none(self, unfit: Sequence[UnfitError]) -> str:
        """Why no column is fit, by the first of them."""
        survey = next(survey for survey in self.surveys if survey.name == unfit[0].name)
        if not survey.letters or not isinstance(unfit[0], IdentifierError):
            return str(unfit[0])
        fact = f"column {survey.name!r}{unfit[0].fact}"
        return f"{fact}; if its texts are sequences, give each of their {survey.letters} letters a column of its own."


def _most_rows(batch_rows: int, n_columns: int) -> int:
    return min(batch_rows, max(1, min(MOST_ROWS, MOST_VALUES // n_columns)))


def resolve(wanted: Sequence[str], names: Sequence[str], role: str) -> list[str]:
    """Columns that the wanted names stand for, in the order asked."""
    there = set(names)
    found: dict[str, None] = {}
    for name in wanted:
        members = [name] if name in there else [column for column in names if _is_member(column, name)]
        if not members:
            raise ValueError(f"no {role} {name!r} in the table{close(name, names)}")
        found |= dict.fromkeys(members)
    return list(found)


def _is_member(column: str, array: str) -> bool:
    return column.startswith(f"{array}[") and column.endswith("]") and column[len(array) + 1 : -1].isdigit()


def close(name: str, names: Sequence[str]) -> str:
    """The end of a message about a name that is not there: what may be meant."""
    if all(as_number(column) is not None for column in names):
        return f"; its first row holds numbers ({', '.join(names[:3])}, ...) where names are due: add a row of names."
    if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
        return f"; its only column is {names[0]!r}: separate columns by commas, or by tabs in a file named .tsv."
    nearest = get_close_matches(name, names, n=3, cutoff=0.5)
    if nearest:
        return f"; did you mean {' or '.join(map(repr, nearest))}?"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"; its columns are {shown}."
