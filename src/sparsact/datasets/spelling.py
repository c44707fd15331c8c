"""Spellings of values: which texts are numbers, and when two spellings are the same value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from math import isfinite

_NUMBER = re.compile(r"([+-]?)(0|[1-9][0-9]*|[0-9]+(?=\.)|(?=\.[0-9]))(?:\.([0-9]*))?([eE][+-]?[0-9]+)?")
_BOOLEANS = {"true": "1", "false": "0"}
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_AMOUNT = re.compile(r"[+-]?[$€£]?[0-9][0-9., ]*[%€]?")


def as_number(text: str) -> float | None:
    """The finite number that a text spells, or None. A code with a leading zero, such as ``007``, is not a number."""
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    return number if isfinite(number) else None


def is_infinite(text: str) -> bool:
    """Whether a text spells an infinite number."""
    return bool(_INFINITE.fullmatch(text)) or (as_number(text) is None and bool(_NUMBER.fullmatch(text)))


def is_written_amount(text: str) -> bool:
    """Whether a text is an amount as people write it, such as ``1,037``, ``12 %`` or ``$5``."""
    return bool(_AMOUNT.fullmatch(text))


def spelling(value: object) -> str:
    """The text of a value, without the spaces around it."""
    return str(value).strip()


def is_numeric(spellings: Iterable[str]) -> bool:
    """Whether every text is a number, or true or false."""
    return all(text.casefold() in _BOOLEANS or as_number(text) is not None for text in spellings)


def canonical(text: str) -> str:
    """The spelling that stands for all decimal spellings of a number, and for true or false.

    Only signs and zeros that do not count are dropped, so that no two numbers become equal.

    >>> [canonical(text) for text in ("1", "1.0", "+1", "TRUE", "0.50", "-0", ".5", "9007199254740993", "1e3")]
    ['1', '1', '1', '1', '0.5', '0', '0.5', '9007199254740993', '1e3']
    """
    boolean = _BOOLEANS.get(text.casefold())
    parts = _NUMBER.fullmatch(text)
    if boolean or not parts or parts[4]:
        return boolean or text
    whole, decimals = parts[2].lstrip("0") or "0", (parts[3] or "").rstrip("0")
    number = f"{whole}.{decimals}" if decimals else whole
    return f"-{number}" if parts[1] == "-" and number != "0" else number


def exact(text: str) -> Fraction:
    """The number that a numeric text stands for: integers as they are, others rounded to float64."""
    number = _BOOLEANS.get(text.casefold(), text)
    return Fraction(int(number)) if number.lstrip("+-").isdecimal() else Fraction(float(number))


def identities(spellings: Iterable[str]) -> dict[str, str]:
    """The value that each spelling stands for: if all are numbers, their canonical spelling, else the text itself.

    >>> identities(["1", "1.0"]), identities(["1.1", "1.10", "1.2-rc"])
    ({'1': '1', '1.0': '1'}, {'1.1': '1.1', '1.10': '1.10', '1.2-rc': '1.2-rc'})
    """
    texts = list(spellings)
    numeric = is_numeric(texts)
    return {text: canonical(text) if numeric else text for text in texts}


class DecimalPlaces:
    """Where each value stands in a list of distinct values, by any spelling of it."""

    def __init__(self, values: tuple[str, ...]) -> None:
        self._places = {value: place for place, value in enumerate(values)}
        self._numeric = is_numeric(values)

    def of(self, value: object) -> int:
        """Place of a value; -1 if it is not among them."""
        text = spelling(value)
        found = self._places.get(canonical(text) if self._numeric else text)
        if found is None and self._numeric and as_number(text) is not None:  # 1e-5 may be spelled 1e-05
            number = Decimal(text)
            equal = [place for known, place in self._places.items() if Decimal(known) == number]
            found = equal[0] if len(equal) == 1 else None
        return -1 if found is None else found
