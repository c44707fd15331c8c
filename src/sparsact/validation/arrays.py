"""Checks of arrays, tensors, points, subsets and tables of values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from numbers import Rational
from operator import index
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from sparsact.hypercube import WORD, Masks, Subset, masks_of, n_words

MAX_WEIGHT: Final = 1e100  # of a row


def checked_table(values: ArrayLike, what: str = "values") -> NDArray[np.float64]:
    """Return ``values`` as a float64 table of length 2**n, without a copy if it is one."""
    if callable(values):
        raise TypeError(
            f"a table of {what} holds one number for each point; got a function ({type(values).__name__}): pass its "
            "values at sparsact.hypercube.points(n), or call a function sparsact.fourier.estimate_*."
        )
    table = checked_reals(values, what)
    if table.ndim != 1 or not table.size or table.size & (table.size - 1):
        raise ValueError(f"a table of {what} must have one axis of length 2**n; got shape {table.shape}.")
    return table


def checked_reals(values: ArrayLike, what: str) -> NDArray[np.float64]:
    """Return integers, floats, bits, or objects that are such numbers, as finite float64."""
    array = _array(values, what)
    if array.dtype.kind == "c":
        raise ValueError(f"{what} must be real; got {array.dtype}: treat the real and imaginary parts in turn.")
    if array.dtype == object:
        strange = [value for value in array.flat if isinstance(value, str | bytes | complex) or value is None]
        if strange:
            raise ValueError(f"{what} must hold real numbers; got {strange[0]!r} among them.")
    elif array.dtype.kind not in "biuf":
        raise ValueError(f"{what} must hold real numbers; got {array.dtype}: convert them first.")
    array = array.astype(np.float64, copy=False)
    if not _all_finite(array):
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{what} must be finite; the value at {place} is {array[place]}.")
    return array


def checked_per_row(values: ArrayLike, n_rows: int, what: str) -> NDArray[np.float64]:
    """Return ``values`` as finite float64, shape (n_rows,); ``what`` names the function that made them."""
    array = checked_reals(values, f"values of {what}")
    if array.shape != (n_rows,):
        raise ValueError(f"{what} must give one value per row, shape ({n_rows},); got {array.shape}.")
    return array


def _array(values: object, what: str) -> NDArray[Any]:
    """Return ``values`` as a dense array; raise for what NumPy would take apart or drop."""
    if hasattr(values, "tocsr"):
        raise ValueError(f"{what} must be a dense array; got a sparse one: pass its toarray().")
    if np.ma.is_masked(values):
        raise ValueError(f"{what} has masked entries, which have no value: fill or drop them first.")
    try:
        return aligned(np.asarray(values))
    except ValueError as error:
        raise ValueError(f"{what} must be a rectangular array of numbers: {error}") from error


def aligned(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array, or a copy if its numbers are not aligned in memory, as in a field of records.

    To read such a number through a pointer is undefined in C++, and its strides may be no whole numbers of elements.
    """
    return array if array.flags.aligned else array.copy()


def checked_exact(values: ArrayLike, what: str) -> NDArray[np.float64]:
    """Return a copy of ``values`` as finite float64, C-contiguous; raise for integers that float64 rounds.

    Proofs about their roundings would not hold for them.
    """
    numbers = checked_reals(values, what).copy(order="C")
    _check_exact(values, numbers, what)
    return numbers


def _check_exact(values: ArrayLike, numbers: NDArray[np.float64], what: str) -> None:
    array = np.asarray(values)
    if array.dtype.kind not in "iuO" or not np.abs(numbers).max(initial=0.0) >= 2.0**53:
        return
    for place in zip(*np.nonzero(np.abs(numbers) >= 2.0**53), strict=True):
        if int(array[place]) != int(numbers[place]):
            raise ValueError(
                f"{what} must hold numbers that float64 represents; {array[place]} would become {int(numbers[place])}: "
                "divide the row of `W` and its threshold by a power of two that keeps them exact, or round them."
            )


