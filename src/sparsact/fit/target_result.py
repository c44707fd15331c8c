"""What is known of one target of a fitted table: scores, terms, influences of columns, held-out rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.fit.scores import FoldScores, NoiseCeiling
from sparsact.fit.term import Term, effect_format
from sparsact.fourier.hoeffding import Anova

WIDEST_LABEL: Final = 40  # that others are aligned with


@dataclass(frozen=True)
class TargetResult:
    """One target (or one class): how well it is predicted, and what the polynomial holds.

    ``weights[j]`` is the sum of squared coefficients of degree ``j + 1``, where the rows are the whole cube; else it is
    empty, as squares of coefficients are then no shares of a variance. ``influences`` are, column by column, the mean
    square over the rows of the part of the polynomial that holds it (empty where some column is a real number);
    ``actual`` and ``predicted`` are held-out rows, or a sample; ``predicted`` is None where none was made.
    ``constant`` is the term of no columns, which ``terms`` leave out: with it they add up to the function.
    ``relative_error`` is the mean size of predicted / actual - 1 over these, of a target whose logarithm is learned;
    ``ceiling`` is the R2 that rows of equal columns leave possible, where they are enough. ``posterior_shares`` are, of
    a Gaussian process, the share of each degree from 1 in the variance over the cube, and its 95 % interval. ``anova``
    are, where sites have letters, the components of the fitted function over all their combinations, with the names and
    letters of the ``sites``: ``weights`` and ``influences`` are then its variances by number of sites, and by site.
    ``letter_effects`` are then, for each site, what each of its letters changes from the reference.
    """

    name: str
    r2: FoldScores
    linear_r2: FoldScores
    variance: float
    actual: NDArray[np.float64]
    predicted: NDArray[np.float64] | None
    weights: tuple[float, ...] = ()
    terms: tuple[Term, ...] = ()
    constant: Term | None = None
    influences: tuple[tuple[str, float], ...] = ()
    relative_error: float | None = None
    ceiling: NoiseCeiling | None = None
    posterior_shares: tuple[tuple[float, float, float], ...] = ()
    anova: Anova | None = None
    sites: tuple[tuple[str, tuple[str, ...]], ...] = ()
    letter_effects: tuple[tuple[float, ...], ...] = ()

    @property
    def of_letters(self) -> bool:
        """Whether the terms are effects of changes from a reference, not of bits."""
        return bool(self.letter_effects)

    @property
    def learned(self) -> bool:
        """Whether the held-out R2 is above 0, the R2 of the mean, by more than its spread."""
        return self.r2.mean > self.r2.deviation

    @property
    def more_scores(self) -> list[str]:
        """The noise ceiling and the relative error on held-out rows, for a person."""
        found = [] if self.ceiling is None else [f"noise ceiling: {self.ceiling}"]
        return found + (
            [] if self.relative_error is None else [f"mean relative error on held-out rows: {self.relative_error:.2%}"]
        )

    def listed(self, n_terms: int | None = None) -> list[Term]:
        """The largest terms, by default all that are kept, and last the constant."""
        return [*self.terms[:n_terms], *([] if self.constant is None else [self.constant])]

    def to_dict(self, n_terms: int) -> dict[str, Any]:
        """As JSON holds it, with the largest terms only, and the constant."""
        return {
            "name": self.name,
            **self.r2.to_dict(),
            "relative_error": self.relative_error,
            "noise_ceiling": self.ceiling and asdict(self.ceiling),
            "terms": [term.to_dict() for term in self.listed(n_terms)],
            "not_identified": {t.label: list(t.aliases) for t in self.terms[:n_terms] if not t.identified},
            "weight_by_degree": list(self.weights),
            "posterior_shares": [
                dict(zip(("share", "low", "high"), one, strict=True)) for one in self.posterior_shares
            ],
            "influences": dict(self.influences),
            "variance_by_pair": None if self.anova is None else self.anova.variance_by_pair().tolist(),
        }

    def lines(self, n_terms: int) -> list[str]:
        """The largest terms, for a person."""
        if not self.terms:
            return []
        listed = self.listed(n_terms)
        spec = effect_format(listed)
        known = "[95 % interval]" if any(term.low is not None or not term.identified for term in self.terms) else ""
        rows = [("effect", known, "", "columns"), *((*term.in_words(spec), term.label) for term in listed)]
        n_effect, n_interval, _, n_label = (max(map(len, cells)) for cells in zip(*rows, strict=True))
        n_label = min(n_label, WIDEST_LABEL)
        found = [
            f"  {effect:>{n_effect}}  {label:<{n_label}}  {interval:<{n_interval}}   {remarks}".rstrip()
            for effect, interval, remarks, label in rows
        ]
        if any(not term.identified for term in self.terms[:n_terms]):
            found.append("Other products could replace terms that are not identified, with the same predictions here.")
        return found
