"""An experiment: its tasks at every scale, how one is measured, and the claims that its rows decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sparsact_papers.experiments.claim import Claim
from sparsact_papers.experiments.task import Parameter, Scale, Task


def _nothing() -> str | None:
    """What an experiment lacks on this machine: nothing."""
    return None


@dataclass(frozen=True)
class Experiment:
    """A figure, table or claim of a paper as data.

    Attributes
    ----------
    name : str
        In lower case with hyphens, as ``--only`` takes it.
    paper : {"A", "B", "practice"}
        Whose figure it is, or that it is of models in practice.
    place : str
        Section, figure, table or theorem.
    title : str
        What is measured, in a line.
    summary : str
        What is done and how it was chosen where the paper is silent; a few sentences.
    version : int
        Raised whenever the same parameters would give another result.
    parameters : callable
        From a scale to the parameters of every task; it stands in the module of the experiment, by whose name the
        figures are found.
    measure : callable
        Of the parameters as keywords: what was measured, as plain numbers, texts, or lists of these. A function of a
        module, since it runs in a process of its own, with one thread.
    claims : tuple of Claim
    order : int
        Place on the page, within its paper.
    unmet : callable
        What is missing here to measure it (a library, a data set) with the remedy, or None.
    """

    name: str
    paper: str
    place: str
    title: str
    summary: str
    version: int
    parameters: Callable[[Scale], Iterable[Mapping[str, Parameter]]]
    measure: Callable[..., Mapping[str, Any]]
    claims: tuple[Claim, ...]
    order: int
    unmet: Callable[[], str | None] = _nothing

    def tasks(self, scale: Scale) -> list[Task]:
        """Every task of a scale, each once, in the order in which they are best run."""
        tasks = {task.name: task for task in (Task(self.name, self.version, p) for p in self.parameters(scale))}
        return list(tasks.values())
