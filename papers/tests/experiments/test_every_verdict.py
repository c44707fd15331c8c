"""No verdict is safe: for every claim some mutation of the kept rows turns its verdict.

A mutation replaces a measured column, or all that the rule reads, by a constant or by a power law, or multiplies it by
one of these: in all rows, or in the rows with one value of a parameter. A claim that was not refuted must be refuted by
one of them, whatever slack its bound has; a claim that was refuted must be saved by one.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import pytest
from reproduced import rows_of

from sparsact_papers.experiments import Claim, Findings, Outcome, Row, Rows, Scale, Store, experiments
from sparsact_papers.implied import IMPLIED

KEPT = Path(__file__).parents[3] / "results" / "reproduction"
SEEDS = 3  # only rows with the first seeds are mutated
FACTORS = (1e6, 0.0, -1.0, 1.0, 0.1, 0.5, 0.9, 1.1, 2.0, 10.0, 1e20)
SOME = (1e6, 0.0, 0.5, 2.0, 0.1, 10.0)
SMALL = tuple(10.0**-i for i in range(1, 9))
POWERS = (-4.0, -1.0, -0.3, 0.3, 1.0, 4.0)
CLAIMS = [
    pytest.param(experiment.name, claim, id=f"{experiment.name}: {claim.name}")
    for experiment in experiments().values()
    for claim in experiment.claims
]
Change = Callable[[Row, float, int], float]  # of a value, by its row and its place: the sum of its indices in lists


class Watched(dict):
    """Values of a row that note which of them are read."""

    def __init__(self, values: dict, read: set[str]) -> None:
        super().__init__(values)
        self.read = read

    def __getitem__(self, name: str) -> object:
        self.read.add(name)
        return super().__getitem__(name)


@cache
def store() -> Store:
    return Store(KEPT)


@cache
def kept(name: str) -> Rows:
    """Kept rows of a few seeds."""
    return few(Findings.of(experiments()[name], store()).rows)


@cache
def smoke(name: str) -> Rows:
    """Rows of smoke size of a few seeds."""
    lacking = experiments()[name].unmet()
    if lacking:
        pytest.skip(f"too few rows are kept, and none can be measured: {lacking}")
    return few(rows_of(experiments()[name], Scale.SMOKE))


def few(rows: Rows) -> Rows:
    return Rows(row for row in rows if row.parameters.get("seed", 0) < SEEDS)


def sampled(name: str, claim: Claim) -> Rows:
    """Kept rows, or rows of smoke size where too few are kept for the claim's rule."""
    rows = kept(name)
    return rows if rows and outcome(claim, rows) is not None else smoke(name)


def outcome(claim: Claim, rows: Rows) -> Outcome | None:
    """What the claim's rule says of some rows; None if they break it or are too few."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            verdict = claim.verdict(rows)
        except (ArithmeticError, ValueError, TypeError):
            return None
    return None if verdict.measured.startswith(("not enough rows", "not measured")) else verdict.outcome


def read_by(claim: Claim, rows: Rows) -> tuple[Rows, list[str]]:
    """The rows whose measured values the rule reads, if they decide it alike, and the columns that it reads."""
    read: list[set[str]] = [set() for _ in rows]
    before = outcome(
        claim, Rows(replace(row, values=Watched(dict(row.values), of)) for row, of in zip(rows, read, strict=True))
    )
    kept = Rows(row for row, of in zip(rows, read, strict=True) if of)
    return (kept if outcome(claim, kept) is before else rows), sorted(set().union(*read))


def changes(rows: Rows) -> Iterator[Change]:
    """Constants and power laws in place of what was measured, then factors: of all rows, and of some."""
    names = sorted({name for row in rows for name in row.parameters})
    values = {name: {row.parameters.get(name) for row in rows} for name in names}
    sizes = [
        name for name in names if len(values[name]) > 1 and all(type(v) in (int, float) and v > 0 for v in values[name])
    ]
    yield from (lambda row, x, i, f=f: f for f in FACTORS)
    for exact in (True, False):
        for p in POWERS:
            yield lambda row, x, i, p=p, exact=exact: (1 if exact else x) * float(i + 1) ** p
            for name in sizes:
                yield lambda row, x, i, p=p, n=name, exact=exact: (1 if exact else x) * float(row.parameters[n]) ** p
    yield from (lambda row, x, i, f=f: x * f or f for f in FACTORS)
    for factor, name in product(SMALL, sizes):
        yield lambda row, x, i, f=factor, n=name: f * float(row.parameters[n]) ** POWERS[-1]
    for factor, name in product(SOME, names):
        for value in sorted(values[name], key=str) if 1 < len(values[name]) <= 12 else ():
            yield lambda row, x, i, n=name, v=value, f=factor: x * f or f if row.parameters.get(n) == v else x
    for p, size, name in product(POWERS, sizes, names):
        for value in sorted(v for v in values[name] if isinstance(v, str)):
            yield (
                lambda row, x, i, n=name, v=value, z=size, p=p: (
                    x * float(row.parameters[z]) ** p if row.parameters.get(n) == v else x
                )
            )


def changed(value: object, change: Change, row: Row, place: int = 0) -> object:
    """A measured value, or each one of a list, after a change; texts stay."""
    if isinstance(value, list):
        return [changed(each, change, row, place + i) for i, each in enumerate(value)]
    return type(value)(change(row, value, place)) if isinstance(value, bool | int | float) else value


def mutations(rows: Rows, names: list[str]) -> Iterator[Rows]:
    """Each column changed alone, and all together."""
    for change in changes(rows):
        for chosen in [*([name] for name in names), *([names] if len(names) > 1 else ())]:
            mutated = (
                {name: changed(row.values[name], change, row) for name in chosen if name in row.values} for row in rows
            )
            yield Rows(row.with_values(**values) for row, values in zip(rows, mutated, strict=True))


@pytest.mark.parametrize(("name", "claim"), CLAIMS)
def test_some_mutation_turns_the_verdict(name, claim):
    rows, columns = read_by(claim, sampled(name, claim))
    refuted = outcome(claim, rows) is Outcome.DOES_NOT_HOLD
    turned = (outcome(claim, mutated) for mutated in mutations(rows, columns))
    assert any(after is not None and (after is Outcome.DOES_NOT_HOLD) != refuted for after in turned)


@pytest.mark.parametrize("name", IMPLIED)
def test_the_kept_rows_agree_with_the_theorems(name):
    verdicts = {claim.name: verdict for claim, verdict in Findings.of(experiments()[name], store()).verdicts}
    assert {verdicts[claim].outcome for claim in IMPLIED[name]} == {Outcome.IMPLIED}