def checked_weights(W: Any) -> Any:
    """Return a copy of ``W`` as float64: an array in C order, or a canonical csr_array without explicit zeros."""
    if not hasattr(W, "tocsr"):
        return checked_exact(W, "`W`")
    if np.dtype(W.dtype).kind not in "biuf":
        raise ValueError(f"`W` must hold real numbers; got a sparse matrix of {W.dtype}.")
    weights: Any = sp.csr_array(W, dtype=np.float64, copy=True)
    checked_reals(weights.data, "weights of `W`")
    _check_exact(sp.csr_array(W).data, weights.data, "`W`")
    weights.sum_duplicates()
    weights.eliminate_zeros()
    checked_reals(weights.data, "weights of `W`")
    return weights


def check_overflow(W: Any, b: NDArray[np.float64]) -> None:
    """Raise if the pre-activation of a unit could overflow on the cube."""
    with np.errstate(over="ignore"):
        largest = np.asarray(abs(W).sum(axis=1)) + np.abs(b)
    if not np.isfinite(largest).all():
        j = int(np.argmin(np.isfinite(largest)))
        raise ValueError(
            f"pre-activations of unit {j} overflow: divide row {j} of `W` and b[{j}], and multiply u[{j}]."
        )


def check_row_weights(weights: NDArray[np.float64]) -> None:
    """Raise for positive weights of rows whose inverses, or products with squares, could overflow."""
    strange = (weights != 0) & ~((weights >= 1 / MAX_WEIGHT) & (weights <= MAX_WEIGHT))
    if strange.any():
        row = int(np.argmax(strange))
        raise ValueError(
            f"the weight of row {row} is {weights[row]:g}; weights must be 0 or lie between {1 / MAX_WEIGHT:g} and "
            f"{MAX_WEIGHT:g}: scale them all, or set it to 0."
        )


def checked_rationals(values: object, what: str) -> tuple[Fraction, ...]:
    """Return one axis of integers, Fractions or finite floats as exact fractions."""
    array = np.asarray(values, dtype=object)
    if array.ndim != 1:
        raise ValueError(f"{what} must have one axis of numbers; got shape {array.shape}.")
    return tuple(_rational(value, what) for value in array.tolist())


def _rational(value: object, what: str) -> Fraction:
    number = value.item() if isinstance(value, np.generic) else value
    if not isinstance(number, Rational | float) or number in (np.inf, -np.inf) or number != number:
        raise ValueError(f"{what} must hold rational numbers (integers, Fractions, finite floats); got {value!r}.")
    return Fraction(number)


def _all_finite(array: NDArray[Any]) -> bool:
    """Whether every number is finite; a finite sum proves it without an array of bools."""
    if array.dtype.kind in "iu":
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(array.sum())) or bool(np.isfinite(array).all())


def checked_columns(X: ArrayLike, n: int) -> NDArray[np.float64]:
    """Return ``X`` as a finite (m, n) float64 array; raise for bool, which would become numbers 0 and 1."""
    return checked_points(X, n).astype(np.float64, copy=False)


def check_norms(rows: NDArray[np.float64], R: float) -> None:
    """Raise if the norm of a row exceeds ``R`` by more than rounding."""
    largest = np.abs(rows).max(initial=0.0)  # its square may leave the range of floats
    norms = np.linalg.norm(rows / largest, axis=1) * largest if largest > 0 else np.zeros(len(rows))
    if len(rows) and norms.max() > R * (1 + 1e-9):
        at = int(norms.argmax())
        raise ValueError(f"no row may be longer than `R` = {R:g}; X[{at}] has norm {norms[at]:.6g}: pass a larger R.")


def checked_points(X: ArrayLike, n: int) -> NDArray[Any]:
    """Check as :func:`checked_columns`, but keep int8 and float32, which some kernels read without a copy."""
    rows = _rows_of_points(X, n)
    if rows.dtype in (np.int8, np.float32) and _all_finite(rows):
        return rows
    return checked_reals(rows, "`X`")


