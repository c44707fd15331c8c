"""Columns that repeat others (by digests) or the target (by correlation, name); what a report says of columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets.cell_values import listed
from sparsact.datasets.column_survey import ColumnSurvey
from sparsact.datasets.columns import MISSING, Bit, Classes, Column, Encoding, OneHot, Real
from sparsact.datasets.sites import BitString, LetterString, Mutations
from sparsact.datasets.value_counts import MODULUS

Key = tuple[str, int]
Owners = dict[Key, tuple[int, str]]  # number of a column, and name of its feature or site


@dataclass(frozen=True)
class Alias:
    """A column that is left out, and what it repeats: names of features, or of columns."""

    name: str
    repeats: tuple[str, ...]

    @classmethod
    def of(cls, column: Column, owners: Sequence[tuple[int, str]]) -> Self:
        """The alias of a column whose features equal features of other columns."""
        return cls(column.name, tuple(name for _, name in owners))

    def __str__(self) -> str:
        return f"{self.name} (see {', '.join(self.repeats[:4])}{', ...' if self.repeats[4:] else ''})"


def aliases(columns: Sequence[Column], surveys: Sequence[ColumnSurvey], total: int) -> list[Alias]:
    """Columns to leave out, in their order, because columns that stay determine each of their features.

    Two bits are one feature where they split the rows alike, whichever is 1 where. Of two columns the one with more
    features stays, then the earlier. Sequences give way to columns that determine all of their letters, such as columns
    of their sites; columns that determine some of the letters give way to the sequences. Constant columns are never
    left out. ``total`` is the digest of all rows.
    """
    triples = list(zip(columns, surveys, range(len(columns)), strict=True))
    keys = [_keys(column, survey, total) for column, survey, _ in triples]
    sites = [_sites(column, survey, total) for column, survey, _ in triples]
    kept: Owners = {}
    found: dict[int, Alias] = {}
    for i in sorted(range(len(columns)), key=lambda i: (-len(keys[i]), i)):
        if owners := _owners(keys[i], [kept]):
            found[i] = Alias.of(columns[i], owners)
        for name, key in keys[i]:
            kept.setdefault(key, (i, name))
    told: list[Owners] = [{key: (i, name) for name, key in own} for i, own in enumerate(sites)]
    needed: set[int] = set()
    for i in reversed(range(len(columns))):  # sequences
        if i not in found and i not in needed and len(sites[i]) > 1:
            own = {key: owner for key, owner in kept.items() if owner[0] not in (i, *found)}
            others = [told[j] for column, _, j in triples if j not in (i, *found) and not keys[j]]
            if owners := _owners(sites[i], [own, *others]):
                found[i] = Alias.of(columns[i], owners)
                needed |= {owner for owner, _ in owners}
    sequences = [told[j] for j in range(len(columns)) if j not in found and not keys[j]]
    for i in range(len(columns)):  # and what is only a part of them
        if i not in found and i not in needed and (owners := _owners(keys[i], sequences)):
            found[i] = Alias.of(columns[i], owners)
    return [found[i] for i in sorted(found)]


def _owners(keys: Sequence[tuple[str, Key]], known: Sequence[Owners]) -> list[tuple[int, str]]:
    """Columns and features that equal each varying feature; empty if some feature has no equal in another column."""
    varying = [key for _, key in keys if key[1]]
    owners = [next((one[key] for one in known if key in one), None) for key in varying]
    return list(dict.fromkeys(owner for owner in owners if owner is not None)) if None not in owners else []


def _keys(column: Column, survey: ColumnSurvey, total: int) -> list[tuple[str, Key]]:
    """Name and key of every feature, none for sequences; features with one key are equal up to the sign of a bit."""
    if isinstance(column, BitString) and survey.bit_digests is not None:
        digests = survey.bit_digests[column.places].tolist()
        return list(zip(column.features, _split(digests, total), strict=True))
    if isinstance(column, Bit | OneHot):
        of_values = survey.digests()
        of_values.setdefault(MISSING, (total - sum(of_values.values())) % MODULUS)
        values = column.values[-1:] if isinstance(column, Bit) else column.values
        return list(zip(column.features, _split([of_values.get(value, 0) for value in values], total), strict=True))
    return [] if isinstance(column, LetterString | Mutations) else [(column.name, ("number", survey.digest))]


def _split(digests: Sequence[int], total: int) -> list[Key]:
    """Keys of bits: a set of rows and its complement have the same; 0 is that of a constant."""
    return [("bit", min(digest, (total - digest) % MODULUS)) for digest in digests]


def _sites(column: Column, survey: ColumnSurvey, total: int) -> list[tuple[str, Key]]:
    """Name of the site, and key, of each letter of a column of sequences, or of categories of one length."""
    sites: list[tuple[str, dict[str, int]]] = []
    if isinstance(column, LetterString | Mutations):
        sites = survey.words.sites(column, total)
    elif isinstance(column, OneHot) and {len(value) for value in column.values} == {len(column.values[0])}:
        digests = {MISSING: 0} | survey.digests()
        places = zip(*column.values, strict=True) if len(column.values[0]) > 1 else ()
        for i, letters in enumerate(places, 1):
            sums = dict.fromkeys(letters, 0)
            for letter, value in zip(letters, column.values, strict=True):
                sums[letter] = (sums[letter] + digests[value]) % MODULUS
            sites.append((f"{column.name}[{i}]", sums))
    pairs = [(key, name) for name, sums in sites if len(sums) > 1 for key in _split(list(sums.values()), total)]
    return [(name, key) for key, name in reversed(dict(reversed(pairs)).items()) if key[1]]


def without_constants(column: Column, survey: ColumnSurvey, total: int) -> Column:
    """A string of bits without the places that are the same in every row, unless all are."""
    if not isinstance(column, BitString) or survey.bit_digests is None:
        return column
    pattern = "".join({0: "0", total: "1"}.get(digest, ".") for digest in survey.bit_digests.tolist())
    return replace(column, pattern=pattern) if 0 < pattern.count(".") < len(pattern) else column


CLOSE: Final = 0.999  # correlation, in size, of values or of their ranks
LEAST_ROWS: Final = 10
MOST_ROWS: Final = 4096
MOST_NUMBERS: Final = 1 << 22


def suspicions(encoding: Encoding, X: NDArray[Any], y: NDArray[np.float64]) -> list[str]:
    """Warnings by the first rows (m, n) and targets (m,) or (m, T) of a table; they do not affect the fit."""
    most = min(MOST_ROWS, MOST_NUMBERS // len(encoding.feature_names))
    names = close_columns(encoding, X[:most].astype(np.float64), y[:most].reshape(-1, len(encoding.targets)))
    notes = []
    if names:
        notes.append(
            f"warning: almost a copy of the target, or a monotone function of it: {listed(names)}; if you do not know "
            "it before the target, leave it out with ignore (--ignore)."
        )
    alike = [name for name in named_alike(encoding) if name not in names]
    if alike:
        notes.append(
            f"warning: named like the target: {listed(alike)}; if measured together with it, leave them out with "
            "ignore (--ignore)."
        )
    return notes


def close_columns(encoding: Encoding, X: NDArray[np.float64], answers: NDArray[np.float64]) -> list[str]:
    """Features whose values, or ranks of values, correlate with a target by 0.999 or more in size."""
    target = encoding.targets[0]
    if len(X) < LEAST_ROWS:
        return []
    if isinstance(target, Classes):
        answers = np.equal(answers, np.arange(len(target.values))).astype(np.float64)
    closest = np.zeros(X.shape[1])
    for values, of in ((X, answers), (ranks(X), ranks(answers))):
        closest = np.maximum(closest, np.abs(correlations(values, of)).max(axis=1))
    return [name for name, size in zip(encoding.feature_names, closest, strict=True) if size >= CLOSE]


def ranks(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks in each column; equal numbers have one."""
    return np.stack([np.unique(column, return_inverse=True)[1] for column in X.T], axis=1).astype(np.float64)


