"""What ``sparsact inspect`` says of a network: its certificate, activity and spectrum."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sparsact.cli.terminal import command_line, grid, shown, terminal
from sparsact.environment import versions
from sparsact.passes.progress import Stages, showing

if TYPE_CHECKING:
    import numpy as np

    from sparsact.certificate import Certificate
    from sparsact.fourier import Estimate
    from sparsact.network import SparselyActivatedNetwork
    from sparsact.reports.network_report import Activity, DegreeWeights, NetworkSummary

SAMPLED_POINTS: Final = 20_000
FOLDINGS: Final = 40


def summarised(
    network: SparselyActivatedNetwork, name: str, words: Sequence[str], time_limit: float, random_state: int
) -> NetworkSummary:
    """Everything that the command reports about a network."""
    import numpy as np
    import scipy.sparse as sp

    from sparsact.reports.network_report import NetworkSummary

    rng = np.random.default_rng(random_state)
    with showing(None) as show:
        progress = Stages(show)
        with progress.stage("certify"):
            certificate = network.certify(time_limit=time_limit, rng=rng)
        with progress.stage("activity"):
            activity = _activity(network, certificate, rng)
        with progress.stage("spectrum"):
            degrees, sensitivity = _spectrum(network, rng)
    verdict = str(certificate)
    sparse = f"{network.W.nnz:,} weights stored sparsely" if isinstance(network.W, sp.csr_array) else ""
    return NetworkSummary(
        name=name,
        n_units=network.s,
        n_inputs=network.n,
        storage=sparse or "weights stored densely",
        scale=network.scale(),
        n_dead=int(network.dead_units().sum()),
        n_constant=int(network.constant_units().sum()),
        verdict=verdict[:1].upper() + verdict[1:],
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
    from sparsact.reports.network_report import Activity

    if certificate.distribution is not None:
        counts, how = np.array(certificate.distribution), f"Every one of the 2^{network.n} points."
    else:
        counts = np.bincount(network.n_active(uniform(network.n)(SAMPLED_POINTS, rng)))
        how = f"{SAMPLED_POINTS:,} uniformly random points."
    return Activity(tuple((counts / counts.sum()).tolist()), how)


def _spectrum(network: SparselyActivatedNetwork, rng: np.random.Generator) -> tuple[DegreeWeights, Estimate]:
    """Weight by degree and average sensitivity: exact where that is quick, else estimated."""
    from sparsact.bounds.degree import has_exact_spectrum
    from sparsact.fourier import Estimate, Spectrum, estimate_average_sensitivity, estimate_weight_by_degree
    from sparsact.reports.network_report import DegreeWeights

    if not has_exact_spectrum(network):
        folded = estimate_weight_by_degree(network, n_samples=FOLDINGS, rng=rng)
        how = f"estimated: {FOLDINGS} random foldings of the inputs into {len(folded.value) - 1} groups"
        weights = DegreeWeights(tuple(folded.value.tolist()), tuple(folded.standard_error.tolist()), how)
        return weights, estimate_average_sensitivity(network, n_samples=SAMPLED_POINTS // 20, rng=rng)
    spectrum = Spectrum.of(network)
    weight = spectrum.weight_by_degree()[: spectrum.degree() + 1]
    return DegreeWeights(tuple(weight.tolist()), None, "exact"), Estimate(spectrum.total_influence(), 0.0, 1)


def print_network(summary: NetworkSummary, report: Path | None) -> None:
    """Print what is known of a network, and write its page."""
    console = terminal()
    console.print(
        f"{shown(summary.name)}: {summary.n_units:,} ReLU units on {summary.n_inputs:,} inputs, {summary.storage}"
    )
    for name, fact in summary.facts:
        console.print(f"  {name}: {fact}", soft_wrap=True)
    console.print(f"  weight by degree, {summary.degrees.how}:")
    table = grid(["degree"], ["weight", "standard error"][: 1 if summary.degrees.exact else 2])
    for degree, weight in enumerate(summary.degrees.weights):
        errors = [] if summary.degrees.errors is None else [f"{summary.degrees.errors[degree]:.2g}"]
        table.add_row(str(degree), f"{weight:.5g}", *errors)
    console.print(table)
    if report is not None:
        console.print(f"report: {shown(report)}", soft_wrap=True)