def _rows_of_points(X: ArrayLike, n: int) -> NDArray[Any]:
    rows = _array(X, "`X`")
    if rows.ndim != 2 or rows.shape[1] != n:
        remedy = ": pass X[None]" if rows.shape == (n,) else ""
        raise ValueError(f"`X` must have one row a point and {n} columns; got shape {rows.shape}{remedy}.")
    if rows.dtype == bool:
        raise ValueError("`X` holds bits; points are signs: pass sparsact.hypercube.bits_to_signs(X).")
    return rows


def checked_floats(values: ArrayLike, what: str) -> NDArray[Any]:
    """Return ``values`` as finite floats: float16 and float32 unchanged, others as float64; raise for bool."""
    array = _array(values, what)
    if array.dtype == bool:
        raise ValueError(f"{what} hold bits; pass numbers, such as sparsact.hypercube.bits_to_signs(bits).")
    if array.dtype in (np.float16, np.float32) and _all_finite(array):
        return array
    return checked_reals(array, what)


def checked_signs(X: ArrayLike, n: int) -> NDArray[Any]:
    """Return ``X`` as an (m, n) array of signs, in its own dtype."""
    points = _rows_of_points(X, n)
    if points.dtype.kind not in "iufO":  # a complex number of size 1 is no sign
        points = checked_reals(points, "`X`")
    strange = (points != 1) & (points != -1)
    if strange.any():
        row, column = np.argwhere(strange)[0]
        raise ValueError(
            f"`X` must hold signs +1 and -1; row {row}, column {column} holds {points[row, column]}. "
            "For bits 0/1 pass sparsact.hypercube.bits_to_signs(X)."
        )
    return points


