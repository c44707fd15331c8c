"""The wild type of a table by any of its names: a sequence, number or name of a row, or the most frequent letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparsact.datasets.cell_values import equal_length_bytes, has_code, is_text, spelling
from sparsact.datasets.columns import Column, Encoding
from sparsact.datasets.sites import Mutations, mutations
from sparsact.datasets.table_files import Parts

MOST_FREQUENT: Final = "most-frequent"


def wild_types(parts: Parts, names: Sequence[str], given: str) -> dict[str, str]:
    """Text of the wild type in each of the named columns where it has one.

    ``"most-frequent"`` takes the most frequent letter at each place, or of two values the more frequent one; a text
    that some cell holds is the name of its row; a whole number counts rows from 1, unless a column of codes, such as
    ``0110``, holds it; any other is the sequence.
    """
    if given == MOST_FREQUENT:
        return most_frequent(parts, names)
    number = int(given) - 1 if given.isdecimal() and str(int(given)) == given else None  # 0110 is a code
    row = _row(parts, given, number)
    if row is None and number is not None:
        raise ValueError(f"wild type {given}: {parts.name} has no row of that number; rows count from 1.")
    return dict.fromkeys(names, given) if row is None else {name: row[name] for name in names if row[name]}


def _row(parts: Parts, given: str, number: int | None) -> dict[str, str] | None:
    """Texts of the first row with a cell that holds just this, or else of the row of this number; empty if missing."""
    numbered = None
    for batch in parts.batches(parts.names):
        with batch:
            texts = [pc.utf8_trim_whitespace(column) for column in batch.columns.columns if is_text(column.type)]
            names = texts if number is None else filter(has_code, texts)  # numbers of a CSV file are texts, not names
            places = [place for name in names if (place := pc.index(name, given).as_py()) >= 0]
            place = min(places) if places else -1 if number is None else number - batch.overall
            if 0 <= place < len(batch):
                values = batch.columns.slice(place, 1).to_pylist()[0].items()
                numbered = {name: "" if value is None else spelling(value) for name, value in values}
            if places:
                break
    return numbered


def most_frequent(parts: Parts, names: Sequence[str]) -> dict[str, str]:
    """The most frequent letter at each place of columns of texts of one length; of two values the more frequent one.

    Lists of mutations have none, as they say by themselves what the wild type is.
    """
    values: dict[str, Counter[str]] = {name: Counter() for name in names}
    letters: dict[str, NDArray[np.intp]] = {}  # counts of the letters at each place
    others: set[str] = set()  # columns that are no texts of one length
    for batch in parts.batches(names):
        with batch:
            for name, array in zip(batch.columns.schema.names, batch.columns.columns, strict=True):
                if len(array) and mutations(spelling(array[0])) is not None:
                    values.pop(name, None)
                    others.add(name)
                characters = equal_length_bytes(pc.utf8_upper(array)) if is_text(array.type) else None
                if characters is None or len(letters.get(name, characters.T)) != characters.shape[1]:
                    others.add(name)
                else:
                    counts = np.stack([np.bincount(place, minlength=256) for place in characters.T])
                    letters[name] = letters.get(name, 0) + counts
                _count(values, name, array)
    found = {name: of_name.most_common(1)[0][0] for name, of_name in values.items() if of_name}
    known = {name: counts.argmax(axis=1) for name, counts in letters.items() if name not in others | set(found)}
    return found | {name: bytes(places.tolist()).decode() for name, places in known.items()}


def _count(values: dict[str, Counter[str]], name: str, array: pa.Array) -> None:
    """Count the values of a piece of a column, unless it has more than two."""
    found = pc.value_counts(array.drop_null()) if name in values else ()
    if len(found) > 2 or len({*values.get(name, ())} | {spelling(one["values"]) for one in found}) > 2:
        del values[name]
        return
    for one in found:
        values[name][spelling(one["values"])] += one["counts"].as_py()


def wild_letters(column: Column, text: str | None) -> list[str]:
    """Letters at the sites of a column where it holds this text; empty ones where there is none, or it cannot."""
    alone = Encoding((column,), ())
    unknown = [""] * len(alone.sites)
    if text is None or not unknown:
        return unknown
    try:  # lists of mutations say by themselves what the wild type is
        bits = column.encode(pa.array(["" if isinstance(column, Mutations) else text]), 0)
    except ValueError:
        return unknown
    return list(map(str, alone.letters(bits)[0]))
