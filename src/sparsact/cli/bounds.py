"""``sparsact bounds``: what the theory promises for given parameters, and what a network does."""

from __future__ import annotations

import json
from math import inf, isfinite, log2, log10, sqrt
from pathlib import Path
from sys import float_info
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

import typer

from sparsact.cli.options import argument, option, with_help
from sparsact.cli.terminal import grid, terminal
from sparsact.cli.vacuous import VACUOUS, is_vacuous, most_variance

if TYPE_CHECKING:
    from rich.console import Console

    from sparsact.bounds import BoundInfo
    from sparsact.network import SparselyActivatedNetwork

_SAMPLES: Final = 10_000
_LOOKED_AT: Final = 1_000  # points, for more active units than are given
_LONGEST: Final = 14_000  # bits of a number of at most 4,300 digits, which is Python's limit


@with_help(
    network=argument("[NETWORK]", "A saved network: its n, s, k, W, B and measured sensitivities."),
    n=option("N", "Number of inputs.", "--n"),
    s=option("N", "Number of units.", "--s"),
    k=option("N", "Largest number of active units.", "--k"),
    W=option("X", "Scale of the weights (Definition 2).", "--W"),
    B=option("X", "Scale of the thresholds (Definition 2).", "--B"),
    epsilon=option("X", "Squared error."),
    delta=option("X", "Probability of failure."),
    rho=option("X", "Correlation of the noise."),
    given=option("NAME=X", "Any other parameter or constant, such as m=1000; may be repeated."),
    random_state=option("N", "Seed of measurements on random points."),
)
def bounds(
    network: Path | None = None,
    n: int | None = None,
    s: int | None = None,
    k: int | None = None,
    W: float | None = None,
    B: float | None = None,
    epsilon: float = 0.1,
    delta: float = 0.05,
    rho: float = 0.9,
    given: list[str] | None = None,
    random_state: int = 0,
    as_json: bool = False,
) -> None:
    """Print all bounds of the theory that follow from the given parameters, with their status.

    Constants that the theory leaves open are 1 unless given. Defaults: R is the square root of n, C is the largest
    value k (W R + B), degree is enough for epsilon, and p, the variables of a junta, is the logarithm of s.

    Example: sparsact bounds --n 100 --s 64 --k 1 --W 3 --B 2 --epsilon 0.1
    """
    from sparsact.cli.io import read_network

    known: dict[str, float | None] = {"n": n, "s": s, "k": k, "W": W, "B": B, "epsilon": epsilon, "delta": delta}
    parameters = {name: value for name, value in (known | {"rho": rho}).items() if value is not None}
    for name, value in (_number(text) for text in given or ()):
        if parameters.get(name, value) != value and name not in ("epsilon", "delta", "rho"):
            raise ValueError(f"{name} is {parameters[name]} and {value}; give it once.")
        parameters[name] = value
    net = None if network is None else read_network(network)
    if net is not None:
        parameters |= _of_network(net, parameters)
    follows = _derive(parameters)
    measured = None if net is None else _measured(net, parameters, random_state)
    if measured is not None and "degree" in follows:
        parameters["degree"] = measured["degree"]["degree"]
    variance = None if measured is None else measured["variance"]
    rows, wanting = _rows(parameters, variance)
    content: dict[str, Any] = {"parameters": parameters, "bounds": rows, "wanting": wanting}
    content["trivial"] = _trivial(parameters, variance)
    if measured is not None:
        content["measured"] = measured
    if as_json:
        typer.echo(json.dumps(content, allow_nan=False))
    else:
        _print(content)


