"""What the rows in a store say of an experiment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from sparsact_papers.experiments.claim import Claim, Verdict
from sparsact_papers.experiments.experiment import Experiment
from sparsact_papers.experiments.rows import Rows
from sparsact_papers.experiments.store import Store
from sparsact_papers.experiments.task import Scale


@dataclass(frozen=True)
class Findings:
    """Rows of one experiment at one scale, and the verdicts of its claims.

    Attributes
    ----------
    experiment : Experiment
    scale : Scale
        Of the rows.
    rows : Rows
        Those that are there.
    n_tasks : int
        How many there would be.
    """

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
        return [(claim, self._told(claim.verdict(self.rows))) for claim in self.experiment.claims]

    @property
    def complete(self) -> bool:
        """Whether every task has its row."""
        return len(self.rows) == self.n_tasks

    def _told(self, verdict: Verdict) -> Verdict:
        """The verdict; where rows are missing it says so."""
        if self.complete or not self.rows:
            return verdict
        return replace(verdict, measured=f"{verdict.measured}; from {len(self.rows)} of {self.n_tasks} tasks")

    @property
    def seconds(self) -> float:
        """Time of all rows, in seconds of one core."""
        return sum(row.seconds for row in self.rows)

    @property
    def command(self) -> str:
        """What measures these rows again, into a store of its own."""
        return f"sparsact reproduce --only {self.experiment.name} --{self.scale.value} --store again"
