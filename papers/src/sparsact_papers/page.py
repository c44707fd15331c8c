"""One page of both papers' experiments: every claim with its verdict, every figure with its numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from sparsact import files
from sparsact.reports.figure import Display, n_rows
from sparsact.reports.page import template
from sparsact_papers.claims import Outcome
from sparsact_papers.correction import Correction, Standing
from sparsact_papers.experiment import Findings
from sparsact_papers.results import MissingRowsError

PAPERS: Final = {  # and what goes beyond both
    "A": "Learning Neural Networks with Sparse Activations",
    "B": "A Theoretical View on Sparsely Activated Networks",
    "practice": "models in practice",
}


@dataclass(frozen=True)
class PagePart:
    """One experiment on the page."""

    findings: Findings

    @cached_property
    def figures(self) -> list[Display]:
        """Its figures, as far as the rows suffice."""
        name, found = self.findings.experiment.name, []
        for chart in self.findings.experiment.charts:
            try:
                frame = chart.frame(self.findings.rows) if self.findings.rows else {}
            except MissingRowsError:
                continue
            if frame and n_rows(frame):
                found.append(chart.drawn(frame, prefix=f"{name}-"))
        return found

    @property
    def provenance(self) -> str:
        """Where and when the rows were measured, in words."""
        rows = self.findings.rows
        machines = Counter(f"{row.machine['processor']}, {row.machine['system']}" for row in rows)
        days = sorted({row.finished[:10] for row in rows})
        commits = sorted({row.commit for row in rows if row.commit})
        when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
        shown = ", ".join(commits[:6]) + (f" and {len(commits) - 6} more" if len(commits) > 6 else "")
        return f"{when}; {'; '.join(machines)}" + (f"; commit {shown}" if commits else "")


def render(found: Iterable[Findings], command: str) -> str:
    """The page, as HTML 5, of findings in its order; ``command`` is what wrote it."""
    parts = [PagePart(findings) for findings in found]
    return template("reproduction.html.j2", "sparsact_papers").render(
        papers=[(paper, title, _of(parts, paper)) for paper, title in PAPERS.items() if _of(parts, paper)],
        outcomes=list(Outcome),
        count=Counter(verdict.outcome for part in parts for _, verdict in part.findings.verdicts),
        command=command,
        correction=Correction.of(part.findings for part in parts),
        Standing=Standing,
        n_rows=sum(len(part.findings.rows) for part in parts),
        seconds=sum(part.findings.seconds for part in parts),
    )


def write(found: Iterable[Findings], command: str, path: str | Path) -> None:
    """Write the page."""
    files.write(path, render(found, command))


def _of(parts: Sequence[PagePart], paper: str) -> list[PagePart]:
    return [part for part in parts if part.findings.experiment.paper == paper]
