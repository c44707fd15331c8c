"""Fourier analysis of real functions on the hypercube."""

from sparsact.fourier.transform import walsh_hadamard

__all__ = ["walsh_hadamard"]
