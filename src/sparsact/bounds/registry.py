"""The list of all bounds, which each joins by its decorator: what it states, and how far that is proved.

The command and the documentation print this list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, getdoc, signature
from math import inf
from re import MULTILINE, search
from typing import Any, Final, Literal, ParamSpec, Protocol, TypeVar, cast

import numpy as np

from sparsact.bounds.arithmetic import power_of_two
from sparsact.validation.parameters import check_named

P = ParamSpec("P")
R = TypeVar("R")
Status = Literal["proved", "sharper", "conjectured", "up to constants"]
Paper = Literal["A", "B"] | None

MEANING: Final[dict[str, str]] = {
    "proved": "a theorem with its constants",
    "sharper": "a theorem of this library, proved in its documentation",
    "conjectured": "a conjecture, or a consequence of one",
    "up to constants": "a theorem whose constants are unspecified: they are arguments, 1 unless given",
}
PARAMETERS: Final[dict[str, str]] = {
    "n": "Coordinates of an input.",
    "s": "Units of the network.",
    "k": "Largest number of active units at any input, from 1 to s.",
    "W": "Largest \\|u\\| times largest norm of a unit's weights (Definition 2).",
    "B": "Largest \\|u\\| times largest \\|b\\| (Definition 2).",
    "R": "Largest norm of an input.",
    "C": "Largest \\|h(x)\\| of the class.",
    "m": "Rows.",
    "gamma": "Margin: units whose pre-activation exceeds -gamma count.",
    "epsilon": "Squared error; of the theorems on Lipschitz functions, the uniform error.",
    "delta": "Probability of failure.",
    "rho": "Correlation of the noise: each sign is flipped with probability (1 - rho) / 2.",
    "degree": "Degree above which weight counts.",
    "probability": "Share of the points at which the halfspace is 1.",
    "second_moment": "Mean square of the number of active units under uniform inputs.",
    "average_sensitivity": "AS of the function.",
    "noise_sensitivity": "NS of the function at ``rho``.",
    "complexity": "Rademacher complexity for a number of rows.",
    "realizable": "Whether the target is a network of the class.",
    "c": "Constant that the paper leaves open.",
    "c_degree": "Constant of the degree, left open.",
    "C1": "Constant in the base, left open.",
    "power": "Factor of the exponent, left open.",
    "p": "Variables of the junta.",
    "length": "Bits of the parity, or entries of the secret.",
    "tau": "Tolerance of a statistical query.",
    "p_modulus": "Values of a label.",
    "q_modulus": "Modulus of the inner product.",
    "ambient": "Dimension d of the space.",
    "intrinsic": "Dimension k of the data.",
    "L": "Lipschitz constant.",
    "bits": "Bits of a parameter of the dense model.",
    "bucket_width": "Step of the inner product at which a direction is cut.",
    "n_directions": "Directions K of the hash.",
    "cuts": "Cuts along one direction.",
    "radius": "Of the ball.",
    "confidence": "Probability with which the bound holds.",
}
AFTER: Final = r"^(?:(?:Raises|Notes|References|Examples)\n-+$|>>> )"  # what stands below parameters and value

_ORDER: Final = ("sensitivity", "learning", "hardness", "rademacher", "fresh_activity", "lipschitz")  # of the papers


@dataclass(frozen=True)
class BoundInfo:
    """A bound: the number of its statement in its paper (None: in neither), what it ``gives``, and its function."""

    statement: str
    paper: Paper
    status: Status
    gives: str
    function: Callable[..., Any]
    log2: Callable[..., float] | None = None

    @property
    def name(self) -> str:
        """Name of the function in :mod:`sparsact.bounds`."""
        return self.function.__name__

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of required parameters."""
        return tuple(self._names(needed=True))

    @property
    def constants(self) -> tuple[str, ...]:
        """Names of optional parameters: unspecified constants, a confidence."""
        return tuple(self._names(needed=False))

    def _names(self, *, needed: bool) -> Iterator[str]:
        given = signature(self.function).parameters.items()
        return (name for name, parameter in given if (parameter.default is Parameter.empty) == needed)


