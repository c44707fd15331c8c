"""What was chosen for a table, from what, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparsact.fit.scores import CandidateModel, CVCandidate, Gain, LowDegreeInfo, gains

TERMS_OF_LETTERS = (
    "The effects are those of letters, and of pairs of letters beyond these, in the fitted function, averaged over the "
    "other sites by the frequencies of their letters in the table. They have no intervals."
)
LEAST_WEIGHT = 0.005  # that is shown


@dataclass(frozen=True)
class Choices:
    """What was chosen, from what, and why.

    ``models`` are the kinds of model that were compared, the chosen one first, and ``reason`` says why it was chosen;
    ``candidates`` are the degrees and penalties of polynomials. ``kind`` is ``"low-degree"`` or one of
    :data:`sparsact.fit.candidates.KINDS`; ``own_terms`` says whose the terms are that such a kind has. ``low_degree``
    is that of a polynomial, else None, and ``weights`` are those of the models of an ensemble.
    """

    reason: str
    models: tuple[CandidateModel, ...]
    candidates: tuple[CVCandidate, ...]
    kind: str = "low-degree"
    own_terms: str = ""
    low_degree: LowDegreeInfo | None = None
    weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The chosen model."""
        if self.low_degree is None:
            return self.models[0].name
        degree = f"degree {self.low_degree.degree}"
        return degree if self.kind == "low-degree" else f"{self.models[0].name} of {degree}"

    @property
    def terms_of(self) -> str:
        """Whose the terms of the targets are, in a sentence."""
        if self.own_terms:
            return self.own_terms
        if self.low_degree is not None:
            return self.low_degree.selection
        polynomial = next(model for model in self.models if model.kind == "low-degree")
        return f"The effects are those of the polynomial of {polynomial.name}, whose held-out R² is {polynomial.r2}."

    @property
    def shares(self) -> str:
        """The models of an ensemble with their weights, the largest first."""
        ranked = sorted(self.weights.items(), key=lambda pair: -pair[1])
        return ", ".join(f"{100 * weight:.0f} % {name}" for name, weight in ranked if weight >= LEAST_WEIGHT)

    @property
    def highest_tried(self) -> int:
        """The highest degree among the candidates."""
        return max(candidate.degree for candidate in self.candidates)

    @property
    def gains(self) -> tuple[Gain, ...]:
        """What each degree adds to the held-out R2, up to the chosen one, or to the highest that was tried."""
        highest = self.low_degree.degree if self.low_degree and self.kind == "low-degree" else self.highest_tried
        return gains(self.candidates, highest)
