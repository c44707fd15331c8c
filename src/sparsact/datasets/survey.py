"""What a column holds, learned in one streaming pass, and the kind of column that this makes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparsact.datasets.columns import (
    Bit,
    BitString,
    Classes,
    Column,
    OneHot,
    Real,
    as_number,
    canonical,
    equal_length_bytes,
    is_zero_one,
    numbers,
    refuse_missing,
)
from sparsact.datasets.moments import RunningMoments

MAX_CATEGORIES = 64
NAMES_SHOWN = 12
BIT_SPELLINGS = ("0", "1", "-1")


class UnfitError(ValueError):
    """A column that cannot be a feature. ``fact`` says why; ``remedy`` is an option of the command."""

    def __init__(self, name: str, fact: str, remedy: str) -> None:
        super().__init__(f"column {name!r}{fact}; {remedy}.")
        self.name = name
        self.fact = fact


@dataclass
class ColumnSurvey:
    """Running summary of a feature column: distinct values (up to a limit), whether it holds bit strings, its scale.

    ``domain`` says what becomes of numbers of more than two values: ``"cube"`` refuses them, ``"auto"`` standardises
    them, ``"real"`` takes them as they are.
    """

    name: str
    domain: str = "cube"
    values: dict[str, str] = field(default_factory=dict)  # canonical value -> first row that has it, in words
    width: int | None = None  # length of its bit strings; 0 once a value is not one
    leading_zero: bool = False
    numeric: bool = True
    moments: RunningMoments = field(default_factory=RunningMoments)
    early: Counter[str] = field(default_factory=Counter)  # rows of each value, while there are no more than two

    def update(self, array: pa.Array, first_row: int, file: str = "") -> None:
        """Add the next piece of the column; ``file`` names its file in messages, where there are several."""
        remedy = f"fill it in, drop the row, or leave the column out with --ignore {quote(self.name)}"
        refuse_missing(array, self.name, first_row, remedy)
        self._see_width(array)
        counts = self._see_values(array, first_row, file) if len(self.values) <= MAX_CATEGORIES else Counter[str]()
        if self.domain != "cube" and self.numeric and len(self.values) > 2 and not self.width:
            for value, count in self.early.items():
                self.moments.update(np.full(count, float(value)))
            self.early.clear()
            self.moments.update(numbers(array, self.name, first_row))
        elif len(self.values) <= 2:
            self.early.update(counts)

    def _see_width(self, array: pa.Array) -> None:
        if self.width == 0 or not len(array):
            return
        characters = equal_length_bytes(array)
        width = 0 if characters is None or not is_zero_one(characters) else characters.shape[1]
        self.width = width if width > 1 and self.width in (None, width) else 0
        if self.width and characters is not None:
            self.leading_zero |= bool((characters[:, 0] == ord("0")).any())

    def _see_values(self, array: pa.Array, first_row: int, file: str) -> Counter[str]:
        """Rows of each value of a piece (of the first values, where there are many)."""
        counts = Counter[str]()
        for entry in pc.value_counts(array)[: 2 * MAX_CATEGORIES].to_pylist():
            value = entry["values"]
            spelled = canonical(value)
            counts[spelled] += entry["counts"]
            if spelled not in self.values:
                row = first_row + array.index(pa.scalar(value, array.type)).as_py() + 1
                self.values[spelled] = f"{file}row {row}"
                self.numeric &= as_number(spelled) is not None
        return counts

    def state(self) -> dict[str, Any]:
        """All that was seen, as JSON spells it."""
        seen = {name: getattr(self, name) for name in ("width", "leading_zero", "numeric")}
        pairs = {"values": list(self.values.items()), "early": list(self.early.items())}  # JSON forgets an order
        return seen | pairs | {"moments": [self.moments.count, *map(float.hex, self.moments.floats)]}

    def restore(self, state: dict[str, Any]) -> None:
        """Have seen what another survey of the column had seen."""
        self.width, self.leading_zero, self.numeric = (state[name] for name in ("width", "leading_zero", "numeric"))
        self.values, self.early = dict(state["values"]), Counter(dict(state["early"]))
        count, *floats = state["moments"]
        self.moments = RunningMoments(int(count), *map(float.fromhex, floats))

    def column(self) -> Column:
        """The kind of column that the values make it.

        Raises
        ------
        UnfitError
            If it is neither bits nor a few categories (nor, unless ``domain="cube"``, numbers).
        """
        if self.width and (self.leading_zero or (len(self.values) > 2 and self.domain != "real")):
            return BitString(self.name, self.width)
        if len(self.values) <= 2:
            return Bit(self.name, two_values(tuple(self.values)))
        if self.numeric:
            if self.domain == "cube":
                raise self._not_a_bit()
            scaled = self.domain == "auto"
            return Real(self.name, self.moments.mean, self.moments.deviation) if scaled else Real(self.name)
        if len(self.values) <= MAX_CATEGORIES:
            return OneHot(self.name, tuple(sorted(self.values)))
        raise UnfitError(
            self.name,
            f" holds more than {MAX_CATEGORIES} different texts, too many to be categories",
            f"leave it out with --ignore {quote(self.name)}",
        )

    def _not_a_bit(self) -> UnfitError:
        odd = [value for value in self.values if value not in BIT_SPELLINGS] or [list(self.values)[2]]
        return UnfitError(
            self.name,
            f", {self.values[odd[0]]}: {odd[0]} is a value that is not a bit",
            f"leave the column out with --ignore {quote(self.name)}, or let columns be numbers with --domain auto",
        )

    def note(self) -> str | None:
        """A sentence for the report, where a column that varies is not simply 0 and 1."""
        column = self.column()
        if isinstance(column, BitString):
            return f"{self.name}: strings of {column.length} bits, expanded into as many columns."
        if isinstance(column, OneHot):
            return f"{self.name}: {len(column.values)} categories, one bit each (one-hot)."
        if isinstance(column, Real):
            return None  # one note for all of them: see `numbers_note`
        if set(column.values) == {"0", "1"}:
            return None
        return f"{self.name}: bit 1 stands for {column.values[1]}, bit 0 for {column.values[0]}."


@dataclass
class TargetSurvey:
    """Running summary of a target column."""

    name: str
    task: str = "auto"
    low: float = np.inf
    high: float = -np.inf
    classes: set[str] = field(default_factory=set)
    numeric: bool | None = None  # decided by the first rows

    def update(self, array: pa.Array, first_row: int, file: str = "") -> None:
        """Add the next piece of the column."""
        refuse_missing(array, self.name, first_row)
        if not len(array):
            return
        if self.numeric is None:
            self.numeric = self.task != "classification" and self._is_number(array)
        if self.numeric:
            values = numbers(array, self.name, first_row)
            self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
        else:
            self._see_classes(array)

    def _is_number(self, array: pa.Array) -> bool:
        text = str(array[0].as_py())
        return self.task == "regression" or (as_number(text) is not None and text not in ("True", "False"))

    def _see_classes(self, array: pa.Array) -> None:
        self.classes |= {canonical(value) for value in pc.unique(array)[: 2 * MAX_CATEGORIES].to_pylist()}
        if len(self.classes) > MAX_CATEGORIES:
            raise ValueError(
                f"target {self.name!r} holds more than {MAX_CATEGORIES} classes; "
                "choose a target with fewer, or --task regression if it is a number."
            )

    def state(self) -> dict[str, Any]:
        """All that was seen, as JSON spells it."""
        return {
            "low": float.hex(self.low),
            "high": float.hex(self.high),
            "classes": sorted(self.classes),
            "numeric": self.numeric,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Have seen what another survey of the column had seen."""
        self.low, self.high = float.fromhex(state["low"]), float.fromhex(state["high"])
        self.classes, self.numeric = set(state["classes"]), state["numeric"]

    def column(self) -> Real | Classes:
        """The kind of target; a constant one is refused."""
        constant = self.low == self.high if self.numeric else len(self.classes) == 1
        if constant:
            value = f"{self.low:g}" if self.numeric else next(iter(self.classes))
            raise ValueError(f"target {self.name!r} is constant ({value} in every row): there is nothing to learn.")
        return Real(self.name) if self.numeric else Classes(self.name, tuple(in_order(self.classes)))


