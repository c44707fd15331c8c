r"""Pairs of units that are never active together, and what follows: of a clique of such pairs one unit at most is on.

If :math:`\max_x (\langle w_j + w_k, x \rangle - b_j - b_k) \le 0`, then the two are never both
positive. The maximum over the cube is a sum of magnitudes. Juntas and Index_b are proved 1-sparse by this alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsact.exact_sign import Weights, grids

Clique = NDArray[np.intp]
ADDITIONS = 2**32


def conflicts(
    reduced: NDArray[np.float64], counts: NDArray[np.int64], W: Weights, b: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Which pairs of units no values of the features switch on together, (s, s), symmetric; proved, not estimated.

    ``reduced`` (s, F) and ``counts`` (F,) are the reduction of ``W`` (s, n). Cost: ``s * nnz(reduced)`` additions;
    where those are more than a few seconds' work, none is looked for.
    """
    lowest, span = grids(W, b)
    size = np.abs(reduced) @ counts
    fear = np.ldexp(8 * (W.shape[1] + 4) * np.finfo(np.float64).eps, span)
    found = np.zeros((len(b), len(b)), dtype=bool)
    if len(b) * np.count_nonzero(reduced) > ADDITIONS:
        return found
    for j, row in enumerate(reduced):
        here = np.flatnonzero(row)
        part = reduced[j + 1 :, here]
        most = size[j + 1 :] + (np.abs(part + row[here]) - np.abs(part)) @ counts[here]
        excess = most - (b[j] + b[j + 1 :])
        # Sums of two units stay on the finer grid of the two, below twice the wider span: exact when that fits 53 bits.
        fits = np.maximum(span[j], span[j + 1 :]) + 2 - np.minimum(lowest[j], lowest[j + 1 :]) <= 52
        found[j, j + 1 :] = np.where(fits, excess <= 0, excess <= -(fear[j] + fear[j + 1 :]))
    return np.asarray(found | found.T)


def clique_cover(conflict: NDArray[np.bool_]) -> list[Clique]:
    """Maximal cliques that hold every unit, by greed; their number bounds the active units."""
    order = np.argsort(-conflict.sum(axis=1), kind="stable")
    covered = np.zeros(len(conflict), dtype=bool)
    cliques = list[Clique]()
    for j in order:
        if covered[j]:
            continue
        members, common = [j], conflict[j].copy()
        while len(fitting := order[common[order]]):
            fresh = fitting[~covered[fitting]]
            member = (fresh if len(fresh) else fitting)[0]
            members.append(member)
            common &= conflict[member]
        covered[members] = True
        cliques.append(np.sort(np.array(members)))
    return cliques
