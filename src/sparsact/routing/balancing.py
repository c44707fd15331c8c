"""Terms of a learned gate's auxiliary loss: balance over a batch and over each sequence, and large logits.

All are sums over inputs divided by ``n_inputs``, so that parts of a batch add up; ``real`` (m,) is 0 for padding, and
``probabilities`` are (m, E).
"""

from __future__ import annotations

from typing import Any

from sparsact.routing.array_functions import Array, constant, integers, namespace
from sparsact.routing.selection import EMPTY, counts_of


def batch_balance(probabilities: Array, real: Array, load: Array, n_inputs: float | Array) -> Any:
    """``E sum_i f_i P_i``, with the share f_i of expert i in ``load`` (E,), and its mean probability P_i."""
    xp = namespace(probabilities)
    shares = load / xp.clip(xp.sum(load), 1, None)
    return probabilities.shape[1] * xp.sum(shares * xp.sum(probabilities * real[:, None], axis=0) / n_inputs)


def sequence_balance(
    probabilities: Array, units: Array, real: Array, length: int | None, n_inputs: float | Array
) -> Any:
    """The same within each sequence of ``length`` inputs, a mean over sequences that is weighted by their inputs.

    ``units`` (m, k) are the choices that f counts; one sequence without ``length``.
    """
    xp, (m, experts), k = namespace(probabilities), probabilities.shape, units.shape[1]
    length = max(m if length is None else length, 1)
    n = m // length
    sequence = (integers(m, probabilities) // length)[:, None]
    places = xp.where(real[:, None] > 0, units + experts * sequence, EMPTY)
    load = xp.astype(xp.reshape(counts_of(places, n * experts), (n, experts)), probabilities.dtype)
    sums = xp.sum(xp.reshape(probabilities * real[:, None], (n, length, experts)), axis=1)
    inputs = xp.clip(xp.sum(xp.reshape(real, (n, length)), axis=1), 1, None)
    return experts * xp.sum(load / (k * inputs[:, None]) * sums) / n_inputs


def squared_normaliser(logits: Array, real: Array, n_inputs: float | Array) -> Any:
    """Mean of ``log(sum_i exp(logits_i)) ** 2``."""
    xp = namespace(logits)
    top = constant(xp.max(logits, axis=1, keepdims=True))
    normaliser = xp.log(xp.sum(xp.exp(logits - top), axis=1)) + top[:, 0]
    return xp.sum(normaliser * normaliser * real) / n_inputs
