"""One expert for each input, by a learned gate, with a limited number of inputs each."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsact.routing.backend import namespace, scores
from sparsact.routing.router import Router, State
from sparsact.routing.selection import EMPTY, Selection, counts_of
from sparsact.validation.former_names import renamed
from sparsact.validation.parameters import check_numbers, check_random_state, check_sizes


@renamed(seed="random_state")
@dataclass(frozen=True)
class Switch(Router):
    r"""The most probable of E experts, weighted by its probability.

    With :math:`p(x) = \mathrm{softmax}(Gx)`, the input goes to :math:`\arg\max_i p_i(x)`. In training an expert takes
    at most :math:`\lceil c\, m / E \rceil` of a batch of m inputs, in order of arrival; later ones are dropped: they
    switch nothing on. The auxiliary loss [1]_ is

    .. math:: \lambda E \sum_i f_i P_i + \mu\, \mathbb{E}_x \big(\log \textstyle\sum_i e^{(Gx)_i}\big)^2,

    with :math:`f_i` the share of inputs sent to expert i, before drops, and :math:`P_i` its mean probability: the first
    term is :math:`\lambda` when both are uniform.

    Parameters
    ----------
    n_experts : int
        Experts, E.
    capacity_factor, eval_capacity_factor : float or None, default=1.25 and None
        c in training and outside of it; None for no limit.
    load_balance, z_loss : float, default=1.0 and 0.0
        :math:`\lambda`, and :math:`\mu` against large logits [2]_. Training adds about 0.01 of the auxiliary loss.
    random_state : int, default=0
        Of the gate, where no state is given.

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
    state_names: ClassVar[tuple[str, ...]] = ("gate",)
    trainable: ClassVar[tuple[str, ...]] = ("gate",)
    n_experts: int
    capacity_factor: float | None = 1.25
    eval_capacity_factor: float | None = None
    load_balance: float = 1.0
    z_loss: float = 0.0
    random_state: int = 0

    def __post_init__(self) -> None:
        check_sizes(self, "n_experts")
        check_numbers(self, "capacity_factor", "eval_capacity_factor", positive=True, optional=True)
        check_numbers(self, "load_balance", "z_loss")
        check_random_state(self)

    def width(self, in_features: int) -> int:
        """``n_experts``."""
        return self.n_experts

    def max_active(self, in_features: int) -> int:
        """One."""
        return 1

    def initial_state(self, in_features: int, *, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """``gate`` (experts, in_features), normal with variance 0.1 / in_features, as in Section 2.4 of Fedus et al."""
        return {"gate": rng.normal(scale=np.sqrt(0.1 / in_features), size=(self.n_experts, in_features))}

    def capacity(self, n_inputs: int, *, training: bool) -> int | None:
        """The most inputs of a batch that an expert takes; None for no limit."""
        factor = self.capacity_factor if training else self.eval_capacity_factor
        return None if factor is None else ceil(factor * n_inputs / self.n_experts)

    def select(self, x: Any, state: State, *, training: bool = False) -> Selection:
        """The expert of each row, weighted by its probability; logits are those of the gate."""
        xp = namespace(x)
        m = x.shape[0]
        logits = scores(x, state["gate"])
        top = xp.max(logits, axis=1, keepdims=True) if m else logits[:, :1]
        exponentials = xp.exp(logits - top)
        total = xp.sum(exponentials, axis=1, keepdims=True)
        probabilities = exponentials / total
        expert = xp.argmax(logits, axis=1, keepdims=True) if m else xp.astype(logits[:, :1], xp.int64)
        counts = counts_of(expert, self.n_experts)
        room = self.capacity(m, training=training)
        dropped = xp.zeros((m,), dtype=xp.bool, device=x.device) if room is None else self._late(expert, room)
        weights = xp.astype(xp.take_along_axis(probabilities, expert, axis=1), x.dtype)
        normaliser = xp.log(total) + top
        loss = self._loss(probabilities, counts, normaliser) if m else xp.sum(logits)
        return Selection(
            xp.where(dropped[:, None], EMPTY, expert),
            xp.where(dropped[:, None], xp.zeros_like(weights), weights),
            logits,
            loss,
            counts,
            dropped,
        )

    def _late(self, expert: Any, room: int) -> Any:
        """Rows (m,) that come to an expert after ``room`` others."""
        xp = namespace(expert)
        experts = xp.arange(self.n_experts, dtype=xp.int64, device=expert.device)
        sent = xp.astype(expert == experts, xp.int64)
        arrival = xp.take_along_axis(sent.cumsum(0), expert, axis=1)[:, 0]
        return arrival > room

    def _loss(self, probabilities: Any, counts: Any, normaliser: Any) -> Any:
        xp = namespace(probabilities)
        m = probabilities.shape[0]
        share = xp.astype(counts, probabilities.dtype) / m
        balance = self.n_experts * xp.sum(share * xp.mean(probabilities, axis=0))
        return self.load_balance * balance + self.z_loss * xp.mean(normaliser * normaliser)

    def flops(self, in_features: int) -> int:
        """The gate's products, the softmax and the comparison."""
        return self.n_experts * (2 * in_features + 4)
