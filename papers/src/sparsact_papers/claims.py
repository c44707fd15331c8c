"""A claim of a paper, the rule by which rows decide it, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil
from typing import Any, Final, TypeVar

from sparsact_papers.intervals import Interval
from sparsact_papers.results import MissingRowsError, Rows

R = TypeVar("R", bound=Sequence[Any])
ROUNDING: Final = 1e-9  # of a bound
ATTAINED: Final = 0.9  # of a bound: only what comes so near to it shows that a smaller one would be wrong


class Outcome(StrEnum):
    """What the rows say of a claim."""

    HOLDS = "holds"
    IMPLIED = "implied"  # a theorem proves it: the rows agree, as they must, and check the code alone
    CONSISTENT = "consistent"  # an upper bound that nothing found exceeds or attains
    HOLDS_ONLY_IF = "holds only if"
    DOES_NOT_HOLD = "does not hold"
    UNDECIDED = "undecided"  # the interval lies on both sides of the limit, or rows are missing


@dataclass(frozen=True)
class Verdict:
    """An outcome and the figures behind it, with their uncertainty.

    ``HOLDS_ONLY_IF`` has its condition; ``IMPLIED`` the theorem; ``CONSISTENT``, or an implied bound, its slack, by
    which the bound exceeds the largest value found.
    """

    outcome: Outcome
    measured: str
    condition: str = ""
    slack: float | None = None
    theorem: str = ""

    @property
    def label(self) -> str:
        """The outcome as readers see it, with its slack."""
        return self.outcome.value if self.slack is None else f"{self.outcome.value}, slack {self.slack:.3g}"

    def implied_by(self, theorem: str | None) -> Verdict:
        """The verdict on a claim that a theorem implies: *implied* where it agrees; unchanged where it does not."""
        if theorem and self.outcome in (Outcome.HOLDS, Outcome.CONSISTENT):
            return replace(self, outcome=Outcome.IMPLIED, theorem=theorem)
        return self


@dataclass(frozen=True)
class Claim:
    """A statement that rows can decide.

    ``name`` is unique within the experiment; ``rule`` says in words, with its limits, how :attr:`judge` turns the rows
    into a :class:`Verdict` (it may raise ``MissingRowsError``); ``refuted_if`` completes "refuted if". ``place`` is
    where the paper states it, or ``"beyond the paper"`` for what readers ask next; ``printed`` what the paper printed,
    if anything.
    """

    name: str
    statement: str
    rule: str
    refuted_if: str
    judge: Callable[[Rows], Verdict]
    place: str = "beyond the paper"
    printed: str = ""

    def verdict(self, rows: Rows) -> Verdict:
        """The verdict of the rows there are."""
        if not rows:
            return Verdict(Outcome.UNDECIDED, "not measured yet")
        try:
            return self.judge(rows)
        except MissingRowsError as missing:
            return Verdict(Outcome.UNDECIDED, f"not enough rows: {missing}")


def needed(rows: R, what: str, at_least: int = 1) -> R:
    """The rows themselves; ``MissingRowsError`` if there are fewer than ``at_least``.

    Parameters
    ----------
    rows : Rows or other sequence
    what : str
        In words, for the message.
    at_least : int

    Returns
    -------
    rows : Rows or other sequence
    """
    if len(rows) < at_least:
        raise MissingRowsError(f"{what} needs {at_least}, there are {len(rows)}")
    return rows


def within(interval: Interval, *, least: float = float("-inf"), most: float = float("inf"), what: str = "") -> Verdict:
    """*Holds* if the whole interval lies within the limits, *does not hold* if all of it lies outside.

    For a claim about every repetition (an :attr:`~Interval.exact` interval) one value outside is enough.

    Parameters
    ----------
    interval : Interval
    least, most : float
        Limits of the rule.
    what : str
        Said before the figure.

    Returns
    -------
    verdict : Verdict

    Examples
    --------
    >>> within(Interval(0.5, 0.4, 0.6, 5, ""), most=0.65).outcome
    <Outcome.HOLDS: 'holds'>
    """
    if least <= interval.low and interval.high <= most:
        outcome = Outcome.HOLDS
    elif interval.exact or interval.high < least or interval.low > most:
        outcome = Outcome.DOES_NOT_HOLD
    else:
        outcome = Outcome.UNDECIDED
    seeds = f"{interval.kind}, {interval.n} repetitions" if interval.n > 1 else "one repetition"
    wanted = ""
    if outcome is Outcome.UNDECIDED and interval.n > 1:
        more = repetitions_needed(interval, least=least, most=most)
        wanted = f"; {f'about {more:,}' if more else 'no number of'} repetitions would decide it"
    return Verdict(outcome, f"{what + ' ' if what else ''}{interval} ({seeds}{wanted})")


def repetitions_needed(interval: Interval, *, least: float = float("-inf"), most: float = float("inf")) -> int | None:
    """Repetitions from which the interval would lie on one side of each limit, if the estimate stays where it is.

    The square of its width, less that of its floor, falls as one over the repetitions. None where no number of them
    would do: of an infinite interval, or of an estimate nearer to a limit than the floor.

    Parameters
    ----------
    interval : Interval
    least, most : float
        Limits of the rule.

    Returns
    -------
    repetitions : int or None

    Examples
    --------
    >>> repetitions_needed(Interval(0.5, 0.1, 0.9, 10, ""), most=0.7)
    40
    """
    away = min(abs(interval.estimate - least), abs(interval.estimate - most))
    half = max(interval.high - interval.estimate, interval.estimate - interval.low)
    if not interval.floor < away < half < float("inf"):
        return None
    return ceil(interval.n * round((half**2 - interval.floor**2) / (away**2 - interval.floor**2), 9))


def bounded(share: Interval, what: str) -> Verdict:
    """Verdict on an upper bound: as :func:`within`, but *consistent* where it is not exceeded and not attained either.

    It is attained if the largest value (of an estimate: the estimate) is :data:`ATTAINED` of the bound or more.

    Parameters
    ----------
    share : Interval
        What was measured, as a share of the bound.
    what : str
        Said before the figure.

    Returns
    -------
    verdict : Verdict
        With its slack, where it is consistent.

    Examples
    --------
    >>> bounded(Interval(0.1, 0.0, 0.25, 5, "least and greatest", exact=True), "AS / bound").label
    'consistent, slack 4'
    """
    verdict = within(share, most=1 + ROUNDING, what=what)
    largest = share.high if share.exact else share.estimate
    if verdict.outcome is Outcome.HOLDS and largest < ATTAINED:
        slack = 1 / largest if largest > 0 else float("inf")
        return replace(verdict, outcome=Outcome.CONSISTENT, slack=slack)
    return verdict


def every(*verdicts: Verdict) -> Verdict:
    """Verdict on a claim of several parts: the worst of theirs. *Consistent* takes the least slack.

    Parameters
    ----------
    *verdicts : Verdict

    Returns
    -------
    verdict : Verdict
    """
    if not verdicts:
        raise MissingRowsError("no part of the claim has rows")
    outcomes = {verdict.outcome for verdict in verdicts}
    order = (Outcome.DOES_NOT_HOLD, Outcome.UNDECIDED, Outcome.HOLDS_ONLY_IF, Outcome.CONSISTENT, Outcome.HOLDS)
    worst = next(outcome for outcome in order if outcome in outcomes)
    conditions = [verdict.condition for verdict in verdicts if worst is Outcome.HOLDS_ONLY_IF and verdict.condition]
    slacks = [verdict.slack for verdict in verdicts if worst is Outcome.CONSISTENT and verdict.slack is not None]
    told = "; ".join(verdict.measured for verdict in verdicts)
    return Verdict(worst, told, "; ".join(conditions), min(slacks, default=None))


def only_if(condition: str, under: Verdict, otherwise: Verdict) -> Verdict:
    """Verdict on a claim judged under a condition and without it.

    It *holds* if both do, *holds only if* the condition is met when it holds under it and fails without, and *does not
    hold* if it fails even under the condition. Else it is undecided.

    Parameters
    ----------
    condition : str
        In words, to follow "only if".
    under, otherwise : Verdict
        With the condition met, and without.

    Returns
    -------
    verdict : Verdict
    """
    told = f"{under.measured}; otherwise {otherwise.measured}"
    if under.outcome in (Outcome.HOLDS, Outcome.CONSISTENT) and otherwise.outcome is Outcome.DOES_NOT_HOLD:
        return Verdict(Outcome.HOLDS_ONLY_IF, told, condition)
    if under.outcome is Outcome.UNDECIDED:
        return Verdict(Outcome.UNDECIDED, told)
    both = every(under, otherwise)
    return replace(both, measured=told)
