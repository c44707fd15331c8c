"""Columns of sequences: strings of bits, texts of one length, a letter a site, and lists such as ``A12V:G45D``."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import ascii_letters
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparsact.datasets.cell_values import UnreadableError, refuse_missing, spelling, zero_one_digits

NUCLEOTIDES: Final = frozenset("ACGTUN*-")
_WILD_TYPE: Final = re.compile(r"(_?WT|_SY|WILD[ -]?TYPE|(P\.)?[(\[]?=[)\]]?)?", re.IGNORECASE)
_MUTATION: Final = re.compile(r"([A-Z*])_?0*([1-9][0-9]*)_?([A-Z*=-])")
_LIST: Final = re.compile(rf"{_MUTATION.pattern}(?:[:;,/+|_ ]+{_MUTATION.pattern})*")
_PROTEIN: Final = re.compile(r"(?:[\w.]+:)?p\.[(\[]*([^()\[\]]+)[)\]]*")
_RESIDUES: Final = (
    "alaA argR asnN aspD cysC glnQ gluE glyG hisH ileI leuL lysK metM pheF proP serS thrT trpW tyrY valV "
    "secU pylO ter* del-"
)
_LETTER_OF: Final = {word[:3]: word[3] for word in _RESIDUES.split()}
RESIDUES: Final = frozenset(_LETTER_OF.values()) - {*"UO"}  # with stops and deletions
_RESIDUE: Final = re.compile("|".join(_LETTER_OF), re.IGNORECASE)


def mutations(text: str) -> list[tuple[int, str, str]] | None:
    """Site, letter of the wild type and new letter of each mutation of a text; None if it is no list of mutations.

    Sites may have zeros before them, letters may be lower case; of HGVS [1]_ substitutions and deletions of a protein's
    residues are read, and what leaves a residue as it is, as ``p.Met1=``, is no mutation.

    References
    ----------
    .. [1] J. T. den Dunnen et al., "HGVS recommendations for the description of sequence variants", 2016.

    Examples
    --------
    >>> mutations("A12V:G45D"), mutations("WT"), mutations("red"), mutations("p.[Met1Ala;Lys2=]")
    ([(12, 'A', 'V'), (45, 'G', 'D')], [], None, [(1, 'M', 'A')])
    """
    if _WILD_TYPE.fullmatch(text):
        return []
    if protein := _PROTEIN.fullmatch(text):
        text = _RESIDUE.sub(lambda found: _LETTER_OF[found[0].lower()], protein[1])
    if not _LIST.fullmatch(text := text.upper()):
        return None
    found = _MUTATION.findall(text)
    read = {int(site): (wild, new) for wild, site, new in found}
    known = [(site, wild, new) for site, (wild, new) in read.items() if new not in ("=", wild)]
    return known if len(read) == len(found) else None


def one_alphabet(letters: Collection[str]) -> dict[int, str]:
    """What each letter of another spelling stands for, as :meth:`str.translate` takes it.

    Both cases of a letter are one, a capital if some letter is. T and U are one among nucleotides, T if both are there.

    >>> found = one_alphabet("ACGTacu")
    >>> "acgtuAU".translate(found), "acg".translate(one_alphabet("acgu")), "K".translate(one_alphabet("a"))
    ('ACGTTAT', 'acg', 'K')
    """
    cased = str.upper if any(map(str.isupper, letters)) else str.lower
    known = set(map(cased, letters))
    t, u = cased("T"), cased("U")
    pair = {t: u, u: t} if {*map(str.upper, letters)} <= NUCLEOTIDES else {}
    if pair and {t, u} <= known:
        known.remove(u)
    own = {letter: cased(letter) for letter in ascii_letters}
    own = {letter: one if one in known else pair.get(one, one) for letter, one in own.items()}
    return {ord(letter): one for letter, one in own.items() if one in known and one != letter}


def letter_bits(n_letters: int, *, mutated: bool) -> NDArray[np.uint8]:
    """Bits (q, b) of the q letters of a site: one each, but none of the first where there are two or it is mutated."""
    return np.eye(max(2, n_letters), dtype=np.uint8)[:n_letters, int(mutated or n_letters <= 2) :]


def combined(patterns: Sequence[NDArray[np.uint8]], places: NDArray[np.intp]) -> NDArray[np.uint8]:
    """Bits (m, n) of rows whose letters have these places (m, sites) among the patterns (q, b) of each site."""
    pieces = [own[column] for own, column in zip(patterns, places.T, strict=True)]
    return np.concatenate([np.empty((len(places), 0), dtype=np.uint8), *pieces], axis=1)


def places_in(patterns: Sequence[NDArray[np.uint8]], X: NDArray[Any]) -> NDArray[np.intp]:
    """Inverse of :func:`combined`."""
    found, first = [np.empty((len(X), 0), dtype=np.intp)], 0
    for q, n in (own.shape for own in patterns):
        bits = X[:, first : first + n].astype(bool)
        found.append(np.where(bits.any(axis=1), bits.argmax(axis=1) + q - n, 0)[:, None])
        first += n
    return np.concatenate(found, axis=1)


@dataclass(frozen=True)
class BitString:
    """A column of texts such as ``0010110``, all of one length: one bit a character, from left to right.

    ``padded``: zeros are put before shorter values, and before numbers, which have lost them. ``pattern``, unless it is
    empty, has the bit of each place that is the same in every row, which gives no feature, and a dot elsewhere.
    """

    kind: ClassVar[str] = "bit string"
    name: str
    length: int
    padded: bool = False
    pattern: str = ""

    def __post_init__(self) -> None:
        if self.pattern and (len(self.pattern) != self.length or set(self.pattern) - set("01.")):
            raise ValueError(f"a pattern of {self.length} bits has another form")

    @property
    def places(self) -> list[int]:
        """Places that differ between rows."""
        return [i for i in range(self.length) if self.pattern[i : i + 1] in ("", ".")]

    @property
    def zeros(self) -> str:
        """The text of a row whose features are all 0."""
        return self.pattern.replace(".", "0") or "0" * self.length

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the bits that the column gives."""
        return tuple(f"{self.name}[{i + 1}]" for i in self.places)

    def encode(self, array: pa.Array, first_row: int) -> NDArray[np.uint8]:
        """Bits of a piece of the column, shape (m, places)."""
        refuse_missing(array, self.name, first_row)
        if not len(array):
            return np.empty((0, len(self.places)), dtype=np.uint8)
        characters, added = zero_one_digits(array)
        odd = characters is None or added or characters.shape[1] != self.length
        if odd and (characters is None or not self.padded or characters.shape[1] > self.length):
            self._check_texts(array, first_row)
        if characters is None:  # numbers that texts do not spell
            raise ValueError(f"column {self.name!r} holds {array.type}, need strings of bits; write it as text.")
        width = characters.shape[1]
        bits = np.zeros((len(array), self.length), dtype=np.uint8)
        bits[:, self.length - width :] = characters - np.uint8(ord("0"))
        if self.pattern:
            own = np.frombuffer(self.pattern.encode(), dtype=np.uint8)
            self._check_pattern(bits, own, first_row)
            return np.ascontiguousarray(bits[:, own == ord(".")])
        return bits

    def _check_texts(self, array: pa.Array, first_row: int) -> None:
        """Refuse what is no string of the bits that there are."""
        shortest = 1 if self.padded else self.length
        why = f"is not a string of {self.length} bits, as in the training table."
        reasons = {
            row: f"{array[row].as_py()!r} {why}"
            for row, text in enumerate(map(str, array.to_pylist()))
            if not shortest <= len(text) <= self.length or set(text) - {"0", "1"}
        }
        if reasons:
            raise UnreadableError(self.name, first_row, reasons)

    def _check_pattern(self, bits: NDArray[np.uint8], own: NDArray[np.uint8], first_row: int) -> None:
        """Raise if a place that never varied in the learned rows holds another bit."""
        other = (bits + ord("0") != own) & (own != ord("."))
        if other.any():
            why, end = "where every row of the training table has", "its effect is not known."
            reasons = {
                int(row): f"bit {bits[row, place]} at place {place + 1}, {why} {self.pattern[place]}; {end}"
                for row, place in reversed(np.argwhere(other))
            }
            raise UnreadableError(self.name, first_row, reasons)


