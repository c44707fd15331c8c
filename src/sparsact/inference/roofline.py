r"""The byte roofline of sparse activations: how fast reading less can possibly be.

Decoding one token at a time is bound by memory: every weight is read once and used once, so time is bytes. A method
that reads fewer bytes is faster by at most the ratio of the bytes. Assumptions: one input at a time (or a small batch,
whose inputs share what is read), weights that come from memory and not from a cache, all memory equally fast. Biases,
scales of rows and activations are left out of a block's bytes: they are about a d-th part of its weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from torch import nn

METHODS: Final = ("oracle", "exact", "certified")


@dataclass(frozen=True)
class Roofline:
    """Bytes of weights that a block reads for one input (or one small batch), by method.

    Attributes
    ----------
    dense : int
        All weights.
    oracle : float
        The rows of active units of every matrix: no method can read less.
    exact : float or None
        The switch matrix (the gate, or else ``up``), and the rows of active units of the others. None where units that
        are off are not exactly zero.
    certified : float or None
        As ``exact``, but of the switch matrix one byte per weight and the rows of units that this leaves in doubt.
    """

    dense: int
    oracle: float
    exact: float | None
    certified: float | None

    def saved(self, method: str) -> float:
        """Bytes that one of ``METHODS`` saves over the dense block: 0 where it does not apply."""
        read: float | None = getattr(self, method)
        return 0.0 if read is None else self.dense - read

    def speedup(self, method: str) -> float | None:
        """Largest speed-up of a method over dense: infinite if it reads nothing, None where it does not apply."""
        read: float | None = getattr(self, method)
        return None if read is None else ratio(self.dense, read)


def roofline(
    n_inputs: int,
    n_units: int,
    n_outputs: int,
    *,
    gated: bool,
    itemsize: int,
    density: float,
    zeros: bool = True,
    thresholds: bool = True,
) -> Roofline:
    r"""Bytes that a block reads, by method.

    With d inputs, s units, o outputs, b bytes per weight, density p, which is the least share of units that a screen
    leaves in doubt, and g = 1 for a gated block and 0 else:

    .. math::
        \text{dense} &= b s (d + g d + o) \\
        \text{oracle} &= p \cdot \text{dense} \\
        \text{exact} &= b s (d + p (g d + o)) \\
        \text{certified} &= s d + p \cdot \text{dense}

    Parameters
    ----------
    n_inputs, n_units, n_outputs : int
        Sizes d, s and o.
    gated : bool
    itemsize : int
        Bytes per weight.
    density : float
        Mean share of active units; for a batch, of units that are active for any of its inputs. Bytes are linear in it,
        so that the mean density gives the mean bytes.
    zeros : bool
        Whether units are exactly zero when they are off: otherwise no exact method applies.
    thresholds : bool
        Whether units are off below a threshold each: otherwise nothing is screened, and certified is exact.

    Returns
    -------
    roofline : Roofline

    Raises
    ------
    ValueError
        If the density is not between 0 and 1.

    Examples
    --------
    >>> found = roofline(2048, 8192, 2048, gated=False, itemsize=4, density=0.03)
    >>> [round(found.speedup(method), 2) for method in METHODS]
    [33.33, 1.94, 6.45]
    """
    if not 0 <= density <= 1:
        raise ValueError(f"`density` must lie between 0 and 1, got {density}: pass a share of the units.")
    switch, others = n_units * n_inputs, n_units * (n_inputs * gated + n_outputs)
    dense = itemsize * (switch + others)
    if not zeros:
        return Roofline(dense, density * dense, None, None)
    of_others = itemsize * density * others
    exact = itemsize * switch + of_others
    certified = switch + itemsize * density * switch + of_others if thresholds else exact
    return Roofline(dense, density * dense, exact, certified)


def bytes_read(model: nn.Module, *, batch: int = 1) -> int:
    """Bytes of parameters that a model reads for one token each of ``batch`` sequences.

    All parameters of each module once, so that a weight that two modules share counts for both; of an ``nn.Embedding``
    a row for each token. Buffers and what is kept of earlier tokens (keys and values) are not counted.

    Parameters
    ----------
    model : nn.Module
    batch : int
        Tokens that share what is read.

    Returns
    -------
    n_bytes : int
    """
    total = 0
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            is_looked_up = isinstance(module, nn.Embedding)
            total += (batch * parameter.shape[-1] if is_looked_up else parameter.numel()) * parameter.itemsize
    return total


def amdahl(total: float, saved: float) -> float:
    """Largest speed-up of a whole that reads ``saved`` of its ``total`` bytes less; infinite if none are left.

    Parameters
    ----------
    total : float
        Bytes that the dense whole reads.
    saved : float
        Bytes fewer.

    Returns
    -------
    factor : float
        total / (total - saved).

    Examples
    --------
    Two thirds of a model, read at 3 %:

    >>> round(amdahl(3, 2 * 0.97), 2)
    2.83
    """
    return ratio(total, total - saved)


def counted_twice(method: str, ended: Roofline, begun: Roofline) -> float:
    """Bytes too many in the sum of what two blocks save on a layer that ends one and begins the other.

    The oracle reads what is active for both; another method computes the layer for the block that saves more.
    """
    saved = ended.saved(method), begun.saved(method)
    return saved[0] * saved[1] / ended.dense if method == "oracle" else min(saved)


def ratio(dense: float, read: float) -> float:
    """``dense / read``, infinite where nothing is read, 1 where there is nothing to read."""
    if not dense:
        return 1.0
    return dense / read if read > 0 else math.inf
