"""What was chosen for each block of a model, and what it gains."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from math import nan
from typing import Any

METHODS = ("dense", "exact", "certified", "predictor", "threshold", "top_k")


@dataclass(frozen=True)
class Choice:
    """What a block is computed by.

    Attributes
    ----------
    block : str
        Its name.
    method : str
        One of ``dense``, ``exact``, ``certified``, ``predictor``, ``threshold``, ``top_k``.
    reason : str
        Why, in words.
    density : float
        Mean share of units that are active for an input of the sample.
    seconds : dict of str to float
        Median time of a block for one input, by each method that was timed on this machine; empty if none was.
    bound : float
        How many times fewer bytes of weights the method reads than the dense block, at best.
    max_rows : int
        Most rows of an input for which the method is taken.
    quality : dict or None
        What an approximation costs, measured on inputs that it was not calibrated on.
    """

    block: str
    method: str
    reason: str
    density: float = nan
    seconds: dict[str, float] | None = None
    bound: float = 1.0
    max_rows: int = 0
    quality: dict[str, Any] | None = None

    @property
    def speed_up(self) -> float:
        """Time of the dense block over that of the method chosen; NaN if they were not timed."""
        seconds = self.seconds or {}
        if "dense" not in seconds or self.method not in seconds:
            return nan
        return seconds["dense"] / seconds[self.method]

    @property
    def share_of_bound(self) -> float:
        """The speed-up over its bound: what is lost against reading nothing but the bytes needed."""
        return self.speed_up / self.bound


@dataclass(frozen=True)
class Plan:
    """The choices of all blocks of a model, in its order."""

    choices: tuple[Choice, ...]

    def to_dict(self) -> dict[str, Any]:
        """For machines; figures that were not measured are None."""
        rows = []
        for choice in self.choices:
            row = asdict(choice) | {"speed_up": choice.speed_up, "share_of_bound": choice.share_of_bound}
            rows.append({key: None if value != value else value for key, value in row.items()})
        return {"blocks": rows}

    def to_json(self) -> str:
        """:meth:`to_dict` as JSON."""
        return json.dumps(self.to_dict())

    def __str__(self) -> str:
        """A table for people: times in µs."""
        lines = [
            f"{'block':<32} {'method':<10} {'density':>8} {'dense':>9} {'sparse':>9} {'faster':>7} {'bound':>6}  why"
        ]
        for one in self.choices:
            seconds = one.seconds or {}
            dense, sparse = seconds.get("dense", nan), seconds.get(one.method, nan)
            lines.append(
                f"{one.block:<32} {one.method:<10} {_told(100 * one.density, '.1f')} % {_told(1e6 * dense, '.0f'):>9} "
                f"{_told(1e6 * sparse, '.0f'):>9} {_told(one.speed_up, '.2f'):>7} {_told(one.bound, '.2f'):>6}  "
                f"{one.reason}"
            )
        return "\n".join(lines)


def refused(choice: Choice, reason: str) -> Choice:
    """The choice turned back to dense, with the figures that were measured."""
    return replace(choice, method="dense", reason=reason, bound=1.0, max_rows=0, quality=None)


def _told(value: float, form: str) -> str:
    return "" if value != value else format(value, form)
