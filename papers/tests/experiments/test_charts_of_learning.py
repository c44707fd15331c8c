"""Charts of the learning experiments: from no rows an empty frame, from smoke rows a frame and a drawing."""

from __future__ import annotations

from importlib import import_module

import pytest

from sparsact.reports.figure import Chart, n_rows, rows, to_svg
from sparsact_papers.experiments import Outcome, Rows, Scale, measure

MODULES = (
    "low_degree_curves",
    "juntas_and_index",
    "parity_defeats",
    "uniform_and_general",
    "support_recovery",
    "correlated_activations",
)


def charts(module: str) -> tuple[Chart, ...]:
    return tuple(import_module(f"sparsact_papers.paper_a.{module}").EXPERIMENT.charts)


@pytest.mark.parametrize("module", MODULES)
def test_no_rows_no_numbers(module: str) -> None:
    for chart in charts(module):
        assert n_rows(chart.frame(Rows([]))) == 0


@pytest.mark.parametrize(
    ("module", "holds"),
    [("low_degree_curves", True), ("juntas_and_index", True), ("parity_defeats", True), ("support_recovery", False)],
)
def test_smoke_rows_are_judged_and_drawn(module: str, *, holds: bool) -> None:
    experiment = import_module(f"sparsact_papers.paper_a.{module}").EXPERIMENT
    found = Rows(measure(experiment.measure, task) for task in experiment.tasks(Scale.SMOKE))
    outcomes = {claim.name: claim.verdict(found).outcome for claim in experiment.claims}
    assert len(outcomes) == len(experiment.claims)
    assert (Outcome.HOLDS in outcomes.values()) is holds  # one seed decides nothing about supports
    for chart in charts(module):
        frame = chart.frame(found)
        assert len(list(rows(frame))) == n_rows(frame) > 0
        assert to_svg(chart.plot(frame)).startswith("<svg")
