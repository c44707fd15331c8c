"""Layout of the gallery: pictures look like the pictures of the reports, and pages are sorted by job."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
from cycler import cycler

from sparsact.reports.figure import COLOURS, STYLE

ORDER = (
    "plot_landscape.py",
    "plot_circuit.py",
    "plot_software_configuration.py",
    "plot_fast_regression.py",
    "plot_routed_layer.py",
    "plot_sparsified_transformer.py",
    "plot_tour_of_paper_a.py",
    "plot_tour_of_paper_b.py",
)


def in_order(name: str) -> int:
    """Place of an example; one that is not listed fails the build."""
    return ORDER.index(name)


def house_style(gallery_conf: dict[str, Any], name: str) -> None:
    """Set before each example; whoever runs one elsewhere has their own style."""
    plt.rcdefaults()
    plt.rcParams.update(STYLE)
    plt.rcParams.update(
        {
            "axes.prop_cycle": cycler(color=COLOURS),
            "axes.grid": True,
            "figure.constrained_layout.use": True,
            "figure.dpi": 100,
            "figure.facecolor": "white",
            "text.parse_math": True,  # logarithmic axes write powers
        }
    )
