"""The first pass of a fit: how columns become bits or numbers, and warnings about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets.chosen_rows import complete_rows, weighted_rows
from sparsact.datasets.columns import Classes, Encoding, LogReal
from sparsact.datasets.repeated_columns import suspicions
from sparsact.datasets.splits import ChosenParts, split_rows
from sparsact.datasets.table_files import Parts, resolve
from sparsact.datasets.table_stream import Table, TableSurvey
from sparsact.datasets.targets import TargetSurvey
from sparsact.datasets.wild_type import wild_types
from sparsact.fit.options import FitOptions
from sparsact.passes.progress import StageProgress
from sparsact.passes.resumable import Checkpoint
from sparsact.passes.source import Pass

LOGARITHMS_CHOSEN: Final = "{name!r} spans a factor of {ratio:.3g}; log_target=False fits it without the logarithm."
LOGARITHM_FITS: Final = (
    "{name!r} spans a factor of {ratio:.3g}, and its logarithm fits better (each held-out row is {factor:.3g} times as "
    "likely under a linear model): fit the logarithm with log_target=True."
)
LOGARITHMS: Final = (
    "the model is fitted to the natural logarithm of the target: R², effects and intervals refer to the logarithm (an "
    "effect of 0.1 multiplies the target by 1.105); predictions are in the target's own units."
)


def survey_of(parts: Parts, options: FitOptions, encoding: Encoding | None) -> TableSurvey:
    """A survey that has seen no row: of every column, or where the encoding is given of the targets."""
    if encoding is not None and encoding.real and options.domain == "cube":
        raise ValueError("domain 'cube' takes bits, but the encoding has columns of numbers; leave one of the two out.")
    names = ("domain", "task", "strict")
    columns, wanted = options.columns, {name: getattr(options, name) for name in names}
    ignore, keep = (*options.ignore, *options.row_columns), options.model == "lsh"
    survey = TableSurvey.of(
        parts, options.target, columns, ignore=ignore, **wanted, encoding=encoding, keep_missing=keep
    )
    if options.wild_type is not None:
        wild = wild_types(parts, [one.name for one in survey.surveys], options.wild_type)
        for one in survey.surveys:
            one.wild_type = wild.get(one.name)
    return survey


def chosen_parts(parts: Parts, options: FitOptions, needed: Sequence[str]) -> ChosenParts:
    """Rows that lack none of the needed columns, if so requested, without rows of weight 0 and rows to be scored."""
    notes, columns = [], {name: resolve([name], parts.names, "column")[0] for name in options.row_columns}
    if options.drop_missing:
        parts, note = complete_rows(parts, list(dict.fromkeys([*needed, *columns.values()])), options.target)
        notes.append(note)
    if options.weights is not None:
        parts, note = weighted_rows(parts, columns[options.weights])
        notes.append(note)
    chosen = ChosenParts(parts) if options.split is None else split_rows(parts, columns[options.split])
    return replace(chosen, notes=(*chosen.notes, *filter(None, notes)))


def survey_table(survey: TableSurvey, on_rows: StageProgress, checkpoint: Checkpoint) -> Table:
    """The table of a survey, after a pass over its rows."""
    checkpoint.run(Pass("reading", survey, survey), on_rows)
    encoding = survey.encoding()
    _check_squares(survey.answers)
    return Table(survey.parts, encoding, survey.n_rows, survey.batch_rows)


def with_options(table: Table, options: FitOptions, notes: Sequence[str]) -> Table:
    """The table with logarithms of its targets if requested, and notes on changes to its rows."""
    encoding, notes = table.encoding, list(notes)
    if (options.weighted or options.log_target) and isinstance(encoding.targets[0], Classes):
        name = encoding.target_names[0]
        raise ValueError(f"target {name!r} holds classes; weights, errors and log_target need a target of numbers.")
    if options.log_target:
        encoding, notes = with_logarithms(encoding), [*notes, LOGARITHMS]
    if (precision := options.sigma or options.variance) is not None:
        notes.append(f"weights of rows: 1 / {precision}{'²' * (options.sigma is not None)}, divided by their mean.")
    return replace(table, encoding=replace(encoding, notes=(*notes, *encoding.notes)))


def with_logarithms(encoding: Encoding) -> Encoding:
    """The encoding with logarithms of its targets."""
    return replace(encoding, targets=tuple(LogReal(name) for name in encoding.target_names))


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


def warnings(
    encoding: Encoding, X: NDArray[Any], y: NDArray[np.float64], gains_of_logarithms: Sequence[float]
) -> list[str]:
    """Notes on columns that may be the target again, and on targets that suit logarithms, by some of the rows."""
    found = suspicions(encoding, X, y)
    for target, values, gain in zip(encoding.targets, y.reshape(len(y), -1).T, gains_of_logarithms, strict=True):
        if gain:
            ratio, factor = values.max() / values.min(), np.exp(min(gain, 50.0))
            found.append(LOGARITHM_FITS.format(name=target.name, ratio=ratio, factor=factor))
    return found


def _check_squares(answers: Sequence[TargetSurvey]) -> None:
    """Raise if squares of a target overflow or vanish: every score is made of them."""
    for answer in answers:
        size = max(abs(answer.low), abs(answer.high)) if answer.numeric else 1.0
        if not 1e-150 < size < 1e150:
            raise ValueError(
                f"target {answer.name!r} reaches a size of {size:.0e}, whose square overflows a float; write the "
                "column in another unit."
            )
