"""Self-contained HTML pages of a fit, a network and a model's activations: they load nothing and escape every name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from sparsact.reports.amounts import duration, number, size
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
from sparsact.reports.latent_figures import latent_figures
from sparsact.reports.letters_figures import letters_figures
from sparsact.reports.lsh_figures import lsh_figures
from sparsact.reports.measurement_figures import measurement_figures
from sparsact.reports.network_report import NetworkSummary, network_figures

if TYPE_CHECKING:
    from sparsact.fit.explain import TargetResult
    from sparsact.fit.result import FitResult
    from sparsact.fit.scores import FoldScores
    from sparsact.inference import Measurement

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
BATCHES: Final = (1, 4, 16, 64)
METHODS: Final = {
    "oracle": "every matrix: rows of active units alone, known for free",
    "exact": "the switch matrix whole, of the others rows of active units",
    "certified": "an 8-bit copy of the switch matrix, then rows of active units",
}


@dataclass(frozen=True)
class Section:
    """The figures of one target (or class)."""

    target: TargetResult
    prediction: tuple[Display, ...]
    structure: tuple[Display, ...]


def fit_page(result: FitResult, command: str | None = None) -> str:
    """The page of a fit, as HTML 5; of one that a command made, the command too."""
    return template("page.html.j2").render(
        result=result,
        overview=_overview(result),
        sections=[_section(result, target, f"t{i}-") for i, target in enumerate(result.targets)],
        tables=lsh_figures(result.layout),
        latent=latent_figures(result.latent),
        effects=_effects(result),
        command=command,
    )


def network_page(summary: NetworkSummary) -> str:
    """The page of a network, as HTML 5."""
    return template("network.html.j2").render(summary=summary, figures=network_figures(summary))


def measurement_page(measurement: Measurement, name: str, versions: Sequence[tuple[str, str]], command: str) -> str:
    """The page of a model's activations, as HTML 5: the model's name, what decides the result, how to make it again."""
    return template("measurement.html.j2").render(
        measurement=measurement,
        name=name,
        figures=measurement_figures(measurement),
        versions=versions,
        command=command,
        batches=BATCHES,
        methods=METHODS,
    )


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
    environment.filters |= {
        "headings": partial(re.findall, '<h2 id="([^"]+)">(.*?)</h2>'),
        "number": number,
        "duration": duration,
        "size": size,
    }
    environment.globals["trusted"] = Markup  # the drawings are ours; matplotlib escapes the names in them
    return environment.get_template(name)


def _effects(result: FitResult) -> str:
    """What an effect is, where the kind of model has not said it."""
    if result.of_letters:
        return ""
    return EFFECTS if result.domain == "cube" else f"{EFFECTS} {NUMBERS}"


def _overview(result: FitResult) -> list[Display]:
    """Figures of the whole fit."""
    drawn = []
    if result.confusion is not None:
        if len(result.choices.models) > 1 and result.targets[0].r2.known:
            drawn.append(class_scores_chart.display(_models(result, result.targets[0])))
        drawn.append(confusion_chart.display(result.confusion))
    scored = any(target.r2.known for target in result.targets)
    if scored and (result.choices.highest_tried > 1 or result.choices.kind == "low-degree"):
        drawn.append(error_chart.display(result.choices.candidates))
    return drawn


def _section(result: FitResult, target: TargetResult, prefix: str) -> Section:
    prediction: list[Display] = []
    if result.confusion is None:
        if target.r2.known:
            prediction.append(scores_chart.display(_models(result, target), prefix=prefix))
        if target.predicted is not None:
            note = f"{len(target.actual)} rows, each predicted by a model that had not seen it."
            prediction.append(residuals_chart.display(target, prefix=prefix, note=note))
        if result.test is not None:
            tested = next(one for one in result.test.targets if one.name == target.name)
            note = f"The {result.test.n_rows:,} rows of {result.test.name}, a table of its own: R² {tested.r2}."
            prediction.append(residuals_chart.display(tested, prefix=f"{prefix}test-", note=note))
    if result.layout is not None or not target.terms:
        return Section(target, tuple(prediction), ())
    note = _interval_note(result, target)
    if target.anova is not None:
        return Section(target, tuple(prediction), letters_figures(target, prefix, note))
    structure = [interactions_chart.display(target, prefix=prefix, note=note)]
    if sum(len(term.subset) == 2 for term in target.terms) >= FEWEST_PAIRS:
        structure.append(pairs_chart.display(target, prefix=prefix))
    if target.influences:
        shares = (
            shares_chart.display(target, prefix=prefix)
            if target.posterior_shares
            else weights_chart.display(target, prefix=prefix)
            if target.weights
            else gains_chart.display(result.choices.gains, prefix=prefix)
            if result.choices.gains
            else None
        )
        named = influences_chart.display(target, prefix=prefix)
        shown = [shares] if shares else []
        structure = [*shown, *structure, named] if result.confusion is None else [*shown, named, *structure]
    return Section(target, tuple(prediction), tuple(structure))


def _models(result: FitResult, target: TargetResult) -> dict[str, FoldScores]:
    """Scores of one target to compare: of every candidate model, or where targets are several of these two."""
    if result.choices.models and (len(result.targets) == 1 or result.confusion is not None):
        return {f"chosen: {c.name}" if c.chosen else c.name: c.r2 for c in result.choices.models}
    return {f"chosen: {result.choices.name}": target.r2, "degree 1 (linear)": target.linear_r2}


def _of_processes(result: FitResult) -> bool:
    """Whether intervals come from a posterior."""
    return result.choices.kind in ("gp", "ensemble") or (result.latent is not None and result.latent.kind == "gp")


def _interval_note(result: FitResult, target: TargetResult) -> str:
    if all(term.low is None for term in target.terms):
        return "Intervals are not known for this fit."
    significant = SIGNIFICANT + (BY_POSTERIOR if _of_processes(result) else BY_TESTS)
    if any(not term.identified for term in target.terms):
        return (
            f"{significant} A hollow mark is an effect that these rows do not identify: other products can take its "
            "place, so it has no interval."
        )
    return significant
