r"""Stacks: networks of several sparsely activated layers.

.. math:: a_0 = x, \qquad z_l = W_l\, a_{l-1} + V_l\, x - b_l, \qquad a_l = \sigma(z_l), \qquad
          h(x) = \langle u, a_L \rangle .

Unit j of layer l is *active* at x when :math:`z_{l,j} > 0`, strictly. A stack of one layer is a
:class:`~sparsact.SparselyActivatedNetwork`, the class of [A]_; deeper ones are not in the paper. The term :math:`V_l x`
lets a layer read the inputs, so that gates on the inputs can keep it sparse.

References
----------
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Definition 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact import registry
from sparsact.activity import StackCertificate
from sparsact.exact_sign import grids, integers_of
from sparsact.network import SparselyActivatedNetwork
from sparsact.saving import modelfile
from sparsact.validation.arrays import checked_columns, checked_exact

Array = NDArray[np.float64]
NUMBERS_AT_ONCE: Final = 2**20
ROUNDING: Final = 1e-12  # by which bounds are wider than they were computed
EPS, TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).smallest_normal)


class StackLayer(NamedTuple):
    """A layer: W (s, r) on the layer below (n inputs, in the first), thresholds b (s,), V (s, n) on the inputs."""

    W: Array
    b: Array
    V: Array | None = None

    def preactivations(self, a: Array, X: Array) -> Array:
        """Numbers z (m, s) where the layer below gives ``a`` (m, r) and the inputs are ``X`` (m, n)."""
        z = a @ self.W.T
        if self.V is not None:
            z += X @ self.V.T
        z -= self.b
        return z

    def sizes(self, a: Array, X: Array) -> Array:
        """Sums of the magnitudes of all terms of the pre-activations, from magnitudes ``a`` and ``X``."""
        sizes = a @ np.abs(self.W).T + np.abs(self.b)
        return sizes if self.V is None else sizes + X @ np.abs(self.V).T


@dataclass(frozen=True, eq=False, repr=False)
class Stack:
    r"""An immutable network of L layers of ReLU units on n inputs.

    .. math:: h(x) = \langle u, a_L \rangle, \qquad a_l = \sigma(W_l\, a_{l-1} + V_l\, x - b_l), \qquad a_0 = x

    Parameters
    ----------
    u : array-like of shape (s_L,)
        Output weights of the last layer.
    layers : sequence of StackLayer, or of tuples (W, b) or (W, b, V)
        From the bottom up: ``W`` (s_l, s_{l-1}), where s_0 = n, ``b`` (s_l,), and ``V`` (s_l, n) or None for a layer
        that does not read the inputs. The first layer has no ``V``.

    Raises
    ------
    ValueError
        If shapes disagree, a number is not finite, or values on the cube overflow.

    Examples
    --------
    The parity of two signs as a stack: the first layer finds where both are the same, the second where they are not.

    >>> stack = Stack([1.0, -1.0], [([[1, 1], [-1, -1]], [1, 1]), ([[2, 2], [-1, -1]], [1, -1])])
    >>> stack
    <Stack of 2 layers, 2 + 2 units on 2 inputs>
    >>> stack([[1, 1], [1, -1], [-1, -1]])
    array([ 1., -1.,  1.])
    >>> stack.n_active([[1, 1], [1, -1], [-1, -1]])
    array([[1, 1],
           [0, 1],
           [1, 1]])
    """

    u: Array
    layers: tuple[StackLayer, ...]

    def __init__(self, u: ArrayLike, layers: Sequence[StackLayer | tuple[Any, ...]]) -> None:
        if not len(layers):
            raise ValueError("a stack needs at least one layer; `layers` is empty.")
        checked = tuple(_checked_layer(number, tuple(layer)) for number, layer in enumerate(layers, 1))
        n = checked[0].W.shape[1]
        if not n or checked[0].V is not None:
            raise ValueError("layer 1 reads the inputs by `W`, which needs a column at least; leave out its `V`.")
        for number, (below, layer) in enumerate(pairwise(checked), 2):
            due = (len(layer.b), len(below.b))
            if layer.W.shape != due or (layer.V is not None and layer.V.shape != (len(layer.b), n)):
                given = "none" if layer.V is None else layer.V.shape
                raise ValueError(
                    f"layer {number} needs `W` of shape {due} and `V` of shape ({len(layer.b)}, {n}) or none; got "
                    f"{layer.W.shape} and {given}."
                )
        weights = _frozen(u, "`u`")
        if weights.shape != checked[-1].b.shape:
            raise ValueError(
                f"`u` needs one weight a unit of the last layer, {checked[-1].b.shape}; got shape {weights.shape}."
            )
        object.__setattr__(self, "u", weights)
        object.__setattr__(self, "layers", checked)
        with np.errstate(over="ignore", invalid="ignore"):
            reach = [*self._sizes(), np.abs(weights)]
            total = np.abs(weights) @ reach[-2]
        if not all(np.isfinite(each).all() for each in (*reach, total)):
            raise ValueError("values on the cube overflow: scale down the weights and thresholds of the stack.")

    @property
    def n(self) -> int:
        """Number of inputs."""
        return int(self.layers[0].W.shape[1])

    @property
    def depth(self) -> int:
        """Number of layers, L."""
        return len(self.layers)

    @property
    def n_units(self) -> tuple[int, ...]:
        """Number of units of each layer."""
        return tuple(len(layer.b) for layer in self.layers)

    @property
    def first(self) -> SparselyActivatedNetwork:
        """The first layer as a network, its outputs summed."""
        layer = self.layers[0]
        return SparselyActivatedNetwork(np.ones(len(layer.b)), layer.W, layer.b)

    # ---- values ----

    def __call__(self, X: ArrayLike) -> Array:
        """Values h(x) at the rows of ``X`` (m, n), shape (m,)."""
        X = checked_columns(X, self.n)
        values = np.empty(len(X))
        for block in self._blocks(len(X)):
            values[block] = np.maximum(self._preactivations(X[block])[-1], 0) @ self.u
        return values

    def preactivations(self, X: ArrayLike) -> tuple[Array, ...]:
        """Pre-activations of each layer at every row and unit, shapes (m, s_l), as floating point gives them."""
        return tuple(self._preactivations(checked_columns(X, self.n)))

    def active(self, X: ArrayLike) -> tuple[NDArray[np.bool_], ...]:
        """Whether each unit of each layer is active at each row, shapes (m, s_l).

        Decided exactly for the numbers stored: rows where rounding could decide are computed again in fractions.
        """
        X = checked_columns(X, self.n)
        parts = [self._active(X[block]) for block in self._blocks(len(X))] or [self._active(X)]
        return tuple(np.concatenate(each) for each in zip(*parts, strict=True))

    def n_active(self, X: ArrayLike) -> NDArray[np.intp]:
        """Number of active units of each layer at each row, (m, L); exact as :meth:`active`."""
        X = checked_columns(X, self.n)
        counts = np.zeros((len(X), self.depth), dtype=np.intp)
        for block in self._blocks(len(X)):
            for layer, active in enumerate(self._active(X[block])):
                counts[block, layer] = np.count_nonzero(active, axis=1)
        return counts

    def certify(self, method: str = "auto", **options: object) -> StackCertificate:
        """Find the maximum number of active units in each layer; see :func:`sparsact.certificate.certify_stack`."""
        certificate: StackCertificate = registry.find(registry.CERTIFY_STACK)(self, method, **options)
        return certificate

    def _blocks(self, m: int) -> Iterator[slice]:
        step = max(1, NUMBERS_AT_ONCE // max(self.n, *self.n_units, 1))
        return (slice(start, start + step) for start in range(0, m, step))

    def _preactivations(self, X: Array) -> list[Array]:
        z, a = list[Array](), X
        for layer in self.layers:
            z.append(layer.preactivations(a, X))
            a = np.maximum(z[-1], 0)
        return z

    def _sizes(self) -> list[Array]:
        """For each layer, bounds (s_l,) of the sums of magnitudes in its pre-activations at any point of the cube."""
        ones = np.ones((1, self.n))
        sizes, a = list[Array](), ones
        for layer in self.layers:
            a = layer.sizes(a, ones)
            sizes.append(a[0])
        return sizes

    def grid(self) -> list[tuple[NDArray[np.bool_], NDArray[np.int64]]]:
        """For each layer, which units have pre-activations without rounding on the cube, and a grid 2**g of theirs."""
        found = list[tuple[NDArray[np.bool_], NDArray[np.int64]]]()
        exact_below, grid_below = True, 0
        for layer, size in zip(self.layers, self._sizes(), strict=True):
            lowest = grids(layer.W, np.zeros(len(layer.b)))[0] + grid_below
            own = grids(np.zeros((len(layer.b), 1)) if layer.V is None else layer.V, layer.b)[0]
            lowest = np.minimum(lowest, own)
            exact = exact_below & (np.frexp(size)[1] - lowest <= 52)
            found.append((exact, lowest))
            exact_below, grid_below = bool(exact.all()), int(lowest.min(initial=0))
        return found

    def _active(self, X: Array) -> list[NDArray[np.bool_]]:
        """Exact; at first with one bound of the error a unit, then a bound at each doubtful row, then in integers."""
        active, doubt = self._decided(X, each_row=False)
        rows = np.flatnonzero(doubt)
        if not len(rows):
            return active
        points, place = np.unique(X[rows], axis=0, return_inverse=True)
        again, doubt = self._decided(points, each_row=True)
        for part, exact in zip(again, self._exact_signs(points[doubt]), strict=True):
            part[doubt] = exact
        for one, other in zip(active, again, strict=True):
            one[rows] = other[place.ravel()]
        return active

    def _decided(self, X: Array, *, each_row: bool) -> tuple[list[NDArray[np.bool_]], NDArray[np.bool_]]:
        """Active units, and rows where rounding could have decided."""
        signs = bool((np.abs(X) == 1).all())
        free = [exact & signs for exact, _ in self.grid()]
        sizes = np.abs(X) if each_row else np.abs(X).max(axis=0, keepdims=True, initial=0)
        active, doubt = list[NDArray[np.bool_]](), np.zeros(len(X), dtype=bool)
        a, error, of_inputs = X, np.zeros_like(sizes), sizes
        for layer, exact in zip(self.layers, free, strict=True):
            z = layer.preactivations(a, X)
            terms = 2 * (a.shape[1] + self.n + 2)
            size = layer.sizes(sizes + error, of_inputs)
            bound = np.where(size > 0, terms * (EPS * size + TINY), 0.0)
            bound += (1 + terms * EPS) * (error @ np.abs(layer.W).T)
            bound = np.where(exact, 0.0, bound)
            active.append(z > 0)
            doubt |= ((np.abs(z) <= bound) & (bound > 0)).any(axis=1)
            a = np.maximum(z, 0)
            error = np.where(z < -bound, 0.0, bound) if each_row else bound
            sizes = a if each_row else a.max(axis=0, keepdims=True, initial=0)
        return active, doubt

    def _exact_signs(self, X: Array) -> Iterator[NDArray[np.bool_]]:
        """Active units at the rows, from integers: every float64 is one times a power of two."""
        inputs, of_inputs = integers_of(X)
        a, of_a = inputs, of_inputs
        for layer in self.layers:
            (W, of_W), (b, of_b) = integers_of(layer.W), integers_of(layer.b)
            terms = [(a @ W.T, of_a + of_W), (-b, of_b)]
            if layer.V is not None:
                V, of_V = integers_of(layer.V)
                terms.append((inputs @ V.T, of_inputs + of_V))
            of_a = min(exponent for _, exponent in terms)
            z = sum(term * 2 ** (exponent - of_a) for term, exponent in terms)
            yield np.asarray(z > 0, dtype=bool)
            a = np.maximum(z, 0)

    # ---- elsewhere ----

    def save(self, path: str | Path) -> None:
        """Write the stack to one file, which :func:`sparsact.load` reads back to the bit."""
        modelfile.write(path, type(self).__name__, {"depth": self.depth}, self._arrays())

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays = {"u": self.u}
        for number, layer in enumerate(self.layers):
            arrays |= {f"{number}.{name}": part for name, part in layer._asdict().items() if part is not None}
        return arrays

    @classmethod
    def _from_file(cls, state: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """The stack that :meth:`save` wrote."""
        layers = [(arrays[f"{i}.W"], arrays[f"{i}.b"], arrays.get(f"{i}.V")) for i in range(state["depth"])]
        return cls(arrays["u"], layers)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stack):
            return NotImplemented
        return self._arrays().keys() == other._arrays().keys() and all(
            np.array_equal(array, other._arrays()[name]) for name, array in self._arrays().items()
        )

    def __hash__(self) -> int:
        return hash((self.n, self.n_units, float(self.u.sum())))

    def __repr__(self) -> str:
        layers = "1 layer" if self.depth == 1 else f"{self.depth} layers"
        return f"<Stack of {layers}, {' + '.join(map(str, self.n_units))} units on {self.n} inputs>"


def _frozen(values: ArrayLike, what: str) -> Array:
    array = checked_exact(values, what)
    array.setflags(write=False)
    return array


def _checked_layer(number: int, given: tuple[Any, ...]) -> StackLayer:
    if not 2 <= len(given) <= 3:
        raise ValueError(f"layer {number} must be (W, b) or (W, b, V); got {len(given)} parts.")
    W, b, *rest = given
    V = rest[0] if rest else None
    of = f"of layer {number}"
    layer = StackLayer(_frozen(W, f"`W` {of}"), _frozen(b, f"`b` {of}"), None if V is None else _frozen(V, f"`V` {of}"))
    if layer.W.ndim != 2 or layer.b.shape != layer.W.shape[:1]:
        raise ValueError(f"`W` (s, r) and `b` (s,) {of} must agree on s; got {layer.W.shape} and {layer.b.shape}.")
    return layer


def most_outputs(stack: Stack, active: Sequence[int]) -> list[Array]:
    """The largest output (s_l,) of each unit on the cube, if at most ``active[l]`` units of layer l are on.

    For each layer that ``active`` covers, and the one above.
    """
    most, ones = list[Array](), np.ones((1, stack.n))
    for layer in stack.layers[: len(active) + 1]:
        if most:
            reach, sizes = reach_from_below(layer.W, most[-1], active[len(most) - 1]), layer.sizes(most[-1][None], ones)
            reach = reach if layer.V is None else reach + np.abs(layer.V).sum(axis=1)
        else:
            reach, sizes = np.abs(layer.W).sum(axis=1), layer.sizes(ones, ones)
        most.append(np.maximum(reach - layer.b + ROUNDING * sizes[0], 0))
    return most


def reach_from_below(W: Array, most: Array, active: int) -> Array:
    """Largest W a (s,) for outputs a between 0 and ``most`` (r,), at most ``active`` of them not zero."""
    return np.asarray(largest(np.maximum(W * most, 0), active).sum(axis=1))


def largest(values: Array, k: int) -> Array:
    """The k largest of each row."""
    k = min(k, values.shape[-1])
    return np.sort(values, axis=-1)[..., values.shape[-1] - k :]
