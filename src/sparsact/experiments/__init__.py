"""The experiments of both papers, and of models in practice, as data: tasks, rows, claims.

An :class:`Experiment` lists :class:`Task` objects for a :class:`Scale`; :func:`collect` measures those that a
:class:`Store` does not hold yet; a :class:`Claim` turns the rows into a :class:`Verdict`. ``sparsact reproduce`` does
all of this, and :mod:`sparsact.reports` draws the page.
"""

from sparsact.experiments.claim import Claim, Outcome, Verdict, bounded, every, needed, only_if, within
from sparsact.experiments.collect import Failure, collect, measure
from sparsact.experiments.experiment import Experiment
from sparsact.experiments.findings import Findings
from sparsact.experiments.interval import Interval, mean_of, median_of, range_of, share_of, slope_of
from sparsact.experiments.registry import chosen, experiments
from sparsact.experiments.rows import MissingRowsError, Row, Rows
from sparsact.experiments.store import Store
from sparsact.experiments.task import Scale, Task

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
