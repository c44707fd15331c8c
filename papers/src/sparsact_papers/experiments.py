"""The experiments of both papers, and of models in practice, as data: tasks, rows, claims.

An :class:`Experiment` lists :class:`Task` objects for a :class:`Scale`; :func:`collect` measures the tasks that a
:class:`Store` does not hold yet; a :class:`Claim` turns the rows into a :class:`Verdict`. ``sparsact reproduce`` does
all of this and writes the page. Each module of ``paper_a``, ``paper_b`` and ``practice`` holds one experiment.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from sparsact_papers.claims import Claim, Outcome, Verdict, bounded, every, needed, only_if, within
from sparsact_papers.collect import Failure, collect, measure
from sparsact_papers.correction import Correction, Standing
from sparsact_papers.experiment import Experiment, Findings
from sparsact_papers.intervals import Interval, mean_of, median_of, range_of, share_of, slope_of
from sparsact_papers.results import MissingRowsError, Row, Rows, Scale, Store, Task

__all__ = [
    "Claim", "Correction", "Experiment", "Failure", "Findings", "Interval", "MissingRowsError", "Outcome", "Row",
    "Rows", "Scale", "Standing", "Store", "Task", "Verdict", "bounded", "chosen", "collect", "every", "experiments",
    "mean_of", "measure", "median_of", "needed", "only_if", "range_of", "share_of", "slope_of", "within",
]  # fmt: skip


@cache
def experiments() -> dict[str, Experiment]:
    """All experiments in the order of the page: paper A, paper B, practice."""
    found: list[Experiment] = []
    for folder in ("paper_a", "paper_b", "practice"):
        package = import_module(f"sparsact_papers.{folder}")
        modules = (import_module(f"{package.__name__}.{module.name}") for module in iter_modules(package.__path__))
        found += sorted((m.EXPERIMENT for m in modules if hasattr(m, "EXPERIMENT")), key=lambda e: e.order)
    return {experiment.name: experiment for experiment in found}


def chosen(only: list[str]) -> list[Experiment]:
    """Experiments that are named, in the order of the registry.

    Parameters
    ----------
    only : list of str
        Names, beginnings of names, or groups ("A", "B", "practice"); all experiments if it is empty.

    Returns
    -------
    experiments : list of Experiment
    """
    every = list(experiments().values())
    if not only:
        return every
    kept: list[Experiment] = []
    for word in only:
        exact = [e for e in every if word in (e.name, e.paper)]
        matching = exact or [e for e in every if word and e.name.startswith(word)]
        if not matching:
            raise ValueError(f"no experiment is named {word!r}; there are {', '.join(e.name for e in every)}.")
        kept += [e for e in matching if e not in kept]
    return [e for e in every if e in kept]
