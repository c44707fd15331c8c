"""The first pass of a fit: how columns become bits or numbers, and warnings about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sparsact.datasets import Encoding, Table, tables
from sparsact.datasets.parts import Parts
from sparsact.datasets.related_columns import FirstRows, suspicions
from sparsact.datasets.survey import TargetSurvey
from sparsact.datasets.tables import TableSurvey
from sparsact.fit.checkpoint import Checkpoint
from sparsact.fit.options import FitOptions
from sparsact.fit.progress import OnRows


def survey_of(parts: Parts, options: FitOptions, encoding: Encoding | None) -> TableSurvey:
    """A survey that has seen no row: of every column, or where the encoding is given of the targets."""
    if encoding is not None and encoding.real and options.domain == "cube":
        raise ValueError("domain 'cube' takes bits, and the encoding has columns of numbers; leave one of them out.")
    columns, wanted = options.columns, {name: getattr(options, name) for name in ("ignore", "domain", "task", "strict")}
    return TableSurvey.of(parts, options.target, columns, tables.BATCH_ROWS, **wanted, encoding=encoding)


def survey_table(survey: TableSurvey, on_rows: OnRows, checkpoint: Checkpoint) -> Table:
    """The table of a survey, after a pass over its rows; warnings are among its notes."""
    result = checkpoint.result("reading")
    if result is None:
        for batch, place in checkpoint.rows("reading", survey.batches, survey, on_rows):
            survey.update(batch, place)
        encoding = survey.encoding()
        checkpoint.save("reading", {"encoding": encoding.to_json(), "survey": survey.state({})})
    else:
        encoding = Encoding.from_json(result[0]["encoding"])
        survey.restore(result[0]["survey"], {})
        on_rows(survey.n_rows)
    _check_squares(survey.answers)
    table = Table(survey.parts, encoding, survey.n_rows, survey.batch_rows)
    if survey.given is not None:
        return table
    return replace(table, encoding=replace(encoding, notes=(*_warnings(table, checkpoint), *encoding.notes)))


def _warnings(table: Table, checkpoint: Checkpoint) -> list[str]:
    """Notes on columns that may be the target again."""
    result = checkpoint.result("checking")
    if result is not None:
        return list(map(str, result[0]["notes"]))
    first = FirstRows(table.encoding)
    for X, y in checkpoint.rows("checking", table.batches, first, lambda count: None):
        first.take(X, y)
        if first.full:
            break
    notes = suspicions(table.encoding, first)
    checkpoint.save("checking", {"notes": notes})
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
