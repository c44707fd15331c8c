"""The first pass of a fit: how columns become bits or numbers, and warnings about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import skew

from sparsact.datasets import Encoding, Table
from sparsact.datasets.columns import Classes, LogReal, Real
from sparsact.datasets.repeated_columns import suspicions
from sparsact.datasets.table_files import Parts
from sparsact.datasets.table_stream import BATCH_ROWS, TableSurvey
from sparsact.datasets.targets import TargetSurvey
from sparsact.datasets.wild_type import wild_types
from sparsact.fit.options import FitOptions
from sparsact.passes.progress import StageProgress
from sparsact.passes.resumable import Checkpoint
from sparsact.passes.source import Pass

LEAST_RATIO, LEAST_SKEW = 10, 1.0
MOST_AT_END: Final = 0.03  # of rows at the lowest target: more are pinned there
LONG_TAIL: Final = (
    "{name!r} is positive, spans a factor of {ratio:.3g} and has a long upper tail: where relative errors count, learn "
    "its logarithm (log_target, --log-target)."
)
LOGARITHMS: Final = (
    "the natural logarithm of the target is learned: R², effects and their intervals refer to it (an effect of 0.1 "
    "multiplies the target by 1.105); predictions are brought back."
)


def survey_of(parts: Parts, options: FitOptions, encoding: Encoding | None) -> TableSurvey:
    """A survey that has seen no row: of every column, or where the encoding is given of the targets."""
    if encoding is not None and encoding.real and options.domain == "cube":
        raise ValueError("domain 'cube' takes bits, and the encoding has columns of numbers; leave one of them out.")
    names = ("domain", "task", "strict")
    columns, wanted = options.columns, {name: getattr(options, name) for name in names}
    ignore, keep = (*options.ignore, *options.row_columns), options.model == "lsh"
    survey = TableSurvey.of(
        parts, options.target, columns, BATCH_ROWS, ignore=ignore, **wanted, encoding=encoding, keep_missing=keep
    )
    if options.wild_type is not None:
        wild = wild_types(parts, [one.name for one in survey.surveys], options.wild_type)
        for one in survey.surveys:
            one.wild_type = wild.get(one.name)
    return survey


def survey_table(survey: TableSurvey, on_rows: StageProgress, checkpoint: Checkpoint) -> Table:
    """The table of a survey, after a pass over its rows."""
    checkpoint.run(Pass("reading", survey, survey), on_rows)
    encoding = survey.encoding()
    _check_squares(survey.answers)
    return Table(survey.parts, encoding, survey.n_rows, survey.batch_rows)


def with_options(table: Table, options: FitOptions, note: str) -> Table:
    """The table with logarithms of its targets if requested, and notes of what was done to its rows."""
    encoding, notes = table.encoding, [note] if note else []
    if (options.weighted or options.log_target) and isinstance(encoding.targets[0], Classes):
        name = encoding.target_names[0]
        raise ValueError(f"target {name!r} holds classes; weights, sigma and log_target are for targets of numbers.")
    if options.log_target:
        encoding = replace(encoding, targets=tuple(LogReal(name) for name in encoding.target_names))
        notes.append(LOGARITHMS)
    if options.sigma is not None:
        notes.append(f"weights of rows: 1 / {options.sigma}², divided by their mean.")
    return replace(table, encoding=replace(encoding, notes=(*notes, *encoding.notes)))


def check_targets(encoding: Encoding, low: NDArray[np.float64], high: NDArray[np.float64]) -> None:
    """Raise for targets that are constant or unusable, by their ranges, where no survey has looked at them."""
    answers = []
    for target, least, largest in zip(encoding.targets, np.atleast_1d(low), np.atleast_1d(high), strict=True):
        answers.append(TargetSurvey(target.name, low=float(least), high=float(largest), numeric=True))
        if isinstance(target, Classes):
            answers[-1].classes = {target.values[int(least)], target.values[int(largest)]}
            answers[-1].numeric = False
        answers[-1].column()
    _check_squares(answers)


def warnings(encoding: Encoding, X: NDArray[Any], y: NDArray[np.float64]) -> list[str]:
    """Notes on columns that may be the target again, and on targets that suit logarithms, by some of the rows."""
    found = suspicions(encoding, X, y)
    for target, values in zip(encoding.targets, y.reshape(len(y), -1).T, strict=True):
        if type(target) is Real and has_long_tail(values):
            found.append(LONG_TAIL.format(name=target.name, ratio=values.max() / values.min()))
    return found


def has_long_tail(y: NDArray[np.float64]) -> bool:
    """Whether targets are positive, span a factor of 10 and are skewed, much less so their logarithms."""
    if not 0 < LEAST_RATIO * y.min() < y.max() or (y == y.min()).mean() > MOST_AT_END:
        return False
    tail = float(skew(y))
    return tail > LEAST_SKEW and abs(float(skew(np.log(y)))) < tail / 2


def _check_squares(answers: Sequence[TargetSurvey]) -> None:
    """Raise if squares of a target overflow or vanish: every score is made of them."""
    for answer in answers:
        size = max(abs(answer.low), abs(answer.high)) if answer.numeric else 1.0
        if not 1e-150 < size < 1e150:
            raise ValueError(
                f"target {answer.name!r} reaches a size of {size:.0e}, whose square is no float, and scores are made "
                "of squares; write the column in another unit."
            )
