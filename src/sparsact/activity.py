"""Certificates of activity: the most units of a network or a stack that any input switches on, proved or estimated."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.notebook import html_table


@dataclass(frozen=True, eq=False)
class Certificate:
    r"""Maximum number of active units of a network over the allowed inputs, proved or estimated.

    ``exact`` is ``upper == max_active``.

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
        """Whether the maximum is known: the proved upper bound is attained (or no input is allowed)."""
        return self.upper == self.max_active

    def __str__(self) -> str:
        units = f"{self.n_units} unit{'' if self.n_units == 1 else 's'}"
        where, verb = self.inputs, "is" if self.max_active == 1 else "are"
        if self.vacuous:
            verdict = f"the constraints allow no input, so no unit is active at {where}: proved by {self.proof}"
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
            raise ValueError(f"not a certificate ({error}); pass the text that Certificate.to_json wrote.") from error
        return read


@dataclass(frozen=True, eq=False)
class StackCertificate:
    """Maximum number of active units in each layer of a stack, and in all layers together.

    Attributes
    ----------
    layers : tuple of Certificate
        From the bottom up.
    whole : Certificate
        Units of all layers together, counted at one input.
    """

    layers: tuple[Certificate, ...]
    whole: Certificate

    @property
    def max_active(self) -> tuple[int, ...]:
        """Largest known number of active units in each layer."""
        return tuple(layer.max_active for layer in self.layers)

    @property
    def upper(self) -> tuple[int, ...]:
        """Proved upper bound on the number of active units in each layer."""
        return tuple(layer.upper for layer in self.layers)

    @property
    def exact(self) -> bool:
        """Whether all layers are exact, each by itself."""
        return all(layer.exact for layer in self.layers)

    def to_json(self) -> str:
        """One JSON object with the certificates of ``layers`` and of the ``whole``, as :meth:`.Certificate.to_json`."""
        layers = ", ".join(layer.to_json() for layer in self.layers)
        return f'{{"layers": [{layers}], "whole": {self.whole.to_json()}}}'

    def __str__(self) -> str:
        lines = [f"layer {number}: {layer}" for number, layer in enumerate(self.layers, 1)]
        return "\n".join([*lines, f"all layers: {self.whole}"])
