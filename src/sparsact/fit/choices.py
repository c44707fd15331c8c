"""What a fit chose, and how well it predicts: tables for a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparsact.fit.member_names import in_words
from sparsact.fit.scores import (
    LEAST_WEIGHT,
    CandidateModel,
    Confusion,
    CVCandidate,
    FoldScores,
    Gain,
    LowDegreeInfo,
    gains,
)
from sparsact.fit.tabular import Tabular


@dataclass(frozen=True, repr=False)
class Scores(Tabular):
    """How well held-out rows are predicted, by target (or class), next to the linear model; classes also by confusion.

    ``rmse`` is that of the chosen model, of one target. Printed, it is a table of means and deviations over the folds.
    """

    r2: dict[str, FoldScores]
    linear_r2: dict[str, FoldScores]
    rmse: FoldScores | None
    confusion: Confusion | None

    @property
    def caption(self) -> str:
        """What the table shows."""
        found, classes = "Scores of held-out rows: mean and standard deviation over the folds.", self.confusion
        if classes is None:
            return found
        return f"{found} Accuracy {classes.accuracy:.1%}; always naming the most frequent class {classes.majority:.1%}."

    def records(self) -> list[dict[str, object]]:
        """A row for each target."""
        rmse = {} if self.rmse is None else {"rmse": self.rmse.mean}
        linear = {name: {"linear_r2": score.to_dict()["r2"]} for name, score in self.linear_r2.items()}
        return [{"target": name, **score.to_dict(), **linear[name], **rmse} for name, score in self.r2.items()]


@dataclass(frozen=True, repr=False)
class Choices(Tabular):
    """What was chosen, from what, and why.

    ``models`` are the kinds of model that were compared, the chosen one first, and ``reason`` says why it was chosen;
    ``candidates`` are the degrees and penalties of polynomials. ``kind`` is one of
    :data:`sparsact.fit.candidates.KINDS`; ``own_terms`` says whose the terms are that the kind has. ``low_degree`` is a
    polynomial's, else None, and ``weights`` belong to the models of an ensemble.
    Printed, it is a table of ``models``.
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
        """Which model the terms of the targets belong to, in a sentence."""
        if self.own_terms:
            return self.own_terms
        if self.low_degree is not None:
            return self.low_degree.selection
        polynomial = next(model for model in self.models if model.kind == "low-degree")
        return f"The effects come from the polynomial of {polynomial.name}, whose held-out R² is {polynomial.r2}."

    @property
    def shares(self) -> str:
        """The models of an ensemble with their weights, the largest first."""
        ranked = sorted(self.weights.items(), key=lambda pair: -pair[1])
        return ", ".join(f"{100 * weight:.0f} % {in_words(name)}" for name, weight in ranked if weight >= LEAST_WEIGHT)

    @property
    def highest_tried(self) -> int:
        """The highest degree among the candidates."""
        return max(candidate.degree for candidate in self.candidates)

    @property
    def gains(self) -> tuple[Gain, ...]:
        """What each degree adds to the held-out R2, up to the chosen one, or to the highest that was tried."""
        highest = self.low_degree.degree if self.low_degree and self.kind == "low-degree" else self.highest_tried
        return gains(self.candidates, highest)

    @property
    def caption(self) -> str:
        """The choice and its reason."""
        return f"Chosen: {self.name}, because {self.reason}."

    def records(self) -> list[dict[str, object]]:
        """A row for each kind of model, the chosen one first."""
        return [model.to_dict() for model in self.models]
