"""The claims of both papers with their verdicts, computed from the rows that the repository keeps."""

from __future__ import annotations

import re
from pathlib import Path

from sparsact_papers.experiments import Findings, Outcome, Store, experiments

ROWS = Path(__file__).parents[1] / "results" / "reproduction"


def verdict_table(path: Path) -> None:
    """Write the table, to be included by ``reproduce.rst``."""
    store = Store(ROWS)
    lines = [":orphan:", ""]
    for experiment in experiments().values():
        found = Findings.of(experiment, store)
        group = "In practice" if experiment.paper == "practice" else f"Paper {experiment.paper}"
        title = f"{group}, {experiment.place}: {experiment.title}"
        lines += ["", f"**{plain(title)}** (``{experiment.name}``, {len(found.rows)} of {found.n_tasks} tasks)", ""]
        lines += [".. list-table::", "   :header-rows: 1", "   :widths: 12 30 10 28 20", ""]
        rows = [("place", "claim", "verdict", "measured", "refuted if")]
        for claim, verdict in found.verdicts:
            condition = f"Only if {verdict.condition}. " if verdict.condition else ""
            measured = condition + verdict.measured
            rows.append((claim.place, claim.statement, verdict.label, measured, claim.refuted_if))
        for first, *rest in rows:
            lines += [f"   * - {plain(first)}", *(f"     - {plain(cell)}" for cell in rest)]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def refuted_table(path: Path) -> None:
    """Write the claims that do not hold, or only under a condition, to be included by ``limits.rst``."""
    store = Store(ROWS)
    lines = [":orphan:", "", ".. list-table::", "   :header-rows: 1", "   :widths: 22 48 30", ""]
    rows = [("claimed in", "claim", "found")]
    for experiment in experiments().values():
        paper = "practice" if experiment.paper == "practice" else f"paper {experiment.paper}"
        for claim, verdict in Findings.of(experiment, store).verdicts:
            if verdict.outcome in (Outcome.DOES_NOT_HOLD, Outcome.HOLDS_ONLY_IF):
                found = f"only if {verdict.condition}" if verdict.condition else "does not hold"
                rows.append((f"{paper}: {claim.place}", claim.statement, found))
    for first, *rest in rows:
        lines += [f"   * - {plain(first)}", *(f"     - {plain(cell)}" for cell in rest)]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def plain(text: str) -> str:
    """Text in which no character means anything to reStructuredText."""
    return re.sub(r"([*`|_\\])", r"\\\1", " ".join(text.split()))
