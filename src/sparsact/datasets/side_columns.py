"""Columns about the measurement, not predictors: splits, plates, counts, errors; recognised by name and values."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from sparsact.datasets.cell_values import listed
from sparsact.datasets.column_survey import FEW_TEXTS, ColumnSurvey, UnfitError
from sparsact.datasets.splits import parts_of_split

Words = tuple[str, ...]


@dataclass(frozen=True)
class Role:
    """What a column may be that is no predictor, and the option that takes it.

    If the values fit, a ``clear`` name leaves no doubt, nor does a ``usual`` one where rows have no covariates.
    Predictors have ``vague`` names too.
    """

    looks: str
    option: str
    clear: str = ""
    usual: str = ""
    vague: str = ""

    def is_sure(self, words: Words, *, covariates: bool = False) -> bool | None:
        """Whether a name leaves no doubt; None if it is no name of the role."""
        sure = ((self.clear, True), (self.usual, not covariates), (self.vague, False))
        return next((is_sure for names, is_sure in sure if "".join(words) in names.split()), None)

    def parted(self, words: Words) -> tuple[Words, Words]:
        """The longest end or beginning of a name that is one of the role's, if any, and the other words."""
        cuts = (cut for i in range(len(words)) for cut in ((words[i:], words[:i]), (words[:-i], words[-i:])))
        return next((cut for cut in cuts if self.is_sure(cut[0]) is not None), ((), words))


SPLIT: Final = Role(
    "the split into training and test rows",
    "split",
    vague="set split dataset subset partition traintest istrain istest train training test validation holdout",
)
GROUPS: Final = Role(
    "plates, repeats or folds",
    "groups",
    clear="plate plateid platename batchid replicate replicateid rep biorep techrep fold folds foldid cvfold",
    vague="batch",
)
REPEATS: Final = Role("numbers of repeats", "weights", "nrep nreps nreplicates replicates nobs numreps numreplicates")
COUNTS: Final = Role("counts", "weights", "nreads numreads readcount readcounts", "ct cts reads umis counts", "count")
DEVIATIONS: Final = Role(
    "standard deviations of measurements",
    "sigma",
    usual="sd se sem std stdev stddev stderr stderror standarddeviation standarderror dy",
    vague="err error sigma uncertainty",
)
VARIANCES: Final = Role("variances of measurements", "variance", usual="variance", vague="var")
AMOUNTS: Final = (REPEATS, COUNTS, DEVIATIONS, VARIANCES)


def name_words(name: str) -> Words:
    """Words and numbers of a name, in small letters: ``("std", "dev", "2")`` of ``StdDev_2``."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).casefold()
    return tuple(re.findall(r"[^\W\d_]+|\d+", apart))


def note_on_weights(name: str, targets: Sequence[str]) -> str:
    """A warning about a column of weights that has the name of errors, alone or with a target's; empty for others."""
    for role in (DEVIATIONS, VARIANCES):
        own, rest = role.parted(name_words(name))
        if own and any({*rest} <= {*name_words(target)} for target in targets):
            fact = f"warning: {name} looks like {role.looks}, but a larger weight means a more precise row"
            return f"{fact}; if so, use {role.option}={name!r} in place of weights."
    return ""


