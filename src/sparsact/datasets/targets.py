"""What a target column holds, learned in one streaming pass: numbers, or the labels of classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparsact.datasets.columns import Classes, Real
from sparsact.datasets.survey import MAX_CATEGORIES
from sparsact.datasets.values import (
    as_number,
    identities,
    in_order,
    is_infinite,
    numbers,
    refuse_missing,
    spelling,
    texts_of,
)


@dataclass
class TargetSurvey:
    """Running summary of a target column."""

    name: str
    task: str = "auto"
    low: float = np.inf
    high: float = -np.inf
    classes: set[str] = field(default_factory=set)  # as spelled
    numeric: bool | None = None  # decided by the first row

    def update(self, array: pa.Array, first_row: int) -> None:
        """Add the next piece of the column."""
        refuse_missing(array, self.name, first_row)
        if not len(array):
            return
        if self.numeric is None:
            text = spelling(array[0].as_py())
            number = self.task == "regression" or as_number(text) is not None or is_infinite(text)
            self.numeric = self.task != "classification" and number
        if self.numeric:
            values = numbers(array, self.name, first_row)
            self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
        else:
            for text in texts_of(pc.unique(array)):
                self.classes.add(text)
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
        classes = set(identities(self.classes).values())
        constant = self.low == self.high if self.numeric else len(classes) == 1
        if constant:
            value = f"{self.low:g}" if self.numeric else next(iter(classes))
            raise ValueError(f"target {self.name!r} is constant ({value} in every row): there is nothing to learn.")
        return Real(self.name) if self.numeric else Classes(self.name, tuple(in_order(classes)))
