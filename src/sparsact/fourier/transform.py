"""The Walsh-Hadamard transform of tables of values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import ArrayLike, NDArray

from sparsact import kernels
from sparsact.kernels.dispatch import threads
from sparsact.validation.former_names import renamed


@renamed(n_jobs="n_threads")
def walsh_hadamard(
    values: ArrayLike,
    axis: int = -1,
    *,
    normalize: bool = True,
    overwrite: bool = False,
    n_threads: int | None = None,
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
        Threads; None leaves it to OpenMP and ``threadpoolctl``, -1 is every core. The result is the same to the bit.

    Returns
    -------
    coefficients : ndarray of the shape of ``values``
        Coefficient of every subset, in table order. float32 stays float32; other numbers become float64, unless they
        are integers and ``normalize`` is False: then int32 stays int32, other integers and booleans become int64,
        and the result is exact.

    Raises
    ------
    TypeError
        If the values are complex or no numbers.
    ValueError
        If the axis has another length than a power of two, or there are no values.
    OverflowError
        If integer coefficients might not fit: ``2**n * max(abs(values))`` exceeds the integer dtype of the result.

    Notes
    -----
    ``n * 2**n`` additions a table. Coordinates are taken from the lowest up, which fixes the rounding: every processor
    gives the same bits. The division comes first, so that no partial sum overflows; being by a power of two, it
    is exact short of subnormal numbers. NaN and infinity spread through their table by the rules of IEEE 754.

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
    values = np.asarray(values)
    _check(values)
    axis = normalize_axis_index(axis, values.ndim)
    length = _power_of_two(values.shape[axis])
    dtype = _dtype_of_result(values.dtype, normalize)
    if dtype.kind == "i":
        _check_range(values, length, dtype)
    given = np.moveaxis(values, axis, -1)
    scale = dtype.type(1 / length if normalize else 1)
    table = given if overwrite and _in_place(given, dtype) else np.empty(given.shape, dtype)
    if normalize:
        np.multiply(given, scale, out=table, dtype=dtype, casting="unsafe")
    elif table is not given:
        np.copyto(table, given, casting="unsafe")
    kernels.walsh_hadamard(table.reshape(-1, length), n_threads=threads(n_threads))
    return np.moveaxis(table, -1, axis)


def _check(values: NDArray[Any]) -> None:
    if values.dtype.kind == "c":
        raise TypeError(
            f"`values` must be real; got {values.dtype}: transform `values.real` and `values.imag` apart, "
            "the transform is linear."
        )
    if values.dtype.kind not in "biuf":
        raise TypeError(f"`values` must be numbers; got dtype {values.dtype}: convert them, as by `astype(float)`.")
    if values.size == 0 or values.ndim == 0:
        raise ValueError(f"`values` must hold a table of 2**n values; got shape {values.shape}: pass at least one.")


def _power_of_two(length: int) -> int:
    if length & (length - 1):
        raise ValueError(
            f"`values` must hold 2**n values along the axis; got {length}: pass the axis of the points, and a value "
            f"for every point (pad with zeros to {1 << length.bit_length()} if the others have none)."
        )
    return length


def _dtype_of_result(dtype: np.dtype[Any], normalize: bool) -> np.dtype[Any]:
    if dtype.kind != "f" and not normalize:
        return np.dtype(np.int32 if dtype == np.int32 else np.int64)
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


def _check_range(values: NDArray[Any], length: int, dtype: np.dtype[Any]) -> None:
    largest = max(int(values.max()), -int(values.min()))
    if length * largest > np.iinfo(dtype).max:
        wider = "`values.astype(np.int64)`, or " if dtype == np.int32 else ""
        raise OverflowError(
            f"coefficients must fit {dtype}; {length} values up to {largest} in size may sum to {length * largest}: "
            f"pass {wider}`values.astype(float)` for rounded coefficients."
        )


def _in_place(given: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    return given.dtype == dtype and given.flags.c_contiguous and given.flags.aligned and given.flags.writeable
