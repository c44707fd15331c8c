"""The effect of a set of columns, with its intervals and its q-value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import hypot
from statistics import NormalDist
from typing import Any, Final, Self

from sparsact.reports.numbers import signed_format
from sparsact.statistics.held_out_rows import CoefficientError

CONFIDENCE: Final = 0.95
REACH: Final = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)  # deviations
TERMS_KEPT: Final = 200
CONSTANT: Final = "constant"  # label of the product of no columns


@dataclass(frozen=True)
class Term:
    r"""The effect of a set of columns on the target, with its 95 % interval where one is known.

    The ``effect`` is in the table's own coding. Of one bit, it is the change of the fitted polynomial f when the bit
    switches from 0 to 1, averaged over all settings of the others; of two, how much one changes the other's effect:

    .. math:: \mathbb{E}_{x} \sum_{U \subseteq S} (-1)^{|S \setminus U|} f(x_{U \to 1,\, S \setminus U \to 0})
        = (-2)^{\text{bits in } S}\, \hat f(S).

    A column of numbers of the set goes up by one unit instead; other columns of numbers stay at 0. The ``coefficient``
    :math:`\hat f(S)`, from ``low`` to ``high``, belongs to the product of the columns in which a bit is a sign, +1
    where it is 0 and -1 where it is 1.

    The term of no columns is the constant: the mean of f over all settings of the bits, with columns of numbers at 0.
    The sum of coefficient times product over all terms, this one among them, is f.

    A coefficient that the rows do not identify has no interval: other products, among them the ``aliases``, which equal
    its product up to sign on every row, can take its place.

    ``joint_low`` and ``joint_high`` are ends of the interval that holds for all effects of the polynomial at once
    (Bonferroni), so that it may be read off effects that were picked for their size. ``q_value`` is that of Benjamini
    and Hochberg over all of them: among effects with at most this q-value, about that share is expected to be
    null. Of a Gaussian process it is twice the posterior probability that the sign is wrong. An effect is
    ``significant`` if its q-value is at most 0.05. It rests on the ``n_rows`` in which all columns of the set are 1,
    which are not counted in a sample.
    """

    subset: tuple[str, ...]
    coefficient: float
    low: float | None = None
    high: float | None = None
    identified: bool = True
    aliases: tuple[str, ...] = ()
    q_value: float | None = None
    joint_low: float | None = None
    joint_high: float | None = None
    n_bits: int = field(kw_only=True)
    n_rows: int | None = field(default=None, kw_only=True)

    def widened(self, error: CoefficientError, n_tested: int) -> Self:
        r"""The same with intervals and a q-value that hold where the model is wrong, by its held-out errors.

        The deviation is :math:`\sqrt{\max(\sigma, s)^2 + d^2}`, with the model's own :math:`\sigma`, and d and s of
        :mod:`sparsact.statistics.held_out_rows`. Its degrees of freedom are Welch and Satterthwaite's.
        """
        from scipy.special import stdtr, stdtrit  # loads slowly

        if self.low is None or self.high is None or not error.deviation:
            return self
        own = (self.high - self.low) / 2 / REACH
        deviation = hypot(max(own, error.deviation), error.distance)
        freedom = error.freedom * (deviation / error.deviation) ** 4

        def ends(tail: float) -> tuple[float, float]:
            reach = -float(stdtrit(freedom, tail)) * deviation
            return self.coefficient - reach, self.coefficient + reach

        tail = (1 - CONFIDENCE) / 2
        (low, high), joint = ends(tail), ends(tail / max(1, n_tested))
        if self.joint_low is not None and self.joint_high is not None:
            joint = min(joint[0], self.joint_low), max(joint[1], self.joint_high)
        q_value = self.q_value
        if q_value is not None:
            q_value = max(q_value, 2 * float(stdtr(freedom, -abs(self.coefficient) / deviation)))
        return replace(self, low=low, high=high, joint_low=joint[0], joint_high=joint[1], q_value=q_value)

    @property
    def significant(self) -> bool:
        """Whether the q-value is at most 0.05."""
        return self.q_value is not None and self.q_value <= 1 - CONFIDENCE

    @property
    def effect(self) -> float:
        """Change of the prediction by one column, or of its effect by further columns; see the class."""
        return self.coefficient * self._factor

    @property
    def effect_low(self) -> float | None:
        """Lower end of the effect's 95 % interval."""
        return self._ends(self.low, self.high)[0]

    @property
    def effect_high(self) -> float | None:
        """Upper end of the effect's 95 % interval."""
        return self._ends(self.low, self.high)[1]

    @property
    def joint(self) -> tuple[float, float] | tuple[None, None]:
        """The effect's interval that holds for all effects at once."""
        return self._ends(self.joint_low, self.joint_high)

    def _ends(self, low: float | None, high: float | None) -> tuple[float, float] | tuple[None, None]:
        if low is None or high is None:
            return None, None
        ends = low * self._factor, high * self._factor
        return min(ends), max(ends)

    @property
    def _factor(self) -> int:
        factor: int = (-2) ** self.n_bits
        return factor

    @property
    def label(self) -> str:
        """Columns of the product, for people."""
        return " × ".join(self.subset) or CONSTANT

    def in_words(self, spec: str) -> tuple[str, str, str]:
        """The effect in a format, its interval or none, and remarks: rows, doubts, three of the aliases.

        The constant is not tested.
        """
        rests = interval = doubt = ""
        if self.subset and self.n_rows is not None:
            rests = f"rests on {self.n_rows:,} row{'s' * (self.n_rows != 1)}"
        if not self.identified:
            more = f" and {len(self.aliases) - 3} more" if len(self.aliases) > 3 else ""
            same = f": same as {', '.join(self.aliases[:3])}{more}" if self.aliases else ""
            doubt = f"not identified by these rows{same}"
        elif self.effect_low is not None and self.effect_high is not None:
            interval = f"[{self.effect_low:{spec}}, {self.effect_high:{spec}}]"
            doubt = "" if self.q_value is None or self.significant else f"not significant (q = {self.q_value:.2g})"
        return f"{self.effect:{spec}}", interval, ", ".join(filter(None, (rests, doubt)))

    def to_dict(self) -> dict[str, Any]:
        """Columns, coefficient and effect with their intervals, as JSON holds them."""
        of_coefficient = {"coefficient": self.coefficient, "low": self.low, "high": self.high}
        of_effect = {"effect": self.effect, "effect_low": self.effect_low, "effect_high": self.effect_high}
        of_all = {"q_value": self.q_value, "joint_low": self.joint[0], "joint_high": self.joint[1]}
        of_all["rows"] = self.n_rows
        return {"columns": list(self.subset)} | of_coefficient | of_effect | of_all | {"significant": self.significant}


def effect_format(terms: Iterable[Term]) -> str:
    """The format of their effects: as many digits as the narrowest interval needs."""
    return signed_format((term.effect, term.effect_low, term.effect_high) for term in terms)
