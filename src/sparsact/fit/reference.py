"""References such as a wild type: letters of all sites, by a sequence, a list of mutations, values or a row."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparsact.datasets import Encoding, encoded_table
from sparsact.datasets.columns import Bit, Column, Real
from sparsact.datasets.sites import BitString, LetterString, Mutations, mutations
from sparsact.datasets.table_files import resolve

Reference = str | Path | Mapping[str, Any]
Codes = NDArray[np.intp]  # places among the letters of each site
MOST_LETTERS_SHOWN: Final = 60  # of a reference in a sentence
FORMS: Final = "give a sequence, a list of mutations such as A12V:G45D, values such as 'a=1,b=0', or a table"


def has_reference(encoding: Encoding) -> bool:
    """Whether effects are counted from a reference: of letters, or of columns with one."""
    return encoding.has_letters or bool(encoding.reference)


def default_reference(encoding: Encoding, rows: Codes | None = None) -> Codes:
    """Letters (sites,) of the reference of a fit: the wild type's where rows (m, sites) have it, or else frequent ones.

    Without rows, and where no reference is known, it is the first letter of each site.
    """
    known = encoding.reference or ("",) * len(encoding.sites)
    found = [letters.index(own) if own else 0 for own, (_, letters) in zip(known, encoding.sites, strict=True)]
    for site, column in enumerate(() if rows is None else rows.T):
        counts = np.bincount(column)
        if not known[site] or found[site] >= len(counts) or not counts[found[site]]:
            found[site] = int(counts.argmax())
    return np.array(found, dtype=np.intp)


def reference_in_words(encoding: Encoding) -> str:
    """What effects of letters start from; a short sequence is spelled out."""
    own, letters, kinds = encoding.columns[0], iter(encoding.reference), set(map(type, encoding.columns))
    if encoding.mutated_sites or kinds <= {Bit}:  # bits alone have such effects from a wild type only
        reference = "the wild type"
    elif kinds & {LetterString, Mutations, BitString}:
        reference = "the most frequent letter of each site"
    else:
        reference = "the wild type's value of each column, or else the most frequent value"
    if isinstance(own, LetterString) and len(encoding.columns) == 1 and len(own.letters) <= MOST_LETTERS_SHOWN:
        reference += f" ({''.join(one if len(one) == 1 else next(letters) for one in own.letters)})"
    return reference


def letters_at(encoding: Encoding, codes: Codes) -> tuple[str, ...]:
    """Letters of sites by their places."""
    return tuple(letters[place] for (_, letters), place in zip(encoding.sites, codes.tolist(), strict=True))


def changed(encoding: Encoding, codes: Codes, to: Reference) -> Codes:
    """Letters (sites,) after changes: values of columns or sites, mutations, a whole sequence, or a table's first row.

    A ValueError is raised if a column, site, letter or value is unknown, or some column is numbers.
    """
    if odd := [column.name for column in encoding.columns if isinstance(column, Real)]:
        raise ValueError(f"a reference needs columns of few values, but {odd[0]!r} holds numbers; leave reference out.")
    if isinstance(to, Mapping):
        return _with_values(encoding, codes, to)
    text, sequences = str(to), [one for one in encoding.columns if isinstance(one, LetterString | Mutations)]
    if isinstance(to, str) and "=" in to:
        pairs = [piece.partition("=")[::2] for piece in to.split(",")]
        return _with_values(encoding, codes, {name.strip(): value.strip() for name, value in pairs})
    if isinstance(to, Path) or not sequences or os.path.isfile(text):  # noqa: PTH113 - of a long sequence no error
        X = next(iter(encoded_table(to, encoding, batch_rows=1).points()), None)
        if X is None or not len(X):
            raise ValueError(f"{to} has no row; its first row is the reference.")
        return np.asarray(encoding.codes(X)[0])
    if (listed := mutations(text)) is None:
        return _with_values(encoding, codes, {sequences[0].name: text})
    return _mutated(encoding, codes, listed)


def _mutated(encoding: Encoding, codes: Codes, listed: list[tuple[int, str, str]]) -> Codes:
    """Letters after mutations; of none, such as WT, as they are."""
    places = {name: i for i, (name, _) in enumerate(encoding.sites)}
    column = next(one for one in encoding.columns if isinstance(one, LetterString | Mutations))
    found = codes.copy()
    for number, wild, new in listed:
        names = [name for name in places if name in encoding.mutated_sites and name[1:] == str(number)]
        place = places.get(names[0] if names else f"{column.name}[{number}]", -1)
        letters = encoding.sites[place][1] if place >= 0 else ()
        if wild not in letters or new not in letters:
            own = f"it has {', '.join(letters)} there" if letters else "no such site varies in the table"
            raise ValueError(f"{wild}{number}{new} is not a change that the model knows; {own}; {FORMS}.")
        if codes[place] != letters.index(wild):
            raise ValueError(
                f"{wild}{number}{new} changes {wild}, and {letters[codes[place]]} is there before the change; name the "
                f"change from that, or a background that has {wild} there."
            )
        found[place] = letters.index(new)
    return found


def _with_values(encoding: Encoding, codes: Codes, values: Mapping[str, Any]) -> Codes:
    """Letters after columns, or sites by their names, take other values."""
    found, sites = codes.copy(), {name: i for i, (name, _) in enumerate(encoding.sites)}
    columns: dict[str, Column] = {column.name: column for column in encoding.columns}
    first: dict[str, int] = {}  # site of each column
    n_sites = 0
    for column in encoding.columns:
        first[column.name] = n_sites
        n_sites += len(Encoding((column,), ()).sites)
    for name, value in values.items():
        if name in sites and name not in columns:
            letters = encoding.sites[sites[name]][1]
            if str(value) not in letters:
                raise ValueError(f"site {name!r} has no {value!r} in the table, but {', '.join(letters)}.")
            found[sites[name]] = letters.index(str(value))
            continue
        own = resolve([name], list(columns), "column")[0]
        bits = columns[own].encode(pa.array([str(value)]), 0)
        of_column = Encoding((columns[own],), ()).codes(bits)[0]
        found[first[own] : first[own] + len(of_column)] = of_column
    return found
