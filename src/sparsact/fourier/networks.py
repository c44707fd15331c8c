r"""The exact spectrum of a sparsely activated network.

On few coordinates it is one transform of a table of values. On many it is still a short list if every unit reads few
inputs: a unit that reads t of them has at most :math:`2^t` coefficients, and the network's are their sum.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsact.fourier.coefficients import SparseCoefficients
from sparsact.fourier.spectrum import LARGEST_TABLE, Spectrum, spectrum_of
from sparsact.fourier.transform import walsh_hadamard
from sparsact.hypercube import Masks, masks_of, n_words, points
from sparsact.network import SparselyActivatedNetwork
from sparsact.stack import Stack

PREACTIVATIONS_AT_ONCE: Final = 2**17  # they stay in the cache
LOW_COORDINATES: Final = 12  # at most
LARGEST_STACK: Final = 24  # inputs
LARGEST_LIST: Final = 2**26  # words of masks; half a gigabyte, and a few times that while they are put in order
ORDERING: Final = 512  # listing a coefficient costs as much as this many pre-activations in a table


@spectrum_of.register
def spectrum_of_network(net: SparselyActivatedNetwork, *, ordering: int = ORDERING) -> Spectrum:
    r"""Spectrum of a network, every coefficient; what ``Spectrum.of(net)`` calls.

    Parameters
    ----------
    net : SparselyActivatedNetwork
        On up to 26 inputs any; on more, one whose units read few inputs each, else a ValueError.
    ordering : int
        Cost of a coefficient in a list, in pre-activations of a table.

    Notes
    -----
    Exact up to the rounding of sums: with weights that are integers or halves the pre-activations are exact. A table
    costs ``s * 2**n`` operations and one transform. A list takes, for each set of inputs that some units read, a table
    and a transform of size ``2**t``, and puts all their coefficients in order; it is taken when that is cheaper.

    Examples
    --------
    >>> net = SparselyActivatedNetwork([1.0, -1.0], [[1, 1], [-1, -1]], [0.0, 0.0])
    >>> spectrum_of_network(net)
    <Spectrum on 2 coordinates, degree 1: 1 x0 + 1 x1>
    """
    rows = sp.csr_array(net.W)
    most = int(np.diff(rows.indptr).max(initial=0))
    if most <= LARGEST_TABLE:
        units = units_by_inputs(rows)
        listed = sum(2 ** len(inputs) for inputs in units)
        cheaper = net.n > LARGEST_TABLE or ordering * listed < net.s * 2**net.n
        if cheaper and listed * n_words(net.n) <= LARGEST_LIST:
            return _sum_of_small_spectra(net.u, rows, net.b, units)
    if net.n <= LARGEST_TABLE:
        return Spectrum.of(values_on_the_cube(net.u, rows.toarray(), net.b))
    raise ValueError(
        f"the exact spectrum needs at most {LARGEST_TABLE} inputs, or units that read few of them; got {net.n} inputs "
        f"and a unit that reads {most}: sample instead, by the functions sparsact.fourier.estimate_*."
    )


@spectrum_of.register
def spectrum_of_stack(stack: Stack) -> Spectrum:
    """Spectrum of a :class:`~sparsact.Stack` on up to 24 inputs, from all its values; what ``Spectrum.of`` calls."""
    if stack.n > LARGEST_STACK:
        raise ValueError(
            f"the exact spectrum of a stack needs at most {LARGEST_STACK} inputs; got {stack.n}. Sample instead: "
            "sparsact.fourier.estimate_average_sensitivity and estimate_noise_sensitivity take the stack."
        )
    low = min(stack.n, LOW_COORDINATES)
    X = np.empty((2**low, stack.n), dtype=np.int8)
    X[:, :low] = points(low)
    values = np.empty((2 ** (stack.n - low), 2**low))
    for row, signs in zip(values, points(stack.n - low), strict=True):
        X[:, low:] = signs
        row[:] = stack(X)
    return Spectrum.of(values.ravel())


def units_by_inputs(rows: sp.csr_array) -> dict[tuple[int, ...], list[int]]:
    """Units grouped by the inputs that they read, with weights other than 0."""
    units: dict[tuple[int, ...], list[int]] = {}
    for j in range(rows.shape[0]):
        inputs = rows.indices[rows.indptr[j] : rows.indptr[j + 1]]
        units.setdefault(tuple(inputs.tolist()), []).append(j)
    return units


def values_on_the_cube(
    u: NDArray[np.float64], W: NDArray[np.float64], b: NDArray[np.float64], at_once: int = PREACTIVATIONS_AT_ONCE
) -> NDArray[np.float64]:
    """Values at all points (2**n,) in table order, of a network with dense weights."""
    # The low coordinates share one table of sums, to which each choice of the high ones adds a number per unit.
    s, n = W.shape
    low = min(n, LOW_COORDINATES, (at_once // max(1, s)).bit_length())
    sums = W[:, :low] @ points(low).T
    values = np.empty((2 ** (n - low), 2**low))
    excess = np.empty_like(sums)
    for row, signs in zip(values, points(n - low), strict=True):
        np.add(sums, (W[:, low:] @ signs - b)[:, None], out=excess)
        np.matmul(u, np.maximum(excess, 0, out=excess), out=row)
    return values.ravel()


def _sum_of_small_spectra(
    u: NDArray[np.float64], rows: sp.csr_array, b: NDArray[np.float64], units: dict[tuple[int, ...], list[int]]
) -> Spectrum:
    n = rows.shape[1]
    masks, coefficients = [masks_of([()], n)], [np.zeros(1)]
    for inputs, members in units.items():
        places = rows.indptr[members][:, None] + np.arange(len(inputs))
        table = values_on_the_cube(u[members], rows.data[places], b[members])
        masks.append(subsets_within(inputs, n))
        coefficients.append(walsh_hadamard(table, overwrite=True))
    total = SparseCoefficients.summed(n, np.concatenate(masks), np.concatenate(coefficients))
    return Spectrum(total.above(0.0))


def subsets_within(inputs: tuple[int, ...], n: int) -> Masks:
    """Masks of all subsets of ``inputs``, in table order of these coordinates alone."""
    masks = masks_of([()], n)
    for mask in masks_of([(i,) for i in inputs], n):
        masks = np.concatenate([masks, masks | mask])
    return masks