def correlations(X: NDArray[np.float64], Y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pearson's coefficients of columns of X with columns of Y; 0 where one is constant."""
    return np.asarray(_standard(X).T @ _standard(Y) / len(X))


def _standard(X: NDArray[np.float64]) -> NDArray[np.float64]:
    sizes = np.abs(X).max(axis=0)
    scaled = X / np.where(sizes > 0, sizes, 1.0)
    centred = scaled - scaled.mean(axis=0)
    deviations = centred.std(axis=0)
    constant = deviations <= 1e-12
    return np.asarray(np.where(constant, 0.0, centred) / np.where(constant, 1.0, deviations))


def named_alike(encoding: Encoding) -> list[str]:
    """Columns of numbers whose names begin with the first word of a target's, and go on: ``size_left``."""
    words = {word for name in encoding.target_names if re.search("[a-z]{3}", word := _words(name)[0])}
    named = ((column.name, _words(column.name)) for column in encoding.columns if isinstance(column, Real))
    return [name for name, (first, *others) in named if first in words and any(others)]


def _words(name: str) -> list[str]:
    return re.split(r"[\W_]+", name.strip().casefold())


def _category_notes(column: OneHot) -> list[str]:
    found = [f"{column.name}: {len(column.values)} categories, one bit each (one-hot)."]
    folded: dict[str, str] = {}
    for value in column.values:
        other = folded.setdefault(value.casefold(), value)
        if other != value and len(found) == 1:
            two = f"{other!r} and {value!r} are two categories of {column.name}"
            found.append(f"warning: {two}; spell them alike if they are one.")
    return found


def _bit_string_notes(column: BitString) -> list[str]:
    varying = f"one column for each of the {len(column.places)} that vary" * bool(column.pattern)
    found = [f"{column.name}: strings of {column.length} bits, {varying or 'expanded into as many columns'}."]
    if column.padded:
        found.append(
            f"{column.name}: numbers of digits 0 and 1 only are read as bit strings, with leading zeros restored; if "
            "they are quantities, choose domain='real'."
        )
    return found


def column_notes(columns: Sequence[Column], domain: str) -> list[str]:
    """Sentences for the report on columns that are not simply 0 and 1; columns of the same values share one."""
    numbers = [column.name for column in columns if isinstance(column, Real)]
    how = "used as they are" if domain == "real" else "standardised by the mean and standard deviation of this table"
    notes = [f"columns of numbers, {how}: {listed(numbers)}."] if numbers else []
    same: dict[tuple[str, ...], list[str]] = {}
    for column in columns:
        if isinstance(column, Bit) and len(column.values) == 2 and set(column.values) != {"0", "1"}:
            same.setdefault(column.values, []).append(column.name)
        elif isinstance(column, BitString):
            notes += _bit_string_notes(column)
        elif isinstance(column, OneHot):
            notes += _category_notes(column)
        elif isinstance(column, LetterString):
            sites = f"strings of {len(column.letters)} letters; {len(column.sites)} sites vary"
            notes.append(f"{column.name}: {sites}.")
        elif isinstance(column, Mutations):
            notes.append(f"{column.name}: mutations of {len(column.sites)} sites.")
    bits = [f"{listed(names)}: bit 1 stands for {one}, bit 0 for {zero}." for (zero, one), names in same.items()]
    return notes + bits
