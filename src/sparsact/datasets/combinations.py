"""All combinations of the values of a table's columns, as bits, and rows of bits spelled as the table spells them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparsact.datasets.cell_values import as_number
from sparsact.datasets.columns import MISSING, Bit, Encoding, OneHot, Real
from sparsact.datasets.sites import BitString, LetterString, Mutations

Bits = NDArray[np.uint8]


def patterns_of(encoding: Encoding) -> list[Bits]:
    """For each site, or column, the bits (q, bits) of its values; a ValueError where a column is a number."""
    if odd := [column.name for column in encoding.columns if isinstance(column, Real)]:
        raise ValueError(
            f"combinations need columns of few values, but {odd[0]!r} holds numbers; fit again with "
            f"ignore={odd[0]!r}, or replace its numbers by a few texts such as low and high."
        )
    pairs = zip(encoding.patterns, encoding.sites, strict=True)
    return [bits[[one != MISSING for one in values]] for bits, (_, values) in pairs]


def neighbours(patterns: Sequence[Bits], row: Bits) -> Bits:
    """All rows that differ from a row of bits (n,) at one site."""
    found, start = [], 0
    for own in patterns:
        end = start + own.shape[1]
        for other in own[(own != row[start:end]).any(axis=1)]:
            found.append(np.concatenate([row[:start], other, row[end:]]))
        start = end
    return np.stack(found)


def spelled(encoding: Encoding, X: Bits) -> pa.Table:
    """The columns of rows of bits (m, n); numbers are numbers."""
    letters = iter(encoding.letters(X).T.tolist())
    found: dict[str, list[str] | list[int]] = {}
    for column in encoding.columns:
        if isinstance(column, Bit | OneHot):
            own = next(letters)
            known = {value: as_number(value) for value in column.values}
            is_whole = all(x is not None and x.is_integer() for x in known.values())
            found[column.name] = [int(known[value] or 0) for value in own] if is_whole else own
        elif isinstance(column, Mutations):
            sites = [(name, known[0], next(letters)) for name, known in column.sites]
            rows = [[name + own[i] for name, wild, own in sites if own[i] != wild] for i in range(len(X))]
            found[column.name] = [":".join(row) or "WT" for row in rows]
        elif isinstance(column, BitString | LetterString):
            of_places = column.letters if isinstance(column, LetterString) else _letters_of_bits(column)
            places = [next(letters) if len(one) > 1 else [one] * len(X) for one in of_places]
            found[column.name] = ["".join(row) for row in zip(*places, strict=True)]
    return pa.table(found)


def _letters_of_bits(column: BitString) -> list[str]:
    return ["01" if place in column.places else bit for place, bit in enumerate(column.zeros)]
