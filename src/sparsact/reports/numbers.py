"""Numbers, times and sizes, for people: on the pages and in a terminal."""

from __future__ import annotations


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
