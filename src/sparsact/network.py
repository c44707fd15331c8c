r"""Sparsely activated networks: one hidden layer of ReLU units, in which each input switches on only a few.

.. math:: h(x) = \sum_{j=1}^{s} u_j\, \sigma(\langle w_j, x \rangle - b_j), \qquad \sigma(z) = \max(z, 0).

Unit j is *active* at x when :math:`\langle w_j, x \rangle - b_j > 0`, strictly: at a tie it is off and adds nothing.

References
----------
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Definitions 1 and 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from sparsact import kernels, registry
from sparsact.activity import Certificate
from sparsact.exact_sign import Weights, dense, exact_signs, is_exact, tolerances
from sparsact.saving import modelfile
from sparsact.validation.arrays import check_overflow, checked_columns, checked_exact, checked_points, checked_weights

if TYPE_CHECKING:
    import torch

PREACTIVATIONS_AT_ONCE: Final = 2**20
MOST_EMPTY_COLUMNS: Final = (
    2**24
)  # of a sparse W in a file, beyond one a weight: so that a small file stays small in memory


class WeightScale(NamedTuple):
    r""":math:`W = \|u\|_\infty \max_j \|w_j\|_2` and :math:`B = \|u\|_\infty \max_j |b_j|` ([A]_, Definition 2)."""

    W: float
    B: float


@dataclass(frozen=True, eq=False)
class LinearPiece:
    r"""The affine function :math:`\ell_R(x) = \langle \sum_{j \in R} u_j w_j, x \rangle - \sum_{j \in R} u_j b_j`."""

    units: tuple[int, ...]
    weights: NDArray[np.float64]
    bias: float

    def __call__(self, X: ArrayLike) -> NDArray[np.float64]:
        """Values at the rows of ``X`` (m, n), shape (m,); they are the network's where the units R are the active."""
        return checked_columns(X, len(self.weights)) @ self.weights - self.bias


