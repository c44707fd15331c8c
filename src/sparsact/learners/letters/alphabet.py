"""Letters of the sites: rows of texts or strings as numbers of letters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.letters.amino_acids import KNOWN, are_amino_acids, features_of
from sparsact.learners.letters.kernel import Array, Codes

MOST_LETTERS = 64  # of a site


def characters_of(X: Any) -> Any:
    """Characters (m, n) of strings of one length; anything else as it is.

    Raises
    ------
    ValueError
        If strings have two lengths, or none.
    """
    array = np.asarray(X) if not hasattr(X, "shape") or len(X.shape) == 1 else X
    if np.ndim(array) != 1 or not len(array) or not all(isinstance(text, str) for text in array):
        return X
    texts = np.asarray(array, dtype=str)
    lengths = np.char.str_len(texts)
    if other := int(np.argmax(lengths != lengths[0])):
        raise ValueError(
            f"strings of two lengths: row 0, {str(texts[0])!r}, has {lengths[0]} letters, and row {other}, "
            f"{str(texts[other])!r}, has {lengths[other]}; every row needs a letter at each site."
        )
    if not lengths[0]:
        raise ValueError("strings without letters; every row needs a letter at each site.")
    return np.ascontiguousarray(texts).view("U1").reshape(len(texts), -1)


def spelled(column: NDArray[Any]) -> tuple[list[str], Codes]:
    """Distinct letters of a column as texts, whole numbers without a point, and which of them each row has."""
    if column.dtype == object:
        column = column.astype(str)
    values, places = np.unique(column, return_inverse=True)
    texts = [str(int(v)) if isinstance(v, float) and v.is_integer() else str(v) for v in values.tolist()]
    return texts, places.ravel()


@dataclass(frozen=True)
class Alphabet:
    """Letters of every site, and whether they are amino acids."""

    sites: tuple[tuple[str, ...], ...]
    amino_acids: bool

    @classmethod
    def of(cls, X: NDArray[Any], kind: str = "auto") -> Self:
        """The letters of rows (m, n); sites whose letters are all single characters, and no digits, share them."""
        found = [spelled(column)[0] for column in X.T]
        every = set().union(*found)
        amino_acids = kind == "amino acids" or (kind == "auto" and are_amino_acids(found))
        if amino_acids and (odd := sorted(every - KNOWN)):
            raise ValueError(f"{odd[0]!r} is no amino acid, stop (*) or gap (-); choose alphabet 'plain'.")
        if all(len(letter) == 1 and not letter.isdigit() for letter in every):
            found = [sorted(every)] * len(found)
        for site, letters in enumerate(found):
            if len(letters) > MOST_LETTERS:
                raise ValueError(
                    f"site {site} has {len(letters)} different letters, and at most {MOST_LETTERS} can be learned; "
                    "leave the column out, or join values that are alike."
                )
        return cls(tuple(map(tuple, found)), amino_acids)

    @property
    def features(self) -> tuple[Array, ...]:
        """Features (q_i, F) of the letters of each site."""
        return tuple(features_of(letters, self.amino_acids) for letters in self.sites)

    def codes(self, X: NDArray[Any], frequent: Codes | None = None) -> Codes:
        """Numbers (m, n) of the letters of rows; of letters that a site does not know the ``frequent`` one (n,).

        Without these a ValueError names the first that is not known.
        """
        codes = np.empty(X.shape, dtype=np.intp)
        for site, (known, column) in enumerate(zip(self.sites, X.T, strict=True)):
            letters, places = spelled(column)
            numbers = {letter: number for number, letter in enumerate(known)}
            found = np.array([numbers.get(letter, -1) for letter in letters], dtype=np.intp)[places]
            if frequent is not None:
                found = np.where(found < 0, frequent[site], found)
            if (found < 0).any():
                row = int(np.argmin(found))
                raise ValueError(
                    f"row {row}, site {site}: letter {letters[places[row]]!r} was not learned; the model knows "
                    f"{', '.join(known)}. Leave the row out, or fit rows that have it."
                )
            codes[:, site] = found
        return codes
