"""From the arrays that users pass to packed points of the cube: the public door of every learner over the cube."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact import kernels
from sparsact.hypercube import Masks, subsets_of
from sparsact.validation.arrays import aligned
from sparsact.validation.estimators import checked_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array  # loads slowly, and tables of data need none

    Rows: TypeAlias = NDArray[Any] | csr_array  # (m, n)

Encoding = Literal["signs", "bits"]
_SYMBOLS: Final[dict[str, tuple[int, int]]] = {"signs": (1, -1), "bits": (0, 1)}
_SPELLED: Final[dict[str, str]] = {"signs": "signs +1/-1", "bits": "bits 0/1"}
_VALUES_AT_ONCE: Final = 1 << 22  # of a sparse matrix, made dense by blocks of rows
_KERNEL_DTYPES: Final = {np.dtype(kind) for kind in ("f8", "f4", "i8", "i4", "i1", "u1", "?")}


@dataclass(frozen=True)
class Points:
    """Points of the cube, bit-packed by column.

    Attributes
    ----------
    columns : ndarray of shape (n, ceil(n_rows / 64)), uint64
        Bit ``r % 64`` of word ``r // 64`` of column ``i`` is coordinate ``i`` of row ``r``; padding bits are 0.
    n_rows : int
        Number of points.
    """

    columns: NDArray[np.uint64]
    n_rows: int

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return len(self.columns)

    def codes(self) -> NDArray[np.uint64]:
        """Each point as packed words, shape (n_rows, ceil(n / 64)); for n <= 64, its number in table order."""
        return kernels.transpose_bits(self.columns, self.n_rows)

    def __getitem__(self, rows: slice | NDArray[np.intp] | NDArray[np.bool_]) -> Points:
        """Some of the rows; a slice begins at a multiple of 64 and ends at one, unless it ends with the last row."""
        if not isinstance(rows, slice):
            return Points.from_codes(np.ascontiguousarray(self.codes()[rows]), self.n)
        start, stop = rows.start, min(rows.stop, self.n_rows)
        return Points(np.ascontiguousarray(self.columns[:, start // 64 : -(-stop // 64)]), stop - start)

    def first_alike(self) -> NDArray[np.intp]:
        """Place of the first column that each equals up to sign in all rows, (n,); -1 for a constant column."""
        odd, ones = self.columns[:, :1] & np.uint64(1), np.full(self.columns.shape[1], ~np.uint64(0))
        ones[-1:] >>= np.uint64(-self.n_rows % 64)
        from_zero = self.columns ^ odd * ones  # the first row is 0
        places = {bytes(ones.nbytes): -1}
        return np.array([places.setdefault(row.tobytes(), i) for i, row in enumerate(from_zero)], dtype=np.intp)

    def characters(self, masks: Masks) -> NDArray[np.int8]:
        """Characters of subsets at the points, (n_rows, N)."""
        parities = [np.bitwise_xor.reduce(self.columns[list(subset)], axis=0) for subset in subsets_of(masks)]
        words = np.array(parities, dtype=np.uint64).reshape(len(masks), self.columns.shape[1])
        return unpack(Points(words, self.n_rows))

    @classmethod
    def from_codes(cls, codes: NDArray[np.uint64], n: int) -> Points:
        """Points from their packed words, shape (n_rows, ceil(n / 64))."""
        return cls(kernels.transpose_bits(codes, n), len(codes))


def kernel_dtype(X: Rows) -> Any:
    """X in a type that the packing kernel reads; a sparse matrix stays sparse."""
    X = X if X.dtype in _KERNEL_DTYPES else X.astype(np.float64)
    return aligned(X) if isinstance(X, np.ndarray) else X


def numeric_rows(learner: object, X: ArrayLike, y: object = "no_validation", **checks: object) -> Any:
    """X, or X and y, as :func:`checked_rows` checks them, X in a type that the packing kernel reads."""
    checked = checked_rows(learner, X, y, dtype="numeric", accept_sparse="csr", **checks)
    return (kernel_dtype(checked[0]), checked[1]) if isinstance(checked, tuple) else kernel_dtype(checked)


def dense_blocks(X: Rows) -> Iterator[NDArray[Any]]:
    """The rows as they are; from a sparse matrix, blocks of rows (a multiple of 64, except the last) as arrays."""
    if isinstance(X, np.ndarray):
        yield X
        return
    n_rows = max(1, _VALUES_AT_ONCE // (64 * max(1, X.shape[1]))) * 64
    yield from (X[start : start + n_rows].toarray() for start in range(0, X.shape[0], n_rows))


def _packed(X: Rows, encoding: Encoding) -> tuple[NDArray[np.uint64], int]:
    """:func:`sparsact.kernels.pack_columns` of an array, or of a sparse matrix block by block."""
    columns, row = [], 0
    for block in dense_blocks(X):
        packed, bad = kernels.pack_columns(block, *_SYMBOLS[encoding])
        if bad >= 0:
            return packed, row * X.shape[1] + bad
        columns.append(packed)
        row += len(block)
    return columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1), -1


def _holds_minus_one(X: Rows) -> bool:
    """Whether some number is -1; NumPy 2.1 may crash where it compares unsigned numbers with it."""
    return X.dtype.kind not in "bu" and bool(((X if isinstance(X, np.ndarray) else X.data) == -1).any())


def detect_encoding(X: Rows) -> tuple[Encoding | Literal["real", "ones"], Points | None]:
    """How the rows of X are written, and the points packed while finding out.

    As bits, as signs, as other real numbers, or all 1, which may be bits or signs (then nothing is packed yet).
    """
    order: tuple[Encoding, ...] = ("bits", "signs")
    if _holds_minus_one(X[:1]):
        order = ("signs",)  # spares a pass over rows that cannot be bits
    for encoding in order:
        columns, bad = _packed(X, encoding)
        if bad < 0:
            ones = (
                encoding == "bits"
                and X.dtype.kind not in "bu"  # which hold no -1
                and int(np.bitwise_count(columns).sum()) == X.shape[0] * X.shape[1]
            )
            return ("ones", None) if ones else (encoding, Points(columns, X.shape[0]))
    return "real", None


def recognize(
    X: Rows, domain: str, names: NDArray[Any] | None = None
) -> tuple[Encoding | Literal["real", "ones"], Points | None]:
    """:func:`detect_encoding`, where the user has named a domain, or ``"auto"``.

    A ValueError is raised if ``domain`` is ``"cube"`` and X is not written as points of it; names the first value that
    is none.
    """
    encoding, points = ("real", None) if domain == "real" else detect_encoding(X)
    if encoding == "real" and domain == "cube":
        pack(X, "signs" if _holds_minus_one(X) else "bits", names)
    return encoding, points


class OfCube(Protocol):
    """A learner over the cube, or over real columns, while it is fitted."""

    domain: str
    encoding_: Encoding | None


def set_encoding(learner: OfCube, rows: Rows) -> Points | None:
    """Set ``encoding_`` by rows to fit: None for real columns; the points, if they were packed on the way.

    All ones count as signs. Raises a ValueError for rows that the learner's ``domain`` does not allow.
    """
    kind, points = recognize(rows, learner.domain, getattr(learner, "feature_names_in_", None))
    learner.encoding_ = None if kind == "real" else "signs" if kind == "ones" else kind
    return points


def pack(X: Rows, encoding: Encoding, names: NDArray[Any] | None = None) -> Points:
    """Packed points of an (m, n) array or sparse matrix written as ``encoding``.

    A ValueError is raised at the first value that is not one of the two symbols, naming its column and row.
    """
    if X.dtype == bool and encoding == "signs":
        raise ValueError("`X` is boolean; the model was fitted on signs +1/-1: pass 1 - 2 * X.")
    columns, bad = _packed(X, encoding)
    if bad >= 0:
        row, column = divmod(bad, X.shape[1])
        label = f"column {column}" if names is None else f"column {names[column]!r}"
        raise ValueError(
            f"`X` holds {X[row, column]!s} at {label}, row {row}, where {_SPELLED[encoding]} are expected; "
            f"{_remedy(encoding, X[row, column])}"
        )
    return Points(columns, X.shape[0])


def _remedy(encoding: Encoding, value: float) -> str:
    if encoding == "bits" and value == -1:
        return "pass bits, (1 - X) / 2, as when the model was fitted."
    if encoding == "signs" and value == 0:
        return "pass signs, 1 - 2 * X, as when the model was fitted."
    if value != value:
        return "fill it in, by sklearn.impute.SimpleImputer, or give missing values a column of their own."
    return 'correct the value, or fit on real columns with domain="real".'


def unpack(points: Points, encoding: Encoding = "signs") -> NDArray[np.int8]:
    """The (n_rows, n) array of symbols, int8; inverse of :func:`pack`."""
    words = np.ascontiguousarray(points.columns).view(np.uint8)
    bits = np.unpackbits(words, axis=1, count=points.n_rows, bitorder="little").T
    zero, one = _SYMBOLS[encoding]
    return np.where(bits, np.int8(one), np.int8(zero))


def median_cuts(rows: NDArray[Any], weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Median of each column, or the next smaller value where none is above it: where real columns become signs.

    Weights (m,), all positive, count as that many rows.
    """
    medians = np.median(rows, axis=0) if weights is None else _weighted_medians(rows, weights)
    medians, top = medians.astype(np.float64), rows.max(axis=0)
    below = np.where(rows < top, rows, -np.inf).max(axis=0)
    cuts: NDArray[np.float64] = np.where((medians < top) | ~np.isfinite(below), medians, below)
    return cuts


def _weighted_medians(rows: NDArray[Any], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means of the lower and the upper median of each column."""
    order = np.argsort(rows, axis=0, kind="stable")
    below = np.cumsum(weights[order], axis=0)
    half, column = weights.sum() / 2, np.arange(rows.shape[1])
    lower = order[np.minimum((below < half).sum(axis=0), len(rows) - 1), column]
    upper = order[np.minimum((below <= half).sum(axis=0), len(rows) - 1), column]
    return np.asarray(rows[lower, column] / 2.0 + rows[upper, column] / 2.0)


def points_of(
    rows: NDArray[Any], encoding: Encoding | None, cuts: NDArray[np.float64] | None, names: NDArray[Any] | None = None
) -> Points:
    """Points of rows by the encoding that was fitted or, for real columns, by cuts: bit 1 is a value above the cut."""
    return pack(rows, encoding or "signs", names) if cuts is None else pack(rows > cuts, "bits")
