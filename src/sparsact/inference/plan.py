"""What was chosen for each block of a model, and what it gains."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from math import isfinite, nan
from typing import Any

from sparsact.inference.quality import QualityEstimate

METHODS = ("dense", "exact", "certified", "predictor", "threshold", "top_k")


@dataclass(frozen=True)
class BlockPlan:
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
    rows : tuple of int
        Fewest, median and most rows of the calls of the block, as the inputs shown have them.
    share : float
        Share of these calls in which the block was computed by the method: 0 if they have too many rows, switch on too
        many units, or never reach the layers of the block.
    seconds : dict of str to float
        Median time of the block for the median number of rows, by each method that was timed on this machine; empty if
        none was. Of a method that is not taken for so many rows, the dense time.
    bound : float
        How many times fewer bytes of weights the method reads than the dense block, at best; those of a predictor's own
        tables are counted.
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
    rows: tuple[int, int, int] | None = None
    share: float = 0.0
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

    choices: tuple[BlockPlan, ...]

    def to_dict(self) -> dict[str, Any]:
        """For machines; figures that were not measured, and infinite ones, are None."""
        rows = []
        for choice in self.choices:
            row = asdict(choice) | {"speed_up": choice.speed_up, "share_of_bound": choice.share_of_bound}
            rows.append(_finite(row))
        return {"blocks": rows}

    def to_json(self) -> str:
        """:meth:`to_dict` as JSON."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def __str__(self) -> str:
        """A table for people: rows of a call, the share of calls that were computed sparsely, times in µs."""
        headings = ("density", "rows", "calls", "dense", "sparse", "faster", "bound")
        lines = [_line("block", "method", headings, "why")]
        for one in self.choices:
            seconds = one.seconds or {}
            figures = (
                f"{_told(100 * one.density, '.1f')} %",
                _range(one.rows),
                f"{one.share:.0%}",
                *(_told(1e6 * seconds.get(method, nan), ".0f") for method in ("dense", one.method)),
                _told(one.speed_up, ".2f"),
                _told(one.bound, ".2f"),
            )
            lines.append(_line(one.block, one.method, figures, one.reason))
        return "\n".join([*lines, *(_cost(one) for one in self.choices if one.quality is not None)])


def refused(choice: BlockPlan, reason: str) -> BlockPlan:
    """The choice turned back to dense, with the figures that were measured."""
    return replace(choice, method="dense", reason=reason, bound=1.0, max_rows=0, share=0.0, quality=None)


def _cost(choice: BlockPlan) -> str:
    """What an approximation costs, as it was measured on rows held out."""
    found = (choice.quality or {})["quality"]
    figures = [
        f"{name.replace('_', ' ')} {QualityEstimate(**figure)}"
        for name, figure in found.items()
        if isinstance(figure, dict)
    ]
    return f"{choice.block}, on {found['rows']} inputs held out: {', '.join(figures)}"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    return None if isinstance(value, float) and not isfinite(value) else value


def _line(block: str, method: str, figures: tuple[str, ...], why: str) -> str:
    return f"{block:<32} {method:<10} {' '.join(f'{figure:>8}' for figure in figures)}  {why}"


def _range(rows: tuple[int, int, int] | None) -> str:
    if rows is None:
        return ""
    return str(rows[0]) if rows[0] == rows[2] else f"{rows[0]}-{rows[2]}"


def _told(value: float, form: str) -> str:
    return "" if value != value else format(value, form)


EXACT = ("auto", "exact", "certified")


def check_options(method: str, options: Iterable[str]) -> None:
    """Refuse an option that the method would not look at.

    Raises
    ------
    ValueError
        If there is one.
    """
    if method in EXACT:
        wrong = sorted(options)
        remedy = 'it computes what the model computes; to approximate, pass method="predictor", "threshold" or "top_k"'
    elif method == "predictor":
        wrong = sorted({"error"} & set(options))
        remedy = "pass a recall or a density"
    else:
        wrong = sorted({"recall", "predictor"} & set(options))
        remedy = 'pass a density or an error, or method="predictor"'
    if wrong:
        raise ValueError(f'method="{method}" takes no {", ".join(wrong)}: {remedy}.')
