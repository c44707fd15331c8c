"""The beginning of a fit: its files, whether an earlier run has done some of it, and the first pass over the rows."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sparsact.cli.fitting.resumption import Resumption
from sparsact.cli.fitting.same_fit import identity
from sparsact.cli.progress import OnRows
from sparsact.datasets import Encoding, Table
from sparsact.datasets.parts import Parts
from sparsact.datasets.suspects import FirstRows, suspicions
from sparsact.datasets.table_survey import TableSurvey
from sparsact.datasets.target_survey import TargetSurvey
from sparsact.learners.stored import Arrays, State


def resumption(
    parts: Parts, options: Mapping[str, Any], words: Sequence[str], resume: Path | None, out: Path | None, every: float
) -> Resumption:
    """What an earlier run of the same fit has left, or nothing yet.

    Without ``resume`` the sums are written only when the fit is stopped: beside the model, or in the working folder.
    """
    path = resume or _unused(out or Path(f"{parts.sources[0].path.stem}.fit"))
    typed = [*words, *(() if resume else ("--resume", str(path)))]
    remedy = f"; go on with: {shlex.join(['sparsact', *typed])}"
    kept = Resumption(path, identity(parts, options), every if resume else None, remedy)
    if resume is not None:
        kept.read()
    return kept


def _unused(path: Path) -> Path:
    """A name like this one, for a statistic, that no file has."""
    number, found = 1, path.with_name(f"{path.name}.statistic")
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}.{number}.statistic")
    return found


@dataclass(frozen=True)
class _Looks:
    """What the first pass sums up."""

    survey: TableSurvey

    def state(self, arrays: Arrays) -> State:
        """Of every column what was seen."""
        return self.survey.state()

    def restore(self, state: State, arrays: Arrays) -> None:
        """As another survey saw it."""
        self.survey.restore(state)


def look_through(survey: TableSurvey, on_rows: OnRows, kept: Resumption) -> Table:
    """The table of a survey, after a pass over its rows; warnings are among its notes."""
    outcome = kept.outcome("reading")
    if outcome is None:
        for batch, place in kept.rows("reading", survey.batches, _Looks(survey), on_rows):
            survey.update(batch, place)
        encoding = survey.encoding()
        kept.keep("reading", {"encoding": encoding.to_json(), "survey": survey.state()})
    else:
        encoding = Encoding.from_json(outcome[0]["encoding"])
        survey.restore(outcome[0]["survey"])
        on_rows(survey.n_rows)
    _check_squares(survey.answers)
    table = Table(survey.parts, encoding, survey.n_rows, survey.batch_rows)
    return replace(table, encoding=replace(encoding, notes=(*_warnings(table, kept), *encoding.notes)))


def _warnings(table: Table, kept: Resumption) -> list[str]:
    """Notes on columns that may be the target again."""
    outcome = kept.outcome("checking")
    if outcome is not None:
        return list(map(str, outcome[0]["notes"]))
    first = FirstRows(table.encoding)
    for X, y in kept.rows("checking", table.batches, first, lambda count: None):
        first.take(X, y)
        if first.full:
            break
    notes = suspicions(table.encoding, first)
    kept.keep("checking", {"notes": notes})
    return notes


def _check_squares(answers: Sequence[TargetSurvey]) -> None:
    """Raise if squares of a target overflow or vanish: every score is made of them."""
    for answer in answers:
        size = max(abs(answer.low), abs(answer.high)) if answer.numeric else 1.0
        if not 1e-150 < size < 1e150:
            raise ValueError(
                f"target {answer.name!r} reaches a size of {size:.0e}, whose square is no float, and scores are made "
                "of squares; write the column in another unit."
            )
