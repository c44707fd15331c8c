"""A polynomial as people write it."""

from __future__ import annotations

from collections.abc import Sequence

from sparsact.hypercube import Subset


def formula(terms: Sequence[tuple[Subset, float]], most: int) -> str:
    """The first ``most`` terms that are not zero, with dots where there are more.

    >>> formula([((), 2.0), ((0, 70), -1.0)], 4)
    '2 - 1 x0 x70'
    """
    some = [(subset, value) for subset, value in terms if value]
    text = " ".join(_term(subset, value) for subset, value in some[:most]).removeprefix("+ ") or "0"
    text = "-" + text[2:] if text.startswith("- ") else text
    return text + " + ..." * (len(some) > most)


def _term(subset: Subset, value: float) -> str:
    return " ".join(["-" if value < 0 else "+", f"{abs(value):.4g}", *(f"x{i}" for i in subset)])
