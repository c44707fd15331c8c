"""Conformal calibration of a predictor's level, so that new inputs get the requested recall."""

from __future__ import annotations

from math import ceil

import torch
from torch import Tensor


def min_rows(recall: float) -> int:
    """Rows with active units that calibration needs for a recall: 1 / (1 - recall) - 1, and one for recall 1."""
    return 1 if recall == 1 else ceil(round(1 / (1 - recall), 6)) - 1


def level_for_recall(unit_levels: Tensor, on: Tensor, recall: float) -> float:
    r"""The smallest level at which new inputs get ``recall`` of their active units, in expectation.

    Unit j of row i is computed at level l if ``unit_levels[i, j] < l``. The loss of a row is the share of its active
    units that are missed, at most 1, and falls with l. Conformal risk control takes the smallest l with

    .. math:: \frac{n}{n + 1} \hat R(l) + \frac{1}{n + 1} \le 1 - \mathrm{recall}

    where :math:`\hat R` is the mean loss of the n rows with a unit on; if a new row is exchangeable with them, its
    expected loss is then at most 1 - recall [1]_. No sample can promise a recall of 1: then l is what misses nothing
    in this sample.

    Parameters
    ----------
    unit_levels : Tensor of shape (m, s)
        Level above which each unit is computed, for rows that the predictor was not fitted to.
    on : Tensor of shape (m, s), bool
        Units that are truly on.
    recall : float
        In (0, 1].

    Raises
    ------
    ValueError
        If fewer rows than :func:`min_rows` have a unit on.

    References
    ----------
    .. [1] A. Angelopoulos, S. Bates, A. Fisch, L. Lei, T. Schuster, "Conformal Risk Control", 2022, Theorem 1.
    """
    counts = on.sum(1)
    n = int((counts > 0).sum())
    if n < min_rows(recall):
        raise ValueError(
            f"recall {recall:g} needs {min_rows(recall)} calibration rows in which a unit is on; {n} of {len(on)} "
            "are: pass more sample inputs, of which a quarter serves calibration, or ask for less recall."
        )
    row = on.nonzero()[:, 0]
    order = unit_levels[on].argsort(descending=True)
    allowed = (1 - recall) * (n + 1) - 1 if recall < 1 else 0.0
    missed = (1 / counts[row[order]].double()).cumsum(0)  # loss if the first units, the hardest to reach, are left out
    n_missed = min(int((missed <= allowed + 1e-9).sum()), len(order) - 1)
    return _next_float32(float(unit_levels[on][order[n_missed]]))


def level_for_density(unit_levels: Tensor, density: float) -> float:
    """The largest level at which at most a share ``density`` of all units is computed, from ``unit_levels`` (m, s)."""
    max_units = int(density * unit_levels.numel())
    if max_units >= unit_levels.numel():
        return _next_float32(float(unit_levels.max()))
    return float(unit_levels.flatten().kthvalue(max_units + 1).values)


def _next_float32(value: float) -> float:
    """The next larger number of single precision, in which levels are compared."""
    return float(torch.nextafter(torch.tensor(value, dtype=torch.float32), torch.tensor(torch.inf)))
