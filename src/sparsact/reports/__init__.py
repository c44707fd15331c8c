"""Reports: a frozen summary of a fit, figures with their numbers, and one HTML page that holds them."""

from sparsact.reports.network_summary import ColumnWeight, LSHSummary, TriedLayout
from sparsact.fit.result import (
    Confusion,
    Contender,
    CVCandidate,
    FitSummary,
    LowDegreeInfo,
    Resources,
    Spread,
    TargetSummary,
    Term,
)

__all__ = [
    "CVCandidate",
    "ColumnWeight",
    "Confusion",
    "Contender",
    "FitSummary",
    "LSHSummary",
    "LowDegreeInfo",
    "Resources",
    "Spread",
    "TargetSummary",
    "Term",
    "TriedLayout",
]