@dataclass(frozen=True)
class SideColumns:
    """What columns look like that are no predictors, by their names and values; a name alone decides nothing."""

    surveys: Sequence[ColumnSurvey]
    targets: Sequence[str]
    n_rows: int

    def is_measured(self, survey: ColumnSurvey) -> bool:
        """Whether a column of numbers has more different values than the levels of a design."""
        n_values, sums = len(survey.values), survey.number_sums
        many = survey.full or (2 * n_values > self.n_rows and n_values > FEW_TEXTS) or n_values == self.n_rows
        return many and not survey.width and sums is not None and not sums.is_row_number  # strings of bits have a width

    @cached_property
    def covariates(self) -> bool:
        """Whether numbers were measured beside counts, errors, and other targets: columns that begin as a target."""
        of_targets = [name_words(target)[:1] for target in self.targets]
        others = ((one, words) for one in self.surveys if (words := name_words(one.name))[:1] not in of_targets)
        return any(self.is_measured(one) and not any(role.parted(own)[0] for role in AMOUNTS) for one, own in others)

    def role(self, survey: ColumnSurvey) -> tuple[Role, bool] | None:
        """The role of a column, and whether it is sure; None of a predictor."""
        words = name_words(survey.name)
        return self._split(survey, words) or self._groups(survey, words) or self._amounts(survey, words)

    def _split(self, survey: ColumnSurvey, words: Words) -> tuple[Role, bool] | None:
        """Words of a split are one under any name; 0 and 1 may be one under its name."""
        part_of = None if survey.full else parts_of_split(survey.name, survey.values)
        if part_of is None or "training" not in part_of.values() or len({*part_of.values()}) < 2:
            return None
        return None if survey.numeric and SPLIT.is_sure(words) is None else (SPLIT, not survey.numeric)

    def _groups(self, survey: ColumnSurvey, words: Words) -> tuple[Role, bool] | None:
        """Groups have labels, or whole numbers, that rows share; numbers from 0 or 1 on are hardly amounts."""
        values, sums, sure = survey.values, survey.number_sums, GROUPS.is_sure(words)
        span = 0.0 if sums is None else sums.high - sums.low + 1
        n_values = span if survey.full else len(values)
        if sure is None or not 2 <= n_values <= self.n_rows / 2 or not (sums is None or sums.is_whole):
            return None
        by_label = all(re.search("[0-9]", one) for one in values) if sums is None else sums.low in (0, 1)
        return GROUPS, {*values} != {"0", "1"} if sure else n_values > 2 and by_label and span in (0, n_values)

    def _amounts(self, survey: ColumnSurvey, words: Words) -> tuple[Role, bool] | None:
        """Counts are measured whole numbers, errors measured fractions or, with a target's name, any numbers."""
        sums = survey.number_sums
        if sums is None or sums.low < 0 or {*survey.values} <= {"0", "1"}:
            return None
        if REPEATS.is_sure(words) and sums.is_whole:
            return REPEATS, True
        for role in AMOUNTS[1:] if len(survey.values) > 2 else ():
            own, rest = role.parted(words)
            sure = bool(role.is_sure(own, covariates=self.covariates)) and self.is_measured(survey)
            if role is COUNTS and own and sums.is_whole and not (rest and own == ("count",)):
                return role, sure
            if role is not COUNTS and rest != words and rest:
                of_target = any({*rest} <= {*name_words(target)} for target in self.targets)
                of_other = rest in [name_words(one.name) for one in self.surveys]
                return (role, of_target) if of_target or of_other else None
            if role is not COUNTS and own:
                return role, sure and not sums.is_whole
        return None


def without_side_columns(
    sides: SideColumns, named: Container[str], *, strict: bool, weighted: bool
) -> tuple[list[ColumnSurvey], list[str]]:
    """The columns to learn from, and notes on columns that do not look like predictors.

    Columns that are ``named`` stay; all stay if none would be left. ``strict`` raises instead of leaving columns out;
    ``weighted`` says whether rows may have weights: with classes they may not.
    """
    kinds: dict[tuple[Role, bool], list[str]] = {}
    for survey in sides.surveys:
        if survey.name not in named and (found := sides.role(survey)) is not None:
            kinds.setdefault(found, []).append(survey.name)
    gone = {name for (_, is_sure), names in kinds.items() for name in names if is_sure}
    gone = gone if len(gone) < len(sides.surveys) else set()
    notes = []
    for (role, _), (first, *more) in kinds.items():
        option = f"{role.option}={first!r}" if weighted or role in (SPLIT, GROUPS) else ""
        ignored, names = f"leave it out with ignore={first!r}", listed([first, *more])
        remedy = f"name it with {option}, or {ignored}" if option else ignored
        if first not in gone:
            notes.append(f"warning: used as a predictor, but the name suggests {role.looks}: {names}; if so, {remedy}.")
            continue
        if strict:
            raise UnfitError(first, f" looks like {role.looks}", remedy)
        use = f"use {'one' if more else 'it'} with {option}, or " if option else ""
        looks = "they look" if more else "it looks"
        back = f"learn from it with columns={f'*,{first}'!r}"
        notes.append(f"left out, since {looks} like {role.looks}: {names}; {use}{back}.")
    return [survey for survey in sides.surveys if survey.name not in gone], notes