def numbers_note(columns: Sequence[Column], domain: str) -> list[str]:
    """A sentence for the columns of numbers, where there are some."""
    names = [column.name for column in columns if isinstance(column, Real)]
    if not names:
        return []
    shown = ", ".join(names[:NAMES_SHOWN]) + (f" and {len(names) - NAMES_SHOWN} more" if names[NAMES_SHOWN:] else "")
    how = "used as they are" if domain == "real" else "less their mean, over their standard deviation, both frozen"
    return [f"columns of numbers, {how}: {shown}."]


def two_values(values: tuple[str, ...]) -> tuple[str, ...]:
    """Which value is bit 0 and which is bit 1: the smaller is 0, but of the signs 1 and -1, -1 is bit 1.

    Texts go in alphabetical order, so that "no" is 0 and "yes" is 1. A constant 0 or 1 keeps its meaning.

    >>> two_values(("yes", "no")), two_values(("-1", "1")), two_values(("20", "3")), two_values(("1",))
    (('no', 'yes'), ('1', '-1'), ('3', '20'), ('0', '1'))
    """
    if set(values) <= {"0", "1"}:
        return ("0", "1")
    if set(values) <= {"-1", "1"}:
        return ("1", "-1")
    return tuple(in_order(set(values)))


def in_order(values: set[str]) -> list[str]:
    """Numbers by size; texts, or numbers among texts, by alphabet."""
    sizes = {value: as_number(value) for value in values}
    return sorted(values) if None in sizes.values() else sorted(values, key=lambda value: sizes[value] or 0.0)
