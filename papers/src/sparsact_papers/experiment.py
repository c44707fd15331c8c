"""An experiment (tasks, measurement, claims, figures), and what the rows in a store say of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sparsact.reports.figure import Chart
from sparsact_papers.claims import Claim, Verdict
from sparsact_papers.implied import implied_by
from sparsact_papers.results import MissingRowsError, Parameter, Row, Rows, Scale, Store, Task

__all__ = ["Experiment", "Findings", "MissingRowsError", "Parameter", "Row", "Rows", "Scale"]


def _nothing() -> str | None:
    """What an experiment lacks on this machine: nothing."""
    return None


@dataclass(frozen=True)
class Experiment:
    """A figure, table or claim of a paper ("A", "B", or "practice") as data.

    ``name`` is in lower case with hyphens, as ``--only`` takes it; ``place`` is the section, figure, table or theorem.
    ``title`` says in a line what is measured; ``summary`` what is done, and how it was chosen where the paper is
    silent. ``parameters`` yields the parameters of each task at a scale. ``measure`` takes them as keywords and returns
    plain numbers, texts, or lists of these; it is a function of a module, since it runs in a process of its own, with
    one thread. ``order`` is the place on the page, within the paper. The version is raised whenever the same parameters
    would give another result. ``unmet`` says what is missing here to measure it, with the remedy, or is None.
    """

    name: str
    paper: str
    place: str
    title: str
    summary: str
    parameters: Callable[[Scale], Iterable[Mapping[str, Parameter]]]
    measure: Callable[..., Mapping[str, Any]]
    claims: tuple[Claim, ...]
    charts: tuple[Chart[Rows], ...]
    order: int
    version: int = 1
    unmet: Callable[[], str | None] = _nothing

    def tasks(self, scale: Scale) -> list[Task]:
        """Every task of a scale, each once, in the order in which they are best run."""
        tasks = {task.name: task for task in (Task(self.name, self.version, p) for p in self.parameters(scale))}
        return list(tasks.values())


@dataclass(frozen=True)
class Findings:
    """Rows of one experiment at one scale, of ``n_tasks`` that there would be, and the verdicts of its claims."""

    experiment: Experiment
    scale: Scale
    rows: Rows
    n_tasks: int

    @classmethod
    def of(cls, experiment: Experiment, store: Store, scale: Scale | None = None) -> Findings:
        """Findings at a scale, or else at the largest that is complete, or else at the one that has the most rows."""
        tasks = {one: experiment.tasks(one) for one in ([scale] if scale else Scale)}
        rows = {one: Rows(store.of(tasks[one])) for one in tasks}
        complete = [one for one in tasks if len(rows[one]) == len(tasks[one])]
        best = complete[-1] if complete else max(tasks, key=lambda one: len(rows[one]))
        if not rows[best]:
            best = scale or Scale.QUICK
        return cls(experiment, best, rows[best], len(tasks[best]))

    @cached_property
    def verdicts(self) -> list[tuple[Claim, Verdict]]:
        """Every claim with what the rows say of it."""
        verdicts = [(claim, self.verdict(claim)) for claim in self.experiment.claims]
        if self.complete or not self.rows:
            return verdicts
        part = f"from {len(self.rows)} of {self.n_tasks} tasks"
        return [(claim, replace(verdict, measured=f"{verdict.measured}; {part}")) for claim, verdict in verdicts]

    def verdict(self, claim: Claim) -> Verdict:
        """What the rows say of a claim, at the confidence that is set."""
        return claim.verdict(self.rows).implied_by(implied_by(self.experiment.name, claim.name))

    @property
    def complete(self) -> bool:
        """Whether every task has its row."""
        return len(self.rows) == self.n_tasks

    @property
    def seconds(self) -> float:
        """Time of all rows, in seconds of one core."""
        return sum(row.seconds for row in self.rows)

    @property
    def command(self) -> str:
        """What measures these rows again, into a store of its own."""
        return f"sparsact reproduce --only {self.experiment.name} --{self.scale.value} --store again"
