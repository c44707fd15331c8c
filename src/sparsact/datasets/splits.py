"""Columns that split a table into training, validation and test rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from sparsact.datasets.cell_values import DROP, canonical, refuse_missing, texts_of
from sparsact.datasets.chosen_rows import chosen_rows
from sparsact.datasets.table_files import Parts

WORDS: Final = {
    "training": ("train", "training", "trn"),
    "validation": ("validation", "validate", "valid", "val", "dev", "development"),
    "test": ("test", "testing", "tst", "held-out", "held out", "heldout", "hold-out", "holdout"),
}
_PART_OF: Final = {word: part for part, words in WORDS.items() for word in words}
_NUMBERED: Final = {"0": "training", "1": "validation", "2": "test"}  # as CelebA's partition and many since
_MARKS: Final = {"0": "training", "1": "test"}


def parts_of_split(name: str, values: Iterable[str]) -> dict[str, str] | None:
    """The part, training, validation or test, that each value of a column means; None if they are no split's.

    Words in any case; or 0, 1 and 2 in this order; or 0 and 1 (false and true), which mean training and test rows, and
    the opposite in a column whose name says ``train``.

    >>> parts_of_split("set", ["Train", "dev"]), parts_of_split("is_train", ["0", "1"])
    ({'Train': 'training', 'dev': 'validation'}, {'0': 'test', '1': 'training'})
    """
    spelled = {text: canonical(text.casefold()) for text in values}
    known = _NUMBERED if "2" in spelled.values() else _MARKS
    if known is _MARKS and re.search("(^|[^a-z]|is|in)train", name.casefold()):  # no strain
        known = {"1": "training", "0": "test"}
    for part_of in (_PART_OF, known):
        if all(value in part_of for value in spelled.values()):
            return {text: part_of[value] for text, value in spelled.items()}
    return None


@dataclass(frozen=True)
class ChosenParts:
    """Rows to learn from, notes on them, and rows that a split leaves to be scored, with their name."""

    learned: Parts
    notes: tuple[str, ...] = ()
    tested: Parts | None = None
    tested_name: str = ""


def split_rows(parts: Parts, name: str) -> ChosenParts:
    """The rows to learn from and to score, by a column.

    Test rows are scored, all others are learned from; without test rows, validation rows are scored. The table is read
    once, to count them.
    """
    counts: dict[str, int] = {}
    for batch in parts.batches([name]):
        with batch:
            refuse_missing(array := batch.columns.column(name), name, batch.row, DROP)
        found = pc.value_counts(array)
        for text, count in zip(texts_of(found.field("values")), found.field("counts").to_pylist(), strict=True):
            counts[text] = counts.get(text, 0) + count
    part_of = parts_of_split(name, counts)
    shown = ", ".join(map(repr, list(counts)[:4])) + ", ..." * (len(counts) > 4)
    if part_of is None or len(set(part_of.values())) < 2:
        known = "; ".join(f"{part}: {', '.join(words)}" for part, words in WORDS.items())
        raise ValueError(
            f"column {name!r} holds {shown}; a split needs rows to fit and rows to score: mark each with one of these "
            f"words ({known}), or with 0, 1 and 2 in this order, or leave split out."
        )
    scored = "test" if "test" in part_of.values() else "validation"
    tested = [text for text in counts if part_of[text] == scored]
    learned = [text for text in counts if part_of[text] != scored]
    listed = [", ".join(f"{text} ({counts[text]:,})" for text in texts) for texts in (learned, tested)]
    note = f"split by {name}: rows marked {listed[0]} are fitted, rows marked {listed[1]} are scored."
    rows = [chosen_rows(parts, [name], partial(_has_text, texts)) for texts in (learned, tested)]
    return ChosenParts(rows[0], (note,), rows[1], f"{parts.name} where {name} is {' or '.join(tested)}")


def _has_text(texts: list[str], rows: pa.RecordBatch) -> pa.Array:
    encoded = pc.dictionary_encode(rows.columns[0])
    return pc.take(pa.array([text in texts for text in texts_of(encoded.dictionary)], pa.bool_()), encoded.indices)
