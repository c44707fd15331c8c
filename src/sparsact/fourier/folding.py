r"""Folding: weights of a function of many coordinates, estimated on a few random groups of them.

Every coordinate i gets a random sign :math:`z_i` and joins one of r groups :math:`e(i)` at random; the folded function
is :math:`H(v) = f(z_1 v_{e(1)}, \dots, z_n v_{e(n)})` on r coordinates. A subset S of f's coordinates becomes the set
of groups that hold an odd number of its members, and the random signs keep different subsets apart:

.. math:: \mathbb{E}\, W_t(H) = \sum_d P_{dt}\, W_d(f),

where :math:`P_{dt}` is the chance that d balls thrown into r urns leave t urns odd (Ehrenfest's chain). While
:math:`d^2 \ll r`, that is nearly 1 for t = d.

References
----------
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Appendix B, where the same groups bound the noise
   sensitivity.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.fourier.estimate import Estimate, mean_of
from sparsact.fourier.monte_carlo import SIGNS_AT_ONCE, Function, checked_dimension, values_of
from sparsact.fourier.spectrum import Spectrum
from sparsact.hypercube import bits_to_signs, points
from sparsact.network import SparselyActivatedNetwork
from sparsact.validation.parameters import check_named, checked_generator, checked_size

MAX_GROUPS: Final = 20


def fold(f: Function, groups: NDArray[np.intp], signs: NDArray[Any], n_groups: int) -> NDArray[np.float64]:
    """Table of the folded function, (2**n_groups,); of a network, the weights are summed by group instead."""
    V = points(n_groups).astype(np.float64)
    if isinstance(f, SparselyActivatedNetwork):
        membership = np.zeros((f.n, n_groups))
        membership[np.arange(f.n), groups] = signs
        return SparselyActivatedNetwork(f.u, f.W @ membership, f.b)(V)
    rows = max(1, SIGNS_AT_ONCE // len(groups))
    blocks = [values_of(f, V[start : start + rows, groups] * signs) for start in range(0, len(V), rows)]
    return np.concatenate(blocks)


def estimate_weight_by_degree(
    f: Function, n: int | None = None, *, n_groups: int = 12, n_samples: int, rng: np.random.Generator
) -> Estimate:
    r"""Estimate of the weight by degree of a function on any number of coordinates, folded into a few groups.

    The mean over random foldings of :math:`W_t(H)`, t = 0, ..., r, with standard errors: unbiased for
    :math:`\sum_d P_{dt} W_d(f)` with P of :func:`folding_matrix`, which see for how far degrees blur.

    Parameters
    ----------
    f : callable
        A network, or any function that takes signs (m, n) and returns m values.
    n, n_groups : int
        Numbers of coordinates (known for a network), and of groups r, at most 20. With at least n groups take
        :class:`Spectrum`.
    n_samples, rng : int, and numpy.random.Generator
        Foldings, at least 2, and their source; each costs ``2**n_groups`` evaluations and a transform.

    Returns
    -------
    weights : Estimate
        Value and standard error of shape (n_groups + 1,).

    Examples
    --------
    A sum of signs keeps its degree, however its coordinates are grouped:

    >>> total = lambda X: X.sum(axis=1)
    >>> folded = estimate_weight_by_degree(total, 30, n_groups=5, n_samples=10, rng=np.random.default_rng(0))
    >>> bool(folded.value[[0, 2, 3, 4, 5]].max() < 1e-12)
    True
    """
    checked_size(n_groups, "`n_groups`, as 2**n_groups points are evaluated,", maximum=MAX_GROUPS)
    n = checked_dimension(f, n)
    check_named(n_samples=n_samples)
    checked_generator(rng)

    def samples() -> Iterator[NDArray[Any]]:
        for _ in range(n_samples):
            groups = rng.integers(n_groups, size=n)
            signs = bits_to_signs(rng.integers(2, size=n))
            yield Spectrum.of(fold(f, groups, signs, n_groups)).weight_by_degree()[None]

    return mean_of(samples())


def folding_matrix(n_groups: int, degree: int) -> NDArray[np.float64]:
    """Chance P[d, t] that a subset of d coordinates folds onto t of ``n_groups`` groups, (degree + 1, n_groups + 1).

    The mean of :func:`estimate_weight_by_degree` is ``weights @ P`` for the weights of the function itself.

    Parameters
    ----------
    n_groups, degree : int
        r, at least 1, and the largest d.

    Returns
    -------
    P : ndarray of shape (degree + 1, n_groups + 1), float64
        Rows sum to 1.

    Examples
    --------
    >>> folding_matrix(4, 2)
    array([[1.  , 0.  , 0.  , 0.  , 0.  ],
           [0.  , 1.  , 0.  , 0.  , 0.  ],
           [0.25, 0.  , 0.75, 0.  , 0.  ]])
    """
    checked_size(n_groups, "`n_groups`")
    checked_size(degree, "`degree`", minimum=0)
    chances = np.zeros((degree + 1, n_groups + 1))
    chances[0, 0] = 1
    share = np.arange(n_groups + 1) / n_groups
    for before, after in pairwise(chances):
        after[:-1] += (before * share)[1:]
        after[1:] += (before * (1 - share))[:-1]
    return chances
