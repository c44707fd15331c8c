r"""Effects from a reference such as a wild type: what single changes do, and several beyond these, with intervals.

For a set S of changes of letters of different sites from a reference r,

.. math:: e_S = \sum_{U \subseteq S} (-1)^{|S \setminus U|} f(r_U), \qquad e_{\{i\}} = f(r_i) - f(r),

where :math:`r_U` has the changes U. A batch of points is evaluated, never all combinations of letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
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
from sparsact.fit.term import CONFIDENCE, REACH, TERMS_KEPT, Term
from sparsact.fourier import Spectrum
from sparsact.learners import LatentRegressor
from sparsact.learners.contrasts import contrast_deviations
from sparsact.statistics.held_out_rows import HeldOutRows

Array = NDArray[np.float64]
Change = tuple[int, int]  # a site, and the place of its new letter
Changes = tuple[Change, ...]
MOST_SETS: Final = 4_096  # of one size that are evaluated
MOST_LETTERS: Final = 2_000  # whose pairs are looked at in the rows
ROUNDING: Final = 1e-12  # of the largest effect


@dataclass(frozen=True)
class Background:
    """A fitted model at a reference, whose sites have ``codes``; ``letters`` are the places that changes may lead to.

    ``beside`` is another model of the same table: where the first knows no deviations, they are the other's,
    widened by the distance between the effects in both.
    """

    model: TableModel
    codes: Codes
    letters: tuple[tuple[int, ...], ...]
    beside: TableModel | None = None

    @classmethod
    def of(cls, model: object, encoding: Encoding, reference: Reference | None = None) -> Background:
        """A model at changes of the reference of its fit, and the letters that it knows."""
        codes, table = default_reference(encoding), TableModel(model, encoding)
        codes = codes if reference is None else changed(encoding, codes, reference)
        return cls(table, codes, tuple(map(tuple, table.letters)))

    @classmethod
    def of_rows(cls, model: object, encoding: Encoding, rows: Codes, beside: object | None) -> Background:
        """A model at the reference of its fit to rows of letters (m, sites), and the letters that these have."""
        seen = tuple(tuple(np.unique(column).tolist()) for column in rows.T)
        other = None if beside is None else TableModel(beside, encoding)
        return cls(TableModel(model, encoding), default_reference(encoding, rows), seen, other)

    @property
    def value(self) -> Array:
        """Values (functions,) at the reference."""
        return np.asarray(self.model.functions(self.model.encoding.bits(self.codes[None]))[0])

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

    def deviations(self, points: Codes, weights: csr_array) -> Array:
        """Deviations (k, functions) of weighted sums (k, m) of values at points (m, sites); NaN where not known."""
        X = self.model.encoding.bits(points)
        found = contrast_deviations(self.model.model, self.model.rows(X), weights)
        if self.beside is None or not np.isnan(found).all():
            return found
        other = contrast_deviations(self.beside.model, self.beside.rows(X), weights)
        return np.asarray(np.hypot(other, weights @ (self.model.functions(X) - self.beside.functions(X))))

    @cached_property
    def _held_out(self) -> tuple[HeldOutRows, Codes] | None:
        """Held-out rows and their letters (m, sites); None without errors, and of latents, whose units are others."""
        design = self.model.encoding.design
        rows = None if design is None else design.held_out
        if rows is None or not rows.bits.shape[1] or isinstance(self.model.model, LatentRegressor):
            return None
        return rows, self.model.encoding.codes(rows.bits)

    def distance(self, changes: Changes, target: int) -> float:
        """How far an effect is off by the held-out errors of rows with the reference's or the changes' letters.

        A prior that all letters share shrinks the effects of a few strong ones. A point that is itself a row is known.
        """
        if self._held_out is None or target >= self._held_out[0].errors.shape[1]:
            return 0.0
        rows, codes = self._held_out
        sites, letters = np.array(changes).T
        new = codes[:, sites] == letters
        inside = (new | (codes[:, sites] == self.codes[sites])).all(axis=1)
        kinds, place = np.unique(new[inside], axis=0, return_inverse=True)
        cells = np.full(len(codes), -1)
        cells[inside] = place.ravel()
        elsewhere = np.delete(codes != self.codes, sites, axis=1).any(axis=1)
        unseen = np.bincount(cells[inside & ~elsewhere], minlength=len(kinds)) == 0
        signs = (-1.0) ** (len(sites) - kinds.sum(axis=1))
        return rows.contrast_error(cells, signs, unseen, 2.0 ** len(sites), target).distance

    def effect_deviations(self, listed: Sequence[Changes], target: int) -> Array:
        """Deviations (k,) of effects on a target: the model's own, and the distance by held-out rows."""
        own = self.deviations(*self.batch(listed))[:, target] if len(listed) else np.empty(0)
        return np.asarray(np.hypot(own, [self.distance(changes, target) for changes in listed]))

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
    """Pairs of changes that rows (m, sites) suggest, by scores on what single letters leave of targets (m,)."""
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


