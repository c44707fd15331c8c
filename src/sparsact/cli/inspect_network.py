"""``sparsact inspect`` of a network: size, scale, certificate, activity and spectrum."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sparsact.cli.outputs import check_report
from sparsact.cli.progress import stages
from sparsact.cli.surroundings import command_line, versions
from sparsact.cli.terminal import shown, terminal

if TYPE_CHECKING:
    import numpy as np

    from sparsact.certificate import Certificate
    from sparsact.fourier import Estimate
    from sparsact.network import SparselyActivatedNetwork
    from sparsact.reports.network_summary import Activity, DegreeWeights, NetworkSummary

EXACT_INPUTS = 22  # of the network, up to which a table of values is a matter of a second
EXACT_READ = 16  # or of each of its units: then the sum of their spectra is
SAMPLED_POINTS = 20_000
FOLDINGS = 40


def inspect_network(
    network: SparselyActivatedNetwork,
    name: str,
    words: Sequence[str],
    *,
    report: Path | None,
    time_limit: float,
    seed: int,
    as_json: bool,
) -> None:
    """Find out, print, and write the report if one is wanted."""
    check_report(report)
    summary = summarised(network, name, words, time_limit, seed)
    if report is not None:
        from sparsact.reports import network_page

        network_page.write(summary, report)
    if as_json:
        typer.echo(json.dumps(_as_json(summary), allow_nan=False))
    else:
        _tell(summary, report)


def summarised(
    network: SparselyActivatedNetwork, name: str, words: Sequence[str], time_limit: float, seed: int
) -> NetworkSummary:
    """Everything that is told of a network."""
    import numpy as np
    import scipy.sparse as sp

    from sparsact.reports.network_summary import NetworkSummary

    rng = np.random.default_rng(seed)
    with stages() as progress:
        with progress.stage("certify"):
            certificate = network.certify(time_limit=time_limit, rng=rng)
        with progress.stage("activity"):
            activity = _activity(network, certificate, rng)
        with progress.stage("spectrum"):
            degrees, sensitivity = _spectrum(network, rng)
    sparse = isinstance(network.W, sp.csr_array)
    storage = f"{network.W.nnz:,} weights stored sparsely" if sparse else "weights stored densely"
    return NetworkSummary(
        name=name,
        n_units=network.s,
        n_inputs=network.n,
        storage=storage,
        scale=network.scale(),
        n_dead=int(network.dead_units().sum()),
        n_constant=int(network.constant_units().sum()),
        verdict=_capitalised(str(certificate)),
        proved=certificate.exact,
        fewest=certificate.max_active,
        upper=certificate.upper,
        activity=activity,
        degrees=degrees,
        average_sensitivity=float(sensitivity.value),
        sensitivity_error=None if degrees.exact else float(sensitivity.standard_error),
        versions=versions(),
        command=command_line(words),
    )


def _activity(network: SparselyActivatedNetwork, certificate: Certificate, rng: np.random.Generator) -> Activity:
    """How many units are on, at every point if the certificate has counted them, else at random ones."""
    import numpy as np

    from sparsact.constructions import uniform
    from sparsact.reports.network_summary import Activity

    if certificate.distribution is not None:
        counts, how = np.array(certificate.distribution), f"Every one of the 2^{network.n} points."
    else:
        counts = np.bincount(network.n_active(uniform(network.n)(SAMPLED_POINTS, rng)))
        how = f"{SAMPLED_POINTS:,} uniformly random points."
    return Activity(tuple((counts / counts.sum()).tolist()), how)


def _spectrum(network: SparselyActivatedNetwork, rng: np.random.Generator) -> tuple[DegreeWeights, Estimate]:
    """Weight by degree and average sensitivity: exact where that is quick, else estimated."""
    import numpy as np
    import scipy.sparse as sp

    from sparsact.fourier import Estimate, Spectrum, estimate_average_sensitivity, estimate_weight_by_degree
    from sparsact.reports.network_summary import DegreeWeights

    read = np.diff(sp.csr_array(network.W).indptr)
    if network.n > EXACT_INPUTS and read.max(initial=0) > EXACT_READ:
        folded = estimate_weight_by_degree(network, n_samples=FOLDINGS, rng=rng)
        how = f"estimated: {FOLDINGS} random foldings of the inputs into {len(folded.value) - 1} groups"
        weights = DegreeWeights(tuple(folded.value.tolist()), tuple(folded.standard_error.tolist()), how)
        return weights, estimate_average_sensitivity(network, n_samples=SAMPLED_POINTS // 20, rng=rng)
    spectrum = Spectrum.of(network)
    weight = spectrum.weight_by_degree()[: spectrum.degree() + 1]
    return DegreeWeights(tuple(weight.tolist()), None, "exact"), Estimate(spectrum.total_influence(), 0.0, 1)


def _capitalised(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _as_json(summary: NetworkSummary) -> dict[str, Any]:
    told = asdict(summary)
    told["scale"] = summary.scale._asdict()
    return {"kind": "SparselyActivatedNetwork", **told}


def _tell(summary: NetworkSummary, report: Path | None) -> None:
    from rich.table import Table as Grid

    console = terminal()
    console.print(
        f"{shown(summary.name)}: {summary.n_units:,} ReLU units on {summary.n_inputs:,} inputs, {summary.storage}"
    )
    for name, fact in summary.facts:
        console.print(f"  {name}: {fact}", soft_wrap=True)
    console.print(f"  weight by degree, {summary.degrees.how}:")
    grid = Grid("degree")
    grid.add_column("weight", justify="right")
    if summary.degrees.errors is not None:
        grid.add_column("standard error", justify="right")
    for degree, weight in enumerate(summary.degrees.weights):
        errors = [] if summary.degrees.errors is None else [f"{summary.degrees.errors[degree]:.2g}"]
        grid.add_row(str(degree), f"{weight:.5g}", *errors)
    console.print(grid)
    if report is not None:
        console.print(f"report: {shown(report)}", soft_wrap=True)