@dataclass(frozen=True, eq=False, repr=False)
class SparselyActivatedNetwork:
    r"""An immutable network of s ReLU units on n inputs.

    .. math:: h(x) = \sum_{j=1}^{s} u_j\, \sigma(\langle w_j, x \rangle - b_j)

    Parameters
    ----------
    u : array-like of shape (s,)
        Output weights.
    W : array-like or scipy.sparse matrix or array of shape (s, n)
        Input weights, one row a unit. A sparse one stays sparse (CSR).
    b : array-like of shape (s,)
        Thresholds.

    Raises
    ------
    ValueError
        If shapes disagree, a number is not finite, or pre-activations on the cube overflow.

    Notes
    -----
    Any real inputs are legal; the hypercube is where the theory lives. Evaluation works through blocks of rows and
    holds no m x s array. Sparse ``W`` costs its non-zeros a row, dense ``W`` one product with a matrix.

    Examples
    --------
    The sum of two signs; at most one unit is active at any point:

    >>> net = SparselyActivatedNetwork([1.0, -1.0], [[1, 1], [-1, -1]], [0.0, 0.0])
    >>> net([[1, 1], [1, -1], [-1, -1]])
    array([ 2.,  0., -2.])
    >>> net.n_active([[1, 1], [1, -1], [-1, -1]])
    array([1, 0, 1])
    """

    u: NDArray[np.float64]
    W: Weights
    b: NDArray[np.float64]

    def __post_init__(self) -> None:
        u, b = checked_exact(self.u, "`u`"), checked_exact(self.b, "`b`")
        W = checked_weights(self.W)
        if W.ndim != 2 or u.shape != (W.shape[0],) or b.shape != (W.shape[0],):
            raise ValueError(
                f"`u` (s,), `W` (s, n) and `b` (s,) must agree on s; got shapes {u.shape}, {W.shape} and {b.shape}."
            )
        if not W.shape[1]:
            raise ValueError("`W` has no columns; a network needs at least one input.")
        check_overflow(W, b)
        for name, array in (("u", u), ("W", W), ("b", b)):
            for part in (array.data, array.indices, array.indptr) if isinstance(array, sp.csr_array) else (array,):
                part.setflags(write=False)
            object.__setattr__(self, name, array)

    @property
    def n(self) -> int:
        """Number of inputs."""
        return int(self.W.shape[1])

    @property
    def s(self) -> int:
        """Number of units."""
        return int(self.W.shape[0])

    # ---- values ----

    def __call__(self, X: ArrayLike) -> NDArray[np.float64]:
        """Values h(x) at the rows of ``X`` (m, n), shape (m,)."""
        return kernels.network_values(checked_points(X, self.n), self.W, self.u, self.b)

    def preactivations(self, X: ArrayLike) -> NDArray[np.float64]:
        r""":math:`\langle w_j, x \rangle - b_j` at every row and unit, shape (m, s), as floating point gives them."""
        return np.asarray((self.W @ checked_columns(X, self.n).T).T) - self.b

    def active(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Whether each unit is active at each row, (m, s).

        Decided exactly for the numbers stored: a pre-activation within rounding error of 0 is summed exactly.
        """
        X = checked_columns(X, self.n)
        return np.concatenate([np.zeros((0, self.s), dtype=bool), *(signs > 0 for _, signs in self._signs(X))])

    def n_active(self, X: ArrayLike) -> NDArray[np.intp]:
        """Number of active units at each row, (m,); exact as :meth:`active`, and in blocks of rows."""
        X = checked_points(X, self.n)
        counts, doubtful = np.zeros(len(X), dtype=np.intp), np.arange(len(X))
        if isinstance(self.W, sp.csr_array):
            tolerance = tolerances(X, self.W, self.b)
            if np.isfinite(tolerance).all():
                counts, upper = kernels.active_units(X, self.W, self.b, tolerance)
                doubtful = np.flatnonzero(counts < upper)
        for block, signs in self._signs(X if len(doubtful) == len(X) else X[doubtful]):
            counts[doubtful[block]] = np.count_nonzero(signs > 0, axis=1)
        return counts

    def _signs(self, X: NDArray[Any]) -> Iterator[tuple[slice, NDArray[np.int8]]]:
        """Exact signs of the pre-activations, block of rows by block of rows."""
        rows = max(1, PREACTIVATIONS_AT_ONCE // max(1, self.s))
        for start in range(0, len(X), rows):
            block = slice(start, start + rows)
            yield block, exact_signs(X[block].astype(np.float64, copy=False), self.W, self.b)

    def linear_piece(self, x: ArrayLike) -> LinearPiece:
        """The affine function that the network equals at ``x`` (n,) and wherever the same units are active."""
        point = np.asarray(x)
        if point.shape != (self.n,):
            raise ValueError(f"`x` must be one point, shape ({self.n},); got shape {point.shape}.")
        units = np.flatnonzero(self.active(point[None])[0])
        weights = np.asarray(self.u[units] @ self.W[units])
        return LinearPiece(tuple(units.tolist()), weights, float(self.u[units] @ self.b[units]))

    # ---- its parts ----

    def scale(self) -> WeightScale:
        """The scale (W, B) of Definition 2."""
        largest = float(np.abs(self.u).max(initial=0.0))
        one = 2.0 ** (int(np.frexp(abs(self.W).max())[1]) - 1) if self.s else 1.0  # so that no square overflows
        norms = np.sqrt(((self.W / one) * (self.W / one)).sum(axis=1)) * one
        return WeightScale(largest * float(norms.max(initial=0.0)), largest * float(np.abs(self.b).max(initial=0.0)))

    def has_exact_weights(self) -> NDArray[np.bool_]:
        """Units whose pre-activations on the cube floating point computes without error, (s,).

        So it is for integers, halves and the like: all weights of the unit and its threshold are multiples of one power
        of two, with a sum of magnitudes below 2**53 of it.
        """
        return is_exact(self.W, self.b)

    def dead_units(self) -> NDArray[np.bool_]:
        r"""Units that are active at no point of the cube, :math:`\|w_j\|_1 \le b_j`, (s,); decided exactly.

        These are *dead* sparsity: deleting them changes nothing. The other units are dynamic: each is on somewhere.
        """
        return np.asarray(exact_signs(np.ones((1, self.n)), abs(self.W), self.b)[0] <= 0)

    def constant_units(self) -> NDArray[np.bool_]:
        r"""Units that are active at every point of the cube, :math:`-\|w_j\|_1 > b_j`, (s,); decided exactly."""
        return np.asarray(exact_signs(-np.ones((1, self.n)), abs(self.W), self.b)[0] > 0)

    def without_dead_units(self) -> SparselyActivatedNetwork:
        """The same function on the cube, without the units that are dead there."""
        alive = ~self.dead_units()
        return SparselyActivatedNetwork(self.u[alive], self.W[alive], self.b[alive])

    def certify(self, method: str = "auto", **options: object) -> Certificate:
        """Find the maximum number of active units over all inputs; see :func:`sparsact.certificate.certify`."""
        certificate: Certificate = registry.find(registry.CERTIFY)(self, method, **options)
        return certificate

    # ---- elsewhere ----

    def save(self, path: str | Path) -> None:
        """Write the network to one file, which :func:`sparsact.load` reads back to the bit."""
        arrays: dict[str, NDArray[Any]] = {"u": self.u, "b": self.b}
        if isinstance(self.W, sp.csr_array):
            arrays |= {f"W.{part}": getattr(self.W, part) for part in ("data", "indices", "indptr")}
        else:
            arrays["W"] = self.W
        modelfile.write(path, type(self).__name__, {"shape": [self.s, self.n]}, arrays)

    @classmethod
    def _from_file(cls, state: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """The network that :meth:`save` wrote."""
        s, n = state["shape"]
        if "W" in arrays:
            W: Weights = arrays["W"]
        else:
            if not 0 < n <= MOST_EMPTY_COLUMNS + arrays["W.data"].size:
                raise ValueError(f"{n} columns of {arrays['W.data'].size} weights")
            W = sp.csr_array((arrays["W.data"], arrays["W.indices"], arrays["W.indptr"]), shape=(s, n))
            W.check_format()
            if (W.indptr[1:] < W.indptr[:-1]).any():  # SciPy does not look where the last entry is 0 or less
                raise ValueError("rows that end before they begin")
        if W.shape != (s, n):
            raise ValueError(f"weights of shape {W.shape} where {(s, n)} was promised")
        return cls(arrays["u"], W, arrays["b"])

    def to_torch(self) -> torch.nn.Module:
        """The network as a ``torch.nn.Sequential`` of float64 layers: (m, n) in, (m,) out."""
        import torch

        # On "meta", since a layer's own start would draw from torch's global generator.
        hidden = torch.nn.Linear(self.n, self.s, dtype=torch.float64, device="meta").to_empty(device="cpu")
        output = torch.nn.Linear(self.s, 1, bias=False, dtype=torch.float64, device="meta").to_empty(device="cpu")
        with torch.no_grad():
            hidden.weight.copy_(torch.tensor(dense(self.W)))
            hidden.bias.copy_(torch.tensor(-self.b))
            output.weight.copy_(torch.tensor(self.u[None]))
        return torch.nn.Sequential(hidden, torch.nn.ReLU(), output, torch.nn.Flatten(0))

    def __repr__(self) -> str:
        kind = f"sparse, {self.W.nnz} weights" if isinstance(self.W, sp.csr_array) else "dense"
        W, B = self.scale()
        return f"<SparselyActivatedNetwork of {self.s} units on {self.n} inputs ({kind}), W = {W:.4g}, B = {B:.4g}>"