def ends(value: float, deviation: float, reach: float = REACH) -> tuple[float | None, float | None]:
    """Ends of an interval; None where the deviation is not known."""
    known = bool(np.isfinite(deviation))
    return (float(value - reach * deviation), float(value + reach * deviation)) if known else (None, None)


def terms_from(
    background: Background, listed: Sequence[Changes], values: Array, target: int, n_terms: int = TERMS_KEPT
) -> tuple[Term, ...]:
    """The largest of some effects (k, functions) on a target, with intervals, each by itself and for all at once.

    The q-value is twice the posterior probability that the sign is wrong.
    """
    order = np.argsort(-np.abs(values[:, target]), kind="stable")[:n_terms]
    least = ROUNDING * np.abs(values[:, target]).max(initial=0.0)
    order = order[np.abs(values[order, target]) > least]
    if not len(order):
        return ()
    deviations = background.effect_deviations([listed[i] for i in order], target)
    joint, terms = float(ndtri(1 - (1 - CONFIDENCE) / (2 * len(listed)))), []
    for i, value, deviation in zip(order.tolist(), values[order, target], deviations, strict=True):
        names, known = tuple(map(background.name, listed[i])), bool(np.isfinite(deviation))
        q_value = float(2 * ndtr(-abs(value) / max(deviation, ROUNDING * abs(value)))) if known else None
        own, of_all = ends(value, deviation), ends(value, deviation, joint)
        terms.append(Term(names, float(value), *own, True, (), q_value, *of_all, n_bits=0))
    return tuple(terms)


def explained_from(
    targets: Sequence[TargetResult], background: Background, rows: Codes, y: Array
) -> tuple[TargetResult, ...]:
    """The targets with effects from the reference, by rows (m, sites) and targets (m, functions)."""
    singles, sites = background.singles, background.model.encoding.sites
    of_singles, found = background.effects(singles), []
    every = background.sets(2, of_singles) if comb(len(singles), 2) <= MOST_SETS else []
    for place, target in enumerate(targets):
        listed = every or [*singles, *seen_pairs(background, rows, y[:, place])]
        values = np.concatenate([of_singles, background.effects(listed[len(singles) :])])
        by_letter = dict(zip([changes[0] for changes in singles], of_singles[:, place].tolist(), strict=True))
        pairs = zip(sites, background.letters, strict=True)
        found.append(
            replace(
                target,
                terms=terms_from(background, listed, values, place),
                constant=Term((), float(background.value[place]), n_bits=0),
                sites=tuple((name, tuple(letters[i] for i in known)) for (name, letters), known in pairs),
                letter_effects=tuple(
                    tuple(by_letter.get((site, one), 0.0) for one in known)
                    for site, known in enumerate(background.letters)
                ),
            )
        )
    return tuple(found)


def listed_terms(model: object, encoding: Encoding, target: int, n_terms: int) -> tuple[Term, ...]:
    """The largest effects from the reference of the fit, strong ones and their pairs, and last the value there."""
    background = Background.of(model, encoding)
    listed = background.sets(2, background.effects(background.singles))
    terms = terms_from(background, listed, background.effects(listed), target, n_terms)
    return (*terms, Term((), float(background.value[target]), n_bits=0))


