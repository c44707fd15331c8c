"""Fourier analysis on the cube: coefficients, influence and sensitivity, noise; exact or by Monte Carlo."""

from sparsact.fourier.estimate import Estimate, estimate_within
from sparsact.fourier.folding import estimate_weight_by_degree, folding_matrix
from sparsact.fourier.halfspaces import Halfspace, Neuron
from sparsact.fourier.hoeffding import Anova, anova
from sparsact.fourier.interactions import Interactions, interactions
from sparsact.fourier.monte_carlo import (
    estimate_average_sensitivity,
    estimate_coefficient,
    estimate_influences,
    estimate_noise_sensitivity,
)
from sparsact.fourier.networks import spectrum_of_network  # noqa: F401 - its module registers types of networks
from sparsact.fourier.sensitivity import average_sensitivity, influences, sensitivity
from sparsact.fourier.spectrum import Spectrum
from sparsact.fourier.transform import walsh_hadamard

__all__ = [
    "Anova",
    "Estimate",
    "Halfspace",
    "Interactions",
    "Neuron",
    "Spectrum",
    "anova",
    "average_sensitivity",
    "estimate_average_sensitivity",
    "estimate_coefficient",
    "estimate_influences",
    "estimate_noise_sensitivity",
    "estimate_weight_by_degree",
    "estimate_within",
    "folding_matrix",
    "influences",
    "interactions",
    "sensitivity",
    "walsh_hadamard",
]
