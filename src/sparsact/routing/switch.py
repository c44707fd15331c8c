"""One expert for each input, by a learned gate, with a limited number of inputs each."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from sparsact.routing.expert_gates import InputChoice


@dataclass(frozen=True)
class Switch(InputChoice):
    r"""Chooses the most probable of E experts, weighted by its probability.

    With :math:`p(x) = \mathrm{softmax}(Gx)`, the input goes to :math:`\arg\max_i p_i(x)`. In training an expert takes
    at most :math:`\lceil c\, m / E \rceil` of a batch of m inputs, in order of arrival; later ones are dropped: they
    switch nothing on. Order and room are over the whole batch. The auxiliary loss [1]_ is

    .. math:: \lambda E \sum_i f_i P_i + \mu\, \mathbb{E}_x \big(\log \textstyle\sum_i e^{(Gx)_i}\big)^2,

    with :math:`f_i` the share of inputs sent to expert i, before drops, and :math:`P_i` its mean probability: the first
    term is :math:`\lambda` when both are uniform.

    Parameters
    ----------
    n_experts : int
        Experts, E.
    capacity_factor, eval_capacity_factor : float or None, default=1.25 and None
        Factor c in training and in evaluation; None for no limit.
    load_balance, z_loss : float, default=1.0 and 0.0
        :math:`\lambda`, and :math:`\mu` against large logits [2]_. Training adds about 0.01 of the auxiliary loss.
    random_state : int, default=0
        Seed of the gate; used if no state is given.
    priority, group_size, sequence_balance
        As in :class:`SoftmaxTopK`; by default ``"arrival"``, room in the whole batch, and 0.

    References
    ----------
    .. [1] W. Fedus, B. Zoph, N. Shazeer, "Switch Transformers", 2021, Section 2 and equation (4).
    .. [2] B. Zoph et al., "ST-MoE", 2022, equation (5).

    Examples
    --------
    Two experts, and a gate that sends positive inputs to the first. Each may take one of two inputs in training:

    >>> import numpy as np
    >>> router, gate = Switch(2, capacity_factor=1.0), {"gate": np.array([[1.0], [-1.0]])}
    >>> router(np.array([[3.0], [4.0]]), gate, training=True).indices.tolist()
    [[0], [-1]]
    >>> router(np.array([[3.0], [-4.0]]), gate).indices.tolist()
    [[0], [1]]
    """

    name: ClassVar[str] = "switch"
    _: KW_ONLY
    capacity_factor: float | None = 1.25
    priority: str = "arrival"
    z_loss: float = 0.0
