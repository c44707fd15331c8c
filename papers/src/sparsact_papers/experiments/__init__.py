"""The experiments of both papers, and of models in practice, as data: tasks, rows, claims.

An :class:`Experiment` lists :class:`Task` objects for a :class:`Scale`; :func:`collect` measures those that a
:class:`Store` does not hold yet; a :class:`Claim` turns the rows into a :class:`Verdict`. ``sparsact reproduce`` does
all of this, and :mod:`sparsact.reports` draws the page.
"""

from sparsact_papers.experiments.claim import Claim, Outcome, Verdict, bounded, every, needed, only_if, within
from sparsact_papers.experiments.collect import Failure, collect, measure
from sparsact_papers.experiments.experiment import Experiment
from sparsact_papers.experiments.findings import Findings
from sparsact_papers.experiments.interval import Interval, mean_of, median_of, range_of, share_of, slope_of
from sparsact_papers.experiments.registry import chosen, experiments
from sparsact_papers.experiments.rows import MissingRowsError, Row, Rows
from sparsact_papers.experiments.store import Store
from sparsact_papers.experiments.task import Scale, Task

__all__ = [
    "Claim",
    "Experiment",
    "Failure",
    "Findings",
    "Interval",
    "MissingRowsError",
    "Outcome",
    "Row",
    "Rows",
    "Scale",
    "Store",
    "Task",
    "Verdict",
    "bounded",
    "chosen",
    "collect",
    "every",
    "experiments",
    "mean_of",
    "measure",
    "median_of",
    "needed",
    "only_if",
    "range_of",
    "share_of",
    "slope_of",
    "within",
]
