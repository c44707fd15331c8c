"""What every experiment promises, at the smallest size: it runs, its claims are judged, its figures are drawn."""

import math
import time

import pytest
from reproduced import rows_of

from sparsact.reports.figure import n_rows
from sparsact_papers.experiments import Findings, Outcome, Rows, Scale, Store, collect, experiments, measure
from sparsact_papers.page import PAPERS, PagePart

EXPERIMENTS = list(experiments().values())
NAMES = [experiment.name for experiment in EXPERIMENTS]


@pytest.fixture(scope="module", params=EXPERIMENTS, ids=NAMES)
def findings(request):
    lacking = request.param.unmet()
    if lacking:
        pytest.skip(lacking)
    rows = rows_of(request.param)
    return Findings(request.param, Scale.SMOKE, rows, len(rows))


def test_names_and_places_on_the_page_are_unique():
    assert len(set(NAMES)) == len(NAMES)
    places = [(experiment.paper, experiment.order) for experiment in EXPERIMENTS]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=NAMES)
def test_an_experiment_says_what_it_is(experiment):
    assert experiment.paper in PAPERS
    assert experiment.claims
    assert len({claim.name for claim in experiment.claims}) == len(experiment.claims)
    for text in (experiment.place, experiment.title, experiment.summary):
        assert text.strip()
    for claim in experiment.claims:
        assert claim.place.strip()
        assert claim.statement.strip().endswith((".", "?", ".)"))
        assert claim.rule.strip()


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=NAMES)
def test_larger_scales_have_more_tasks_and_enough_seeds(experiment):
    smoke, quick, full = (experiment.tasks(scale) for scale in Scale)
    assert 0 < len(smoke) <= len(quick) <= len(full)
    assert {task.experiment for task in full} == {experiment.name}
    seeds = {task.parameters["seed"] for task in full if "seed" in task.parameters}
    assert len(seeds) >= 3 or not seeds  # an exact computation needs none


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=NAMES)
def test_claims_without_rows_are_undecided(experiment):
    for claim in experiment.claims:
        assert claim.verdict(Rows([])).outcome is Outcome.UNDECIDED


def test_every_claim_is_judged(findings):
    for claim, verdict in findings.verdicts:
        assert isinstance(verdict.outcome, Outcome), claim.name
        assert verdict.measured
        assert bool(verdict.condition) == (verdict.outcome is Outcome.HOLDS_ONLY_IF)


def test_every_figure_is_drawn(findings):
    assert findings.experiment.charts
    for chart in findings.experiment.charts:
        frame = chart.frame(findings.rows)
        assert len({len(column) for column in frame.values()}) == 1
        for name, column in frame.items():
            strange = [v for v in column if v is None or (isinstance(v, float) and math.isnan(v))]
            assert not strange, f"{chart.name}: {name}"
        if n_rows(frame):
            drawn = chart.drawn(frame)
            assert drawn.svg.startswith("<svg")
            assert "mathdefault" not in drawn.svg


def test_the_same_task_gives_the_same_values(findings):
    again = measure(findings.experiment.measure, findings.experiment.tasks(Scale.SMOKE)[0])
    untimed = [
        {name: value for name, value in row.values.items() if "second" not in name and "per_s" not in name}
        for row in (again, findings.rows[0])
    ]
    assert untimed[0] == untimed[1]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_quick_run_takes_under_ten_minutes(tmp_path):
    """Every experiment at small size, on two processes."""
    store, start = Store(tmp_path), time.perf_counter()
    work = [(e, task) for e in EXPERIMENTS if e.unmet() is None for task in e.tasks(Scale.QUICK)]
    assert collect(work, store, jobs=2) == []
    assert time.perf_counter() - start < 600
    for experiment in {experiment.name: experiment for experiment, _ in work}.values():
        found = Findings.of(experiment, store, Scale.QUICK)
        assert len(found.rows) == found.n_tasks
        assert PagePart(found).figures
