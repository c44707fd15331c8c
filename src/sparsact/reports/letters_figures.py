"""Figures of sites with letters: what acts together in the fitted function, and what each letter changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from matplotlib.axes import Axes

from sparsact.reports.displays import VarianceDisplay
from sparsact.reports.effect_figures import interactions_chart, pair_map
from sparsact.reports.figure import Display, Frame, chart, panel, rows
from sparsact.reports.fit_figures import bars
from sparsact.reports.letters_display import LettersDisplay

if TYPE_CHECKING:
    from sparsact.fit.target_result import TargetResult
    from sparsact.fourier.hoeffding import Anova

Sites = Sequence[tuple[str, Sequence[str]]]  # names and letters
Source: TypeAlias = tuple["Anova", Sites]
OF_WHAT: Final = (
    "Shares of the variance of the fitted function, or latent, over all combinations of letters, each letter as "
    "frequent as in the table."
)


def by_number_frame(source: Source) -> Frame:
    """Share of the variance of parts of one site, of two, and so on to the most that have one."""
    found, _ = source
    shares = found.variance_by_degree() / _total(found)
    last = max(1, len(np.trim_zeros(shares, "b")))
    return {"degree": list(range(1, last + 1)), "share": shares[:last].tolist()}


def _total(found: Anova) -> float:
    """The variance of the function, or 1 of a constant one."""
    return float(found.by_set[1].sum()) or 1.0


@chart("weights", "Variance by how many sites act together", by_number_frame, f"{OF_WHAT} The parts add up to it.")
def by_number_chart(frame: Frame) -> Axes:
    """A bar a number of sites, and the running sum."""
    axes = panel(4.6, 3.4, x="sites that act together, and their share", y="share of the variance", grid="y")
    VarianceDisplay(shares=frame["share"]).plot(ax=axes)
    return axes


def pairs_frame(source: Source) -> Frame:
    """Shares of the variance of single sites and of pairs, each once."""
    found, sites = source
    values, names = found.variance_by_pair(), [name for name, _ in sites]
    places = [(i, i) for i in range(len(names))] + list(combinations(range(len(names)), 2))
    total = _total(found)
    return {
        "site": [names[i] for i, _ in places],
        "with": [names[j] for _, j in places],
        "share of variance": [float(values[place] / total) for place in places],
    }


@chart(
    "site-pairs",
    "Sites and pairs of sites",
    pairs_frame,
    f"{OF_WHAT} The diagonal holds what a site does by itself; the other cells hold what two sites add together.",
)
def pairs_of_sites_chart(frame: Frame) -> Axes:
    """A heat map, site by site."""
    return pair_map(frame, "site")


def letters_frame(target: TargetResult) -> Frame:
    """The effect of each letter at each site."""
    return {
        "site": [name for name, letters in target.sites for _ in letters],
        "letter": [letter for _, letters in target.sites for letter in letters],
        "effect": [effect for of_site in target.letter_effects for effect in of_site],
    }


@chart(
    "letters",
    "Effects of letters",
    letters_frame,
    "How one letter at a site changes the fitted value if all other sites are as in the reference: blue raises it, "
    "vermilion lowers it. The reference's own letters change nothing. Grey: the site does not have the letter.",
)
def letters_chart(frame: Frame) -> Axes:
    """A row a site, and a column a letter."""
    by_site: dict[str, dict[str, float]] = {}
    for site, letter, effect in rows(frame):
        by_site.setdefault(site, {})[letter] = effect
    drawn = LettersDisplay(
        effects=[list(of_site.values()) for of_site in by_site.values()],
        letters=[list(of_site) for of_site in by_site.values()],
        feature_names=list(by_site),
    )
    axes = panel(*drawn.size, x="letter")
    drawn.plot(ax=axes)
    return axes


def by_site_frame(source: Source) -> Frame:
    """Sites from the most important down."""
    found, sites = source
    shares = found.variance_by_site() / _total(found)
    order = np.argsort(-shares, kind="stable").tolist()
    return {"site": [sites[i][0] for i in order], "share of variance": [float(shares[i]) for i in order]}


@chart(
    "influences",
    "Variance in which each site has a part",
    by_site_frame,
    f"{OF_WHAT} What several sites do together counts for each of them (total Sobol indices).",
)
def by_site_chart(frame: Frame) -> Axes:
    """A bar a site."""
    return bars(frame["site"], frame["share of variance"], "share of the variance")


largest_chart = replace(interactions_chart, caption="Effects in units of the target, the largest first.")


def letters_figures(target: TargetResult, prefix: str, note: str) -> tuple[Display, ...]:
    """Figures of one target; the note is for its strongest effects."""
    effects = largest_chart.display(target, prefix=prefix, note=note), letters_chart.display(target, prefix=prefix)
    if target.anova is None:
        return effects
    source = target.anova, target.sites
    of_variance = by_number_chart, pairs_of_sites_chart, by_site_chart
    return (*(one.display(source, prefix=prefix) for one in of_variance), *effects)
