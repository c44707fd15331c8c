"""The page of a fit: which figures show its choices and its targets, and the sentences beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sparsact.fit.details import Details
from sparsact.fit.scored_table import ScoredTable
from sparsact.fit.scores import Choices, Confusion, FoldScores
from sparsact.fit.target_result import TargetResult
from sparsact.reports.effect_figures import interactions_chart, pairs_chart
from sparsact.reports.figure import Display
from sparsact.reports.fit_figures import (
    class_scores_chart,
    confusion_chart,
    error_chart,
    gains_chart,
    influences_chart,
    residuals_chart,
    scores_chart,
    shares_chart,
    weights_chart,
)
from sparsact.reports.letters_figures import letters_figures

EFFECTS: Final = (
    "The effect of a set of columns is what switching all of them on (from 0 to 1) changes in the target, beyond what "
    "smaller sets of them change, averaged over all settings of the other columns."
)
NUMBERS: Final = (
    "A column of numbers goes up by one unit instead, and other columns of numbers stay at 0; where a note below says "
    "that numbers are scaled, the unit is their standard deviation and 0 is their mean."
)
BY_TESTS: Final = ": among the effects in colour about 5 % at most are expected to be chance (Benjamini and Hochberg)."
BY_POSTERIOR: Final = " (twice the posterior probability that the sign is wrong)."
SIGNIFICANT: Final = (
    "Bars: 95 % interval of each effect by itself; thin lines: intervals that hold for all effects at once "
    "(Bonferroni). Grey: not significant, as its q-value is above 5 %"
)
FEWEST_PAIRS: Final = 3  # of a heat map


@dataclass(frozen=True)
class Section:
    """The figures of one target (or class)."""

    target: TargetResult
    prediction: tuple[Display, ...]
    structure: tuple[Display, ...]


@dataclass(frozen=True)
class FitFigures:
    """The parts of a fit that its page draws."""

    targets: tuple[TargetResult, ...]
    choices: Choices
    details: Details
    confusion: Confusion | None
    test: ScoredTable | None

    def overview(self) -> list[Display]:
        """Figures of the whole fit."""
        drawn, choices, first = [], self.choices, self.targets[0]
        if self.confusion is not None:
            if len(choices.models) > 1 and first.r2.known:
                drawn.append(class_scores_chart.display(self._models(first)))
            drawn.append(confusion_chart.display(self.confusion))
        scored = any(target.r2.known for target in self.targets)
        if scored and (choices.highest_tried > 1 or choices.kind == "low-degree"):
            drawn.append(error_chart.display(choices.candidates))
        return drawn

    def sections(self) -> list[Section]:
        """Figures of each target."""
        return [
            Section(target, tuple(self._prediction(target, f"t{i}-")), tuple(self._structure(target, f"t{i}-")))
            for i, target in enumerate(self.targets)
        ]

    def _prediction(self, target: TargetResult, prefix: str) -> list[Display]:
        if self.confusion is not None:
            return []
        drawn: list[Display] = []
        if target.r2.known:
            drawn.append(scores_chart.display(self._models(target), prefix=prefix))
        if target.predicted is not None:
            note = f"{len(target.actual)} rows, each predicted by a model that had not seen it."
            drawn.append(residuals_chart.display(target, prefix=prefix, note=note))
        if self.test is not None:
            tested = next(one for one in self.test.targets if one.name == target.name)
            note = f"The {self.test.n_rows:,} rows of {self.test.name}, a table of its own: R² {tested.r2}."
            drawn.append(residuals_chart.display(tested, prefix=f"{prefix}test-", note=note))
        return drawn

    def _structure(self, target: TargetResult, prefix: str) -> list[Display]:
        if not self.details.has_effects or not target.terms:
            return []
        note = self._interval_note(target)
        if target.anova is not None:
            return list(letters_figures(target, prefix, note))
        structure = [interactions_chart.display(target, prefix=prefix, note=note)]
        if sum(len(term.subset) == 2 for term in target.terms) >= FEWEST_PAIRS:
            structure.append(pairs_chart.display(target, prefix=prefix))
        if not target.influences:
            return structure
        shares = (
            shares_chart.display(target, prefix=prefix)
            if target.posterior_shares
            else weights_chart.display(target, prefix=prefix)
            if target.weights
            else gains_chart.display(self.choices.gains, prefix=prefix)
            if self.choices.gains
            else None
        )
        named = influences_chart.display(target, prefix=prefix)
        shown = [shares] if shares else []
        return [*shown, *structure, named] if self.confusion is None else [*shown, named, *structure]

    def _models(self, target: TargetResult) -> dict[str, FoldScores]:
        """Scores of one target to compare: of every candidate model, or where targets are several of these two."""
        choices = self.choices
        if choices.models and (len(self.targets) == 1 or self.confusion is not None):
            return {f"chosen: {c.name}" if c.chosen else c.name: c.r2 for c in choices.models}
        return {f"chosen: {choices.name}": target.r2, "degree 1 (linear)": target.linear_r2}

    def _interval_note(self, target: TargetResult) -> str:
        if all(term.low is None for term in target.terms):
            return "Intervals are not known for this fit."
        significant = SIGNIFICANT + (BY_POSTERIOR if self.details.by_posterior else BY_TESTS)
        if any(not term.identified for term in target.terms):
            return (
                f"{significant} A hollow mark is an effect that these rows do not identify: other products can take "
                "its place, so it has no interval."
            )
        return significant


def meaning_of_effects(domain: str) -> str:
    """What an effect is, in columns of the domain."""
    return EFFECTS if domain == "cube" else f"{EFFECTS} {NUMBERS}"