@dataclass(frozen=True)
class LetterString:
    """A column of texts of one length: at each place that varies a site, whose letters become bits.

    ``letters`` lists the letters of every place, in alphabetical order; a place of one letter has no bit. Letters that
    are not listed are read in the other case, and U as T among nucleotides. ``mutated``: the first letter of each place
    is the wild type's, and every other one has a bit, named as a mutation such as ``E104K``, with places from 1.
    """

    kind: ClassVar[str] = "letters"
    name: str
    letters: tuple[str, ...]
    mutated: bool = False

    @property
    def sites(self) -> tuple[tuple[str, str], ...]:
        """Name and letters of each site."""
        varying = [(i, letters) for i, letters in enumerate(self.letters, 1) if len(letters) > 1]
        return tuple((f"{own[0]}{i}" if self.mutated else f"{self.name}[{i}]", own) for i, own in varying)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the bits that the column gives."""
        equals = "" if self.mutated else "="
        named = [(name, own[1:] if len(own) == 2 or self.mutated else own) for name, own in self.sites]
        return tuple(f"{name}{equals}{letter}" for name, letters in named for letter in letters)

    def encode(self, array: pa.Array, first_row: int) -> NDArray[np.uint8]:
        """Bits of a piece of the column, shape (m, bits)."""
        refuse_missing(array, self.name, first_row)
        texts = list(map(spelling, array.to_pylist()))
        why = f"letters, and the training table has {len(self.letters)}."
        reasons = {
            row: f"{text!r} has {len(text)} {why}" for row, text in enumerate(texts) if len(text) != len(self.letters)
        }
        if reasons:
            raise UnreadableError(self.name, first_row, reasons)
        if strange := set("".join(texts)).difference(*self.letters):
            meant = one_alphabet(set("".join(self.letters)))
            texts = [
                text.translate({ord(one): meant[ord(one)] for one in strange if ord(one) in meant}) for text in texts
            ]
        characters = np.array(texts, dtype=f"U{len(self.letters)}").view("U1").reshape(len(texts), len(self.letters))
        places = np.empty((len(texts), len(self.letters)), dtype=np.intp)
        for i, letters in enumerate(self.letters):
            same = characters[:, i, None] == np.array(list(letters))
            why = f"at place {i + 1} is not among the letters of the training table ({letters})."
            for row in np.flatnonzero(~same.any(axis=1)).tolist():
                reasons.setdefault(row, f"letter {str(characters[row, i])!r} of {texts[row]!r} {why}")
            places[:, i] = same.argmax(axis=1)
        if reasons:
            raise UnreadableError(self.name, first_row, reasons)
        return _bits(self, places[:, [len(letters) > 1 for letters in self.letters]])


@dataclass(frozen=True)
class Mutations:
    """A column of lists of mutations: a site for each that is mutated in some row, a bit for each of its new letters.

    ``values`` holds for each site its number and its letters, the wild type's first, such as ``12AVG``.
    """

    kind: ClassVar[str] = "mutations"
    mutated: ClassVar[bool] = True
    name: str
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        if not all(re.fullmatch(r"[1-9][0-9]{0,8}[A-Z*-]{2,30}", value) for value in self.values):
            raise ValueError("a site needs its number and letters, such as 12AVG")

    @cached_property
    def by_site(self) -> dict[int, str]:
        """Letters by the number of the site."""
        letters = [value.lstrip("0123456789") for value in self.values]
        return {int(value.removesuffix(own)): own for value, own in zip(self.values, letters, strict=True)}

    @property
    def sites(self) -> tuple[tuple[str, str], ...]:
        """Name and letters of each site."""
        return tuple((f"{letters[0]}{site}", letters) for site, letters in self.by_site.items())

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the bits that the column gives."""
        return tuple(f"{name}{letter}" for name, letters in self.sites for letter in letters[1:])

    def encode(self, array: pa.Array, first_row: int) -> NDArray[np.uint8]:
        """Bits of a piece of the column, shape (m, bits)."""
        refuse_missing(array, self.name, first_row)
        encoded = pc.dictionary_encode(array)
        place = {site: i for i, site in enumerate(self.by_site)}
        codes = np.zeros((len(encoded.dictionary), len(place)), dtype=np.intp)
        indices = encoded.indices.to_numpy()
        reasons: dict[int, str] = {}
        for group, text in enumerate(map(spelling, encoded.dictionary.to_pylist())):
            found = mutations(text)
            known = found is not None and all(
                self.by_site.get(site, " ")[0] == wild and new in self.by_site[site] for site, wild, new in found
            )
            if not known or found is None:
                fact = "is not a list of mutations such as A12V:G45D" if found is None else "has a mutation that is not"
                fact += "" if found is None else " among the mutations of the training table"
                reasons |= dict.fromkeys(np.flatnonzero(indices == group).tolist(), f"{text!r} {fact}.")
                continue
            for site, _, new in found:
                codes[group, place[site]] = self.by_site[site].index(new)
        if reasons:
            raise UnreadableError(self.name, first_row, reasons)
        return np.asarray(_bits(self, codes)[indices])


def _bits(column: LetterString | Mutations, places: NDArray[np.intp]) -> NDArray[np.uint8]:
    """Bits of a column whose letters have these places (m, sites)."""
    return combined([letter_bits(len(letters), mutated=column.mutated) for _, letters in column.sites], places)
