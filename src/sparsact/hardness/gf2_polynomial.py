r"""Functions of bits as polynomials over GF(2), and what their correlations imply for the degree.

A function of p bits is *correlation-immune* of order d when :math:`\hat f(S) = 0` for all :math:`1 \le |S| \le d`.

**Theorem** (Siegenthaler, see [S]_). Then its degree over GF(2) is at most p - d. *Proof.* The coefficient of the
monomial on M is the parity of the number of points with f = 1 whose bits outside M are 0. Let |M| > p - d. Fixing the
p - |M| < d bits outside M leaves the mean of f (as 0/1) at its mean :math:`\mu` over the cube, by immunity; so that
number is :math:`2^{|M|} \mu`. Fixing d bits leaves the mean too, so :math:`2^{p - d} \mu` is an integer, and
:math:`2^{|M|} \mu` an even one.

So for every d a function of p bits that is not constant has a nonzero Fourier coefficient of order 1 to d, or a degree
over GF(2) of at most p - d. Mossel, O'Donnell and Servedio learn juntas by it ([M]_).

References
----------
.. [S] T. Siegenthaler, "Correlation-immunity of nonlinear combining functions for cryptographic applications", 1984.
.. [M] E. Mossel, R. O'Donnell, R. Servedio, "Learning functions of k relevant variables", 2004.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.fourier import walsh_hadamard
from sparsact.fourier.coefficients import subset_sizes
from sparsact.hypercube import signs_to_bits
from sparsact.validation.arrays import checked_table


def algebraic_normal_form(values: ArrayLike) -> NDArray[np.uint8]:
    r"""Coefficients over GF(2) of a function with values +-1, as a polynomial of bits with values in bits.

    .. math:: \text{bit of } f(x) = \bigoplus_{M} c_M \bigwedge_{i \in M} \text{bit of } x_i

    Parameters
    ----------
    values : array-like of shape (2**p,)
        Signs, in table order.

    Returns
    -------
    coefficients : ndarray of shape (2**p,), uint8
        One for each monomial, by subset number. Takes ``p * 2**(p - 1)`` additions; on bits it is its own inverse.

    Examples
    --------
    A parity is linear, and the greater of two signs is a product of their bits:

    >>> algebraic_normal_form([1, -1, -1, 1]), algebraic_normal_form([1, 1, 1, -1])
    (array([0, 1, 1, 0], dtype=uint8), array([0, 0, 0, 1], dtype=uint8))
    """
    coefficients = signs_to_bits(_checked_sign_table(values))
    for i in range(len(coefficients).bit_length() - 1):
        halves = coefficients.reshape(-1, 2, 2**i)
        halves[:, 1] ^= halves[:, 0]
    return coefficients


def binary_degree(values: ArrayLike) -> int:
    """Degree over GF(2) of a function with values +-1, from 0 (a constant) to p.

    Parameters
    ----------
    values : array-like of shape (2**p,)
        Signs, in table order.

    Returns
    -------
    degree : int
        1 for a parity: ``binary_degree([1, -1, -1, 1])``.
    """
    coefficients = algebraic_normal_form(values)
    return int((subset_sizes(len(coefficients).bit_length() - 1) * coefficients).max())


def correlation_immunity(values: ArrayLike) -> int:
    r"""Largest d such that :math:`\hat f(S) = 0` for all :math:`1 \le |S| \le d`; p for a constant.

    Parameters
    ----------
    values : array-like of shape (2**p,)
        Signs, in table order.

    Returns
    -------
    order : int
        p - 1 for the parity of all p bits.
    """
    signs = _checked_sign_table(values).astype(np.int64)
    n = len(signs).bit_length() - 1
    orders = subset_sizes(n)[walsh_hadamard(signs, normalize=False) != 0]
    return int(orders[orders > 0].min(initial=n + 1)) - 1


def _checked_sign_table(values: ArrayLike) -> NDArray[np.float64]:
    table = checked_table(values)
    if (np.abs(table) != 1).any():
        raise ValueError("a table of a boolean function holds signs +1 and -1; for bits pass 1 - 2 * values.")
    return table
