"""Random k-sparsely activated networks, and distributions of their inputs."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparsact.constructions.gated import gate_strength
from sparsact.constructions.rounding import ResidueLift
from sparsact.hypercube import bits_to_signs
from sparsact.lift import Lift
from sparsact.network import SparselyActivatedNetwork
from sparsact.validation.parameters import checked_generator, checked_size


def random_network(n: int, n_units: int, max_active: int, *, rng: np.random.Generator) -> SparselyActivatedNetwork:
    r"""Random network of s units on n inputs, with at most k active units at any point, and exactly k at some.

    k decision trees share the units as evenly as they can, one leaf a unit. A leaf fixes coordinates F to signs alpha;
    its unit is a random linear function of *all other* coordinates behind that gate:

    .. math:: \sigma\bigl(\langle w, x_{\bar F} \rangle + \Gamma (\langle \alpha, x_F \rangle - |F|)\bigr),
        \qquad \Gamma \ge \tfrac12 \|w\|_1

    with w normal, scaled to expected square 1, output weights +-1 at random, and :math:`\Gamma` as small as
    :func:`~sparsact.constructions.gate_strength` allows.

    Parameters
    ----------
    n : int
        Number of inputs.
    n_units : int
        s, at most ``max_active * 2**(n - 1)``.
    max_active : int
        k, from 1 to ``n_units``.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    network : SparselyActivatedNetwork
        With dense weights.

    Raises
    ------
    ValueError
        If ``n_units`` or ``max_active`` is out of range.

    Notes
    -----
    *Proof that k suffices.* Two leaves of one tree differ in a coordinate that both fix. So every point agrees with
    exactly one leaf, and every other gate contributes :math:`-2\Gamma \le -\|w\|_1` or less: other units are off.
    *That k are attained:* all trees have a leaf at one random point, where :math:`\langle w, x_{\bar F} \rangle` is
    made positive (w is negated where it is not). *That no unit is dead or constant:* it is on in its leaf at the signs
    of w, and off at the opposite ones. *That it is no junta and, for k > 1, not disjoint:* every unit weighs every
    input, and the k units above are active together.

    Examples
    --------
    >>> from sparsact.hypercube import points
    >>> net = random_network(9, 13, 3, rng=np.random.default_rng(0))
    >>> np.bincount(net.n_active(points(9))).size - 1
    3
    """
    n, s, k = index(n), index(n_units), index(max_active)
    if not 1 <= k <= s:
        raise ValueError(f"`max_active` must lie between 1 and `n_units` = {s}; got {k}.")
    if n < 1 or s > k * 2 ** (n - 1):
        raise ValueError(
            f"{s} units with {k} active need n_units <= max_active * 2**(n - 1); got n = {n}: raise `n` or "
            "`max_active`, or lower `n_units`."
        )
    meeting = bits_to_signs(checked_generator(rng).integers(2, size=n)).astype(np.float64)
    W, b = np.empty((s, n)), np.empty(s)
    unit = 0
    for tree in range(k):
        for leaf in _random_leaves(n, s // k + (tree < s % k), rng):
            W[unit], b[unit] = _gated_unit(leaf, meeting, rng)
            unit += 1
    return SparselyActivatedNetwork(rng.choice([-1.0, 1.0], size=s), W, b)


_Leaf: TypeAlias = dict[int, int]  # a subcube: the sign of each coordinate that it fixes


def _random_leaves(n: int, n_leaves: int, rng: np.random.Generator) -> list[_Leaf]:
    """Leaves of a random decision tree: as balanced as can be, each split on a random coordinate that is still free."""
    leaves: list[_Leaf] = [{}]
    while len(leaves) < n_leaves:
        shallow = leaves.pop(0)  # a queue: first come, least deep
        i = int(rng.choice(np.setdiff1d(np.arange(n), list(shallow))))
        leaves += [shallow | {i: 1}, shallow | {i: -1}]
    return leaves


def _gated_unit(
    leaf: _Leaf, meeting: NDArray[np.float64], rng: np.random.Generator
) -> tuple[NDArray[np.float64], float]:
    n, fixed, signs = len(meeting), list(leaf), np.array(list(leaf.values()))
    w = rng.normal(size=n) / np.sqrt(n - len(fixed))
    w[fixed] = 0
    if np.array_equal(meeting[fixed], signs) and w @ meeting < 0:
        w = -w
    strength = gate_strength(w[None])
    w[fixed] = strength * signs
    return w, strength * len(fixed)


Distribution: TypeAlias = Callable[[int, np.random.Generator], NDArray[np.int8]]


def uniform(n: int) -> Distribution:
    """The uniform distribution on the cube of ``n`` signs.

    Parameters
    ----------
    n : int
        Number of signs.

    Returns
    -------
    distribution : Distribution
        Called with a number of points and a generator, signs (m, n).

    Examples
    --------
    >>> uniform(5)(2, np.random.default_rng(0)).shape
    (2, 5)
    """
    n = checked_size(n, "the number `n` of coordinates")
    return lambda n_samples, rng: bits_to_signs(checked_generator(rng).integers(2, size=(n_samples, n), dtype=np.int8))


def lifted(lift: Lift | ResidueLift) -> Distribution:
    """The distribution that a lift induces of uniform points, or of uniform residues.

    Parameters
    ----------
    lift : Lift or ResidueLift
        From points to lifted points.

    Returns
    -------
    distribution : Distribution
        Called with a number of points and a generator, lifted points (m, n).

    Examples
    --------
    >>> lifted(Lift.quadratic(3))(2, np.random.default_rng(0)).shape
    (2, 9)
    """
    return lambda n_samples, rng: lift.sample(n_samples, rng=rng)
