"""What a target column holds, learned in one streaming pass: numbers, or the labels of classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparsact.datasets.cell_values import (
    DASHES,
    DROP,
    as_number,
    at_limits,
    identities,
    in_order,
    is_infinite,
    is_numeric,
    is_text,
    is_written_amount,
    numbers,
    refuse_missing,
    spelling,
    texts_of,
)
from sparsact.datasets.column_survey import MAX_CATEGORIES, NEARLY_ALL
from sparsact.datasets.columns import Classes, Real
from sparsact.datasets.dialect import NULLS


@dataclass
class TargetSurvey:
    """Running summary of a target column."""

    name: str
    task: str = "auto"
    low: float = np.inf
    high: float = -np.inf
    classes: set[str] = field(default_factory=set)  # as spelled
    numeric: bool | None = None  # decided by the first row that is no limit such as <5, which may be a class too
    n_limits: int = 0  # values such as <2.5, which are read as 2.5
    floor: float = -np.inf  # the largest limit from below, and the smallest from above
    ceiling: float = np.inf
    dtype: str = "str"  # of numbers and booleans

    def update(self, array: pa.Array, first_row: int) -> None:
        """Add the next piece of the column."""
        refuse_missing(array, self.name, first_row, DROP)
        if not len(array):
            return
        plain = at_limits(array)
        if self.task != "auto":
            self.numeric = self.task == "regression"
        elif self.numeric is None and len(measured := array.filter(pc.equal(array, plain))):
            text = spelling(measured[0].as_py())
            self.numeric = as_number(text) is not None or is_infinite(text)
        if not is_text(array.type):
            own = np.dtype(array.type.to_pandas_dtype())
            self.dtype = str(own if self.dtype == "str" else np.promote_types(self.dtype, own))
        if self.numeric is not False:
            values = numbers(plain, self.name, first_row, "correct the row, or choose another target")
            if is_text(array.type):
                self._see_limits(array, values)
            self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
        if not self.numeric:
            for text in texts_of(pc.unique(array)):
                self.classes.add(text)
                if len(self.classes) > MAX_CATEGORIES:
                    self._refuse_numbers()
                    own = pc.count_distinct(array).as_py() >= NEARLY_ALL * len(array)
                    like = ", nearly every row its own, like an identifier" if own else ""
                    raise ValueError(
                        f"target {self.name!r} holds more than {MAX_CATEGORIES} classes{like}; "
                        "choose a target with fewer, or task='regression' if it is a number."
                    )

    def _see_limits(self, array: pa.Array, values: NDArray[np.float64]) -> None:
        below, above = (np.asarray(pc.match_substring_regex(array, marks)) for marks in ("^[<≤]", "^[>≥]"))
        self.n_limits += int((below | above).sum())
        self.floor = float(values[below].max(initial=self.floor))
        self.ceiling = float(values[above].min(initial=self.ceiling))

    @property
    def notes(self) -> list[str]:
        """A sentence about values that are limits, if there are any."""
        ends = ",".join(f"{end:g}" if np.isfinite(end) else "" for end in (self.floor, self.ceiling))
        first = f"<{self.floor:g}" if np.isfinite(self.floor) else f">{self.ceiling:g}"
        fact = f"{self.name}: {self.n_limits:,} values such as '{first}' are read as their limit"
        remedy = f"censor={ends!r} makes it a bound of a measurement model"
        return [f"{fact}; {remedy}."] * bool(self.numeric and self.n_limits)

    def state(self) -> dict[str, Any]:
        """All that was seen, as JSON spells it."""
        return {
            "low": float.hex(self.low),
            "high": float.hex(self.high),
            "classes": sorted(self.classes),
            "numeric": self.numeric,
            "dtype": self.dtype,
            "limits": [self.n_limits, float.hex(self.floor), float.hex(self.ceiling)],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the survey of the same column from a saved state."""
        self.low, self.high = float.fromhex(state["low"]), float.fromhex(state["high"])
        self.classes, self.numeric = set(state["classes"]), state["numeric"]
        self.dtype = str(state.get("dtype", "str"))  # files of earlier versions have none
        n_limits, *ends = state.get("limits", (0, "-inf", "inf"))  # nor these
        self.n_limits, (self.floor, self.ceiling) = n_limits, map(float.fromhex, ends)

    def column(self) -> Real | Classes:
        """The kind of target; a constant one is refused."""
        spelled = identities(sorted(self.classes))
        classes = set(spelled.values())
        constant = self.low == self.high if self.numeric else len(classes) == 1
        if constant:
            value = f"{self.low:g}" if self.numeric else next(iter(classes))
            raise ValueError(f"target {self.name!r} is constant ({value} in every row): there is nothing to learn.")
        if self.numeric:
            return Real(self.name)
        self._refuse_numbers()
        values = tuple(in_order(classes))
        first = {value: text for text, value in reversed(spelled.items())}
        names = tuple(first[value] for value in values)
        return Classes(self.name, values, self.dtype, names if self.dtype == "str" and names != values else ())

    def _refuse_numbers(self) -> None:
        """Raise if inferred classes are numbers, half or more of them, and what looks like slips."""
        odd = sorted(text for text in self.classes if not is_numeric((text,)))
        slips = 2 * len(odd) <= len(self.classes) or all(map(is_written_amount, odd))
        if self.task == "auto" and odd and slips and len(self.classes) > 2:
            remedy = "write numbers with a decimal point (or pass decimal=','), without separators and units"
            if odd[0] in {*NULLS, *DASHES}:
                remedy = "leave out rows of missing values with drop_missing=True"
            raise ValueError(
                f"target {self.name!r} holds {odd[0]!r}, which is not a finite number, unlike the other values; "
                f"{remedy}, or choose task='classification'."
            )
