"""The first pass over a table, in which every column is looked at, and what it decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import pyarrow as pa

from sparsact.datasets.columns import Classes, as_number
from sparsact.datasets.encoding import Encoding
from sparsact.datasets.parts import Parts, Place
from sparsact.datasets.survey import ColumnSurvey, TargetSurvey, UnfitError, numbers_note

MOST_VALUES = 1 << 24  # of a batch: an eighth of a gigabyte as float64


@dataclass
class TableSurvey:
    """Running summaries of the columns of a table, and the rows that they have seen."""

    parts: Parts
    surveys: list[ColumnSurvey]
    answers: list[TargetSurvey]
    batch_rows: int
    n_rows: int = 0

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
    ) -> TableSurvey:
        """A survey that has seen no row; see :func:`sparsact.datasets.open_table`.

        A table of very many columns is read in batches of fewer rows than asked for.
        """
        targets = resolve([target] if isinstance(target, str) else target, parts.names, "target")
        ignored = resolve(ignore, parts.names, "column")
        chosen = parts.names if columns is None else resolve(columns, parts.names, "column")
        features = [name for name in chosen if name not in {*targets, *ignored}]
        if not features:
            raise ValueError(
                "no column is left to learn from; a table needs one beside its targets and the ignored columns."
            )
        surveys = [ColumnSurvey(name, domain) for name in features]
        answers = [TargetSurvey(name, task) for name in targets]
        most = max(1, MOST_VALUES // (len(features) + len(targets)))
        return cls(parts, surveys, answers, min(batch_rows, most))

    @property
    def everything(self) -> list[ColumnSurvey | TargetSurvey]:
        """The targets first: what is wrong with them is told before all else."""
        return [*self.answers, *self.surveys]

    def batches(self, first_row: int = 0) -> Iterator[tuple[pa.RecordBatch, Place]]:
        """The columns that are looked at; from a row on at which a batch begins."""
        names = [survey.name for survey in self.everything]
        return self.parts.batches(names, self.batch_rows, first_row)

    def update(self, batch: pa.RecordBatch, place: Place) -> None:
        """Look at the next batch."""
        with place:
            for survey in self.everything:
                survey.update(batch.column(survey.name), place.row, place.file)
        self.n_rows = place.overall + batch.num_rows

    def encoding(self) -> Encoding:
        """How every column becomes bits or numbers.

        Raises
        ------
        ValueError
            If a column cannot, a target is constant, or there are no rows.
        """
        if self.n_rows == 0:
            raise ValueError(f"{self.parts.name} has no rows below its header; a table needs at least one.")
        return _decide(self.surveys, self.answers)

    def state(self) -> dict[str, Any]:
        """All that was seen, as JSON spells it."""
        return {
            "columns": [survey.state() for survey in self.everything],
            "lengths": list(self.parts.lengths),
            "n_rows": self.n_rows,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Have seen what another survey of the same columns had seen."""
        for survey, seen in zip(self.everything, state["columns"], strict=True):
            survey.restore(seen)
        self.parts.lengths[:] = state["lengths"]
        self.n_rows = int(state["n_rows"])


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


def resolve(wanted: Sequence[str], names: Sequence[str], role: str) -> list[str]:
    """Columns that the wanted names stand for, in the order asked."""
    found: list[str] = []
    for name in wanted:
        members = [name] if name in names else [column for column in names if _is_member(column, name)]
        if not members:
            raise ValueError(f"no {role} {name!r} in the table{close(name, names)}")
        found += [column for column in members if column not in found]
    return found


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
