"""Columns that tell of the measurement and predict nothing: splits, plates, counts, errors; by name and by values."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from shlex import quote
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
COUNTS: Final = Role("counts", "weights", "ct cts reads nreads readcount readcounts umis", "counts", "count")
DEVIATIONS: Final = Role(
    "standard deviations of measurements",
    "sigma",
    usual="sd se sem std stdev stddev stderr stderror standarddeviation standarderror dy",
    vague="err error sigma uncertainty",
)
VARIANCES: Final = Role("variances of measurements", "variance", usual="variance", vague="var")
AMOUNTS: Final = (REPEATS, COUNTS, DEVIATIONS, VARIANCES)


def name_words(name: str) -> Words:
    """Words and numbers of a name, in small letters.

    >>> name_words("n_reads"), name_words("StdDev2")
    (('n', 'reads'), ('std', 'dev', '2'))
    """
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).casefold()
    return tuple(re.findall(r"[^\W\d_]+|\d+", apart))


def is_measured(survey: ColumnSurvey, n_rows: int) -> bool:
    """Whether a column of numbers has more different values than the levels of a design."""
    n_values, sums = len(survey.values), survey.number_sums
    many = survey.full or (2 * n_values > n_rows and n_values > FEW_TEXTS)
    return many and not survey.width and sums is not None and not sums.is_row_number  # strings of bits have a width


@dataclass(frozen=True)
class SideColumns:
    """What the columns of a table look like that are no predictors: a name decides nothing by itself.

    ``covariates`` says whether numbers were measured that are neither counts, nor errors, nor, by the first word of
    their name, another target.
    """

    n_rows: int
    targets: Sequence[Words]
    columns: Sequence[Words]
    covariates: bool

    @classmethod
    def of(cls, surveys: Sequence[ColumnSurvey], target_names: Sequence[str], n_rows: int) -> SideColumns:
        """Those of a table."""
        targets, columns = [list(map(name_words, names)) for names in (target_names, [one.name for one in surveys])]
        others = [
            words[:1] not in [target[:1] for target in targets] and not any(role.parted(words)[0] for role in AMOUNTS)
            for words in columns
        ]
        measured = (is_other and is_measured(one, n_rows) for is_other, one in zip(others, surveys, strict=True))
        return cls(n_rows, targets, columns, any(measured))

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
        values, sums = survey.values, survey.number_sums
        span = 0 if sums is None else int(sums.high - sums.low) + 1
        n_values = span if survey.full else len(values)
        sure = GROUPS.is_sure(words)
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
        measured = is_measured(survey, self.n_rows)
        for role in AMOUNTS[1:] if len(survey.values) > 2 else ():
            own, rest = role.parted(words)
            sure = bool(role.is_sure(own, covariates=self.covariates)) and measured
            if role is COUNTS and own and sums.is_whole and not (rest and own == ("count",)):
                return role, sure
            if role is not COUNTS and own and rest and any({*rest} <= {*target} for target in self.targets):
                return role, True
            if (
                role is not COUNTS and own and (not rest or rest in self.columns)
            ):  # the error of a predictor: no sure one
                return role, sure and not rest and not sums.is_whole
        return None


def without_side_columns(
    surveys: Sequence[ColumnSurvey],
    targets: Sequence[str],
    n_rows: int,
    *,
    named: Container[str],
    strict: bool,
    weighted: bool,
) -> tuple[list[ColumnSurvey], list[str]]:
    """The columns to learn from, and sentences on those that look as if they were no predictors.

    Columns that are ``named`` stay, and all where none would be left. ``strict`` refuses what would be left out;
    ``weighted`` says whether rows may have weights, as rows of classes may not.
    """
    sides, kinds = SideColumns.of(surveys, targets, n_rows), dict[tuple[Role, bool], list[str]]()
    for survey in surveys:
        if survey.name not in named and (found := sides.role(survey)) is not None:
            kinds.setdefault(found, []).append(survey.name)
    gone = {name for (_, is_sure), names in kinds.items() for name in names if is_sure}
    if len(gone) == len(surveys):
        gone = set()
    notes = []
    for (role, _), (first, *more) in kinds.items():
        option = f"--{role.option} {quote(first)}" if weighted or role in (SPLIT, GROUPS) else ""
        ignored = f"leave it out with --ignore {quote(first)}"
        remedy = f"name it with {option}, or {ignored}" if option else ignored
        names = listed([first, *more])
        if strict and first in gone:
            raise UnfitError(first, f" looks like {role.looks}", remedy)
        if first in gone:
            use = f"use {'one' if more else 'it'} with {option}, or " if option else ""
            looks = "they look" if more else "it looks"
            back = f"learn from it with --columns {quote(f'*,{first}')}"
            notes.append(f"left out, since {looks} like {role.looks}: {names}; {use}{back}.")
        else:
            notes.append(f"warning: learned from, but by the name perhaps {role.looks}: {names}; if so, {remedy}.")
    return [survey for survey in surveys if survey.name not in gone], notes
