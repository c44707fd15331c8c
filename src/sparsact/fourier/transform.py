"""The Walsh-Hadamard transform of tables of values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import ArrayLike, NDArray

from sparsact import kernels
from sparsact.kernels.dispatch import threads


def walsh_hadamard(
    values: ArrayLike, axis: int = -1, *, normalize: bool = True, overwrite: bool = False, n_threads: int | None = None
) -> NDArray[Any]:
    r"""Fourier coefficients of functions on the hypercube, from their tables of values.

    .. math:: \hat f(S) = 2^{-n} \sum_x f(x)\,\chi_S(x), \qquad \chi_S(x) = \prod_{i \in S} x_i.

    Parameters
    ----------
    values : array-like of shape (..., 2**n, ...)
        Real value at every point, in table order (see :mod:`sparsact.hypercube`); any number of tables at once.
    axis : int, default=-1
        The axis of length ``2**n``.
    normalize : bool, default=True
        Whether to divide by ``2**n``. ``walsh_hadamard(coefficients, normalize=False)`` is the inverse transform.
    overwrite : bool, default=False
        Whether the memory of ``values`` may be used. It then holds the result, and no copy is made, if ``values`` is a
        C-contiguous array of the result's dtype and ``axis`` its last; otherwise it is left unchanged.
    n_threads : int or None, default=None
        Threads; None leaves it to OpenMP and ``threadpoolctl``, -1 is every core. The bits of the result are the same.

    Returns
    -------
    coefficients : ndarray of the shape of ``values``
        Coefficient of every subset, in table order. float32 stays float32; other numbers become float64, unless they
        are integers and ``normalize`` is False: then int32 stays int32, other integers and booleans become int64,
        and the result is exact.

    Raises
    ------
    OverflowError
        If integer coefficients might not fit: ``2**n * max(abs(values))`` exceeds the integer dtype of the result.

    Notes
    -----
    ``n * 2**n`` additions per table, from the lowest coordinate up, which fixes the rounding: every processor gives the
    same bits. The division by a power of two comes first, so that no partial sum overflows; it is exact short of
    subnormal numbers. NaN and infinity spread through their table by the rules of IEEE 754.

    Examples
    --------
    The parity of two bits is a single character:

    >>> walsh_hadamard([1, -1, -1, 1])
    array([0., 0., 0., 1.])

    A count of points is exact, and so is the way back:

    >>> walsh_hadamard([3, 0, 1, 0], normalize=False)
    array([4, 4, 2, 2])
    >>> walsh_hadamard([1.0, 1.0, 0.5, 0.5], normalize=False)
    array([3., 0., 1., 0.])
    """
    values, dtype = _checked(values, normalize)
    axis = normalize_axis_index(axis, values.ndim)
    length = values.shape[axis]
    _check_length(values, length, dtype)
    given = np.moveaxis(values, axis, -1)
    scale = dtype.type(1 / length if normalize else 1)
    flags = given.flags
    in_place = given.dtype == dtype and flags.c_contiguous and flags.aligned and flags.writeable
    table = given if overwrite and in_place else np.empty(given.shape, dtype)
    if normalize:
        np.multiply(given, scale, out=table, dtype=dtype, casting="unsafe")
    elif table is not given:
        np.copyto(table, given, casting="unsafe")
    kernels.walsh_hadamard(table.reshape(-1, length), n_threads=threads(n_threads))
    return np.moveaxis(table, -1, axis)


def _checked(given: ArrayLike, normalize: bool) -> tuple[NDArray[Any], np.dtype[Any]]:
    """Values, refused unless they are real numbers, and the dtype of their coefficients."""
    values = np.asarray(given)
    if values.dtype.kind == "c":
        raise TypeError(
            f"`values` must be real; got {values.dtype}: transform `values.real` and `values.imag` apart, "
            "the transform is linear."
        )
    if values.dtype.kind not in "biuf":
        raise TypeError(f"`values` must be numbers; got dtype {values.dtype}: convert them, as by `astype(float)`.")
    if values.size == 0 or values.ndim == 0:
        raise ValueError(f"`values` must hold a table of 2**n values; got shape {values.shape}: pass at least one.")
    if values.dtype.kind != "f" and not normalize:
        return values, np.dtype(np.int32 if values.dtype == np.int32 else np.int64)
    return values, np.dtype(np.float32 if values.dtype == np.float32 else np.float64)


def _check_length(values: NDArray[Any], length: int, dtype: np.dtype[Any]) -> None:
    if length & (length - 1):
        raise ValueError(
            f"`values` must hold 2**n values along the axis; got {length}: pass the axis of the points, and a value "
            f"for every point (pad with zeros to {1 << length.bit_length()} if the others have none)."
        )
    if dtype.kind == "i" and length * (largest := max(int(values.max()), -int(values.min()))) > np.iinfo(dtype).max:
        wider = "`values.astype(np.int64)`, or " if dtype == np.int32 else ""
        raise OverflowError(
            f"coefficients must fit {dtype}; {length} values up to {largest} in size may sum to {length * largest}: "
            f"pass {wider}`values.astype(float)` for rounded coefficients."
        )
