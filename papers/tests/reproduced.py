"""Findings that tests of the page share: real experiments on rows that are made up or measured at tiny size."""

from dataclasses import replace

from sparsact_papers.experiments import Claim, Findings, Outcome, Row, Rows, Scale, Task, Verdict, experiments, measure

LINE = experiments()["one-dimension"]
HOSTILE = '<script>alert(1)</script> & "quotes"'


def rows_of(experiment, scale=Scale.SMOKE):
    return Rows(measure(experiment.measure, task) for task in experiment.tasks(scale))


def told(outcome):
    """An experiment with one claim that was found so."""
    slack = 3.0 if outcome is Outcome.CONSISTENT else None
    verdict = Verdict(outcome, HOSTILE, slack=slack)
    claim = Claim(
        "claim",
        place="Lemma 0",
        statement=f"{HOSTILE} {outcome.value}",
        printed="0",
        rule="none",
        judge=lambda rows: verdict,
        refuted_if=HOSTILE,
    )
    return replace(LINE, name=f"told-{outcome.value.replace(' ', '-')}", paper="A", claims=(claim,), title=HOSTILE)


MEASURED = Findings(LINE, Scale.SMOKE, rows_of(LINE), 99)
PAGE_PARTS = [
    *(Findings(told(outcome), Scale.QUICK, MEASURED.rows, 5) for outcome in Outcome),
    Findings(replace(LINE, name="never", claims=(), unmet=lambda: "no data: fetch them."), Scale.QUICK, Rows([]), 7),
    MEASURED,
]


def made_up(experiment, parameters, values):
    """A row that nobody measured."""
    task = Task(experiment.name, experiment.version, parameters)
    return Row(
        task.name, **task.definition, values=values, seconds=1.0, finished="", machine={}, versions={}, commit=""
    )
