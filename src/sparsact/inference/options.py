"""Options of ``sparsify``, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from sparsact.validation.parameters import checked_option, checked_share

EXACT: Final = ("auto", "exact", "certified")
APPROXIMATE: Final = ("threshold", "top_k")
WEIGHTS: Final = ("keep", "int8", "int4")


@dataclass(frozen=True)
class ApproximationTarget:
    """The density or the error, in (0, 1], that a rule is calibrated for."""

    kind: Literal["density", "error"]
    value: float


@dataclass(frozen=True)
class SparsifyOptions:
    """How blocks are computed, as the arguments of :func:`~sparsact.inference.sparsify` say.

    ``target`` is what an approximation is calibrated for; None for exact methods.
    """

    method: str
    weights: str
    keep_weights: bool
    time_limit: float
    target: ApproximationTarget | None

    @classmethod
    def checked(
        cls,
        method: str,
        weights: str,
        keep_weights: bool,
        time_limit: float,
        density: float | None,
        error: float | None,
    ) -> SparsifyOptions:
        """The options; ValueError if one is unknown, or has no effect on the method."""
        checked_option(method, "`method`", (*EXACT, *APPROXIMATE))
        target = checked_target(method, density, error)
        checked_option(weights, "`weights`", WEIGHTS)
        if weights == "keep" and not keep_weights:
            raise ValueError(
                'keep_weights=False drops float weights, and weights="keep" needs them: pass weights="int8" or "int4".'
            )
        if weights != "keep" and method not in ("auto", "exact"):
            raise ValueError(
                f'weights="{weights}" goes with method="auto" or "exact", which return what the quantised model '
                f'returns; got "{method}": leave one of them out.'
            )
        return cls(method, weights, keep_weights, time_limit, target)


def checked_target(method: str, density: float | None, error: float | None) -> ApproximationTarget | None:
    """The one target of an approximate method, checked; None for an exact method, which takes none."""
    given = [] if density is None else [ApproximationTarget("density", density)]
    given += [] if error is None else [ApproximationTarget("error", error)]
    if method not in APPROXIMATE:
        if given:
            raise ValueError(
                f'method="{method}" takes no {" and no ".join(one.kind for one in given)}: it computes what the model '
                'computes; to approximate, pass method="threshold" or "top_k".'
            )
        return None
    if len(given) != 1:
        got = ", ".join(f"{one.kind}={one.value:g}" for one in given) or "none"
        raise ValueError(f'method="{method}" takes one target, density or error; got {got}: pass error=0.05.')
    checked_share(given[0].value, f"`{given[0].kind}`")
    return given[0]
