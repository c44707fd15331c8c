"""How one column of a table becomes bits or numbers: the kinds of column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparsact.datasets.moments import EXACT
from sparsact.datasets.spelling import DecimalPlaces, as_number, exact

Points = NDArray[Any]  # bits (m, n) as uint8, or float64 where some column is a real number


@dataclass(frozen=True)
class Bit:
    """A column of two values: bit 0 stands for ``values[0]``, bit 1 for ``values[1]``. A constant has one value."""

    kind: ClassVar[str] = "bit"
    name: str
    values: tuple[str, ...]

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the bits that the column gives."""
        return (self.name,)

    def encode(self, array: pa.Array, first_row: int) -> NDArray[np.uint8]:
        """Bits of a piece of the column, shape (m, 1)."""
        return codes(array, self.values, self.name, first_row)[:, None].astype(np.uint8)


@dataclass(frozen=True)
class BitString:
    """A column of texts such as ``0010110``, all of one length: one bit a character, from left to right."""

    kind: ClassVar[str] = "bit string"
    name: str
    length: int

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the bits that the column gives."""
        return tuple(f"{self.name}[{i}]" for i in range(self.length))

    def encode(self, array: pa.Array, first_row: int) -> NDArray[np.uint8]:
        """Bits of a piece of the column, shape (m, length)."""
        refuse_missing(array, self.name, first_row)
        characters = equal_length_bytes(array)
        if characters is not None and characters.shape[1] == self.length and is_zero_one(characters):
            bits: NDArray[np.uint8] = characters - np.uint8(ord("0"))
            return bits
        wrong = next(i for i, text in enumerate(array.to_pylist()) if not self._holds(str(text)))
        raise ValueError(
            f"column {self.name!r}, row {first_row + wrong + 1}: {array[wrong].as_py()!r} is not a string of "
            f"{self.length} bits, as the table that was learned from had."
        )

    def _holds(self, text: str) -> bool:
        return len(text) == self.length and set(text) <= {"0", "1"}


@dataclass(frozen=True)
class OneHot:
    """A column of a few categories: one bit a category, 1 where the row has it."""

    kind: ClassVar[str] = "one-hot"
    name: str
    values: tuple[str, ...]

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the bits that the column gives."""
        return tuple(f"{self.name}={value}" for value in self.values)

    def encode(self, array: pa.Array, first_row: int) -> NDArray[np.uint8]:
        """Bits of a piece of the column, shape (m, categories)."""
        which = codes(array, self.values, self.name, first_row)
        return np.equal(which[:, None], np.arange(len(self.values))).astype(np.uint8)


@dataclass(frozen=True)
class Real:
    """A column of numbers: a target, or a feature, of which ``centre`` is taken off before it is divided by ``scale``.

    Both are frozen with the encoding, so that a new table is scaled as the one that was learned from.
    """

    kind: ClassVar[str] = "real"
    name: str
    centre: float = 0.0
    scale: float = 1.0

    @property
    def features(self) -> tuple[str, ...]:
        """The one name."""
        return (self.name,)

    def encode(self, array: pa.Array, first_row: int) -> NDArray[np.float64]:
        """Scaled numbers of a piece of the column, shape (m, 1)."""
        values, rest = numbers_and_rest(array, self.name, first_row)
        if rest is None:
            return ((values - self.centre) / self.scale)[:, None]
        if (self.centre, self.scale) == (0.0, 1.0):
            raise _too_long(array, self.name, first_row, int(np.flatnonzero(rest)[0]))
        apart = values - self.centre
        back = apart - values  # of Knuth's exact difference
        lost = (values - (apart - back)) - (self.centre + back)
        return ((apart + (rest + lost)) / self.scale)[:, None]


@dataclass(frozen=True)
class Classes:
    """A target of categories: the number of each row's class in ``values``, which are in the order of ``labels``."""

    kind: ClassVar[str] = "classes"
    name: str
    values: tuple[str, ...]

    @property
    def features(self) -> tuple[str, ...]:
        """The one name."""
        return (self.name,)

    def encode(self, array: pa.Array, first_row: int) -> NDArray[np.float64]:
        """Class numbers of a piece of the column, shape (m, 1)."""
        return codes(array, self.values, self.name, first_row)[:, None].astype(np.float64)

    @property
    def labels(self) -> NDArray[Any]:
        """What a classifier calls the classes: whole numbers where all are, else texts. Sorted."""
        if all(as_number(value) is not None for value in self.values):
            numbers = [exact(value) for value in self.values]
            if all(n.denominator == 1 and abs(n) < 2**63 for n in numbers) and len(set(numbers)) == len(numbers):
                return np.array([int(n) for n in numbers])
        return np.array(self.values)


Column = Bit | BitString | OneHot | Real | Classes
KINDS: dict[str, Any] = {kind.kind: kind for kind in (Bit, BitString, OneHot, Real, Classes)}


