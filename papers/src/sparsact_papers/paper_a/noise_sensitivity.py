"""Noise sensitivity against 1 - rho, beside Lemma 10 and the sharper 2 (1 - rho) k^2 W^2 (Section 3, Appendix B)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.bounds import noise_sensitivity_bound, noise_sensitivity_bound_paper, tail_from_noise
from sparsact.fourier.spectrum import Spectrum
from sparsact.network import SparselyActivatedNetwork
from sparsact_papers.charts import Chart, Frame, curve_plot, curves, joined
from sparsact_papers.claims import Claim, Outcome, Verdict, bounded, every, needed, within
from sparsact_papers.common.networks import SEARCHED, judge_bound, network_of, spectrum_of, tasks, worst_network
from sparsact_papers.experiment import Experiment, Rows, Scale
from sparsact_papers.intervals import range_of, slope_of

NOISES: Final = tuple(2.0**-j for j in range(12))  # 1 - rho
SMALL_NOISE: Final = 2.0**-7  # below it the slope is that of the limit
INPUTS: Final = {Scale.SMOKE: (6,), Scale.QUICK: (10,), Scale.FULL: (12, 14, 16)}
UNITS: Final = {Scale.SMOKE: 8, Scale.QUICK: 32, Scale.FULL: 64}
SEEDS: Final = {Scale.SMOKE: 2, Scale.QUICK: 3, Scale.FULL: 5}
SEARCHED_INPUTS: Final = {Scale.SMOKE: 5, Scale.QUICK: 8, Scale.FULL: 10}
ROUNDING: Final = 1e-9


def parameters(scale: Scale) -> Iterator[dict[str, int | str]]:
    """Sparse networks of every k, the copies that attain the average sensitivity, and the searched ones."""
    return tasks(scale, INPUTS[scale], UNITS[scale], SEEDS[scale], SEARCHED_INPUTS[scale])


def measure(*, model: str, n: int, s: int, k: int, seed: int) -> Mapping[str, Any]:
    """Exact noise sensitivity at every noise, by Claim 2.1 and by definition, and the bounds."""
    rhos = [1 - noise for noise in NOISES]

    def shares(network: SparselyActivatedNetwork, spectrum: Spectrum) -> list[float]:
        bounds = [noise_sensitivity_bound_paper(n, s, k, *network.scale(), rho) for rho in rhos]
        return [spectrum.noise_sensitivity(rho) / bound for rho, bound in zip(rhos, bounds, strict=True)]

    if model == SEARCHED:
        network = worst_network(n, s, k, seed, lambda network: max(shares(network, spectrum_of(network))))
    else:
        network = network_of(model, n, s, k, seed)
    W, B = network.scale()
    spectrum = spectrum_of(network)
    sensitivities = [spectrum.noise_sensitivity(rho) for rho in rhos]
    squares = [mean_square_change(spectrum.values(), rho) for rho in rhos]
    return {
        "noise": NOISES,
        "sensitivity": sensitivities,
        "mean_square_change": squares,
        "lemma_10": [noise_sensitivity_bound_paper(n, s, k, W, B, rho) for rho in rhos],
        "sharper": [noise_sensitivity_bound(k, W, rho) for rho in rhos],
        "tail_over_claim": max(
            spectrum.tail(d) / tail_from_noise(sensitivity, rho, d)
            for rho, sensitivity in zip(rhos, sensitivities, strict=True)
            for d in range(1, n + 1)  # at d = 0 the printed bound divides by 0
        ),
        "variance": spectrum.variance(),
    }


def mean_square_change(values: NDArray[np.float64], rho: float) -> float:
    """E (f(x) - f(y))^2 for a table of values, where y is x with coordinates flipped with probability (1 - rho) / 2.

    From the definition, a coordinate at a time: no Fourier coefficient is computed.
    """
    flip = (1 - rho) / 2
    smooth = values
    for i in range(values.size.bit_length() - 1):
        pairs = smooth.reshape(-1, 2, 2**i)
        smooth = ((1 - flip) * pairs + flip * pairs[:, ::-1]).ravel()
    return float(2 * np.mean(values * (values - smooth)))  # f(x) and f(y) have the same mean square


def _largest_share(rows: Rows, bound: str) -> list[float]:
    return [
        max(value / most for value, most in zip(row["sensitivity"], row[bound], strict=True))
        for row in needed(rows, "noise sensitivities")
    ]


def _judge_power(rows: Rows) -> Verdict:
    found = needed(rows.where(model="sparse"), "sparse networks", 2)
    curves = []
    for row in found:
        small = np.asarray(row["noise"]) <= SMALL_NOISE
        curves.append((np.asarray(row["noise"])[small].tolist(), np.asarray(row["sensitivity"])[small].tolist()))
    return within(slope_of(curves), least=0.9, most=1.1, what="power of 1 − ρ")


def _judge_definition(rows: Rows) -> Verdict:
    found = needed(rows, "noise sensitivities")
    ratios = np.concatenate([np.divide(row["mean_square_change"], row["sensitivity"]) for row in found])
    near = {"least": 1 - 1e-6, "most": 1 + 1e-6}
    quarter = within(range_of(ratios / 4), **near, what="with the 1/4: definition / Claim 2.1")
    whole = within(range_of(ratios), **near, what="without it")
    told = f"{quarter.measured}; {whole.measured}"
    if quarter.outcome is Outcome.HOLDS and whole.outcome is Outcome.DOES_NOT_HOLD:
        return Verdict(Outcome.HOLDS_ONLY_IF, told, "NS is defined with its factor 1/4, as in Section 2.1")
    return Verdict(every(quarter, whole).outcome, told)


LEMMA, OURS = "Lemma 10, k = 1, constant 1", "2(1−ρ)k²W², k = 1"
NOISE: Final = "1 - rho"
COLUMNS: Final = ("sensitivity", "lemma_10", "sharper")


def _frame(rows: Rows) -> Frame:
    largest = rows.where(n=max(rows.distinct("n")))
    shown = Rows([*largest.where(model="sparse"), *largest.where(model="copies", k=1)])
    points = shown.unfolded(**{NOISE: "noise"}, **{f"at_{name}": name for name in COLUMNS})
    one = Rows(row for row in points if row["k"] == 1 and row["model"] == "sparse")
    parts = [
        curves(
            points,
            lambda row: f"{row['k']}-sparse, random" if row["model"] == "sparse" else "2x₁, 1-sparse",
            NOISE,
            "at_sensitivity",
            "NS",
        ),
        curves(one, OURS, NOISE, "at_sharper", "NS"),
        curves(one, LEMMA, NOISE, "at_lemma_10", "NS"),
    ]
    return joined(*parts)


EXPERIMENT: Final = Experiment(
    name="noise-sensitivity",
    paper="A",
    place="Section 3, Lemma 10 and Claim 2.1; Appendix B",
    title="Noise sensitivity against the noise",
    summary="Exact noise sensitivity of random k-sparse networks and of k copies of 2 x1, all of W = 1, and of the "
    "network that a hill climb finds for the largest share of Lemma 10's bound, at 1 - rho = 1, 1/2, 1/4, ...; once "
    "from the spectrum by Claim 2.1 and once by the definition, without Fourier coefficients. The definition has the "
    "factor 1/4 of Section 2.1, which Appendix B leaves out. Lemma 10's constant is 1.",
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="lemma-10",
            place="Lemma 10",
            statement="NS is O(sqrt(1 - rho) (k^4 W^2 log^2(ns / (1 - rho)) + k^3 B^2 sqrt(log s))).",
            printed="an order without its constant",
            rule="with the constant 1 no network exceeds the bound at any noise; consistent if none attains it",
            refuted_if="some network, random or found by search, has more noise sensitivity than the bound allows",
            judge=lambda rows: judge_bound(rows, _largest_share(rows, "lemma_10"), "NS / Lemma 10"),
        ),
        Claim(
            name="sharper",
            statement="NS is at most 2 (1 - rho) k^2 W^2.",
            rule=f"holds if the bound is passed on no row at any noise (by more than {ROUNDING} of it, for rounding)",
            refuted_if="some row exceeds the bound by more than rounding at some noise",
            judge=lambda rows: bounded(range_of(_largest_share(rows, "sharper")), "NS / 2(1−ρ)k²W²"),
        ),
        Claim(
            name="linear",
            statement="Noise sensitivity is linear in 1 - rho where that is small, not a square root as in Lemma 10.",
            rule="holds if the 95 % interval of the power of 1 - rho, fitted for each network where 1 - rho <= 1/128, "
            "lies within [0.9, 1.1]",
            refuted_if="the fitted power of 1 - rho is significantly outside the limits, as a square root would be",
            judge=_judge_power,
        ),
        Claim(
            name="quarter",
            place="Claim 2.1 and Appendix B",
            statement="NS is the sum over T of (1 - rho^|T|) / 2 times the squared coefficient.",
            printed="the definition with a factor 1/4 in Section 2.1, without it in Appendix B",
            rule="holds with a definition if its ratio to the sum lies within 1e-6 of 1 on every row, at every noise",
            refuted_if="neither definition equals the sum on every row",
            judge=_judge_definition,
        ),
        Claim(
            name="tail",
            place="Claim 2.1",
            statement="The weight above degree d is at most 2 NS / (1 - rho^d).",
            rule="holds if the tail never passes even 2 NS / (1 - rho^(d + 1)), on any row, at any noise and degree",
            refuted_if="the tail of some row exceeds the bound at some noise and degree",
            judge=lambda rows: within(
                range_of(needed(rows, "tails").array("tail_over_claim")),
                most=1 + ROUNDING,
                what="tail / bound of Claim 2.1",
            ),
        ),
    ),
    charts=(
        Chart(
            "against-noise",
            "Noise sensitivity against the noise",
            "Points: median over seeds at the largest n; bars: its interval. The curve of 2x₁ lies on our bound.",
            _frame,
            curve_plot("noise 1 − ρ", "noise sensitivity, W = 1", log=(10, 10), lines=(OURS, LEMMA)),
        ),
    ),
    order=120,
)
