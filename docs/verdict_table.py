"""The claims of both papers with their verdicts, computed from the rows that the repository keeps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from sparsact_papers.experiments import (
    Claim,
    Correction,
    Findings,
    Outcome,
    Standing,
    Store,
    Verdict,
    experiments,
)

ROWS = Path(__file__).parents[1] / "results" / "reproduction"
GROUPS = {"A": "Paper A", "B": "Paper B", "practice": "Beyond the papers"}
BADGES = {  # roles of sphinx-design
    Outcome.HOLDS: "bdg-success",
    Outcome.HOLDS_ONLY_IF: "bdg-info",
    Outcome.IMPLIED: "bdg-light",
    Outcome.CONSISTENT: "bdg-secondary",
    Outcome.UNDECIDED: "bdg-warning",
    Outcome.DOES_NOT_HOLD: "bdg-danger",
}


@cache
def findings() -> tuple[Findings, ...]:
    """The findings of every experiment; two tables are made from them."""
    store = Store(ROWS)
    return tuple(Findings.of(experiment, store) for experiment in experiments().values())


@cache
def correction() -> Correction:
    """The correction over all claims."""
    return Correction.of(findings())


def claims() -> dict[str, str]:
    """How many claims were measured, hold and do not, by the name that a page may write between bars."""
    found = Counter(verdict.outcome for group, verdict in _placed(findings()) if group != "practice")
    holds, fails = found[Outcome.HOLDS], found[Outcome.DOES_NOT_HOLD]
    beyond = sum(group == "practice" for group, _ in _placed(findings()))
    return {
        "claims measured": f"{found.total()} claims of the two papers: {holds} hold, {fails} do not",
        "claims beyond": f"{beyond} claims that go beyond the papers",
    }


def _placed(found: Iterable[Findings]) -> Iterator[tuple[str, Verdict]]:
    """Each verdict with the paper that states its claim; "practice" for a claim that goes beyond the papers."""
    for one in found:
        for claim, verdict in one.verdicts:
            paper = "A" if claim.place.startswith("Paper A") else one.experiment.paper
            yield "practice" if "beyond" in claim.place else paper, verdict


def verdict_table(path: Path) -> None:
    """Write the counts and every claim, to be included by ``verdicts.rst``; figures are folded below their claim."""
    lines = [*counts(findings()), "", plain(correction().told), "", ".. end of the counts", ""]
    for paper, title in GROUPS.items():
        lines += [title, "-" * len(title), ""]
        for found in findings():
            if found.experiment.paper == paper:
                lines += _section(found)
    _write(path, lines)


def counts(found: Iterable[Findings]) -> list[str]:
    """A line for each outcome: the number of claims of each paper."""
    counted = Counter((group, verdict.outcome) for group, verdict in _placed(found))
    numbers = {
        f":{role}:`{outcome}`": [counted[paper, outcome] for paper in GROUPS] for outcome, role in BADGES.items()
    }
    numbers["**all**"] = [sum(column) for column in zip(*numbers.values(), strict=True)]
    lines = [".. list-table::", "   :header-rows: 1", "   :class: compact", "", "   * - verdict"]
    lines += [f"     - {title}" for title in (*GROUPS.values(), "all")]
    for name, row in numbers.items():
        lines += [f"   * - {name}", *(f"     - {number}" for number in (*row, sum(row)))]
    return lines


def _section(found: Findings) -> list[str]:
    """One experiment as a line that opens: its title and counts, and below them its claims, which open too."""
    one, counted = found.experiment, Counter(verdict.outcome for _, verdict in found.verdicts)
    badges = (f":{BADGES[outcome]}:`{outcome}: {counted[outcome]}`" for outcome in BADGES if counted[outcome])
    lines = [f"{plain(one.place)}; ``{one.name}``", ""]
    for claim, verdict in found.verdicts:
        standing = correction().standing(found, claim)
        title = f":{BADGES[verdict.outcome]}:`{verdict.outcome}` {plain(claim.statement)}"
        lines += _dropdown(title, _details(claim, verdict, standing))
    return _dropdown(f"{plain(one.title)} {' '.join(badges)}", lines)


def _dropdown(title: str, lines: list[str]) -> list[str]:
    """A line that opens."""
    return [f".. dropdown:: {title}", "   :class-container: claim", "", *(f"   {line}" for line in lines), ""]


def _details(claim: Claim, verdict: Verdict, standing: Standing) -> list[str]:
    """What was measured for a claim, and what would have refuted it."""
    lines = [f":Place: {plain(claim.place)}"]
    if standing in (Standing.SURVIVES, Standing.ALONE):
        lines.append(f":Corrected: {standing}")
    if verdict.theorem:
        lines.append(f":Implied by: {plain(verdict.theorem)}")
    if verdict.condition:
        lines.append(f":Only if: {plain(verdict.condition)}")
    if verdict.slack is not None:
        lines.append(f":Slack: {verdict.slack:.3g}")
    return [*lines, f":Measured: {plain(verdict.measured)}", f":Refuted if: {plain(claim.refuted_if)}"]


def refuted_table(path: Path) -> None:
    """Write the claims that do not hold, or only under a condition, below their experiment, for ``limits.rst``."""
    lines: list[str] = []
    for paper, title in GROUPS.items():
        below: list[str] = []
        for found in (one for one in findings() if one.experiment.paper == paper):
            if refuted := list(_refuted(found)):
                below += [plain(f"{found.experiment.title}; {found.experiment.place}"), *refuted, ""]
        lines += _dropdown(f"{title}: {sum(line.startswith('  - ') for line in below)} claims", below)
    _write(path, lines)


def _refuted(found: Findings) -> Iterator[str]:
    """A line for each such claim of an experiment; it says if the claim goes beyond the paper."""
    for claim, verdict in found.verdicts:
        if verdict.outcome in (Outcome.DOES_NOT_HOLD, Outcome.HOLDS_ONLY_IF):
            condition = f" Only if {plain(verdict.condition)}." if verdict.condition else ""
            beyond = " (beyond the paper)" if "beyond" in claim.place else ""
            yield f"  - {plain(claim.statement)}{beyond} :{BADGES[verdict.outcome]}:`{verdict.outcome}`{condition}"


def _write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def plain(text: str) -> str:
    """Text in which no character means anything to reStructuredText."""
    return re.sub(r"([*`|_\\])", r"\\\1", " ".join(text.split()))
