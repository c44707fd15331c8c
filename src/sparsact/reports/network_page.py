"""One self-contained HTML page of a network, and the data that it shows."""

from __future__ import annotations

from pathlib import Path

from sparsact import files
from sparsact.reports.figure import Display
from sparsact.reports.figures import activity, network_degrees
from sparsact.reports.network_summary import NetworkSummary
from sparsact.reports.page import template

FOLDED = (
    "Estimated: inputs with random signs were put into random groups, and every grouping has an exact spectrum. A "
    "product of d inputs keeps its degree unless two of them meet in a group. Bars: ± two standard errors."
)
EXACT = "Sum of the squared Fourier coefficients of all products of so many inputs, exact up to rounding."


def render(summary: NetworkSummary) -> str:
    """The page, as HTML 5."""
    figures = [
        Display.of(activity, "activity", "Units on at once", summary.activity.how, activity.frame(summary.activity)),
        Display.of(
            network_degrees,
            "degrees",
            "Weight by degree",
            EXACT if summary.degrees.exact else FOLDED,
            network_degrees.frame(summary.degrees),
        ),
    ]
    return template("network.html.j2").render(summary=summary, figures=figures)


def write(summary: NetworkSummary, path: str | Path) -> None:
    """Write the page."""
    files.write(path, render(summary))
