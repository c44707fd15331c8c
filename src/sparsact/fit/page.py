"""The page of a fit: which figures show its choices and its targets, and the sentences beside them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sparsact.fit.scores import FoldScores
from sparsact.fit.target_result import TargetResult
from sparsact.reports import fit_figures
from sparsact.reports.effect_figures import interactions_chart, pairs_chart
from sparsact.reports.figure import Display
from sparsact.reports.letters_figures import letters_figures
from sparsact.reports.page import template

if TYPE_CHECKING:
    from sparsact.fit.result import FitResult

EFFECTS: Final = (
    "The effect of one column is the change of the target when the column switches from 0 to 1, averaged over all "
    "settings of the other columns. The effect of two columns is how much switching one of them on changes the effect "
    "of the other, and so on for more columns."
)
NUMBERS: Final = (
    "A column of numbers increases by one unit instead, while the other columns of numbers stay at 0. Where a note "
    "below says that numbers are standardised, the unit is their standard deviation and 0 is their mean."
)
BY_TESTS: Final = ": about 5 % of the effects in colour may be false discoveries (Benjamini and Hochberg)."
BY_POSTERIOR: Final = " (twice the posterior probability that the sign is wrong)."
SIGNIFICANT: Final = (
    "Bars: 95 % interval of each effect by itself; thin lines: simultaneous intervals for all effects (Bonferroni). "
    "Grey: not significant (q-value above 5 %)"
)
NO_CEILING: Final = "The noise ceiling is unknown: too few rows agree in every column."
FEWEST_PAIRS: Final = 3  # of a heat map


@dataclass(frozen=True)
class Section:
    """The figures of one target (or class)."""

    target: TargetResult
    prediction: tuple[Display, ...]
    structure: tuple[Display, ...]


def fit_page(result: FitResult, command: str | None) -> str:
    """The page of a fit, as HTML 5, with the command that makes it again, if one has made it."""
    meaning = EFFECTS if result.domain == "cube" else f"{EFFECTS} {NUMBERS}"
    sections, overview = [_section(result, i) for i in range(len(result.targets))], _overview(result)
    if result.confusion is None:  # polynomials by degree stand beside the models
        of_first = sections[0].prediction
        sections[0] = replace(sections[0], prediction=(*of_first[:1], *overview, *of_first[1:]))
    return template("page.html.j2").render(
        result=result,
        overview=overview,
        sections=sections,
        chapter=result.details.chapter(result.n_rows),
        effects="" if result.of_letters else meaning,
        command=command,
    )


def figures_by_name(result: FitResult, place: int) -> dict[str, Display]:
    """The figures of one target and of the whole fit by their names, the strongest effects first."""
    section = _section(result, place)
    drawn = [*section.prediction, *_overview(result), *section.structure]
    drawn.sort(key=lambda one: not one.name.endswith(interactions_chart.name))
    return {one.name.removeprefix(f"t{place}-"): one for one in drawn}


def _section(result: FitResult, place: int) -> Section:
    target, prefix = result.targets[place], f"t{place}-"
    return Section(target, tuple(_prediction(result, target, prefix)), tuple(_structure(result, target, prefix)))


def _overview(result: FitResult) -> list[Display]:
    """Figures of the whole fit."""
    drawn, choices = [], result.choices
    scored = any(target.r2.known for target in result.targets)
    if result.confusion is not None:
        if len(choices.models) > 1 and scored:
            drawn.append(fit_figures.class_scores_chart.display((_models(result, result.targets[0]), None)))
        drawn.append(fit_figures.confusion_chart.display(result.confusion))
    if scored and (choices.highest_tried > 1 or choices.kind == "low-degree"):
        drawn.append(fit_figures.error_chart.display(choices.candidates))
    return drawn


def _prediction(result: FitResult, target: TargetResult, prefix: str) -> list[Display]:
    if result.confusion is not None:
        return []
    drawn: list[Display] = []
    if target.r2.known:
        source = _models(result, target), target.ceiling
        drawn.append(fit_figures.scores_chart.display(source, prefix=prefix, note="" if target.ceiling else NO_CEILING))
    if target.predicted is not None:
        note = f"{len(target.actual):,} rows, each predicted by a model fitted without it."
        drawn.append(fit_figures.residuals_chart.display(target, prefix=prefix, note=note))
    if result.test is not None and result.test.targets:
        tested = next(one for one in result.test.targets if one.name == target.name)
        note = f"The {result.test.n_rows:,} rows of {result.test.name}, unused in fitting: R² {tested.r2}."
        drawn.append(fit_figures.residuals_chart.display(tested, prefix=f"{prefix}test-", note=note))
    return drawn


def _structure(result: FitResult, target: TargetResult, prefix: str) -> list[Display]:
    if not result.details.has_effects or not target.terms:
        return []
    note = _interval_note(result, target)
    if target.of_letters:
        return list(letters_figures(target, prefix, note))
    structure = [interactions_chart.display(target, prefix=prefix, note=note)]
    if sum(len(term.subset) == 2 for term in target.terms) >= FEWEST_PAIRS:
        structure.append(pairs_chart.display(target, prefix=prefix))
    if not target.influences:
        return structure
    shown = []
    if target.posterior_shares:
        shown.append(fit_figures.shares_chart.display(target, prefix=prefix))
    elif target.weights:
        shown.append(fit_figures.weights_chart.display(target, prefix=prefix))
    elif len(result.choices.gains) > 1:
        shown.append(fit_figures.gains_chart.display(result.choices.gains, prefix=prefix))
    named = fit_figures.influences_chart.display(target, prefix=prefix)
    return [*shown, *structure, named] if result.confusion is None else [*shown, named, *structure]


def _models(result: FitResult, target: TargetResult) -> dict[str, FoldScores]:
    """Scores of one target to compare: of every candidate model, or where targets are several of these two."""
    models = result.choices.models
    if models and (len(result.targets) == 1 or result.confusion is not None):
        return {f"chosen: {c.name}" if c.chosen else c.name: c.r2 for c in models}
    return {f"chosen: {result.choices.name}": target.r2, "degree 1 (linear)": target.linear_r2}


def _interval_note(result: FitResult, target: TargetResult) -> str:
    if all(term.low is None for term in target.terms):
        return f"Intervals are not known for this fit. {result.choices.for_intervals}".strip()
    significant = SIGNIFICANT + (BY_POSTERIOR if result.details.by_posterior or target.of_letters else BY_TESTS)
    if any(not term.identified for term in target.terms):
        return (
            f"{significant} Hollow mark: an effect that these rows do not identify. Other products can replace it, so "
            "it has no interval."
        )
    return significant
