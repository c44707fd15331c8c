"""Columns that repeat others, found from digests of rows: duplicates, complements, and sequences beside their sites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparsact.datasets.columns import Bit, BitString, Column, OneHot
from sparsact.datasets.row_digests import MODULUS
from sparsact.datasets.survey import ColumnSurvey

Key = tuple[str, int]


@dataclass(frozen=True)
class Alias:
    """A column that is left out, and what it repeats: names of features, or of columns."""

    name: str
    repeats: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} (see {', '.join(self.repeats[:4])}{', ...' if self.repeats[4:] else ''})"


def aliases(columns: Sequence[Column], surveys: Sequence[ColumnSurvey], total: int) -> list[Alias]:
    """Columns to leave out, in their order, because columns that stay determine each of their features.

    Two bits are one feature where they split the rows alike, whichever is 1 where. Of two columns the one with more
    features stays, then the earlier; a sequence of letters gives way to columns of its sites.

    Parameters
    ----------
    columns : sequence of Column
        Candidates.
    surveys : sequence of ColumnSurvey
        What was seen of each.
    total : int
        Digest of all rows.

    Returns
    -------
    aliases : list of Alias
        Constant columns are never among them.
    """
    keys = [_keys(column, survey, total) for column, survey in zip(columns, surveys, strict=True)]
    kept: dict[Key, tuple[int, str]] = {}
    found: dict[int, Alias] = {}
    for i in sorted(range(len(columns)), key=lambda i: (-len(keys[i]), i)):
        varying = [(name, key) for name, key in keys[i] if key[1]]
        if varying and all(key in kept for _, key in varying):
            found[i] = Alias(columns[i].name, tuple(dict.fromkeys(kept[key][1] for _, key in varying)))
        for name, key in varying:
            kept.setdefault(key, (i, name))
    needed: set[int] = set()
    for i, column in enumerate(columns):
        owners = [kept.get(key) for key in _sites(column, surveys[i], total)] if i not in {*found, *needed} else []
        others = {owner[0] for owner in owners if owner is not None and owner[0] not in (i, *found)}
        if len(owners) > 1 and all(owner is not None and owner[0] in others for owner in owners):
            found[i] = Alias(column.name, tuple(dict.fromkeys(owner[1] for owner in owners if owner is not None)))
            needed |= others
    return [found[i] for i in sorted(found)]


def _keys(column: Column, survey: ColumnSurvey, total: int) -> list[tuple[str, Key]]:
    """Name and key of every feature; features of one key are the same, but for the sign of a bit."""
    if isinstance(column, BitString) and survey.bit_digests is not None:
        return list(zip(column.features, _split(survey.bit_digests.tolist(), total), strict=True))
    if isinstance(column, Bit | OneHot):
        digests = survey.digests()
        values = column.values[-1:] if isinstance(column, Bit) else column.values
        return list(zip(column.features, _split([digests.get(value, 0) for value in values], total), strict=True))
    return [(column.name, ("number", survey.digest))]


def _split(digests: Sequence[int], total: int) -> list[Key]:
    """Keys of bits: a set of rows and its complement have the same; 0 is that of a constant."""
    return [("bit", min(digest, (total - digest) % MODULUS)) for digest in digests]


def _sites(column: Column, survey: ColumnSurvey, total: int) -> list[Key]:
    """Keys of the letters at each place where texts of one length differ."""
    if not isinstance(column, OneHot) or len({len(value) for value in column.values}) > 1:
        return []
    keys: list[Key] = []
    digests = survey.digests()
    for letters in zip(*column.values, strict=True):
        sums = dict.fromkeys(letters, 0)
        for letter, value in zip(letters, column.values, strict=True):
            sums[letter] = (sums[letter] + digests[value]) % MODULUS
        if len(sums) > 1:
            keys += _split(list(sums.values()), total)
    return list(dict.fromkeys(keys))