_bounds: list[BoundInfo] = []


def all_bounds() -> tuple[BoundInfo, ...]:
    """In the order of the papers, sharper bounds next to the bounds that they sharpen; other modules last."""
    places = {f"{__package__}.{name}": place for place, name in enumerate(_ORDER)}
    return tuple(sorted(_bounds, key=lambda info: places.get(info.function.__module__, len(places))))


def bound(statement: str, paper: Paper, status: Status, gives: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """List a bound, check its parameters by their names, and complete its docstring.

    A number is infinite where it exceeds the largest float.
    """

    def listed(formula: Callable[P, R]) -> Callable[P, R]:
        function = _checked(formula)
        _complete(function, gives)
        _bounds.append(BoundInfo(statement, paper, status, gives, function))
        return function

    return listed


class LogBound(Protocol[P]):
    """A bound that may exceed every float, and its base-2 logarithm."""

    log2: Callable[P, float]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> float:
        """The bound, infinite where it exceeds the largest float."""


def log_bound(statement: str, paper: Paper, status: Status, gives: str) -> Callable[[Callable[P, float]], LogBound[P]]:
    """List a bound whose formula is that of its base-2 logarithm; both become functions."""

    def listed(formula: Callable[P, float]) -> LogBound[P]:
        logarithm = _checked(formula)

        @wraps(formula)
        def function(*args: P.args, **kwargs: P.kwargs) -> float:
            return power_of_two(logarithm(*args, **kwargs))

        logarithm.__doc__ = f"Base-2 logarithm of :func:`{formula.__name__}`, which may exceed every float."
        _complete(function, gives)
        function.log2 = logarithm  # type: ignore[attr-defined]
        _bounds.append(BoundInfo(statement, paper, status, gives, function, logarithm))
        return cast("LogBound[P]", function)

    return listed


def _checked(formula: Callable[P, R]) -> Callable[P, R]:
    """A formula with its parameters checked, that is infinite where it exceeds the largest float.

    Numbers of NumPy become Python's first: its integers would wrap around, its floats warn in place of an error.
    """
    defaults = {name: parameter.default for name, parameter in signature(formula).parameters.items()}
    names = tuple(defaults)

    @wraps(formula)
    def function(*args: P.args, **kwargs: P.kwargs) -> R:
        given = [_to_python(value) for value in args]
        named = {name: _to_python(value) for name, value in kwargs.items()}
        known = dict(zip(names, given, strict=False)) | named
        passed = [name for name in names if name in known and known[name] is not defaults[name]]
        check_named(**{name: known[name] for name in passed if name != "complexity"})
        try:
            return formula(*given, **named)  # type: ignore[arg-type] # the same, as Python's numbers
        except OverflowError:
            return cast("R", inf)

    return function


def _to_python(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def _complete(function: Callable[..., Any], gives: str) -> None:
    """Add the sections that a docstring lacks, from :data:`PARAMETERS` and the bound's results."""
    text = getdoc(function)
    if text is None:  # python -OO
        return
    found = search(AFTER, text, MULTILINE)
    above, below = (text[: found.start()], text[found.start() :]) if found else (text, "")
    given = signature(function)
    if "Parameters\n---" not in text:
        rows = [f"{name} : {_kind(name, p.annotation)}\n    {PARAMETERS[name]}" for name, p in given.parameters.items()]
        above = "\n".join([above.rstrip(), "", "Parameters", "----------", *rows])
    if "Returns\n---" not in text:
        value = f"bound : {given.return_annotation}\n    {gives[0].upper()}{gives[1:]}."
        above = "\n".join([above.rstrip(), "", "Returns", "-------", value])
    if below.startswith(">>>"):
        below = f"Examples\n--------\n{below}"
    function.__doc__ = f"{above.rstrip()}\n\n{below}".rstrip()


def _kind(name: str, annotation: str) -> str:
    return "callable" if name == "complexity" else annotation
