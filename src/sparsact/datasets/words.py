"""Texts of a column that are sequences: what is seen of them in one pass, and the column that this makes."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparsact.datasets.letters import LetterString, Mutations, mutations
from sparsact.datasets.values import spelling

LEAST_TEXTS: Final = 8  # different, of few that are taken for sequences


class WordSurvey:
    """What the texts of a column may be: strings of letters of one length, or lists of mutations.

    ``letters`` are those at each place while all texts have one length; ``odd`` says of the first row that ended this.
    ``mutated`` are the letters of each site, the wild type's first, while all texts are lists of mutations.
    """

    letters: list[str] | None
    mutated: dict[int, str] | None

    def __init__(self) -> None:
        self.letters, self.mutated = None, {}
        self.odd = ""
        self.several = False  # whether a text has two mutations
        self.n_rows = 0

    def update(self, array: pa.Array, first_row: int, file: str) -> None:
        """Add the next piece of a column of texts."""
        begins = not self.n_rows
        self.n_rows += len(array)
        if not len(array) or (self.letters is None and self.mutated is None and not begins):
            return
        texts = list(map(spelling, pc.unique(array).to_pylist()))
        if self.mutated is not None:
            self._see_mutations(texts)
        if begins or self.letters is not None:
            self._see_letters(texts, array, first_row, file)

    def _see_mutations(self, texts: list[str]) -> None:
        known: dict[int, str] = dict(self.mutated or {})
        for text in texts:
            found = mutations(text)
            if found is None:
                self.mutated = None
                return
            self.several |= len(found) > 1
            for site, wild, new in found:
                letters = known.setdefault(site, wild)
                if letters[0] != wild:
                    self.odd = f"site {site} of the wild type is {letters[0]} in some rows and {wild} in {text!r}"
                if new not in letters:
                    known[site] = letters + new
        self.mutated = known

    def _see_letters(self, texts: list[str], array: pa.Array, first_row: int, file: str) -> None:
        length = len(self.letters) if self.letters else len(texts[0])
        if not length or not all(re.fullmatch(r"[A-Za-z*-]+", text) for text in texts):
            self.letters = None
            return
        wrong = next((text for text in texts if len(text) != length), None)
        if wrong is not None:
            row = first_row + next(i for i, text in enumerate(array.to_pylist()) if spelling(text) == wrong) + 1
            self.odd = f"{file}row {row}: {wrong!r} has {len(wrong)} letters, and the rows before have {length}"
            self.letters = None
            return
        columns = np.array(texts, dtype=f"U{length}").view("U1").reshape(len(texts), -1).T
        before = self.letters or [""] * length
        self.letters = [
            "".join(sorted({*one, *np.unique(column)})) for one, column in zip(before, columns, strict=True)
        ]

    def column(self, name: str, n_texts: int, *, wild_type: str | None, many: bool) -> LetterString | Mutations | None:
        """What the texts make the column, if they are sequences.

        Of few texts, which may be names of categories, lists of two mutations and strings that are an eighth or more of
        all combinations of their letters are taken for sequences.
        """
        if self.mutated and (many or self.several or wild_type):
            if self.odd:
                raise ValueError(f"column {name!r}: {self.odd}; a site has one wild type.")
            _check_mutations(name, self.mutated, wild_type)
            found = sorted(self.mutated.items())
            return Mutations(name, tuple(f"{i}{one[0]}{''.join(sorted(one[1:]))}" for i, one in found))
        if not self.letters:
            return None
        dense = is_dense([len(one) for one in self.letters], n_texts)
        if not (many or dense or (wild_type and len(wild_type) == len(self.letters))):
            return None
        if wild_type is not None:
            _check_letters(name, self.letters, wild_type)
        return LetterString(name, tuple(self.letters))

    def state(self) -> dict[str, Any]:
        """All that was seen, as JSON spells it."""
        mutated = None if self.mutated is None else sorted(self.mutated.items())
        return vars(self) | {"mutated": mutated}

    def restore(self, state: dict[str, Any] | None) -> None:
        """Have seen what another survey of the column had seen; with None one that did not look for sequences."""
        self.letters = self.mutated = None
        if state is None:
            self.n_rows = 1
            return
        if state["letters"] is not None:
            self.letters = list(map(str, state["letters"]))
        if state["mutated"] is not None:
            self.mutated = {int(site): str(letters) for site, letters in state["mutated"]}
        self.odd, self.several, self.n_rows = str(state["odd"]), bool(state["several"]), int(state["n_rows"])


def is_dense(sizes: Sequence[int], n_texts: int) -> bool:
    """Whether different texts are an eighth or more of all combinations of letters, ``sizes[i]`` of them at place i."""
    return sum(q > 1 for q in sizes) > 1 and n_texts >= max(LEAST_TEXTS, np.prod(sizes, dtype=float) / 8)


def slip(texts: Collection[str], odd: str) -> str:
    """Why texts are no sequences where all but an eighth of them would be; empty where they are plain categories."""
    by_length = [[text for text in texts if len(text) == length] for length in {*map(len, texts)}]
    most = max(by_length, key=len, default=[])
    if (
        not odd
        or len(most) < 7 / 8 * len(texts)
        or not is_dense([len({*one}) for one in zip(*most, strict=True)], len(most))
    ):
        return ""
    return f"{odd}; a sequence needs a letter at each site in every row"


def _check_mutations(name: str, mutated: dict[int, str], wild_type: str | None) -> None:
    """Refuse mutations of sites that the wild type does not have, or of other letters than it has there."""
    for site, letters in mutated.items() if wild_type is not None else ():
        has = "no such site" if site > len(wild_type or "") else (wild_type or "")[site - 1]
        if has != letters[0]:
            raise ValueError(
                f"column {name!r}: site {site} is {letters[0]} in mutation {letters[:1]}{site}{letters[1:2]}, and the "
                f"wild type has {has}; check where its numbers begin (at 1), or leave the wild type out."
            )


def _check_letters(name: str, letters: list[str], wild_type: str) -> None:
    """Refuse a wild type of another length, or with another letter where all rows have one."""
    if len(wild_type) != len(letters):
        raise ValueError(
            f"column {name!r}: the wild type has {len(wild_type)} letters, and the rows have {len(letters)}."
        )
    if not any(own in of_rows for of_rows, own in zip(letters, wild_type, strict=True)):
        raise ValueError(f"column {name!r}: no row agrees with the wild type anywhere; check it, or leave it out.")
    for place, (of_rows, own) in enumerate(zip(letters, wild_type, strict=True)):
        if len(of_rows) == 1 and of_rows != own:
            raise ValueError(
                f"column {name!r}: at place {place} the wild type has {own}, and every row has {of_rows}; check it, or "
                "leave it out."
            )
