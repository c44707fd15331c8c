"""One self-contained HTML page of a fit: it loads nothing, and every name from the data is escaped."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from sparsact import files
from sparsact.reports.amounts import duration, number, size
from sparsact.reports.figure import Display
from sparsact.reports.figures import confusion, degrees, gains, influences, interactions, residuals, scores, weights
from sparsact.reports.lsh_figures import lsh_figures
from sparsact.reports.summary import FitSummary, Spread, TargetSummary

SIGNS = (
    "A coefficient belongs to a product of signs: a column's sign is +1 where its bit is 0 and −1 where its bit is 1. "
    "Switching one column on, all else averaged, therefore changes the target by −2 times its coefficient."
)
NUMBERS = (
    "A coefficient belongs to a product of columns: numbers as they are, and of a bit its sign, +1 where it is 0 and "
    "−1 where it is 1. Columns of different units have coefficients of different units."
)
UNIFORM = "The rows are every combination of bits, equally often, so the parts add up to the variance."
ADDED = (
    "What each degree adds to the R² of the lower ones on rows that were not seen; bars: 95 % intervals. The squares "
    "of the coefficients are shares of the variance only where every combination of bits is equally frequent, which "
    "these rows are not."
)
COLUMNS = (
    "Mean square, over the rows, of the part of the polynomial that holds the column, as a share of the target's "
    "variance. Parts of several columns overlap, and may cancel where columns go together."
)


@dataclass(frozen=True)
class Section:
    """The figures of one target (or class)."""

    target: TargetSummary
    prediction: tuple[Display, ...]
    structure: tuple[Display, ...]


def render(summary: FitSummary) -> str:
    """The page, as HTML 5."""
    return template("page.html.j2").render(
        summary=summary,
        overview=_overview(summary),
        sections=[_section(summary, target, f"t{i}") for i, target in enumerate(summary.targets)],
        tables=lsh_figures(summary.lsh),
        signs=SIGNS if summary.domain == "cube" else NUMBERS,
    )


def write(summary: FitSummary, path: str | Path) -> None:
    """Write the page."""
    files.write(path, render(summary))


@cache
def template(name: str, *packages: str) -> Template:
    """A page's template, from these packages or this one, with the filters that every page uses."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in (*packages, "sparsact.reports")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "duration": duration, "size": size}
    environment.globals["trusted"] = Markup  # the drawings are ours; matplotlib escapes the names in them
    return environment.get_template(name)


def _overview(summary: FitSummary) -> list[Display]:
    """Figures of the whole fit."""
    drawn = []
    if summary.highest_tried > 1 or summary.lsh is None:
        caption = "Each fold was predicted by a model learned from the other folds. Bars: ± one standard deviation."
        spread = degrees.frame(summary.candidates)
        drawn.append(Display.of(degrees, "error-by-degree", "Error by degree", caption, spread))
    if summary.confusion is not None:
        matrix = confusion.frame(summary.confusion)
        caption = "Each row of the table was predicted by a model that had not seen it."
        drawn.insert(0, Display.of(confusion, "confusion", "Confusion of held-out rows", caption, matrix))
        if len(summary.contenders) > 1:
            models = scores.frame(_models(summary, summary.targets[0]))
            caption = "Of the classes' indicators. Predicting the frequencies of the classes has R² = 0."
            drawn.insert(0, Display.of(scores, "scores", "Held-out R² against the baselines", caption, models))
    return drawn


def _section(summary: FitSummary, target: TargetSummary, key: str) -> Section:
    prediction: list[Display] = []
    if summary.confusion is None:
        caption = "Predicting the mean of the target has R² = 0; the linear model uses each column alone."
        spread = scores.frame(_models(summary, target))
        prediction.append(Display.of(scores, f"{key}-scores", "Held-out R² against the baselines", caption, spread))
        if target.predicted is not None:
            caption = f"{len(target.actual)} rows, each predicted by a model that had not seen it."
            rows = residuals.frame(target)
            prediction.append(
                Display.of(residuals, f"{key}-residuals", "Predicted, actual and residual", caption, rows)
            )
    if summary.lsh is not None:
        return Section(target, tuple(prediction), ())
    structure = [
        Display.of(
            interactions,
            f"{key}-interactions",
            "Strongest interactions",
            "The largest coefficients by absolute value, in units of the target. " + _interval_note(target),
            interactions.frame(target),
        )
    ]
    if target.influences:
        if target.weights:
            shares = Display.of(weights, f"{key}-weights", "Weight by degree", UNIFORM, weights.frame(target))
        else:
            degree = summary.choice.degree if summary.choice else summary.highest_tried
            added = gains.frame(summary.candidates, degree)
            shares = Display.of(gains, f"{key}-gains", "What each degree adds", ADDED, added)
        ranked = influences.frame(target)
        named = Display.of(influences, f"{key}-influences", "Influence of each column", COLUMNS, ranked)
        structure = [shares, *structure, named] if summary.confusion is None else [shares, named, *structure]
    return Section(target, tuple(prediction), tuple(structure))


def _models(summary: FitSummary, target: TargetSummary) -> dict[str, Spread]:
    """Scores of one target to set side by side: of every contender, or where targets are several of these two."""
    if summary.contenders and (len(summary.targets) == 1 or summary.confusion is not None):
        return {f"chosen: {c.name}" if c.chosen else c.name: c.r2 for c in summary.contenders}
    return {f"chosen: {summary.model}": target.r2, "degree 1 (linear)": target.linear_r2}


def _interval_note(target: TargetSummary) -> str:
    if all(term.low is None for term in target.terms):
        return "Intervals are not known for this fit."
    if any(not term.identified for term in target.terms):
        return (
            "Bars: 95 % confidence intervals of each coefficient by itself. A hollow mark is a coefficient that these "
            "rows do not identify: other products can take its place, so it has no interval."
        )
    return "Bars: 95 % confidence intervals of each coefficient by itself, not corrected for how many there are."
