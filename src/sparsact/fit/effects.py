r"""Effects from a reference such as a wild type: what single changes do, and several beyond these, with intervals.

For a set S of changes of letters of different sites from a reference r,

.. math:: e_S = \sum_{U \subseteq S} (-1)^{|S \setminus U|} f(r_U), \qquad e_{\{i\}} = f(r_i) - f(r),

where :math:`r_U` has the changes U. A batch of points is evaluated, never all combinations of letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri

from sparsact.datasets import Encoding
from sparsact.fit.explain import function_names
from sparsact.fit.reference import Codes, Reference, changed, default_reference
from sparsact.fit.table_model import TableModel
from sparsact.fit.target_result import TargetResult
from sparsact.fit.term import CONFIDENCE, Term
from sparsact.fourier import Spectrum
from sparsact.learners.contrasts import Contrasts, contrasts

Array = NDArray[np.float64]
Change = tuple[int, int]  # a site, and the place of its new letter
Changes = tuple[Change, ...]
MOST_SETS: Final = 4_096  # of one size that are evaluated
MOST_LETTERS: Final = 2_000  # whose pairs are looked at in the rows
TERMS: Final = 200  # whose intervals are found
REACH: Final = float(ndtri((1 + CONFIDENCE) / 2))


def explains_letters(encoding: Encoding) -> bool:
    """Whether effects are of changes from a reference: of sites of several letters, or from a wild type."""
    several = any(len(letters) > 2 for _, letters in encoding.sites)
    return not encoding.real and (several or bool(encoding.reference))


@dataclass(frozen=True)
class Background:
    """A fitted model at a reference, whose sites have ``codes``; ``letters`` are the places that changes may lead to.

    ``beside`` is another model of the same table: where the first knows no deviations, they are those of the other,
    widened by the distance between the effects in both.
    """

    model: TableModel
    codes: Codes
    letters: tuple[tuple[int, ...], ...]
    beside: TableModel | None = None

    @property
    def singles(self) -> list[Changes]:
        """All changes of one site."""
        pairs = zip(self.codes.tolist(), self.letters, strict=True)
        return [((i, new),) for i, (own, letters) in enumerate(pairs) for new in letters if new != own]

    def name(self, change: Change) -> str:
        """A change in words: ``E104K`` of a mutation, or ``colour=red→blue``."""
        encoding, (site, new) = self.model.encoding, change
        name, letters = encoding.sites[site]
        own = letters[self.codes[site]]
        return f"{own}{name[1:]}{letters[new]}" if name in encoding.mutated_sites else f"{name}={own}→{letters[new]}"

    def batch(self, listed: Sequence[Changes]) -> tuple[Codes, csr_array]:
        """Distinct points (m, sites), the reference first, and weights (k, m) of their values in each effect."""
        place: dict[Changes, int] = {(): 0}
        entries: list[tuple[int, int, int]] = []
        for row, changes in enumerate(listed):
            for size in range(len(changes) + 1):
                for part in combinations(changes, size):
                    entries.append((row, place.setdefault(part, len(place)), (-1) ** (len(changes) - size)))
        points = np.tile(self.codes, (len(place), 1))
        for part, number in place.items():
            for site, letter in part:
                points[number, site] = letter
        rows, columns, signs = np.array(entries, dtype=np.intp).reshape(-1, 3).T
        return points, csr_array((signs.astype(np.float64), (rows, columns)), shape=(len(listed), len(place)))

    def effects(self, listed: Sequence[Changes]) -> Array:
        """Effects (k, functions) of sets of changes."""
        points, weights = self.batch(listed)
        return np.asarray(weights @ self.model.functions(self.model.encoding.bits(points)))

    def contrasts(self, listed: Sequence[Changes]) -> Contrasts:
        """Effects with their deviations."""
        return self.contrasts_of(*self.batch(listed))

    def contrasts_of(self, points: Codes, weights: csr_array) -> Contrasts:
        """Contrasts of the values at some points, with their deviations."""
        X = self.model.encoding.bits(points)
        found = contrasts(self.model.model, self.model.rows(X), weights)
        if self.beside is None or not np.isnan(found.deviations).all():
            return found
        other = contrasts(self.beside.model, self.beside.rows(X), weights)
        return replace(found, deviations=np.hypot(other.deviations, found.values - other.values))

    def sets(self, order: int, effects: Array) -> list[Changes]:
        """Sets of up to ``order`` changes, of the strongest single ones by their effects where these are too many."""
        singles, found = self.singles, self.singles
        strongest = np.argsort(-np.abs(effects).max(axis=1, initial=0.0), kind="stable")
        for size in range(2, order + 1):
            pool = len(singles)
            while comb(pool, size) > MOST_SETS and pool > size:
                pool -= 1
            chosen = [singles[i][0] for i in sorted(strongest[:pool].tolist())]
            found += [one for one in combinations(chosen, size) if len({site for site, _ in one}) == size]
        return found


def seen_pairs(background: Background, rows: Codes, y: Array) -> list[Changes]:
    """Pairs of changes that rows (m, sites) suggest, by scores of what single letters leave of targets (m,)."""
    singles = [changes[0] for changes in background.singles]
    counts = np.array([np.count_nonzero(rows[:, site] == letter) for site, letter in singles])
    kept = [singles[i] for i in np.sort(np.argsort(-counts, kind="stable")[:MOST_LETTERS])]
    there = np.stack([rows[:, site] == letter for site, letter in kept], axis=1).astype(np.float32)
    both, left = there.T @ there, (y - y.mean()).astype(np.float32)
    left = left - there @ np.linalg.solve(both + np.eye(len(kept), dtype=np.float32), there.T @ left)
    scores = np.abs((there * left[:, None]).T @ there) / np.sqrt(np.maximum(both, 1.0))
    sites = np.array([site for site, _ in kept])
    scores[sites[:, None] >= sites] = -1.0
    best = np.argsort(-scores, axis=None, kind="stable")[:MOST_SETS]
    places = zip(*np.unravel_index(best[scores.ravel()[best] > 0], scores.shape), strict=True)
    return [(kept[i], kept[j]) for i, j in places]


def background_of(
    model: object,
    encoding: Encoding,
    codes: Codes,
    rows: Codes | None = None,
    beside: object | None = None,
) -> Background:
    """The model at a reference, and the letters that rows have, or else those that it knows."""
    table = TableModel(model, encoding)
    known = table.letters if rows is None else [np.unique(column).tolist() for column in rows.T]
    return Background(table, codes, tuple(map(tuple, known)), beside and TableModel(beside, encoding))


def terms_from(
    background: Background, listed: Sequence[Changes], values: Array, target: int, n_terms: int = TERMS
) -> tuple[Term, ...]:
    """The largest of some effects (k, functions) on a target, with intervals, each by itself and for all at once."""
    order = np.argsort(-np.abs(values[:, target]), kind="stable")[:n_terms]
    least = np.finfo(float).eps ** 0.75 * np.abs(values[:, target]).max(initial=0.0)  # rounding of the sums
    chosen = [listed[i] for i in order if abs(values[i, target]) > least]
    if not chosen:
        return ()
    found = background.contrasts(chosen)
    joint = float(ndtri(1 - (1 - CONFIDENCE) / (2 * max(1, len(listed)))))
    terms = []
    for changes, value, deviation in zip(chosen, *(each[:, target] for each in vars(found).values()), strict=True):
        names = tuple(map(background.name, changes))
        ends: dict[str, Any] = {}
        if np.isfinite(deviation):
            ends = {"low": value - REACH * deviation, "high": value + REACH * deviation}
            ends |= {"joint_low": value - joint * deviation, "joint_high": value + joint * deviation}
            ends["q_value"] = float(2 * ndtr(-abs(value) / deviation)) if deviation else 0.0
        terms.append(Term(names, float(value), n_bits=0, **ends))
    return tuple(terms)


def explained_from(
    targets: Sequence[TargetResult], background: Background, rows: Codes, y: Array
) -> tuple[TargetResult, ...]:
    """The targets with effects from the reference, by rows (m, sites) and targets (m, functions)."""
    singles, encoding = background.singles, background.model.encoding
    of_singles = background.effects(singles)
    listed = background.sets(2, of_singles)
    n_pairs = comb(len(singles), 2)
    at_reference = background.model.functions(encoding.bits(background.codes[None]))[0]
    found = []
    for target, place in zip(targets, range(len(targets)), strict=True):
        own = listed if n_pairs <= MOST_SETS else [*singles, *seen_pairs(background, rows, y[:, place])]
        values = np.concatenate([of_singles, background.effects(own[len(singles) :])])
        by_letter = {changes[0]: float(value) for changes, value in zip(singles, of_singles[:, place], strict=True)}
        heat = tuple(tuple(by_letter.get((i, one), 0.0) for one in own) for i, own in enumerate(background.letters))
        pairs = zip(encoding.sites, background.letters, strict=True)
        found.append(
            replace(
                target,
                terms=terms_from(background, own, values, place),
                constant=Term((), float(at_reference[place]), n_bits=0),
                sites=tuple((name, tuple(letters[i] for i in known)) for (name, letters), known in pairs),
                letter_effects=heat,
            )
        )
    return tuple(found)


def listed_terms(model: object, encoding: Encoding, target: int, n_terms: int) -> tuple[Term, ...]:
    """The largest effects from the reference of the fit, strong ones and their pairs, and last the value there."""
    background = background_of(model, encoding, default_reference(encoding))
    listed = background.sets(2, background.effects(background.singles))
    value = background.model.functions(encoding.bits(background.codes[None]))[0, target]
    terms = terms_from(background, listed, background.effects(listed), target, n_terms)
    return (*terms, Term((), float(value), n_bits=0))


def reference_effects(
    model: object, encoding: Encoding, reference: Reference | None = None, *, order: int = 2, top: int | None = None
) -> list[dict[str, Any]]:
    """What changes from a reference do: alone and, beyond that, together; the largest first.

    Parameters
    ----------
    model : estimator
        Of columns of letters, categories or bits.
    encoding : Encoding
        Of the table that it was learned from.
    reference : str, path or mapping, optional
        A sequence; mutations such as ``"A12V:G45D"``, or ``"WT"``; ``"a=1,b=0"``, or ``{"a": 1, "b": 0}``, of columns
        or sites; a table, whose first row it is. What it does not name is as in the wild type of the fit, or else has
        the most frequent letter; of bits the value 0. By default that reference.
    order : int
        The most sites that are changed together.
    top : int, optional
        How many sets of changes to list of each target.

    Returns
    -------
    rows : list of dict
        ``target``; ``columns``, each with its values before and after, or as a mutation; ``at_reference``, the
        epistasis of the set (for one change, the difference) with all others as in the reference, and its 95 %
        posterior interval from ``low`` to ``high``, None where the model has no posterior; ``averaged``, the same
        averaged over all settings of the others, exact, of columns of bits. Suits ``pandas.DataFrame``.

    Raises
    ------
    ValueError
        If a column or value is unknown, or some column is numbers.

    Notes
    -----
    Where there are more than 4,096 sets of a size, only those of the strongest single changes are looked at.
    """
    codes = default_reference(encoding)
    background = background_of(model, encoding, codes if reference is None else changed(encoding, codes, reference))
    of_singles, rows = background.effects(background.singles), []
    listed = background.sets(order, of_singles)
    values, averages = background.effects(listed), _averages(background, listed)
    for place, name in enumerate(function_names(encoding)):
        largest = np.argsort(-np.abs(values[:, place]), kind="stable")[:top].tolist()
        found = background.contrasts([listed[i] for i in largest])
        for i, value, deviation in zip(largest, found.values[:, place], found.deviations[:, place], strict=True):
            known = bool(np.isfinite(deviation))
            rows.append(
                {
                    "target": name,
                    "columns": list(map(background.name, listed[i])),
                    "at_reference": float(value),
                    "low": float(value - REACH * deviation) if known else None,
                    "high": float(value + REACH * deviation) if known else None,
                    "averaged": None if averages is None else averages[place][i],
                }
            )
    return rows


def _averages(background: Background, listed: Sequence[Changes]) -> list[list[float]] | None:
    r"""Epistasis averaged over all settings, :math:`(-2)^{|S|} \chi_S(r) \hat f(S)`; None unless sites are bits."""
    spectra = getattr(background.model.model, "spectrum_", None)
    if spectra is None or any(len(letters) != 2 for _, letters in background.model.encoding.sites):
        return None
    signs = 1 - 2 * background.codes
    every = [Spectrum.of(one) for one in (spectra if isinstance(spectra, list) else [spectra])]
    subsets = [tuple(site for site, _ in changes) for changes in listed]
    return [[float(s[one] * (-2.0) ** len(one) * signs[list(one)].prod()) for one in subsets] for s in every]


@dataclass(frozen=True)
class Contrast:
    """The difference of a fitted function between two points, with its posterior deviation and 95 % interval.

    Attributes
    ----------
    target : str
        What is predicted.
    value : float
        The function at the first point less that at the second.
    deviation, low, high : float or None
        Posterior standard deviation and ends of the interval; None where the model has no posterior.
    """

    target: str
    value: float
    deviation: float | None
    low: float | None
    high: float | None


def contrast(
    model: object, encoding: Encoding, one: Reference, other: Reference, background: Reference | None = None
) -> list[Contrast]:
    """How a model's function of each target differs between two changes of a background.

    Parameters
    ----------
    model : estimator
        Of columns of letters, categories or bits.
    encoding : Encoding
        Of the table that it was learned from.
    one, other : str, path or mapping
        Changes of the background, as the ``reference`` of :func:`reference_effects`; ``"WT"`` of sequences is none.
    background : str, path or mapping, optional
        By default the reference of the fit.

    Returns
    -------
    list of Contrast
        One of each target.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import sparsact as sa
    >>> table = {"a": [0, 1, 0, 1] * 9, "b": [0, 0, 1, 1] * 9, "y": [0, 1, 1, 2] * 9}
    >>> result = sa.fit_table(pa.table(table), "y", degree=1, alpha=0.0)
    >>> round(contrast(result.model, result.encoding, "a=1", "b=1")[0].value, 6) + 0.0
    0.0
    """
    base = default_reference(encoding)
    base = base if background is None else changed(encoding, base, background)
    points = np.stack([changed(encoding, base, each) for each in (one, other)])
    names, differ = function_names(encoding), bool((points[0] != points[1]).any())
    if not differ:
        return [Contrast(name, 0.0, 0.0, 0.0, 0.0) for name in names]
    at = background_of(model, encoding, base)
    found = at.contrasts_of(points, csr_array(np.array([[1.0, -1.0]])))
    rows = zip(names, found.values[0].tolist(), found.deviations[0].tolist(), strict=True)
    return [
        Contrast(name, value, None, None, None)
        if np.isnan(deviation)
        else Contrast(name, value, deviation, value - REACH * deviation, value + REACH * deviation)
        for name, value, deviation in rows
    ]
