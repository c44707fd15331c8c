"""Reports: a frozen summary of a fit, figures with their numbers, and one HTML page that holds them."""

from sparsact.reports.lsh_summary import ColumnWeight, LSHSummary, TriedLayout
from sparsact.reports.summary import (
    Candidate,
    Choice,
    Confusion,
    Contender,
    FitSummary,
    Resources,
    Spread,
    TargetSummary,
    Term,
)

__all__ = [
    "Candidate",
    "Choice",
    "ColumnWeight",
    "Confusion",
    "Contender",
    "FitSummary",
    "LSHSummary",
    "Resources",
    "Spread",
    "TargetSummary",
    "Term",
    "TriedLayout",
]
