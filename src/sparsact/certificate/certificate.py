"""A certificate, in fields, in words and as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsact.certificate.inputs import Inputs
from sparsact.certificate.milp import ActivityBounds
from sparsact.certificate.sampling import Sampled
from sparsact.certificate.sweep import SweepCount
from sparsact.notebook import html_table

if TYPE_CHECKING:
    from sparsact.network import SparselyActivatedNetwork


@dataclass(frozen=True, eq=False)
class Certificate:
    r"""The most units of a network that any allowed input switches on, proved or estimated.

    Attributes
    ----------
    max_active : int
        Units that ``witness`` switches on, counted exactly; no allowed input is known that switches on more.
    upper : int
        No allowed input switches on more units than this.
    witness : ndarray of shape (n,) or None
        An allowed input that switches on ``max_active`` units: int8 signs (float64 if ``"sampled"`` met other numbers).
        None when no input is allowed, or the time ran out before one was found.
    method : {"enumeration", "orbits", "milp", "sampled"}
        Or the name of a caller's own count.
    proof, inputs : str
        How it was found, and over which inputs it holds, in words.
    n_units : int
        Units of the network, s.
    confidence : float
        1 for a proof; for ``"sampled"`` that of ``exceed_bound``.
    doubt : str
        What floating point or the time limit left open, and how it was settled; empty when nothing was.
    seconds, vacuous : float, bool
        Time taken, and whether no input is allowed at all.
    distribution : tuple of int or None
        How many allowed inputs (over a lift: how many y) switch on 0, 1, ..., ``max_active`` units, if that is known.
    n_samples, at_most, exceeded, exceed_bound
        For ``"sampled"``: of ``n_samples`` inputs ``exceeded`` switched on more than ``at_most`` units, and with
        probability ``confidence`` over the sample, a new input does so with probability at most ``exceed_bound``.

    Notes
    -----
    ``exact`` is ``upper == max_active``.
    """

    max_active: int
    upper: int
    witness: NDArray[Any] | None
    method: str
    proof: str
    inputs: str
    n_units: int
    confidence: float = 1.0
    doubt: str = ""
    seconds: float = 0.0
    vacuous: bool = False
    distribution: tuple[int, ...] | None = None
    n_samples: int | None = None
    at_most: int | None = None
    exceeded: int | None = None
    exceed_bound: float | None = None

    def __post_init__(self) -> None:
        if self.witness is not None:
            witness = np.array(self.witness)
            witness.setflags(write=False)
            object.__setattr__(self, "witness", witness)

    @property
    def exact(self) -> bool:
        """Whether the most is known: the proved upper bound is attained (or no input is allowed)."""
        return self.upper == self.max_active

    def __str__(self) -> str:
        units = f"{self.n_units} unit{'' if self.n_units == 1 else 's'}"
        where, verb = self.inputs, "is" if self.max_active == 1 else "are"
        if self.vacuous:
            verdict = f"no input is allowed, so nothing is active at {where}: proved by {self.proof}"
        elif self.method == "sampled":
            verdict = (
                f"with confidence {self.confidence:.6g}, more than {self.at_most} of {units} are active with "
                f"probability at most {self.exceed_bound:.3g} at {where}: so it was for {self.exceeded:,} of "
                f"{self.n_samples:,} samples; the most seen is {self.max_active}"
            )
        elif self.exact:
            verdict = f"at most {self.max_active} of {units} {verb} active at {where}: proved by {self.proof}"
        else:
            verdict = (
                f"between {self.max_active} and {self.upper} of {units} are active at the worst "
                f"{where.removeprefix('any ')}: bounded by {self.proof}"
            )
        return f"{verdict} ({self.doubt})" if self.doubt else verdict

    def _repr_html_(self) -> str:
        names = ("max_active", "upper", "n_units", "exact", "method", "proof", "inputs", "confidence", "seconds")
        return html_table(str(self), ("certificate", ""), ((name, getattr(self, name)) for name in names))

    def to_json(self) -> str:
        """One JSON object, which :meth:`from_json` reads back."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        fields["witness"] = None if self.witness is None else self.witness.tolist()
        return json.dumps(fields | {"exact": self.exact}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """A certificate from the output of :meth:`to_json`; a ValueError for any other text."""
        try:
            fields = json.loads(text)
            exact, witness, counts = fields.pop("exact"), fields.pop("witness"), fields.pop("distribution")
            if witness is not None:
                real = any(isinstance(x, float) for x in witness)
                witness = np.array(witness, dtype=np.float64 if real else np.int8)
            read = cls(witness=witness, distribution=None if counts is None else tuple(counts), **fields)
            if read.exact != exact:
                raise ValueError("its bounds and its verdict disagree")
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise ValueError(f"not a certificate ({error}); pass what Certificate.to_json wrote.") from error
        return read


def of_tally(
    tally: SweepCount, network: SparselyActivatedNetwork, inputs: Inputs, method: str, proof: str
) -> Certificate:
    """Of a count of every point or orbit."""
    if tally.witness is None:
        return Certificate(0, 0, None, method, proof, inputs.words, network.s, vacuous=True)
    doubt = ""
    if tally.lower < tally.upper:
        doubt = f"at least {tally.unsettled:,} points within rounding error of a tie are left in doubt"
    elif tally.settled:
        doubt = f"at least {tally.settled:,} points within rounding error of a tie were settled by exact sums"
    return Certificate(
        tally.lower,
        tally.upper,
        tally.witness,
        method,
        proof,
        inputs.words,
        network.s,
        doubt=doubt,
        distribution=None if tally.histogram is None else tuple(tally.histogram[: tally.lower + 1].tolist()),
    )


def of_interval(interval: ActivityBounds, network: SparselyActivatedNetwork, inputs: Inputs) -> Certificate:
    """Of bounds from below and above."""
    ties = f"{interval.doubtful:,} points within the solver's tolerance were settled by exact sums"
    doubt = ties * bool(interval.doubtful)
    if not interval.closed:
        doubt = interval.obstacle or "the time limit came first"
    return Certificate(
        interval.lower,
        interval.upper,
        interval.witness,
        "milp",
        interval.proof,
        inputs.words,
        network.s,
        doubt=doubt,
        vacuous=interval.empty,
    )


def of_sample(
    seen: Sampled, network: SparselyActivatedNetwork, inputs: Inputs, confidence: float, *, uniform: bool
) -> Certificate:
    """Certificate from a sample; if the sample comes from the cube, bounds over all its points are proved as well."""
    where = f"a uniform {inputs.words.removeprefix('any ')}" if uniform else "an input from the distribution given"
    upper = network.s - int(network.dead_units().sum()) if uniform else network.s
    fixed: dict[str, Any] = {
        "method": "sampled",
        "proof": "a sample",
        "inputs": where,
        "n_units": network.s,
        "confidence": confidence,
    }
    return Certificate(upper=upper, **fixed, **vars(seen))
