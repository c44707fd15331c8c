"""A measured figure beside its target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

TIMES: Final = "x"  # the unit of a ratio


class CallSeconds(list[float]):
    """Seconds of the last ``repeats`` calls, by default of all, and of the ``first``, for which a user waits."""

    def __init__(self, seconds: Sequence[float], repeats: int = 0) -> None:
        self.first = seconds[0]
        super().__init__(seconds[-repeats:])

    def scaled(self, factor: float) -> CallSeconds:
        """The same in another unit; a second has ``factor`` of it."""
        return CallSeconds([factor * each for each in (self.first, *self)], len(self))


@dataclass(frozen=True)
class Figure:
    """One quantity of one piece of work, and the target that it must reach; without a target it is for information."""

    work: str
    quantity: str
    value: float
    unit: str
    least: float | None = None
    most: float | None = None
    samples: tuple[float, ...] = ()
    first: float | None = None

    @classmethod
    def of(
        cls,
        work: str,
        quantity: str,
        samples: Sequence[float],
        unit: str,
        *,
        least: float | None = None,
        most: float | None = None,
    ) -> Figure:
        """The median of repeated measurements, which are kept for their spread."""
        kept = tuple(float(f"{one:.6g}") for one in samples)
        first = samples.first if isinstance(samples, CallSeconds) else None
        return cls(work, quantity, median(samples), unit, least, most, kept, first)

    @classmethod
    def ratio(
        cls, work: str, quantity: str, slow: Sequence[float], fast: Sequence[float], *, least: float | None = None
    ) -> Figure:
        """How many times as fast one side is, from seconds of both that were taken in turns: one ratio a round."""
        ratios = [a / b for a, b in zip(slow, fast, strict=True)]
        if isinstance(slow, CallSeconds) and isinstance(fast, CallSeconds):
            ratios = CallSeconds([slow.first / fast.first, *ratios], len(ratios))
        return cls.of(work, quantity, ratios, TIMES, least=least)

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None without one."""
        if self.least is None and self.most is None:
            return None
        return (self.least is None or self.value >= self.least) and (self.most is None or self.value <= self.most)

    @property
    def target(self) -> str:
        """The target in words."""
        limits = (("at least", self.least), ("at most", self.most))
        return ", ".join(f"{side} {limit:.4g}" for side, limit in limits if limit is not None)

    @property
    def measured(self) -> str:
        """The value, its unit, the spread of repeats, and before them the first call."""
        value = f"{self.value:.4g} {self.unit}".strip()
        if self.first is not None:
            value = f"first {self.first:.4g}, then {value}"
        if len(self.samples) < 2:
            return value
        return f"{value} [{min(self.samples):.3g} ... {max(self.samples):.3g}; {len(self.samples)}]"


class Check(Figure):
    """A figure whose target holds at any size: that both sides agree, that a bound is kept."""


def unjudged(figures: Iterable[Figure]) -> list[Figure]:
    """The figures without targets, checks aside: targets are for the full sizes."""
    return [each if isinstance(each, Check) else replace(each, least=None, most=None) for each in figures]