def checked_sign_examples(X: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Return points (rows, n) and labels (rows,), both checked to be signs."""
    points, labels = np.asarray(X), np.asarray(y)
    if points.ndim != 2 or labels.shape != points.shape[:1]:
        raise ValueError(f"`X` (rows, n) and `y` (rows,) must agree; got shapes {points.shape} and {labels.shape}.")
    signs = checked_signs(points, points.shape[1])
    if labels.dtype.kind not in "biuf":
        labels = checked_reals(labels, "`y`")
    if labels.dtype == bool or (np.abs(labels) != 1).any():
        raise ValueError("`y` must hold labels +1 and -1, as a boolean function does; for bits pass 1 - 2 * y.")
    return signs.astype(np.int8), labels.astype(np.int8)


def checked_subset(subset: Iterable[int]) -> Subset:
    """Return ``subset`` as a sorted tuple of integers."""
    if not isinstance(subset, Iterable):
        raise TypeError(f"a subset is a tuple of coordinates; got {subset!r}: for one coordinate write (i,).")
    subset = tuple(subset)
    strange = [i for i in subset if isinstance(i, bool | np.bool_) or not hasattr(i, "__index__")]
    if strange:
        raise TypeError(f"a subset holds coordinates, which are integers; got {strange[0]!r} among {subset!r}.")
    return tuple(sorted(index(i) for i in subset))


def places_of(wanted: Sequence[Subset], fitted: Sequence[Subset]) -> NDArray[np.intp]:
    """Return the places of some subsets among the fitted ones; raise if one is missing."""
    place = {subset: i for i, subset in enumerate(fitted)}
    missing = [subset for subset in wanted if subset not in place]
    if missing:
        raise ValueError(f"subset {missing[0]} is not among the fitted monomials; see subsets_.")
    return np.array([place[subset] for subset in wanted], dtype=np.intp)


def checked_masks(subsets: Iterable[Iterable[int]] | NDArray[Any], n: int) -> Masks:
    """Return the masks of subsets, given as masks (uint64, two axes) or as tuples of coordinates."""
    if not (isinstance(subsets, np.ndarray) and subsets.dtype == np.uint64):
        return masks_of([checked_subset(subset) for subset in subsets], n)
    if subsets.ndim != 2 or subsets.shape[1] != n_words(n):
        raise ValueError(f"masks of {n} coordinates have shape (N, {n_words(n)}); got {subsets.shape}.")
    used = n - WORD * (n_words(n) - 1)  # bits of the last word
    if used < WORD and (subsets[:, -1] >> np.uint64(used)).any():
        raise ValueError(f"a mask names a coordinate outside range({n}); raise `n` or clear the bits above.")
    return subsets


def checked_restriction(signs: dict[int, int], n: int) -> dict[int, int]:
    """Return the fixed coordinates, in ``range(n)``, with the sign of each."""
    for i, sign in signs.items():
        if not 0 <= index(i) < n:
            raise ValueError(f"cannot fix coordinate {i}; there are {n}, numbered from 0.")
        if sign not in (-1, 1):
            raise ValueError(f"coordinate {i} must be fixed to +1 or -1; got {sign}.")
    return {index(i): int(sign) for i, sign in signs.items()}


Shape = tuple[int | None, ...]  # None: any length


def has_shape(array: Any, shape: Shape) -> bool:
    """Whether the array has these axes."""
    return len(array.shape) == len(shape) and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))


def is_tensor(thing: object) -> bool:
    """Whether it is a torch tensor, found without importing torch."""
    return any(kind.__module__ == "torch" and kind.__name__ == "Tensor" for kind in type(thing).__mro__)


def checked_tensor(x: Any, what: str) -> Any:
    """Return a dense tensor of finite floats unchanged, and integers as float64."""
    import torch

    if x.layout != torch.strided:
        raise ValueError(f"{what} must be a dense tensor; got layout {x.layout}: pass its to_dense().")
    if x.dtype == torch.bool:
        raise ValueError(f"{what} hold bits; pass numbers, such as 1 - 2 * bits.long().")
    if x.is_complex() or x.is_quantized:
        raise ValueError(f"{what} must hold real numbers; got {x.dtype}: convert them first.")
    if not x.is_floating_point():
        x = x.to(torch.float64)
    check_finite_tensor(x, what)
    return x


def check_finite_tensor(x: Any, what: str, remedy: str = "") -> None:
    """Raise if a tensor holds NaN or an infinity, and say where."""
    finite = x.isfinite()
    if not bool(finite.all()):
        place = tuple((~finite).nonzero()[0].tolist())
        raise ValueError(f"{what} must be finite; the value at {place} is {float(x[place])}{remedy}.")


def checked_router_inputs(x: Any) -> Any:
    """Return ``x`` (m, d), an array or a tensor, as finite floats; half precision and float32 stay."""
    rows = checked_tensor(x, "router inputs") if is_tensor(x) else checked_floats(x, "router inputs")
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(
            f"router inputs must have one row an input, (m, d); got shape {tuple(rows.shape)}: reshape to (-1, d)."
        )
    return rows


def checked_layer_inputs(x: Any, in_features: int, dtype: Any, name: str = "x") -> Any:
    """Return ``x`` (..., in_features) as rows (m, in_features); only autocast takes a dtype other than the layer's."""
    import torch

    if not isinstance(x, torch.Tensor):
        raise TypeError(f"`{name}` must be a torch tensor; got {type(x).__name__}: pass torch.as_tensor({name}).")
    if not x.dtype.is_floating_point:
        raise TypeError(f"`{name}` must hold real numbers; got {x.dtype}: pass {name}.to({dtype}).")
    if x.ndim == 0 or x.shape[-1] != in_features:
        raise ValueError(
            f"`{name}` must have {in_features} features in its last dimension; got shape {tuple(x.shape)}."
        )
    if x.dtype != dtype and not torch.is_autocast_enabled(x.device.type):
        raise TypeError(
            f"`{name}` is {x.dtype} and the layer {dtype}: pass {name}.to({dtype}), or layer.to({x.dtype})."
        )
    return x.to(dtype).reshape(-1, in_features)


def is_pandas(X: Any) -> bool:
    """Whether it is a data frame or a column of pandas."""
    return hasattr(X, "to_numpy") and hasattr(X, "index") and hasattr(X, "iloc")