def reference_effects(
    model: object, encoding: Encoding, reference: Reference | None = None, *, order: int = 2, top: int | None = None
) -> list[dict[str, Any]]:
    """What changes from a reference do: alone and, beyond that, together; the largest first.

    Where there are more than 4,096 sets of a size, only sets of the strongest single changes are looked at.

    Parameters
    ----------
    model : estimator
        Model of columns of letters, categories or bits.
    encoding : Encoding
        Encoding of the table that it was learned from.
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
    """
    background = Background.of(model, encoding, reference)
    listed, rows = background.sets(order, background.effects(background.singles)), []
    values, averages = background.effects(listed), _averages(background, listed)
    for place, name in enumerate(function_names(encoding)):
        largest = np.argsort(-np.abs(values[:, place]), kind="stable")[:top].tolist()
        deviations = background.effect_deviations([listed[i] for i in largest], place)
        for i, value, deviation in zip(largest, values[largest, place], deviations, strict=True):
            row = {"target": name, "columns": list(map(background.name, listed[i])), "at_reference": float(value)}
            row |= dict(zip(("low", "high"), ends(value, deviation), strict=True))
            rows.append(row | {"averaged": None if averages is None else averages[place][i]})
    return rows


def _averages(background: Background, listed: Sequence[Changes]) -> list[list[float]] | None:
    r"""Epistasis averaged over all settings, :math:`(-2)^{|S|} \chi_S(r) \hat f(S)`; None unless sites are bits."""
    spectra = getattr(background.model.model, "spectrum_", None)
    if spectra is None or any(len(letters) != 2 for _, letters in background.model.encoding.sites):
        return None
    signs, subsets = 1 - 2 * background.codes, [tuple(site for site, _ in changes) for changes in listed]
    every = [Spectrum.of(one) for one in (spectra if isinstance(spectra, list) else [spectra])]
    return [[float(s[one] * (-2.0) ** len(one) * signs[list(one)].prod()) for one in subsets] for s in every]


def contrast(
    model: object, encoding: Encoding, one: Reference, other: Reference, background: Reference | None = None
) -> list[dict[str, Any]]:
    """How much higher a model's function is with one change of a background than with another.

    Parameters
    ----------
    model : estimator
        Model of columns of letters, categories or bits.
    encoding : Encoding
        Encoding of the table that it was learned from.
    one, other : str, path or mapping
        Changes of the background, as the ``reference`` of :func:`reference_effects`; ``"WT"`` of sequences is none.
    background : str, path or mapping, optional
        By default the reference of the fit.

    Returns
    -------
    rows : list of dict
        For each ``target`` the difference ``value`` and its 95 % posterior interval from ``low`` to ``high``, None
        where the model has no posterior.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import sparsact as sa
    >>> table = {"a": [0, 1, 0, 1] * 9, "b": [0, 0, 1, 1] * 9, "y": [0, 3, 1, 4] * 9}
    >>> result = sa.fit_table(pa.table(table), "y", degree=1, alpha=0.0)
    >>> round(contrast(result.model, result.encoding, "a=1", "b=1")[0]["value"], 6)
    2.0
    """
    at = Background.of(model, encoding, background)
    points = np.stack([changed(encoding, at.codes, each) for each in (one, other)])
    weights = csr_array([[1.0, -1.0]])
    if (points[0] == points[1]).all():
        points, weights = points[:1], csr_array([[0.0]])
    (values,) = np.asarray(weights @ at.model.functions(encoding.bits(points)))
    (deviations,) = at.deviations(points, weights)
    rows = zip(function_names(encoding), values.tolist(), deviations.tolist(), strict=True)
    heads = ("target", "value", "low", "high")
    return [dict(zip(heads, (name, value, *ends(value, deviation)), strict=True)) for name, value, deviation in rows]
