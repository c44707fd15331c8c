"""What each parameter of a bound means, said once: the same letter means the same thing in every function."""

from __future__ import annotations

from collections.abc import Callable
from inspect import getdoc, signature
from re import MULTILINE, search
from typing import Any

PARAMETERS: dict[str, str] = {
    "n": "Coordinates of an input.",
    "s": "Units of the network.",
    "k": "Most units active at any input, from 1 to s.",
    "W": "Largest \\|u\\| times largest norm of a unit's weights (Definition 2).",
    "B": "Largest \\|u\\| times largest \\|b\\| (Definition 2).",
    "R": "Largest norm of an input.",
    "C": "Largest \\|h(x)\\| of the class.",
    "m": "Rows.",
    "epsilon": "Squared error; of the theorems on Lipschitz functions, the uniform error.",
    "delta": "Probability of failure.",
    "rho": "Correlation of the noise: each sign is flipped with probability (1 - rho) / 2.",
    "degree": "Degree above which weight counts.",
    "probability": "Share of the points at which the halfspace is 1.",
    "second_moment": "Mean square of the number of active units under uniform inputs.",
    "average_sensitivity": "AS of the function.",
    "noise_sensitivity": "NS of the function at ``rho``.",
    "complexity": "Rademacher complexity for a number of rows.",
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
    "width": "Step of the inner product at which a direction is cut.",
    "n_directions": "Directions K of the hash.",
    "cuts": "Cuts along one direction.",
    "radius": "Of the ball.",
    "confidence": "Probability with which the bound holds.",
}
AFTER = r"^(?:(?:Raises|Notes|References|Examples)\n-+$|>>> )"  # what stands below parameters and value


def complete(function: Callable[..., Any], gives: str) -> None:
    """Put the sections that a docstring lacks into it, from :data:`PARAMETERS` and from what the bound gives."""
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