def codes(array: pa.Array, values: tuple[str, ...], name: str, first_row: int) -> NDArray[np.intp]:
    """Place of each entry in ``values``. Only the distinct entries pass through Python."""
    refuse_missing(array, name, first_row)
    encoded = pc.dictionary_encode(array)
    places = DecimalPlaces(values)
    entries = [places.of(entry) for entry in encoded.dictionary.to_pylist()]
    found: NDArray[np.intp] = np.array(entries, dtype=np.intp)[encoded.indices.to_numpy()]
    if (found < 0).any():
        row = int(np.argmin(found))
        known = ", ".join(map(repr, values[:8])) + (", ..." if len(values) > 8 else "")
        raise ValueError(
            f"column {name!r}, row {first_row + row + 1}: {array[row].as_py()!r} is not among the values "
            f"of this column in the table that was learned from ({known})."
        )
    return found


def numbers(array: pa.Array, name: str, first_row: int) -> NDArray[np.float64]:
    """Finite numbers of a piece of a column, shape (m,); an integer that float64 does not hold is refused."""
    values, rest = numbers_and_rest(array, name, first_row)
    if rest is not None:
        raise _too_long(array, name, first_row, int(np.flatnonzero(rest)[0]))
    return values


def numbers_and_rest(
    array: pa.Array, name: str, first_row: int
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Finite numbers of a piece of a column, and what rounding to float64 took off them, if it took something.

    Only integers beyond 2**53 are rounded so: a text with a decimal point or an exponent is the nearest float64.
    """
    refuse_missing(array, name, first_row)
    try:
        trimmed = pc.utf8_trim_whitespace(array) if is_text(array) else array
        values = np.asarray(pc.cast(trimmed, pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        wrong = next((i for i, v in enumerate(array.to_pylist()) if as_number(str(v).strip()) is None), 0)
        raise _not_a_number(array, name, first_row, wrong) from None
    if not np.isfinite(values).all():
        raise _not_a_number(array, name, first_row, int(np.argmin(np.isfinite(values))))
    if not (is_text(array) or pa.types.is_integer(array.type)):
        return values, None
    rest = np.zeros(len(values))
    for row in np.flatnonzero(np.abs(values) >= EXACT).tolist():
        text = str(array[row].as_py()).strip()
        if text.lstrip("+-").isdecimal():
            rest[row] = int(text) - int(values[row])
    return values, rest if rest.any() else None


def is_text(array: pa.Array) -> bool:
    """Whether a column holds texts."""
    return bool(pa.types.is_string(array.type) or pa.types.is_large_string(array.type))


def _not_a_number(array: pa.Array, name: str, first_row: int, row: int) -> ValueError:
    fact = f"column {name!r}, row {first_row + row + 1}: {array[row].as_py()!r} is not a finite number"
    return ValueError(f"{fact}; correct the row, or leave the column out.")


def _too_long(array: pa.Array, name: str, first_row: int, row: int) -> ValueError:
    return ValueError(
        f"column {name!r}, row {first_row + row + 1}: {array[row].as_py()} is an integer beyond 2**53 that float64 "
        "would round; subtract a constant from the column, or write it with a decimal point if rounding does no harm."
    )


def refuse_missing(array: pa.Array, name: str, first_row: int, remedy: str = "fill it in, or drop the row") -> None:
    """Raise if an entry is empty or NaN."""
    missing = array.is_null(nan_is_null=True)
    if pc.any(missing).as_py():
        row = first_row + missing.index(True).as_py() + 1
        raise ValueError(f"column {name!r}, row {row}: the value is missing; {remedy}.")


def equal_length_bytes(array: pa.Array) -> NDArray[np.uint8] | None:
    """Characters of a column of texts, shape (m, length), where all have one length in bytes; else None."""
    if not is_text(array) or not len(array):
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


def column_of(description: dict[str, Any]) -> Column:
    """A column from its JSON description (see :class:`~sparsact.datasets.encoding.Encoding`)."""
    fields = {key: tuple(v) if isinstance(v, list) else v for key, v in description.items() if key != "kind"}
    column: Column = KINDS[description["kind"]](**fields)
    for name, value in fields.items():
        if not _FIELDS[name](value):
            raise ValueError(f"`{name}` of a column is {str(value)[:40]}, which it cannot be")
    return column


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


LONGEST_BIT_STRING = 2**20

# What the fields of a column hold, in a description that may come from anyone.
_FIELDS: dict[str, Callable[[Any], bool]] = {
    "name": _is_text,
    "values": lambda value: isinstance(value, tuple) and len(value) > 0 and all(map(_is_text, value)),
    "length": lambda value: type(value) is int and 0 < value <= LONGEST_BIT_STRING,
    "centre": lambda value: type(value) in (int, float) and isfinite(value),
    "scale": lambda value: type(value) in (int, float) and isfinite(value) and value != 0,
}