def _number(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        raise ValueError(f"--given {text} is not NAME=NUMBER, such as m=1000.") from None
    name = name.strip()
    return name, int(number) if isfinite(number) and number == int(number) else number


def _of_network(network: SparselyActivatedNetwork, given: dict[str, float]) -> dict[str, float]:
    """Size and scale of the network, and its sparsity as given or else as certified."""
    import numpy as np

    from sparsact.hypercube import bits_to_signs

    for name, size in (("n", network.n), ("s", network.s)):
        if given.get(name, size) != size:
            raise ValueError(f"--{name} {given[name]}, but the network has {name} = {size}; leave --{name} out.")
    scale = network.scale()._asdict()
    for name, value in scale.items():
        if name in given:
            raise ValueError(f"the network has {name} = {value:.6g}; leave --{name} out.")
    if "k" not in given:
        return {"n": network.n, "s": network.s, "k": max(1, network.certify().upper), **scale}
    some = bits_to_signs(np.random.default_rng(0).integers(2, size=(_LOOKED_AT, network.n), dtype=np.int8))
    most = int(network.n_active(some).max())
    if given["k"] < most:
        raise ValueError(f"--k {given['k']}, but some input switches on {most} units; leave --k out.")
    return {"n": network.n, "s": network.s, "k": int(given["k"]), **scale}


def _derive(parameters: dict[str, float]) -> dict[str, float]:
    """Check the parameters, and fill in what follows from them, which is returned."""
    from sparsact.bounds import BOUNDS, sufficient_degree
    from sparsact.validation.parameters import check_named

    names = {name for entry in BOUNDS for name in (*entry.parameters, *entry.constants)}
    strange = sorted(parameters.keys() - names)
    if strange:
        raise ValueError(f"no bound has a parameter {strange[0]!r}; there are {', '.join(sorted(names))}.")
    check_named(**parameters)
    n, s, k, W, B = (parameters.get(name) for name in ("n", "s", "k", "W", "B"))
    units = None if s is None else int(s)
    follows: dict[str, float] = {}
    if n is not None:
        follows["R"] = sqrt(n)
        if k is not None and W is not None:
            follows["degree"] = min(int(n), sufficient_degree(int(k), W, parameters["epsilon"], units))
            if B is not None:
                follows["C"] = k * (W * parameters.get("R", sqrt(n)) + B)
    if s is not None:
        follows["p"] = int(log2(s))
    follows = {name: x for name, x in follows.items() if name not in parameters and (isinstance(x, int) or isfinite(x))}
    parameters |= follows
    return follows


def _trivial(parameters: dict[str, float], variance: float | None) -> str | None:
    """A sentence if a constant errs no more than epsilon."""
    epsilon, most = parameters["epsilon"], most_variance(parameters, variance)
    if epsilon < most:
        return None
    what, constant = ("C^2", "the function 0") if variance is None else ("the variance", "the mean of the network")
    found = f"epsilon = {epsilon:.4g} is no less than {what}, {most:.4g}"
    return f"{found}: {constant} is enough; choose a smaller --epsilon."


def _rows(parameters: dict[str, float], variance: float | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Bounds whose parameters are known; and the others with their missing parameters, fewest missing first."""
    from sparsact.bounds import BOUNDS

    rows, wanting = [], []
    skipped = {"tail_bound"} if parameters.get("degree", 0) >= parameters.get("n", inf) else set()  # nothing lies above
    for entry in (one for one in BOUNDS if "complexity" not in one.parameters and one.name not in skipped):
        missing = [name for name in entry.parameters if name not in parameters]
        content = {"statement": entry.statement, "paper": entry.paper, "status": entry.status, "name": entry.name}
        if missing:
            wanting.append(content | {"wants": missing})
        else:
            found = _value(entry, parameters)
            vacuous = is_vacuous(entry, found, parameters, variance)
            rows.append(content | {"gives": entry.gives} | found | {"vacuous": vacuous})
    return rows, sorted(wanting, key=lambda row: (len(row["wants"]), row["wants"]))


def _value(entry: BoundInfo, parameters: dict[str, float]) -> dict[str, Any]:
    """What a bound gives, as JSON holds it: no infinity, but the logarithm where it is known."""
    from sparsact.bounds import NetworkSize

    used = {name: parameters[name] for name in (*entry.parameters, *entry.constants) if name in parameters}
    value = entry.function(**used)
    if isinstance(value, NetworkSize):
        sizes = {name: number if _is_written(number) else None for name, number in value._asdict().items()}
        units = value.n_units if isinstance(value.n_units, int) else 0  # infinite ones have no logarithm
        return {"parameters": used, "value": sizes, "log2": log2(units) if units else None}
    exponent = entry.log2(**used) if entry.log2 is not None else log2(value) if 0 < value < float("inf") else None
    return {
        "parameters": used,
        "value": value if _is_written(value) else None,
        "log2": exponent if exponent is not None and isfinite(exponent) else None,
    }


def _is_written(number: float) -> bool:
    """Whether JSON holds a number: an int may exceed every float, up to the digits that Python writes."""
    return number.bit_length() <= _LONGEST if isinstance(number, int) else isfinite(number)


def _measured(network: SparselyActivatedNetwork, parameters: dict[str, float], random_state: int) -> dict[str, Any]:
    """Sensitivities of the network, exact or on random points, its variance if exact, and the degree that is enough."""
    from dataclasses import asdict

    import numpy as np

    from sparsact.bounds.degree import degree_for, has_exact_spectrum
    from sparsact.fourier import Estimate, Spectrum, estimate_average_sensitivity, estimate_noise_sensitivity

    rng, rho = np.random.default_rng(random_state), parameters["rho"]
    exact, variance = has_exact_spectrum(network), None
    if exact:
        spectrum = Spectrum.of(network)
        variance = spectrum.variance()
        average = Estimate(spectrum.total_influence(), 0.0, 2**network.n)
        noise = Estimate(spectrum.noise_sensitivity(rho), 0.0, 2**network.n)
    else:
        average = estimate_average_sensitivity(network, network.n, n_samples=_SAMPLES, rng=rng)
        noise = estimate_noise_sensitivity(network, network.n, rho, n_samples=_SAMPLES, rng=rng)
    degree = degree_for(network, parameters["epsilon"], k=int(parameters["k"]), n_samples=_SAMPLES, rng=rng)
    found = {name: value for name, value in asdict(degree).items() if name != "noise_sensitivity"}
    plain = {name: None if isinstance(value, float) and not isfinite(value) else value for name, value in found.items()}
    estimates = {"average_sensitivity": asdict(average), "noise_sensitivity": asdict(noise)}
    return estimates | {"variance": variance, "degree": plain, "exact": exact}


def _print(content: dict[str, Any]) -> None:
    from sparsact.bounds.registry import MEANING

    console, rows = terminal(), content["bounds"]
    console.print(", ".join(f"{name}={value:.6g}" for name, value in content["parameters"].items()))
    console.print("R: largest norm of an input; C: most that |h(x)| can be; p: variables of a junta")
    if content["trivial"]:
        console.print(content["trivial"])
    table = grid(["bound", "status"], ["value"])
    for gives in dict.fromkeys(row["gives"] for row in rows):
        table.add_row(gives)
        for row in (row for row in rows if row["gives"] == gives):
            status = f"{row['status']}, vacuous" if row["vacuous"] else row["status"]
            table.add_row(f"  {_statement(row)}", status, _value_of(row))
    if rows:
        console.print(table)
        for status, meaning in MEANING.items():
            console.print(f"{status}: {meaning}")
        if any(row["vacuous"] for row in rows):
            console.print(VACUOUS)
    if content["wanting"]:
        console.print(f"{len(content['wanting'])} more bounds need parameters (--given NAME=X):")
        for wants in dict.fromkeys(tuple(row["wants"]) for row in content["wanting"]):
            which = dict.fromkeys(_statement(row) for row in content["wanting"] if tuple(row["wants"]) == wants)
            line = f"{', '.join(wants)}: {'; '.join(which)}"
            console.print(fill(line, console.width, initial_indent="  ", subsequent_indent="    "))
    if "measured" in content:
        _print_measured(console, content["measured"], content["parameters"])


def _statement(row: dict[str, Any]) -> str:
    return row["statement"] if row["paper"] is None else f"{row['statement']} ({row['paper']})"


def _value_of(row: dict[str, Any]) -> str:
    value, exponent = row["value"], row["log2"]
    if not isinstance(value, dict):
        return _short(value, exponent)
    inputs, units, W, B = (_short(value[name], exponent if name == "n_units" else None) for name in value)
    return f"{inputs} inputs, {units} units\nW = {W}, B = {B}"


def _short(number: float | None, exponent: float | None) -> str:
    """Four digits, of the base-2 logarithm where the number leaves the range of floats."""
    if exponent is not None and abs(exponent) >= float_info.max_exp:
        tens, rest = divmod(exponent * log10(2), 1)
        return f"{10**rest:.4g}e{tens:+.0f}"
    return "infinite" if number is None else f"{number:.4g}"


def _print_measured(console: Console, measured: dict[str, Any], parameters: dict[str, float]) -> None:
    exact = measured["exact"]
    how = "by the exact spectrum" if exact else f"on {_SAMPLES:,} random points, with standard errors"
    console.print(f"measured {how}:")
    for name, at in (("average_sensitivity", ""), ("noise_sensitivity", f" at rho = {parameters['rho']:g}")):
        estimate = measured[name]
        error = "" if exact else f" ± {estimate['standard_error']:.2g}"
        console.print(f"  {name.replace('_', ' ')}{at}: {estimate['value']:.4g}{error}")
    degree = measured["degree"]
    console.print(f"  degree {degree['degree']} leaves at most {degree['tail']:.3g}: {degree['reason']}")
