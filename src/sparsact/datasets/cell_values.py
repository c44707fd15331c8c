"""Values of a column as texts and as numbers: spellings that mean the same, exact integers, characters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

DASHES: Final = ("-", "--", ".", "?", "\u2013", "\u2014")  # for what is missing among numbers; else they may be values
LEAVE_OUT: Final = "correct the row, or leave the column out"
DROP: Final = "fill it in, or leave such rows out with drop_missing=True"  # where a value is missing
EXACT: Final = 2**53  # from here on a float64 does not hold every integer
_NUMBER: Final = re.compile(r"([+-]?)(0|[1-9][0-9]*|[0-9]+(?=\.)|(?=\.[0-9]))(?:\.([0-9]*))?([eE][+-]?[0-9]+)?")
_BOOLEANS: Final = {"true": "1", "false": "0"}
_SWITCHES: Final = {  # of one meaning in either case, unlike the alleles A and a
    *("yes", "no", "on", "off", "wt", "mut", "ko"),
    *("present", "absent", "positive", "negative", "control", "treated"),
}
_LIMIT: Final = r"^[<>≤≥]=? ?([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)$"
_INFINITE: Final = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_AMOUNT: Final = re.compile(r"[+-]?[$€£]?[0-9][0-9., ]*([%€]|[dD][+-]?[0-9]+|[eE][+-]?[0-9]+)?")


class UnreadableError(ValueError):
    """Rows of a column that say nothing to a model: ``reasons`` by their places in a piece of the column."""

    def __init__(self, name: str, first_row: int, reasons: dict[int, str]) -> None:
        row = min(reasons)
        super().__init__(f"column {name!r}, row {first_row + row + 1}: {reasons[row]}")
        self.name, self.reasons = name, reasons


def as_number(text: str) -> float | None:
    """The finite number that a text spells, or None. A code with a leading zero, such as ``007``, is not a number."""
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    return number if isfinite(number) else None


def is_infinite(text: str) -> bool:
    """Whether a text spells an infinite number."""
    return bool(_INFINITE.fullmatch(text)) or (as_number(text) is None and bool(_NUMBER.fullmatch(text)))


def is_written_amount(text: str) -> bool:
    """Whether a text is an amount as people write it, such as ``1,037``, ``12 %``, ``$5`` or ``1.5D+02``."""
    return bool(_AMOUNT.fullmatch(text))


def spelling(value: object) -> str:
    """The text of a value, without the spaces around it."""
    return str(value).strip()


def is_numeric(spellings: Iterable[str]) -> bool:
    """Whether every text is a number, or true or false."""
    return all(text.casefold() in _BOOLEANS or as_number(text) is not None for text in spellings)


def canonical(text: str) -> str:
    """The spelling that stands for all decimal spellings of a number, and for true or false.

    Only signs and zeros that do not count are dropped, so that no two numbers become equal.

    >>> [canonical(text) for text in ("1", "1.0", "+1", "TRUE", "0.50", "-0", ".5", "9007199254740993", "1e3")]
    ['1', '1', '1', '1', '0.5', '0', '0.5', '9007199254740993', '1e3']
    """
    boolean = _BOOLEANS.get(text.casefold())
    parts = _NUMBER.fullmatch(text)
    if boolean or not parts or parts[4]:
        return boolean or text
    whole, decimals = parts[2].lstrip("0") or "0", (parts[3] or "").rstrip("0")
    number = f"{whole}.{decimals}" if decimals else whole
    return f"-{number}" if parts[1] == "-" and number != "0" else number


def exact(text: str) -> Fraction:
    """The number that a numeric text stands for: integers as they are, others rounded to float64."""
    number = _BOOLEANS.get(text.casefold(), text)
    return Fraction(int(number)) if number.lstrip("+-").isdecimal() else Fraction(float(number))


def identities(spellings: Iterable[str]) -> dict[str, str]:
    """The value that each spelling stands for: if all are numbers, their canonical spelling, else the text itself.

    Words such as yes and no that are spelled in several cases are lower case.

    >>> identities(["1", "1.0"]), identities(["1.1", "1.10", "1.2-rc"]), identities(["No", "NO"])
    ({'1': '1', '1.0': '1'}, {'1.1': '1.1', '1.10': '1.10', '1.2-rc': '1.2-rc'}, {'No': 'no', 'NO': 'no'})
    """
    texts = list(spellings)
    if len(words := {text.casefold() for text in texts}) < len(texts) and words <= _SWITCHES:
        return {text: text.casefold() for text in texts}
    numeric = is_numeric(texts)
    return {text: canonical(text) if numeric else text for text in texts}


def places(entries: Sequence[object], values: tuple[str, ...]) -> list[int]:
    """Where each entry, spelled in any way, stands in a list of distinct values; -1 if it is not among them."""
    known = {value: place for place, value in enumerate(values)}
    words = {value.casefold(): place for value, place in known.items()}
    if len(words) == len(known) and words.keys() <= _SWITCHES:
        return [words.get(spelling(entry).casefold(), -1) for entry in entries]
    numeric = is_numeric(values)

    def place(text: str) -> int:
        found = known.get(canonical(text) if numeric else text, -1)
        if found < 0 and numeric and as_number(text) is not None:  # 1e-5 may be spelled 1e-05
            equal = [place for value, place in known.items() if Decimal(value) == Decimal(text)]
            return equal[0] if len(equal) == 1 else -1
        return found

    return [place(spelling(entry)) for entry in entries]


def codes(array: pa.Array, values: tuple[str, ...], name: str, first_row: int) -> NDArray[np.intp]:
    """Position of each entry of a piece of a column in ``values``. Only the distinct entries pass through Python."""
    refuse_missing(array, name, first_row)
    encoded = pc.dictionary_encode(array)
    of_entries = places(encoded.dictionary.to_pylist(), values)
    found: NDArray[np.intp] = np.array(of_entries, dtype=np.intp)[encoded.indices.to_numpy()]
    if (found < 0).any():
        known = ", ".join(map(repr, values[:8])) + (", ..." if len(values) > 8 else "")
        why = f"is not among the values of this column in the training table ({known})."
        reasons = {row: f"{array[row].as_py()!r} {why}" for row in np.flatnonzero(found < 0).tolist()}
        raise UnreadableError(name, first_row, reasons)
    return found


def numbers(array: pa.Array, name: str, first_row: int, remedy: str = LEAVE_OUT) -> NDArray[np.float64]:
    """Finite numbers of a piece of a column, shape (m,); an integer that float64 does not hold is refused."""
    values, rest = numbers_and_rest(array, name, first_row, remedy)
    if rest is not None:
        raise too_long(array, name, first_row, int(np.flatnonzero(rest)[0]))
    return values


def numbers_and_rest(
    array: pa.Array, name: str, first_row: int, remedy: str = LEAVE_OUT
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Finite numbers of a piece of a column, and what rounding to float64 took off them, if it took something.

    Only integers beyond 2**53 are rounded so: a text with a decimal point or an exponent is the nearest float64.
    """
    refuse_missing(array, name, first_row)
    try:
        trimmed = pc.utf8_trim_whitespace(array) if is_text(array.type) else array
        values = np.asarray(pc.cast(trimmed, pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        wrong = [i for i, v in enumerate(array.to_pylist()) if as_number(str(v).strip()) is None]
        raise _not_numbers(array, name, first_row, wrong or [0], remedy) from None
    if not np.isfinite(values).all():
        raise _not_numbers(array, name, first_row, np.flatnonzero(~np.isfinite(values)).tolist(), remedy)
    if not (is_text(array.type) or pa.types.is_integer(array.type)):
        return values, None
    rest = np.zeros(len(values))
    for row in np.flatnonzero(np.abs(values) >= EXACT).tolist():
        text = str(array[row].as_py()).strip()
        if text.lstrip("+-").isdecimal():
            rest[row] = int(text) - int(values[row])
    return values, rest if rest.any() else None


def is_text(kind: pa.DataType) -> bool:
    """Whether a kind of values is texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _not_numbers(array: pa.Array, name: str, first_row: int, rows: Sequence[int], remedy: str) -> UnreadableError:
    remedies = dict.fromkeys(DASHES, "if it means a missing value, drop_missing=True leaves its row out")
    texts = ((row, str(array[row].as_py())) for row in rows)
    pairs = ((row, text, remedies.get(text.strip(), remedy)) for row, text in texts)
    return UnreadableError(name, first_row, {row: f"{text!r} is not a finite number; {do}." for row, text, do in pairs})


def logarithms(values: NDArray[np.float64], name: str, first_row: int) -> NDArray[np.float64]:
    """Natural logarithms of the numbers (m, 1) of a piece of a column."""
    if len(bad := np.flatnonzero(~(values[:, 0] > 0))):
        why = "has no logarithm; set log_target=False, or correct the row."
        raise UnreadableError(name, first_row, {int(row): f"{values[row, 0]:g} {why}" for row in bad})
    return np.asarray(np.log(values))


def at_limits(array: pa.Array) -> pa.Array:
    """A column of text in which cells such as ``<2.5`` and ``>= 10`` have become the number of their limit."""
    return pc.replace_substring_regex(array, _LIMIT, r"\1") if is_text(array.type) else array


def too_long(array: pa.Array, name: str, first_row: int, row: int) -> ValueError:
    """The error for an integer that float64 would round."""
    return ValueError(
        f"column {name!r}, row {first_row + row + 1}: {array[row].as_py()} is an integer beyond 2**53, which float64 "
        "would round; subtract a constant from the column, or write it with a decimal point if rounding is harmless."
    )


def refuse_missing(array: pa.Array, name: str, first_row: int, remedy: str = "fill it in, or drop the row") -> None:
    """Raise if an entry is empty or NaN."""
    missing = array.is_null(nan_is_null=True)
    if pc.any(missing).as_py():
        rows = np.flatnonzero(np.asarray(missing)).tolist()
        raise UnreadableError(name, first_row, dict.fromkeys(rows, f"the value is missing; {remedy}."))


def equal_length_bytes(array: pa.Array) -> NDArray[np.uint8] | None:
    """Characters of a column of texts, shape (m, length), where all have one length in bytes; else None."""
    if not is_text(array.type) or not len(array):
        return None
    wide = np.int64 if pa.types.is_large_string(array.type) else np.int32
    _, offset_buffer, data = array.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=wide)[array.offset : array.offset + len(array) + 1]
    length = int(offsets[1] - offsets[0])
    if length == 0 or (np.diff(offsets) != length).any():
        return None
    return np.frombuffer(data, dtype=np.uint8)[offsets[0] : offsets[-1]].reshape(len(array), length)


def is_zero_one(characters: NDArray[np.uint8]) -> bool:
    """Whether every character is ``0`` or ``1``."""
    return bool(((characters & 0xFE) == ord("0")).all())


def zero_one_digits(array: pa.Array) -> tuple[NDArray[np.uint8] | None, bool]:
    """Characters 0 and 1 of the whole numbers or texts of a column, shape (m, length), and whether zeros were added.

    None where some value has other characters. Zeros are put before numbers and before texts shorter than others.
    """
    if is_text(array.type):
        characters = equal_length_bytes(array)
        if characters is not None:
            return (characters if is_zero_one(characters) else None), False
        texts = array
    else:
        if pa.types.is_floating(array.type):
            whole = np.asarray(array)
            if not (np.abs(whole) < EXACT).all() or (whole % 1).any():
                return None, False
            array = pa.array(whole.astype(np.int64))
        if not pa.types.is_integer(array.type) or set(str(array[0].as_py())) - {"0", "1"}:
            return None, False
        if pc.max(array).as_py() <= 1 and pc.min(array).as_py() >= 0:
            return (np.asarray(array)[:, None] + ord("0")).astype(np.uint8), True
        texts = array.cast(pa.string())
    if not pc.all(pc.match_substring_regex(texts, "^[01]+$")).as_py():
        return None, False
    return equal_length_bytes(pc.utf8_lpad(texts, pc.max(pc.utf8_length(texts)).as_py(), padding="0")), True


def has_code(array: pa.Array) -> bool:
    """Whether some text is digits after a leading zero, as codes are and integers are not."""
    return bool(pc.any(pc.match_substring_regex(array, r"^\s*[+-]?0[0-9]+\s*$")).as_py())


def texts_of(dictionary: pa.Array) -> Iterator[str]:
    """Texts of distinct values, made only when they are read."""
    for start in range(0, len(dictionary), 128):
        yield from map(spelling, dictionary[start : start + 128].to_pylist())


REFERENCES: Final = frozenset(  # what something is compared with, in the words of tables of experiments
    {"wt", "wildtype", "wild-type", "wild_type", "ref", "reference", "control", "ctrl", "untreated", "parental"}
    | {"-", "none", "no", "off", "false", "absent"}
)


def two_values(values: tuple[str, ...], wild_type: str | None = None) -> tuple[str, ...]:
    """Which value is bit 0 and which is bit 1: the smaller is 0, but of the signs 1 and -1, -1 is bit 1.

    A value that names what the other is compared with, such as "wt", "REF" or "control", is 0, and so is the wild
    type's; other texts go in alphabetical order. A constant 0 or 1 keeps its meaning.

    >>> two_values(("yes", "no")), two_values(("-1", "1")), two_values(("20", "3")), two_values(("1",))
    (('no', 'yes'), ('1', '-1'), ('3', '20'), ('0', '1'))
    >>> two_values(("KO", "WT")), two_values(("+", "-")), two_values(("mut", "wt")), two_values(("0", "1"), "1")
    (('WT', 'KO'), ('-', '+'), ('wt', 'mut'), ('1', '0'))
    """
    if wild_type in values and len(values) > 1:
        return tuple(sorted(values, key=lambda value: value != wild_type))
    if set(values) <= {"0", "1"}:
        return ("0", "1")
    if set(values) <= {"-1", "1"}:
        return ("1", "-1")
    return tuple(sorted(in_order(set(values)), key=lambda value: value.casefold() not in REFERENCES))


def in_order(values: set[str]) -> list[str]:
    """Numbers by size; texts, or numbers among texts, by alphabet."""
    if not is_numeric(values):
        return sorted(values)
    return sorted(values, key=lambda value: (exact(value), value))


NAMES_SHOWN: Final = 12


def listed(names: Sequence[str]) -> str:
    """The first of the names, and how many more there are."""
    return ", ".join(name if name.strip() else repr(name) for name in names[:NAMES_SHOWN]) + (
        f" and {len(names) - NAMES_SHOWN:,} more" if names[NAMES_SHOWN:] else ""
    )
