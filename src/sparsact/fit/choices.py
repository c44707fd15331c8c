"""What a fit chose and how well it predicts: tables and a verdict for a person."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sparsact.fit.member_names import shares_in_words
from sparsact.fit.scores import CandidateModel, Confusion, CVCandidate, FoldScores, Gain, LowDegreeInfo
from sparsact.fit.scores import gains as gains_of
from sparsact.notebook import aligned, html_table, to_pandas
from sparsact.reports.numbers import number

if TYPE_CHECKING:
    from sparsact.fit.target_result import TargetResult

FEW_ROWS: Final = 200
LEAST_SHARE: Final = 0.1  # of the variance, that is not called nothing even if the folds differ by more


class Tabular(ABC):
    """A base of findings that are a caption and rows."""

    @property
    @abstractmethod
    def caption(self) -> str:
        """A sentence above the table."""

    @abstractmethod
    def records(self) -> list[dict[str, object]]:
        """Rows, each with the same columns."""

    def _cells(self) -> list[list[str]]:
        """Names of the columns, then the rows, for a person."""
        rows = self.records()
        return [list(rows[0]), *([number(value) for value in row.values()] for row in rows)]

    def to_frame(self) -> Any:
        """The rows as a ``pandas.DataFrame``; needs pandas."""
        rows = self.records()
        return to_pandas(rows, list(rows[0]))

    def __repr__(self) -> str:
        return "\n".join([self.caption, *aligned(self._cells())])

    def _repr_html_(self) -> str:
        head, *rows = self._cells()
        return html_table(self.caption, head, rows)


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
    """The choice, its alternatives, and the reason.

    ``models`` are the kinds of model that were compared, the chosen one first, and ``reason`` says why it was chosen;
    ``candidates`` are the degrees and penalties of polynomials. ``kind`` is one of
    :data:`sparsact.fit.candidates.KINDS`; ``own_terms`` says whose the terms are that the kind has. ``low_degree`` is a
    polynomial's, else None, and ``weights`` belong to the models of an ensemble. ``for_intervals`` names the best model
    whose effects have intervals, if the chosen model's have none.
    Printed, it is a table of ``models``.
    """

    reason: str
    models: tuple[CandidateModel, ...]
    candidates: tuple[CVCandidate, ...]
    kind: str = "low-degree"
    own_terms: str = ""
    low_degree: LowDegreeInfo | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    for_intervals: str = ""

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
            return f"{self.low_degree.selection} {self.for_intervals}".strip()
        polynomial = next(model for model in self.models if model.kind == "low-degree")
        return f"The effects come from the polynomial of {polynomial.name} (held-out R² {polynomial.r2})."

    @property
    def shares(self) -> str:
        """The models of an ensemble with their weights, the largest first."""
        return shares_in_words(self.weights)

    @property
    def highest_tried(self) -> int:
        """The highest degree among the candidates."""
        return max(candidate.degree for candidate in self.candidates)

    @property
    def gains(self) -> tuple[Gain, ...]:
        """What each degree adds to the held-out R2, up to the chosen one, or to the highest that was tried."""
        highest = self.low_degree.degree if self.low_degree and self.kind == "low-degree" else self.highest_tried
        return gains_of(self.candidates, highest)

    @property
    def caption(self) -> str:
        """The choice and its reason."""
        return f"Chosen: {self.name}, because {self.reason}."

    def records(self) -> list[dict[str, object]]:
        """A row for each kind of model, the chosen one first."""
        return [model.to_dict() for model in self.models]


class WithVerdict:
    """A base of results: whether anything was learned, in words."""

    choices: Choices
    targets: tuple[TargetResult, ...]
    confusion: Confusion | None
    n_rows: int

    @property
    def learned(self) -> bool:
        """Whether any target is predicted better than by a constant.

        For classes, a better accuracy or a better R2 is enough: if one class is frequent, a model may know which rows
        more probably belong to the rare class, and yet rightly never predict it.
        """
        if self.confusion is None:
            return any(target.learned for target in self.targets)
        mean = self.choices.models[0].r2  # of the indicators of the classes
        return self.confusion.learned or mean.mean > mean.deviation

    @property
    def verdict(self) -> str:
        """The finding: held-out scores of the model and of models to compare it with; then what is doubtful."""
        best = max(self.choices.candidates, key=lambda candidate: candidate.r2.mean)
        degree = None if self.choices.low_degree is None else self.choices.low_degree.degree
        known = [model for model in self.choices.models if model.r2.known]
        promising = max(known, key=lambda model: model.r2.mean, default=self.choices.models[0])
        if self.learned:
            return self._scores()
        if best.degree != degree and best.r2.mean > best.r2.deviation:
            remedy = "model low-degree" if degree is None else f"degree {best.degree}"
            does = f"degree {best.degree} does (held-out R² {best.r2}): choose {remedy}"
            return f"{self._scores()} It does not predict held-out rows, but {does}."
        few = f" {self.n_rows} rows are few; more rows may reveal more." if self.n_rows < FEW_ROWS else ""
        if promising.r2.mean > LEAST_SHARE:
            is_sure = promising.r2.mean > promising.r2.deviation
            finding = "It does not predict held-out rows" if is_sure else "This may be chance"
            much = "" if is_sure else ", no more than its deviation between folds"
            highest = f"the best of all models compared is {promising.name}, R² {promising.r2}{much}"
            return f"{self._scores()} {finding}; {highest}.{few}"
        others = [model.name for model in self.choices.models if model.kind not in ("low-degree", "trees")]
        listed = " or ".join(filter(None, [", ".join(others[:-1]), *others[-1:]]))
        also = f", nor by {listed}," if listed else ""
        nothing = f"Nothing of degree ≤ {self.choices.highest_tried}{also} was found in these columns"
        return f"{self._scores()} {nothing}; predicting the mean gives R² 0.{few}"

    def _scores(self) -> str:
        """Held-out scores of the chosen model, and of boosted trees, the linear model or the most frequent class."""
        model = f"by {'a polynomial of ' * (self.choices.kind == 'low-degree')}{self.choices.name}"
        first, trees = self.targets[0], [model for model in self.choices.models if model.kind == "trees"]
        if self.confusion is not None:
            return (
                f"Held-out accuracy {self.confusion.accuracy:.1%} {model}; {self.confusion.majority:.1%} by always "
                f"naming the most frequent class. R² of the class indicators is {self.choices.models[0].r2}; "
                "predicting the class frequencies gives 0."
            )
        if len(self.targets) > 1:
            scores = [f"{one.r2} for {one.name} (linear model {one.linear_r2.short})" for one in self.targets]
            return f"Held-out R² {', '.join(scores)} {model}."
        rivals = [*(f"boosted trees {one.r2.short}" for one in trees), f"linear model {first.linear_r2.short}"]
        return f"Held-out R² {first.r2} {model}; {', '.join(rivals)}."


def of_target(targets: Sequence[TargetResult], target: TargetResult) -> str:
    """Words that name the target, where there are several."""
    return f" for {target.name}" if len(targets) > 1 else ""
