"""Many claims judged at once: how many verdicts chance may have decided, and which of them survive a correction.

Holm's method over all claims that rest on estimates, undecided claims included. Claims about every repetition, and
claims that a theorem implies, are left out: no interval decides them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sparsact_papers.claims import Claim, Outcome
from sparsact_papers.experiment import Findings
from sparsact_papers.intervals import CONFIDENCE, confidence

DECIDED: Final = (Outcome.HOLDS, Outcome.HOLDS_ONLY_IF, Outcome.CONSISTENT, Outcome.DOES_NOT_HOLD)
BY_ANY: Final = (Outcome.HOLDS_ONLY_IF, Outcome.DOES_NOT_HOLD)  # verdicts for which one interval of several is enough
Name = tuple[str, str]  # experiment and claim


class Standing(StrEnum):
    """Whether a verdict survives the correction."""

    SURVIVES = "survives correction"
    ALONE = "does not survive correction"
    EXACT = "no estimate"  # nothing to correct
    OPEN = "undecided"


@dataclass(frozen=True, eq=False)
class _Tested:
    """A claim whose verdict rests on estimates."""

    findings: Findings
    claim: Claim
    outcome: Outcome
    n_estimates: int

    @property
    def n_chances(self) -> int:
        """Number of intervals that could each give this verdict wrongly."""
        return self.n_estimates if self.outcome in BY_ANY else 1

    def withstands(self, error: float) -> bool:
        """Whether the verdict is the same if it may be wrong with this probability, by any of its chances."""
        with confidence(1 - error / self.n_chances):
            return self.findings.verdict(self.claim).outcome is self.outcome


@dataclass(frozen=True)
class Correction:
    """What a correction of all verdicts on a page says.

    ``n_estimated`` claims rest on estimates, ``n_decided`` of them are decided and ``n_surviving`` survive;
    ``n_by_chance`` is the most of the decided ones that are expected to be wrong without a correction, which is so if
    each estimated value lies at its limit: half of the error of each interval that alone can decide, at most 1 a claim.
    """

    standings: dict[Name, Standing]
    n_estimated: int
    n_decided: int
    n_surviving: int
    n_by_chance: float

    @classmethod
    def of(cls, found: Iterable[Findings]) -> Correction:
        """The correction over all claims of these findings."""
        standings, tested = {}, []
        for findings in found:
            for claim in findings.experiment.claims:
                with confidence(CONFIDENCE) as level:
                    outcome = findings.verdict(claim).outcome
                exact = Standing.EXACT if outcome is not Outcome.UNDECIDED else Standing.OPEN
                standings[findings.experiment.name, claim.name] = exact
                if level.n_estimates and outcome is not Outcome.IMPLIED:
                    tested.append(_Tested(findings, claim, outcome, level.n_estimates))
        decided = [one for one in tested if one.outcome in DECIDED]
        surviving = _holm(decided, len(tested))
        for one in decided:
            standing = Standing.SURVIVES if one in surviving else Standing.ALONE
            standings[one.findings.experiment.name, one.claim.name] = standing
        by_chance = sum(min(1.0, one.n_chances * (1 - CONFIDENCE) / 2) for one in decided)
        return cls(standings, len(tested), len(decided), len(surviving), by_chance)

    def standing(self, findings: Findings, claim: Claim) -> Standing:
        """Whether the verdict on a claim survives."""
        return self.standings[findings.experiment.name, claim.name]

    @property
    def told(self) -> str:
        """The correction in three sentences."""
        return (
            f"Claims that rest on estimates: {self.n_estimated}; decided by intervals of 95 %: {self.n_decided}. Up to "
            f"{self.n_by_chance:.2g} of these verdicts are expected to be wrong by chance. Holm's correction over all "
            f"{self.n_estimated} leaves {self.n_surviving}: it errs on any of them with probability at most 5 %."
        )


def _holm(decided: Sequence[_Tested], n_tested: int) -> list[_Tested]:
    """Verdicts that survive: the fewer are left, the larger the error that each of the rest may have."""
    surviving: list[_Tested] = []
    left = list(decided)
    while left:
        error = (1 - CONFIDENCE) / (n_tested - len(surviving))
        strong = [one for one in left if one.withstands(error)]
        if not strong:
            break
        surviving += strong
        left = [one for one in left if one not in strong]
    return surviving
