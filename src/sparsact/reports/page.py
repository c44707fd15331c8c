"""Self-contained HTML pages of a network, a model's activations and others: they load nothing and escape every name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from sparsact.reports.measurement_figures import measurement_figures
from sparsact.reports.network_report import NetworkSummary, network_figures
from sparsact.reports.numbers import duration, number, size

if TYPE_CHECKING:
    from sparsact.inference import Measurement

BATCHES: Final = (1, 4, 16, 64)
METHODS: Final = {
    "oracle": "reads only the rows of active units, as if these were known in advance",
    "exact": "reads the matrix that decides which units are active, and only the rows of active units of the others",
    "certified": "reads an 8-bit copy of that matrix, then only the rows of active units",
}


def network_page(summary: NetworkSummary) -> str:
    """The page of a network, as HTML 5."""
    return template("network.html.j2").render(summary=summary, figures=network_figures(summary))


def measurement_page(measurement: Measurement, name: str, versions: Sequence[tuple[str, str]], command: str) -> str:
    """The page of a model's activations, as HTML 5: the model's name, what decides the result, how to make it again."""
    return template("measurement.html.j2").render(
        measurement=measurement,
        name=name,
        figures=measurement_figures(measurement) if measurement.blocks else [],
        outside=[layer for layer in measurement.layers if layer.block is None],
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
