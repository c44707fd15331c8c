"""``sparsact certify``: the most units of a network that any input switches on."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sparsact.cli.options import argument, option, with_help
from sparsact.cli.terminal import say

if TYPE_CHECKING:
    from sparsact.certificate import Certificate


@with_help(
    network=argument("NETWORK", "A saved network or stack (.sparsact)."),
    method=option("NAME", "auto, enumeration, orbits, milp, or sampled (with --samples)."),
    time_limit=option("SECONDS", "Time limit of the method milp."),
    quadratic_lift="Consider only inputs that are quadratic lifts of points y in {-1, 1}^m.",
    samples=option("N", "Draw N uniform inputs instead of a proof.", min=1),
    at_most=option("K", "With --samples: bound how often more than K units are active."),
    confidence=option("P", "With --samples: confidence of the bound."),
    random_state=option("N", "Seed of the sample and of the search.", min=0),
)
def certify(
    network: Path,
    method: str = "auto",
    time_limit: float = 60.0,
    quadratic_lift: bool = False,
    samples: int | None = None,
    at_most: int | None = None,
    confidence: float = 0.99,
    random_state: int = 0,
    as_json: bool = False,
) -> None:
    """Prove the largest number of units that any input of a network activates, and show such an input.

    A unit is active where its pre-activation is strictly above 0, decided exactly for the stored numbers. When the time
    runs out, the result is an interval. For a stack, each layer is certified, then all layers together.

    Example: sparsact certify network.sparsact --time-limit 20
    """
    import numpy as np

    from sparsact.certificate import StackCertificate
    from sparsact.cli.io import load_model, network_in
    from sparsact.lift import Lift
    from sparsact.stack import Stack

    model = load_model(network, f"make one with network.save('{network.stem}.sparsact') in Python.")
    loaded = model if isinstance(model, Stack) else network_in(model)
    if loaded is None:
        kind = type(model).__name__
        raise ValueError(f"{network.name} holds a {kind}; a SparselyActivatedNetwork or Stack is needed.")
    if samples is None and (at_most is not None or method == "sampled"):
        raise ValueError("--at-most and --method sampled need --samples N; pass it, or leave them out.")
    if samples is not None and method not in ("auto", "sampled"):
        raise ValueError(f"--samples draws a sample, --method {method} proves; pass one of the two.")
    options: dict[str, Any] = {"rng": np.random.default_rng(random_state)}
    of_stack = isinstance(loaded, Stack)
    if of_stack and (quadratic_lift or at_most is not None):
        raise ValueError(f"{network.name} holds a stack; leave out --quadratic-lift and --at-most.")
    if quadratic_lift:
        if isqrt(loaded.n) ** 2 != loaded.n:
            raise ValueError(f"a quadratic lift has m * m coordinates; the network has {loaded.n} inputs.")
        options["inputs"] = Lift.quadratic(isqrt(loaded.n))
    if samples is None:
        options |= {"method": method, "time_limit": time_limit}
    else:
        options |= {"method": "sampled", "n_samples": samples, "confidence": confidence}
        options |= {} if of_stack else {"max_active": at_most}
    with _remarks_of_solvers_to_stderr():
        certificate = loaded.certify(**options)
    if as_json:
        typer.echo(certificate.to_json())
    elif isinstance(certificate, StackCertificate):
        for number, layer in enumerate(certificate.layers, 1):
            say(f"layer {number}:")
            _print(layer)
        say("all layers:")
        _print(certificate.whole)
    else:
        _print(certificate)


def _print(certificate: Certificate) -> None:
    verdict = str(certificate)
    say(verdict[0].upper() + verdict[1:] + ".")
    if certificate.witness is not None:
        signs = "".join("+" if x > 0 else "-" for x in certificate.witness)
        say(f"witness, {certificate.max_active} active: {signs}")
    if certificate.distribution is not None:
        counts = ", ".join(f"{k}: {count:,}" for k, count in enumerate(certificate.distribution) if count)
        say(f"inputs by active units  {counts}")
    say(f"took {certificate.seconds:.3g} s")


@contextmanager
def _remarks_of_solvers_to_stderr() -> Iterator[None]:
    """HiGHS prints a remark now and then, below Python, on the stdout that a machine may read."""
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        with suppress(OSError, TypeError, AttributeError):  # where C's streams cannot be reached
            ctypes.CDLL(None).fflush(None)
        os.dup2(stdout, 1)
        os.close(stdout)
