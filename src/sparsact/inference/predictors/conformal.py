"""Calibration of the level of a predictor, so that new inputs get the recall that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, sqrt

import torch
from torch import Tensor

from sparsact.inference.block_weights import BlockWeights


def least_rows(recall: float) -> int:
    """Rows with active units that calibration needs for a recall: 1 / (1 - recall) - 1, and one for recall 1."""
    return 1 if recall == 1 else ceil(round(1 / (1 - recall), 6)) - 1


def level_for_recall(needs: Tensor, on: Tensor, recall: float) -> float:
    r"""The least level at which new inputs get ``recall`` of their active units, in expectation.

    Unit j of row i is computed at level l if ``needs[i, j] < l``. The loss of a row is the share of its active units
    that are missed, at most 1, and falls with l. Conformal risk control takes the least l with

    .. math:: \frac{n}{n + 1} \hat R(l) + \frac{1}{n + 1} \le 1 - \mathrm{recall}

    where :math:`\hat R` is the mean loss of the n rows with a unit on; if a new row is exchangeable with them, its
    expected loss is then at most 1 - recall [1]_. No sample can promise a recall of 1: then l is what misses nothing
    in this sample.

    Parameters
    ----------
    needs : Tensor of shape (m, s)
        Level above which each unit is computed, from rows that the rule was not fitted to.
    on : Tensor of shape (m, s), bool
        Units that are truly on.
    recall : float
        In (0, 1].

    Raises
    ------
    ValueError
        If fewer rows than :func:`least_rows` have a unit on.

    References
    ----------
    .. [1] A. Angelopoulos, S. Bates, A. Fisch, L. Lei, T. Schuster, "Conformal Risk Control", 2022, Theorem 1.
    """
    counts = on.sum(1)
    n = int((counts > 0).sum())
    if n < least_rows(recall):
        raise ValueError(
            f"recall {recall:g} needs {least_rows(recall)} calibration rows in which a unit is on; {n} of {len(on)} "
            "are: pass more sample inputs, of which a quarter serves calibration, or ask for less recall."
        )
    row = on.nonzero()[:, 0]
    order = needs[on].argsort(descending=True)
    allowed = (1 - recall) * (n + 1) - 1 if recall < 1 else 0.0
    missed = (1 / counts[row[order]].double()).cumsum(
        0
    )  # loss if the first of them, the hardest to reach, are left out
    n_missed = min(int((missed <= allowed + 1e-9).sum()), len(order) - 1)
    return above(float(needs[on][order[n_missed]]))


def level_for_density(needs: Tensor, density: float) -> float:
    """The largest level at which at most a share ``density`` of all units are computed, (m, s) ``needs``."""
    most = int(density * needs.numel())
    if most >= needs.numel():
        return above(float(needs.max()))
    return float(needs.flatten().kthvalue(most + 1).values)


def above(value: float) -> float:
    """The next larger number of single precision, in which needs are compared."""
    return float(torch.nextafter(torch.tensor(value, dtype=torch.float32), torch.tensor(torch.inf)))


def relative_error(weights: BlockWeights, h: Tensor, left_out: Tensor) -> float:
    r"""Relative error of the output without the activations that are ``left_out`` (m, s): a root mean square over rows.

    .. math:: \sqrt{\sum \|V (h \cdot 1_{\text{left out}})\|^2 / \sum \|V h\|^2}
    """
    whole = float(weights.output(h).double().square().sum())
    if not whole:
        raise ValueError(
            "the block's output is 0 on every sample input, so an error relative to it has no meaning; "
            "pass other sample inputs, or a density."
        )
    return sqrt(float(weights.output(h.masked_fill(~left_out, 0)).double().square().sum()) / whole)


def largest_within(loss: Callable[[int], float], most: int, error: float) -> int:
    """A place i of 0 ... most with loss(i) <= error and, unless i is the last, loss(i + 1) > error.

    Place 0 is taken to be within. Where the loss grows, as it does but for cancellation between units,
    it is the largest.
    """
    if loss(most) <= error:
        return most
    inside, outside = 0, most
    while outside - inside > 1:
        middle = (inside + outside) // 2
        inside, outside = (middle, outside) if loss(middle) <= error else (inside, middle)
    return inside
