"""Letters of the sites: rows of texts or strings as numbers of letters, and features of letters.

Features of amino acids are published properties: hydropathy [1]_; volume in cubic angstroms [2]_; charge at pH 7, of
histidine .3; whether the side chain is an aromatic ring; polarity [3]_; helix propensity in kcal/mol [4]_; whether the
side chain branches at its beta carbon.

References
----------
.. [1] J. Kyte, R. F. Doolittle, "A simple method for displaying the hydropathic character of a protein", J. Mol. Biol.
   157, 1982.
.. [2] A. A. Zamyatnin, "Protein volume in solution", Prog. Biophys. Mol. Biol. 24, 1972.
.. [3] R. Grantham, "Amino acid difference formula to help explain protein evolution", Science 185, 1974.
.. [4] C. N. Pace, J. M. Scholtz, "A helix propensity scale based on experimental studies of peptides and proteins",
   Biophys. J. 75, 1998.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from sparsact.learners.gp.kernel import Array, Codes
from sparsact.statistics.column_scales import exponents_of
from sparsact.validation.arrays import is_pandas

AMINO_ACIDS: Final = {
    "A": (1.8, 88.6, 0, 0, 8.1, 0.00, 0),
    "C": (2.5, 108.5, 0, 0, 5.5, 0.68, 0),
    "D": (-3.5, 111.1, -1, 0, 13.0, 0.69, 0),
    "E": (-3.5, 138.4, -1, 0, 12.3, 0.40, 0),
    "F": (2.8, 189.9, 0, 1, 5.2, 0.54, 0),
    "G": (-0.4, 60.1, 0, 0, 9.0, 1.00, 0),
    "H": (-3.2, 153.2, 0.3, 1, 10.4, 0.61, 0),
    "I": (4.5, 166.7, 0, 0, 5.2, 0.41, 1),
    "K": (-3.9, 168.6, 1, 0, 11.3, 0.26, 0),
    "L": (3.8, 166.7, 0, 0, 4.9, 0.21, 0),
    "M": (1.9, 162.9, 0, 0, 5.7, 0.24, 0),
    "N": (-3.5, 114.1, 0, 0, 11.6, 0.65, 0),
    "P": (-1.6, 112.7, 0, 0, 8.0, 3.16, 0),
    "Q": (-3.5, 143.8, 0, 0, 10.5, 0.39, 0),
    "R": (-4.5, 173.4, 1, 0, 10.5, 0.21, 0),
    "S": (-0.8, 89.0, 0, 0, 9.2, 0.50, 0),
    "T": (-0.7, 116.1, 0, 0, 8.6, 0.66, 1),
    "V": (4.2, 140.0, 0, 0, 5.9, 0.61, 1),
    "W": (-0.9, 227.8, 0, 1, 5.4, 0.49, 0),
    "Y": (-1.3, 193.6, 0, 1, 6.2, 0.53, 0),
}
OTHERS: Final = {"*", "-"}  # a stop and a gap, next to amino acids
KNOWN: Final = set(AMINO_ACIDS) | OTHERS
FEWEST: Final = 8  # different letters that are taken for amino acids: A, C, G and T are more often nucleotides
ALIKE: Final = 2.65  # length of an indicator of a letter: two differ as much as two amino acids on average
MOST_LETTERS: Final = 64  # of a site


def characters_of(X: Any) -> Any:
    """Characters (m, n) of strings of one length; anything else as it is, nullable integers as integers.

    A ValueError is raised if strings have two lengths, or none, or where a letter is missing: None, NaN, NaT or
    pandas.NA.
    """
    _check_present(X)
    array = np.asarray(X) if not hasattr(X, "shape") or len(X.shape) == 1 else X
    if np.ndim(array) != 1 or not len(array) or not all(isinstance(text, str) for text in array):
        return _with_integers(X)
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


def _with_integers(X: Any) -> Any:
    """X without nullable integers of pandas: scikit-learn makes floats of these, beyond 2**53 one of several."""
    if not is_pandas(X) or X.ndim != 2:
        return X
    nullable = {name: kind.numpy_dtype for name, kind in X.dtypes.items() if hasattr(kind, "numpy_dtype")}
    integers = {name: kind for name, kind in nullable.items() if kind.kind in "iu"}
    return X.astype(integers) if integers else X


def _check_present(X: Any) -> None:
    """Refuse a missing letter, naming its row and column."""
    table = np.empty(0) if hasattr(X, "tocsr") else np.asarray(X)
    if table.dtype.kind not in "OfcmM":
        return
    # a missing value is None, or is not equal to itself: pandas.NA is neither equal nor different
    missing = [value is None or (value == value) is not True for value in table.ravel().tolist()]
    if any(missing):
        row, *column = (int(place) for place in np.unravel_index(missing.index(True), table.shape))
        names = getattr(X, "columns", range(table.shape[-1]))
        where = f", column {names[column[0]]!r}," if column else ""
        raise ValueError(
            f"row {row}{where} has no letter: {table[(row, *column)]} (NaN, None and the like are none). Leave the row "
            "out, or give what is missing a letter of its own, such as '-'."
        )


def spelled(column: NDArray[Any]) -> tuple[list[str], Codes]:
    """Distinct letters of a column as texts, and which of them each row has; the numbers 1.0 and 1 are one letter."""
    if column.dtype == object:
        column = np.array([_text(value) for value in column.tolist()])
    values, places = np.unique(column, return_inverse=True)
    return [_text(value) for value in values.tolist()], places.ravel()


def _text(value: object) -> str:
    """A letter as a text, whole numbers without a point."""
    return str(int(value)) if isinstance(value, float | np.floating) and value.is_integer() else str(value)


@dataclass(frozen=True)
class Alphabet:
    """Letters of every site, and whether they are amino acids."""

    sites: tuple[tuple[str, ...], ...]
    amino_acids: bool
    quantities: frozenset[int] = frozenset()  # sites whose letters are numbers in an order

    @classmethod
    def of(cls, X: NDArray[Any], kind: str = "auto", quantities: Sequence[int] = ()) -> Self:
        """The letters of rows (m, n); sites whose letters are all single characters, and no digits, share them."""
        found = [spelled(column)[0] for column in X.T]
        if wrong := set(quantities) - set(range(len(found))):
            raise ValueError(f"quantities name site {wrong.pop()}, but there are {len(found)} sites, counted from 0.")
        for site in quantities:
            try:
                wrong_texts = [letter for letter in found[site] if not isfinite(float(letter))]
            except ValueError as error:
                raise ValueError(f"site {site} is said to be a quantity: {error}; leave it out of them.") from None
            if wrong_texts:
                raise ValueError(f"site {site} is a quantity and holds {wrong_texts[0]!r}; leave such rows out.")
        every = set().union(*found)
        known = every <= KNOWN and len(every & set(AMINO_ACIDS)) >= FEWEST
        amino_acids = kind == "amino acids" or (kind == "auto" and known)
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
        return cls(tuple(map(tuple, found)), amino_acids, frozenset(quantities))

    @property
    def features(self) -> tuple[Array, ...]:
        """Features (q_i, F) of the letters of each site."""
        return tuple(
            features_of_quantity(letters) if site in self.quantities else features_of(letters, self.amino_acids)
            for site, letters in enumerate(self.sites)
        )

    def codes(self, X: NDArray[Any]) -> Codes:
        """Numbers (m, n) of the letters of rows.

        A new quantity is the nearest one that is known; a ValueError names the first other letter that is not.
        """
        codes = np.empty(X.shape, dtype=np.intp)
        for site, (known, column) in enumerate(zip(self.sites, X.T, strict=True)):
            letters, places = spelled(column)
            numbers = {letter: number for number, letter in enumerate(known)}
            if new := set(letters) - set(known):
                numbers |= _nearest(new, known, whole=site in self.quantities)
            found = np.array([numbers.get(letter, -1) for letter in letters], dtype=np.intp)[places]
            if (found < 0).any():
                row = int(np.argmin(found))
                raise ValueError(
                    f"row {row}, site {site}: letter {letters[places[row]]!r} was not learned; the model knows "
                    f"{', '.join(known)}. Leave the row out, or fit rows that have it."
                )
            codes[:, site] = found
        return codes


def _nearest(letters: set[str], known: Sequence[str], *, whole: bool) -> dict[str, int]:
    """Places of the nearest known quantities: numbers, not all whole unless ``whole``; of other letters none."""
    try:
        new, old = (np.array([float(letter) for letter in some]) for some in (letters, known))
    except ValueError:
        return {}
    if not whole and (old % 1 == 0).all():
        return {}
    return dict(zip(letters, np.abs(new[:, None] - old).argmin(axis=1).tolist(), strict=True))


def features_of_quantity(letters: Sequence[str]) -> Array:
    """Features (q, 2) of numbers: standardized numbers and ranks, as 1, 2, 4, 8 may matter by their logarithms."""
    values = np.array([float(letter) for letter in letters])
    values = np.ldexp(values, -int(exponents_of(values)))  # squares of any numbers are then numbers
    both = np.stack([values, rankdata(values)], axis=1)
    return np.asarray((both - both.mean(axis=0)) / np.maximum(both.std(axis=0), np.finfo(float).tiny))


def features_of(letters: Sequence[str], amino_acids: bool) -> Array:
    """Features (q, F) of letters: standardized properties and an indicator of stop and gap, or each its own."""
    if not amino_acids:
        return np.eye(len(letters)) * ALIKE
    table = np.array(list(AMINO_ACIDS.values()))
    scaled = dict(zip(AMINO_ACIDS, (table - table.mean(axis=0)) / table.std(axis=0), strict=True))
    found = np.array([scaled.get(letter, np.zeros(table.shape[1])) for letter in letters])
    others = [np.array([ALIKE * (letter == other) for letter in letters]) for other in sorted(OTHERS & set(letters))]
    return np.column_stack([found, *others])
