"""Texts of a column that are sequences: what is seen of them in one pass, and the column that this makes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparsact.datasets.cell_values import listed, spelling
from sparsact.datasets.sites import RESIDUES, LetterString, Mutations, mutations, one_alphabet
from sparsact.datasets.value_counts import MODULUS, RowNumbers, joined

Digests = dict[str, int]  # of the rows that have each letter
_SEQUENCE: Final = re.compile(r"[A-Za-z*-]+")
LEAST_TEXTS: Final = 8  # different, of few that are taken for sequences


class WordSurvey:
    """What the texts of a column may be: strings of letters of one length, or lists of mutations.

    As long as all texts have one length, ``letters`` has the letters at each place, each with the digest of its rows;
    ``odd`` describes the first row that ended this. As long as all texts are lists of mutations, ``mutated`` has the
    letters of each site, the wild type's first and without a digest.
    """

    letters: list[Digests] | None
    mutated: dict[int, Digests] | None

    def __init__(self) -> None:
        self.letters, self.mutated = None, {}
        self.odd = ""
        self.other = ""  # the first text that is neither
        self.several = False  # whether a text has two mutations
        self.capital = False  # whether a mutation has a capital, as names such as s1a have not
        self.wild = False  # whether a text is the wild type
        self.n_rows = 0

    def update(self, array: pa.Array, first_row: int, file: str, rows: RowNumbers) -> None:
        """Add the next piece of a column of texts."""
        begins = not self.n_rows
        self.n_rows += len(array)
        if not len(array) or (self.letters is None and self.mutated is None and not begins):
            return
        encoded = pc.dictionary_encode(array)
        texts = list(map(spelling, encoded.dictionary.to_pylist()))
        halves = rows.halves_of_groups(encoded.indices.to_numpy(), len(texts))
        if self.mutated is not None:
            self._see_mutations(texts, joined(halves))
        if begins or self.letters is not None:
            self._see_letters(texts, halves, array, first_row, file)
        if not self.letters and self.mutated is None:
            text = next((one for one in texts if not is_sequence(one) and mutations(one) is None), "")
            self.other = f"{_place(array, text, first_row, file)} ({text!r})" if text else self.other

    def _see_mutations(self, texts: list[str], digests: list[int]) -> None:
        known: dict[int, Digests] = {site: dict(letters) for site, letters in (self.mutated or {}).items()}
        for text, digest in zip(texts, digests, strict=True):
            found = mutations(text)
            if found is None:
                self.mutated = None
                return
            self.several |= len(found) > 1
            self.capital |= len(found) > 0 and not text.islower()
            self.wild |= not found
            for site, wild, new in found:
                letters = known.setdefault(site, {wild: 0})
                if (own := next(iter(letters))) != wild:
                    self.odd = f"site {site} of the wild type is {own} in some rows and {wild} in {text!r}"
                letters[new] = (letters.get(new, 0) + digest) % MODULUS
        self.mutated = known

    def _see_letters(
        self, texts: list[str], halves: NDArray[np.float64], array: pa.Array, first_row: int, file: str
    ) -> None:
        length = len(self.letters) if self.letters else len(texts[0])
        if not length or not all(map(is_sequence, texts)):
            self.letters = None
            return
        wrong = next((text for text in texts if len(text) != length), None)
        if wrong is not None:
            row = _place(array, wrong, first_row, file)
            self.odd = f"{row}: {wrong!r} has {len(wrong)} letters, and the rows before have {length}"
            self.other = f"{row} ({wrong!r})"
            self.letters = None
            return
        characters = np.frombuffer("".join(texts).encode("ascii"), dtype=np.uint8).reshape(-1, length)
        self.letters = self.letters or [{} for _ in range(length)]
        for letters, column in zip(self.letters, characters.T, strict=True):
            sums = joined(np.stack([np.bincount(column, weights=half) for half in halves]))
            for code in np.flatnonzero(np.bincount(column)).tolist():
                letters[chr(code)] = (letters.get(chr(code), 0) + sums[code]) % MODULUS

    @property
    def meant(self) -> dict[int, str]:
        """What letters of another spelling stand for; see :func:`~sparsact.datasets.sites.one_alphabet`."""
        return one_alphabet(set().union(*self.letters or []))

    def sites(self, column: LetterString | Mutations, total: int) -> list[tuple[str, Digests]]:
        """Name of each site of the column, and the digests of its letters, where ``total`` is that of all rows."""
        if isinstance(column, Mutations):
            found = []
            for (name, _), (_, letters) in zip(column.sites, sorted((self.mutated or {}).items()), strict=True):
                wild = next(iter(letters))
                rest = (total - sum(digest for letter, digest in letters.items() if letter != wild)) % MODULUS
                found.append((name, letters | {wild: rest}))
            return found
        joint = [self._joined(letters) for letters in self.letters or []]
        return [(f"{column.name}[{i}]", letters) for i, letters in enumerate(joint, 1) if len(letters) > 1]

    def _joined(self, letters: Digests) -> Digests:
        """Digests of letters that stand for themselves."""
        found: Digests = {}
        meant = self.meant
        for letter, digest in letters.items():
            own = letter.translate(meant)
            found[own] = (found.get(own, 0) + digest) % MODULUS
        return found

    def notes(self, column: LetterString | Mutations, wild_type: str | None) -> list[str]:
        """Sentences about letters that are read as others, and about a wild type that no row has at some site."""
        if isinstance(column, Mutations) or self.letters is None:
            return []
        seen = set().union(*self.letters)
        found = []
        if any(map(str.islower, seen)) and any(map(str.isupper, seen)):
            found.append(f"{column.name}: upper and lower case are one letter; lower case is read as upper case.")
        if (
            {"T", "U"} <= {*map(str.upper, seen)}
            and seen & {"U", "u"}
            and not {"U", "u"} & set().union(*column.letters)
        ):
            found.append(f"{column.name}: U is read as T, since both occur and all letters are nucleotides.")
        own = (wild_type or "").translate(self.meant)
        absent = [
            f"{i} ({letter})"
            for i, (letter, of_rows) in enumerate(zip(own, self.letters, strict=False), 1)
            if letter not in self._joined(of_rows)
        ]
        if absent:
            found.append(
                f"warning: no row of {column.name} has the letter of the wild type at place {listed(absent)}; check it."
            )
        return found

    def column(self, name: str, n_texts: int, *, wild_type: str | None, many: bool) -> LetterString | Mutations | None:
        """What the texts make the column, if they are sequences.

        A few texts may be names of categories. They are sequences if they are lists of two mutations or single mutants,
        or strings that make up an eighth or more of all combinations of their letters.
        """
        singles = self.capital and self._are_mutants(n_texts)
        if self.mutated and ((many and self.capital) or self.several or wild_type or singles):
            if self.odd:
                raise ValueError(f"column {name!r}: {self.odd}; a site has one wild type.")
            letters = {site: "".join(one) for site, one in sorted(self.mutated.items())}
            listed_wild = mutations(wild_type or "")
            if listed_wild:
                raise ValueError(
                    f"column {name!r}: lists of mutations say by themselves what the wild type is, and {wild_type} is "
                    "a mutant; name a row without mutations, or leave the wild type out."
                )
            _check_mutations(name, letters, None if listed_wild == [] else wild_type)
            return Mutations(name, tuple(f"{i}{one[0]}{''.join(sorted(one[1:]))}" for i, one in letters.items()))
        if not self.letters:
            return None
        found = tuple("".join(sorted(self._joined(one))) for one in self.letters)
        dense = is_dense(list(map(len, found)), n_texts)
        if not (many or dense or (wild_type and len(wild_type) == len(found))):
            return None
        if wild_type is None:
            return LetterString(name, found)
        wild = wild_type.translate(self.meant)
        _check_letters(name, found, wild)
        found = tuple(own + letters.replace(own, "") for own, letters in zip(wild, found, strict=True))
        return LetterString(name, found, mutated=True)

    def _are_mutants(self, n_texts: int) -> bool:
        """Whether few texts are mutants of one protein: each its own, beside a wild type or in letters of residues.

        Names of two random capitals about a number are all of residues in 1 of 66 cases if there are eight.
        """
        every = list((self.mutated or {}).values())
        n_mutants = sum(len(letters) - 1 for letters in every)
        named = self.wild or (n_texts >= LEAST_TEXTS and set().union(*every) <= RESIDUES)
        return named and not self.odd and n_mutants == n_texts - self.wild

    def state(self) -> dict[str, Any]:
        """All that was seen, as JSON spells it."""
        letters = None if self.letters is None else list(map(_spelled, self.letters))
        mutated = (
            None if self.mutated is None else [[site, _spelled(one)] for site, one in sorted(self.mutated.items())]
        )
        return vars(self) | {"letters": letters, "mutated": mutated}

    def restore(self, state: dict[str, Any] | None) -> None:
        """Restore the survey of the column from a saved state; None: one that did not look for sequences."""
        self.letters = self.mutated = None
        if state is None:
            self.n_rows = 1
            return
        if state["letters"] is not None:
            self.letters = list(map(_digests, state["letters"]))
        if state["mutated"] is not None:
            self.mutated = {int(site): _digests(letters) for site, letters in state["mutated"]}
        self.odd, self.several, self.n_rows = str(state["odd"]), bool(state["several"]), int(state["n_rows"])
        self.other, self.capital = str(state.get("other", "")), bool(state.get("capital", True))  # not in older files
        self.wild = bool(state.get("wild", False))


def _spelled(letters: Digests) -> list[list[str]]:
    return [[letter, str(digest)] for letter, digest in letters.items()]


def _digests(state: Sequence[Sequence[str]]) -> Digests:
    """Inverse of :func:`_spelled`."""
    return {str(letter): int(digest) for letter, digest in state}


def _place(array: pa.Array, text: str, first_row: int, file: str) -> str:
    """The first row of a piece of a column that has a text, in words."""
    return f"{file}row {first_row + list(map(spelling, array.to_pylist())).index(text) + 1}"


def is_sequence(text: str) -> bool:
    """Whether a text is letters, gaps and stops only."""
    return bool(_SEQUENCE.fullmatch(text))


def odd_rows(rows: Mapping[str, str], later: str, *, few: bool) -> str:
    """Which different texts keep a column from being sequences; empty unless 7 of 8 have one length or are mutations.

    ``rows`` names the first row of each text, ``later`` a row beyond them, with its text. ``few`` texts may be names of
    categories unless they fill their grid.
    """
    lengths = Counter(len(text) for text in rows if is_sequence(text))
    length, count = max(lengths.items(), key=itemgetter(1), default=(0, 0))
    alike = [text for text in rows if len(text) == length and is_sequence(text)]
    lists = [text for text in rows if (found := mutations(text)) is not None and not (found and text.islower())]
    dense = count > 0 and is_dense([len({*one}) for one in zip(*alike, strict=True)], count)
    what = f"have {length} letters"
    if len(lists) > count:
        alike, dense, what = lists, True, "are mutations such as A12V:G45D"
    known = {*alike}
    odd = [f"{row} ({text!r})" for text, row in rows.items() if text not in known] or [later] * bool(later)
    if 8 * len(alike) < 7 * len(rows) or not odd or (few and not dense):
        return ""
    return f"{len(alike):,} different texts {what}; others are {listed(odd)}"


def is_dense(sizes: Sequence[int], n_texts: int) -> bool:
    """Whether different texts are an eighth or more of all combinations of letters, ``sizes[i]`` of them at place i."""
    return sum(q > 1 for q in sizes) > 1 and n_texts >= max(LEAST_TEXTS, np.prod(sizes, dtype=float) / 8)


def _check_mutations(name: str, mutated: dict[int, str], wild_type: str | None) -> None:
    """Refuse mutations of sites that the wild type does not have, or of other letters than it has there."""
    for site, letters in mutated.items() if wild_type is not None else ():
        has = "no such site" if site > len(wild_type or "") else (wild_type or "")[site - 1]
        if has != letters[0]:
            raise ValueError(
                f"column {name!r}: site {site} is {letters[0]} in mutation {letters[:1]}{site}{letters[1:2]}, and the "
                f"wild type has {has}; check where its numbers begin (at 1), or leave the wild type out."
            )


def _check_letters(name: str, letters: Sequence[str], wild_type: str) -> None:
    """Refuse a wild type of another length, or with another letter where all rows have one."""
    if len(wild_type) != len(letters):
        raise ValueError(
            f"column {name!r}: the wild type has {len(wild_type)} letters, and the rows have {len(letters)}."
        )
    if not any(own in of_rows for of_rows, own in zip(letters, wild_type, strict=True)):
        raise ValueError(f"column {name!r}: no row agrees with the wild type anywhere; check it, or leave it out.")
    for place, (of_rows, own) in enumerate(zip(letters, wild_type, strict=True), 1):
        if len(of_rows) == 1 and of_rows != own:
            raise ValueError(
                f"column {name!r}: at place {place} the wild type has {own}, and every row has {of_rows}; check it, or "
                "leave it out."
            )
