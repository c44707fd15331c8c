"""Numbers, times and sizes, for people: on the pages and in a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor, isfinite, log10
from typing import Final

MOST_DIGITS: Final = 9  # of a number that is not written with an exponent
LEAST_PROBABILITY: Final = 1e-15  # that double precision tells from 0


def number(value: object) -> str:
    """A value of a table, for people.

    >>> number(0.123456), number(None), number(12), number(True), number(123456.7)
    ('0.1235', '–', '12', 'yes', '1.235e+05')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}".replace("-", "−") if isinstance(value, float) else str(value)


def signed_format(rows: Iterable[tuple[float, float | None, float | None]]) -> str:
    """Format of a column of values with the ends of their intervals: two digits of half the narrowest interval.

    Without intervals, four digits of the largest value. Where these are too many digits, each number has an exponent.

    >>> format(-1234.5678, signed_format([(-1234.5678, -1234.9, -1234.2), (3.0, None, None)]))
    '-1,234.57'
    >>> format(0.25, signed_format([(0.25, None, None)])), format(0.25, signed_format([(0.25, 0.25 - 1e-12, 0.25)]))
    ('+0.2500', '+0.25')
    """
    listed = list(rows)
    halves = [(high - low) / 2 for _, low, high in listed if low is not None and high is not None and high > low]
    largest = max((abs(value) for value, *_ in listed if isfinite(value)), default=0.0)
    unit = min(halves, default=largest / 100) or 1.0
    decimals = max(0, 1 - floor(log10(unit)))
    return f"+,.{decimals}f" if len(f"{largest:.0f}") + decimals <= MOST_DIGITS else "+.4g"


def probability(value: float | None) -> str:
    """A probability or q-value, for people.

    >>> probability(0.0312), probability(1e-300), probability(None)
    ('0.031', '< 1e-15', '–')
    """
    if value is None:
        return "–"
    return "< 1e-15" if value < LEAST_PROBABILITY else f"{value:.2g}"


def duration(seconds: float) -> str:
    """Seconds, for people.

    >>> duration(0.0312), duration(2.5), duration(150), duration(5000)
    ('31 ms', '2.50 s', '2 min 30 s', '1 h 23 min')
    """
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 100:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def size(n_bytes: int) -> str:
    """Bytes, for people.

    >>> size(3_250_000), size(2_000_000_000)
    ('3 MB', '2.00 GB')
    """
    return f"{n_bytes / 1e6:.0f} MB" if n_bytes < 1e9 else f"{n_bytes / 1e9:.2f} GB"
