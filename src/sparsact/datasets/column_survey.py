"""What a column holds, learned in one streaming pass, and the kind of column that this makes it.

Nothing here depends on how the rows are cut into batches or files: what is summed is summed exactly, and what is
recorded is recorded in the order of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparsact.datasets.cell_values import (
    DASHES,
    as_number,
    exact,
    has_code,
    identities,
    is_infinite,
    is_numeric,
    is_text,
    is_written_amount,
    numbers,
    numbers_and_rest,
    refuse_missing,
    texts_of,
    two_values,
    zero_one_digits,
)
from sparsact.datasets.columns import MISSING, Bit, Column, MissingBit, OneHot, Real
from sparsact.datasets.sequences import WordSurvey, odd_rows
from sparsact.datasets.sites import BitString
from sparsact.datasets.value_counts import MODULUS, NumberSums, RowNumbers, number_keys
from sparsact.statistics.hashing import mixed

MAX_CATEGORIES: Final = 64
NEARLY_ALL: Final = 0.9  # of the rows have a text of their own where texts are identifiers
FEW_TEXTS: Final = 10  # are categories unless every row has its own
MOST_LETTERS: Final = 26  # of the alphabet of a sequence
BIT_SPELLINGS: Final = ("0", "1", "-1")
ROW_NUMBER_NAMES: Final = (
    *("", "#", "id", "idx", "index", "no", "nr", "number", "row", "row id", "row number", "rowname", "rownames"),
    *("row_id", "row_number", "rowid", "rownumber", "unnamed: 0"),
)


class UnfitError(ValueError):
    """A column that cannot be a feature. ``fact`` says why; ``remedy`` is what to do."""

    def __init__(self, name: str, fact: str, remedy: str = "") -> None:
        super().__init__(f"column {name!r}{fact}; {remedy or f'leave it out with ignore={name!r}'}.")
        self.name = name
        self.fact = fact


class IdentifierError(UnfitError):
    """A column that identifies rows, such as a name or a row number: nothing can be learned from it."""


@dataclass
class Seen:
    """A text of a column: the first row that has it (in words), how many rows have it, and their digest."""

    first: str
    count: int
    digest: int


# Fields of a survey that JSON holds as they are.
_PLAIN: Final = ("numeric", "rows_until_full", "width", "ragged", "leading_zero", "lacking")


@dataclass
class ColumnSurvey:
    """Running summary of a feature column.

    Every distinct text is recorded, with the rows that have it, up to 64 where all are numbers, else up to
    ``most_texts``. Numbers beyond that are summed. ``domain`` says what becomes of numbers of more than two values:
    ``"cube"`` refuses them, ``"auto"`` standardises them, ``"real"`` takes them as they are.
    """

    name: str
    domain: str = "cube"
    most_texts: int = MAX_CATEGORIES
    seen: dict[str, Seen] = field(default_factory=dict)
    numeric: bool = True  # all texts seen are numbers, or true or false
    rows_until_full: int = 0  # rows up to the first text that found no room; 0 while there is room
    width: int | None = None  # of its longest string of digits 0 and 1; 0 once a value is none
    ragged: bool = False  # whether some of these are shorter, or numbers, which have lost their zeros
    leading_zero: bool = False
    sums: NumberSums = field(default_factory=NumberSums)  # of numbers, once there is no room
    digest: int = 0  # of the column of numbers
    bit_digests: NDArray[np.uint64] | None = None  # of the rows that have each bit of a bit string
    wild_type: str | None = None
    words: WordSurvey = field(default_factory=WordSurvey)
    keep_missing: bool = False  # instead of refusing them
    lacking: bool = False  # some value was missing

    def update(self, array: pa.Array, first_row: int, file: str, overall: int, rows: RowNumbers) -> None:
        """Add the next piece of the column, before which are ``first_row`` rows in its file and ``overall`` in all."""
        remedy = f"fill it in, or leave out such rows (drop_missing=True) or the column (ignore={self.name!r})"
        if self.keep_missing and array.null_count + (there := pc.invert(array.is_null(nan_is_null=True))).false_count:
            self.lacking, array, rows = True, array.filter(there), rows.some(np.asarray(there))
        refuse_missing(array, self.name, first_row, remedy)
        if pa.types.is_floating(array.type):
            numbers(array, self.name, first_row)  # refuses what is infinite
        self._see_bits(array, rows)
        if is_text(array.type):
            self.words.update(array, first_row, file, rows)
        if not self.rows_until_full:
            self._see_texts(array, first_row, file, overall, rows)
        if self.rows_until_full and self.numeric:
            self.leading_zero |= is_text(array.type) and has_code(array)
            values, rest = numbers_and_rest(array, self.name, first_row)
            self.sums.update(values, rest)
            self.digest = (self.digest + rows.of_values(number_keys(values, rest))) % MODULUS

    def _see_bits(self, array: pa.Array, rows: RowNumbers) -> None:
        if self.width == 0 or not len(array):
            return
        characters, added = zero_one_digits(array)
        if characters is None:
            self.width, self.bit_digests = 0, None
            return
        width = characters.shape[1]
        self.ragged |= added or self.width not in (None, width)
        if width > 1 and is_text(array.type):
            self.leading_zero |= has_code(array) if added else bool((characters[:, 0] == ord("0")).any())
        longest = max(width, self.width or 0)
        if longest > 1:
            ones = self.digests().get("1", 0)  # of the rows before, if all were 0 or 1
            before = np.array([ones], dtype=np.uint64) if self.bit_digests is None else self.bit_digests
            grown = np.zeros(longest, dtype=np.uint64)
            grown[longest - len(before) :] = before
            grown[longest - width :] += rows.of_bits(characters & np.uint8(1))
            self.bit_digests = grown
        self.width = longest

    def _see_texts(self, array: pa.Array, first_row: int, file: str, overall: int, rows: RowNumbers) -> None:
        encoded = pc.dictionary_encode(array)
        group = encoded.indices.to_numpy()
        n_groups = len(encoded.dictionary)
        first = np.empty(n_groups, dtype=np.intp)
        first[group[::-1]] = np.arange(len(group))[::-1]
        found: list[Seen] = []
        for place, text in enumerate(texts_of(encoded.dictionary)):
            if text not in self.seen:
                numeric = self.numeric and is_numeric((text,))
                if len(self.seen) >= (MAX_CATEGORIES if numeric else self.most_texts):
                    self.rows_until_full = overall + int(first[place]) + 1
                    self._begin_sums()
                    return
                self.numeric = numeric
                self.seen[text] = Seen(f"{file}row {first_row + int(first[place]) + 1}", 0, 0)
            found.append(self.seen[text])
        counts = np.bincount(group, minlength=n_groups).tolist()
        for one, count, digest in zip(found, counts, rows.of_groups(group, n_groups), strict=True):
            one.count += count
            one.digest = (one.digest + digest) % MODULUS

    def _begin_sums(self) -> None:
        """Sum up the numbers whose rows have been counted so far."""
        if not self.numeric:
            return
        for text, one in self.seen.items():
            number = exact(text)
            self.sums.add(number, one.count)
            key = number_keys(np.array([float(number)]), np.array([float(number - Fraction(float(number)))]))
            self.digest = (self.digest + one.digest * int(mixed(key)[0])) % MODULUS

    def state(self) -> dict[str, Any]:
        """All that was seen, as JSON spells it."""
        plain = {name: getattr(self, name) for name in _PLAIN}
        seen = [[text, one.first, one.count, str(one.digest)] for text, one in self.seen.items()]
        bits = None if self.bit_digests is None else list(map(str, self.bit_digests.tolist()))
        return plain | {
            "words": self.words.state(),
            "seen": seen,
            "sums": self.sums.state(),
            "digest": str(self.digest),
            "bits": bits,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the survey of the same column from a saved state."""
        for name in _PLAIN:
            setattr(self, name, state.get(name, False))
        self.seen = {text: Seen(first, int(count), int(digest)) for text, first, count, digest in state["seen"]}
        self.words.restore(state.get("words"))  # files of earlier versions have none
        self.sums, self.digest = NumberSums.restored(state["sums"]), int(state["digest"])
        self.bit_digests = None if state["bits"] is None else np.array(list(map(int, state["bits"])), dtype=np.uint64)

    @property
    def full(self) -> bool:
        """Whether there are more texts than were recorded."""
        return self.rows_until_full > 0

    @property
    def values(self) -> tuple[str, ...]:
        """The distinct values that were recorded, in the order of their first rows."""
        return tuple(dict.fromkeys(identities(self.seen).values()))

    @property
    def number_sums(self) -> NumberSums | None:
        """Sums of a column of numbers; None of others. For a column that has been read to its end."""
        if not self.numeric or (self.full and self.leading_zero):
            return None
        if not self.full and not self.sums.count:
            self._begin_sums()
        return self.sums

    def digests(self) -> dict[str, int]:
        """Digest of the rows that have each value that was recorded."""
        found: dict[str, int] = {}
        for text, value in identities(self.seen).items():
            found[value] = (found.get(value, 0) + self.seen[text].digest) % MODULUS
        return found

    def columns(self, n_rows: int) -> list[Column]:
        """What the column becomes; a column of numbers that lacks some has a bit beside it."""
        column = self.column(n_rows)
        if self.keep_missing and isinstance(column, Real):
            mark = MissingBit(self.name, ("present", "missing"))
            return [replace(column, fill=self.sums.mean), *[mark] * self.lacking]
        if not self.lacking:
            return [column]
        if not isinstance(column, Bit | OneHot):
            raise UnfitError(self.name, " has missing values, which only numbers and categories may have")
        return [OneHot(self.name, (MISSING, *sorted({*self.values} - {MISSING})))]

    def column(self, n_rows: int) -> Column:
        """The kind of column that the values make it.

        An UnfitError is raised if it is neither bits nor a few categories (nor, unless ``domain="cube"``, numbers).
        """
        values = self.values
        if self._is_bit_string(values):
            return BitString(self.name, self.width or 0, self.ragged)
        if len(values) <= 2:
            return Bit(self.name, two_values(values, self.wild_type))
        if (sums := self.number_sums) is not None:
            return self._number(sums)
        n_distinct, among = (len(self.seen) + 1, self.rows_until_full) if self.full else (len(self.seen), n_rows)
        own = n_distinct >= (NEARLY_ALL * among if n_distinct > FEW_TEXTS else among)
        many = self.full or len(values) > MAX_CATEGORIES
        sequences = self.words.column(self.name, len(values), wild_type=self.wild_type, many=own or many)
        if sequences is not None:
            return sequences
        self._refuse_odd_numbers(most=own or many)
        if (own or many) and (odd := self.odd_rows(few=False)):
            remedy = f"correct these rows, drop them, or leave the column out with ignore={self.name!r}"
            raise UnfitError(self.name, f": {odd}", remedy)
        if own:
            raise IdentifierError(self.name, " has a different text in nearly every row, like an identifier")
        if many:
            raise UnfitError(self.name, f" holds more than {MAX_CATEGORIES} different texts, too many to be categories")
        return OneHot(self.name, tuple(sorted(values)))

    def _is_bit_string(self, values: tuple[str, ...]) -> bool:
        """Whether the values are strings of bits; if their zeros were lost, with some that no power of ten is."""
        if not self.width or self.width == 1:
            return False
        if not self.ragged:
            return self.leading_zero or (len(values) > 2 and self.domain != "real")
        return self.domain != "real" and len(values) > 3 and any(value.count("1") > 1 for value in values)

    def _number(self, sums: NumberSums) -> Real:
        if self.name.strip().casefold() in ROW_NUMBER_NAMES and sums.is_row_number:
            raise IdentifierError(self.name, f" numbers the rows from {sums.low:g} on")
        if self.domain == "cube":
            raise self._not_a_bit()
        scaled = self.domain == "auto"
        return Real(self.name, sums.mean, sums.deviation) if scaled else Real(self.name)

    def _refuse_odd_numbers(self, *, most: bool) -> None:
        """Raise if the texts that are not numbers are infinite or, where ``most`` says so, look like slips in numbers.

        A code such as 007 is neither a number nor a slip.
        """
        odd = [text for text in self.seen if not is_numeric((text,)) and not text.isdecimal()]
        n_numbers = sum(as_number(text) is not None for text in self.seen)
        slips = 2 * n_numbers >= len(self.seen) or all(map(is_written_amount, odd))
        if odd and (all(map(is_infinite, odd)) or (most and slips)):
            raise UnfitError(
                self.name,
                f", {self.seen[odd[0]].first}: {odd[0]!r} is not a finite number, unlike the other values",
                f"correct the column, or leave it out with ignore={self.name!r}"
                + ", or leave out rows of missing values with drop_missing=True" * (odd[0] in DASHES),
            )

    def odd_rows(self, *, few: bool = True) -> str:
        """Which rows keep the texts from being sequences, as nearly all are."""
        rows = {text: one.first for text, one in self.seen.items()}
        return odd_rows(rows, self.words.other, few=few)

    @property
    def letters(self) -> int:
        """Length of the texts, where all that were recorded have one length and few letters; else 0."""
        lengths = {len(text) for text in self.seen}
        return lengths.pop() if len(lengths) == 1 and len(set().union(*self.seen)) <= MOST_LETTERS else 0

    def _not_a_bit(self) -> UnfitError:
        first = {value: self.seen[text].first for text, value in reversed(identities(self.seen).items())}
        odd = next((value for value in self.values if value not in BIT_SPELLINGS), self.values[2])
        return UnfitError(
            self.name,
            f", {first[odd]}: {odd} is a value that is not a bit",
            f"leave the column out with ignore={self.name!r}, or allow numbers with domain='auto'",
        )
