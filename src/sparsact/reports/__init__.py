"""Reports: a frozen summary of a fit, figures with their numbers, and one HTML page that holds them."""

from sparsact.reports.summary import (
    Candidate,
    Choice,
    Confusion,
    FitSummary,
    Resources,
    Spread,
    TargetSummary,
    Term,
)

__all__ = ["Candidate", "Choice", "Confusion", "FitSummary", "Resources", "Spread", "TargetSummary", "Term"]
