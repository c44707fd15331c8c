"""Comparisons of frozen-layer models within a seed: same target, same points."""

from __future__ import annotations

from collections.abc import Sequence

from sparsact_papers.experiments.claim import Verdict, every, only_if, within
from sparsact_papers.experiments.interval import mean_of
from sparsact_papers.experiments.rows import MissingRowsError, Row, Rows

LINE = "line"  # the best linear function, as an opponent
DENSE = {
    "dense-linear": "linear",
    "dense-relu": "ReLU without biases",
    "dense-relu-biased": "ReLU with biases",
}


def by_seed(rows: Rows, **equal: object) -> dict[int, Row]:
    """The one row of each seed."""
    return {row["seed"]: row for row in rows.where(**equal)}


def ratios(
    rows: Rows, model: str, other: str, *, at: int, other_at: int | None = None, by: str = "active"
) -> list[float]:
    """Test error of one model over that of another, seed by seed; ``by`` tells what ``at`` counts.

    Raises
    ------
    MissingRowsError
        If no seed has both.
    """
    ones = by_seed(rows, model=model, **{by: at})
    others = ones if other == LINE else by_seed(rows, model=other, **{by: other_at or at})
    name = "linear_mse" if other == LINE else "mse"
    found = [ones[seed]["mse"] / others[seed][name] for seed in sorted(ones.keys() & others.keys())]
    if not found:
        raise MissingRowsError(f"{model} against {other} at {at} {by}")
    return found


def common(rows: Rows, models: Sequence[str], by: str = "active") -> list[int]:
    """Widths that all the models have rows for, in ascending order.

    Raises
    ------
    MissingRowsError
        If there is none.
    """
    found = set.intersection(*(set(rows.where(model=model).column(by)) for model in models))
    if not found:
        raise MissingRowsError(f"no width is there for all of {', '.join(models)}")
    return sorted(found)


def beats(rows: Rows, model: str, other: str, widths: Sequence[int]) -> Verdict:
    """Whether one model has the smaller error at every number of active units: the 95 % interval of the mean ratio."""
    means = {at: mean_of(ratios(rows, model, other, at=at)) for at in widths}
    verdict = every(*(within(mean, most=1) for mean in means.values()))
    hardest = max(means, key=lambda at: means[at].estimate)
    best, worst = min(mean.estimate for mean in means.values()), means[hardest]
    told = f"{model} / {other}: {best:.3g} at best, {worst} at worst ({hardest} active, {worst.n} seeds)"
    return Verdict(verdict.outcome, told)


def depending_on_dense(verdicts: dict[str, Verdict]) -> Verdict:
    """One verdict of those against each kind of dense layer."""
    held = {kind: verdict for kind, verdict in verdicts.items() if verdict.outcome == "holds"}
    rest = [verdict for kind, verdict in verdicts.items() if kind not in held]
    if not held or not rest:
        return every(*verdicts.values())
    condition = f"the frozen dense layer is {' or '.join(DENSE[kind] for kind in held)}"
    return only_if(condition, every(*held.values()), every(*rest))
