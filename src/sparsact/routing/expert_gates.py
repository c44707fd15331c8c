"""Learned gates over experts: scores, choice, capacity and balancing losses."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, replace
from math import ceil
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.routing.array_functions import Array, ascending, constant, namespace, ones, scores, taken
from sparsact.routing.balancing import batch_balance, sequence_balance, squared_normaliser
from sparsact.routing.router import Router, State, check_choice
from sparsact.routing.selection import EMPTY, Selection, counts_of
from sparsact.routing.top_k import largest
from sparsact.validation.parameters import check_numbers, check_random_state, check_sizes, checked_option

NORMALISERS: Final = ("chosen", "all")
PRIORITIES: Final = ("weight", "arrival")
ROUNDING: Final = 1e-9  # tolerance of a capacity: 1.1 * 100 / 10 is 11, and 11.000000000000002 in float64


@dataclass(frozen=True)
class ExpertGate(Router):
    """Base of routers with a learned ``gate`` (experts, in_features), whose experts have limited room in a batch.

    The state may hold ``mask`` (m,), False for padding: such inputs are sent nowhere, take no room, count in no loss;
    and ``length``, the number of inputs of a sequence, in layers the last axis but one.
    :class:`SoftmaxTopK` explains the fields.
    """

    state_names: ClassVar[tuple[str, ...]] = ("gate",)
    trainable: ClassVar[tuple[str, ...]] = ("gate",)
    reads_mask: ClassVar[bool] = True
    n_experts: int
    _: KW_ONLY
    capacity_factor: float | None = None
    group_size: int | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        check_sizes(self, "n_experts")
        check_sizes(self, "group_size", optional=True)
        check_random_state(self)

    @abstractmethod
    def capacity(self, n_inputs: float | Array, *, training: bool) -> Any:
        """Largest number of inputs of a group, by default the batch, that an expert takes; None for no limit."""

    @property
    def reads_others(self) -> bool:
        """Whether room is limited, in training or outside of it."""
        return any(self.capacity(1.0, training=training) is not None for training in (True, False))

    def width(self, in_features: int) -> int:
        """``n_experts``."""
        return self.n_experts

    def initial_state(self, in_features: int, *, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """``gate`` (experts, in_features), normal with variance 0.1 / in_features, as in Section 2.4 of Fedus et al."""
        return {"gate": rng.normal(scale=np.sqrt(0.1 / in_features), size=(self.n_experts, in_features))}

    def most_taken(self, m: int, *, training: bool) -> int | None:
        """Room of all experts; None for no limit."""
        room = self.capacity(m if self.group_size is None else self.group_size, training=training)
        groups = 1 if self.group_size is None else -(-m // self.group_size)  # no branch on m: an export would keep it
        return None if room is None else room * self.n_experts * groups

    def _group_sizes(self, m: int, size: int, real: Array | None, group: Array) -> Any:
        """Inputs of each group, without padding, and 0 for groups past the last: exports treat one group as special."""
        xp = namespace(group)
        counted = xp.where(real, group, EMPTY) if real is not None else group
        return xp.astype(counts_of(counted, m // size + 2), xp.float64)

    def flops(self, in_features: int) -> int:
        """The gate's products, the scores and the comparison."""
        return self.n_experts * (2 * in_features + 4)


@dataclass(frozen=True)
class InputChoice(ExpertGate):
    """Base of gates where each input chooses the k experts with the highest scores; auxiliary losses balance them."""

    _: KW_ONLY
    eval_capacity_factor: float | None = None
    priority: str = "weight"
    load_balance: float = 1.0
    z_loss: float = 0.1
    sequence_balance: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(self, "capacity_factor", "eval_capacity_factor", positive=True, optional=True)
        check_numbers(self, "load_balance", "z_loss", "sequence_balance")
        checked_option(self.priority, "`priority`", PRIORITIES)
        check_choice(self.max_active(1), self.n_experts)

    def _probabilities(self, logits: Array) -> Any:
        """Scores (m, experts) that weights and losses are made of."""
        return softmax(logits)

    def _keys(self, logits: Array, state: State) -> Any:
        """Keys (m, experts) whose largest are chosen."""
        return logits

    def _weights(self, logits: Array, probabilities: Array, units: Array) -> Any:
        """Weights (m, k) of the chosen experts."""
        return taken(probabilities, units)

    def _priorities(self, logits: Array, probabilities: Array, units: Array) -> Any:
        """Numbers (m, k) whose largest keep their place in a full expert."""
        return taken(probabilities, units)

    def capacity(self, n_inputs: float | Array, *, training: bool) -> Any:
        """ceil(factor * k * n_inputs / E), or None for no limit."""
        factor = self.capacity_factor if training else self.eval_capacity_factor
        return None if factor is None else rounded_up(factor * self.max_active(1) * n_inputs / self.n_experts)

    def select(self, x: Array, state: State, *, training: bool = False) -> Selection:
        """The chosen experts of each row with their weights; the gate's logits stay with them."""
        xp = namespace(x)
        logits = scores(x, state["gate"])
        probabilities = self._probabilities(logits)
        units = largest(constant(self._keys(logits, state)), self.max_active(x.shape[1]))
        weights = self._weights(logits, probabilities, units)
        priorities = constant(self._priorities(logits, probabilities, units))
        real = state["mask"] if "mask" in state else xp.ones((x.shape[0],), dtype=xp.bool, device=x.device)
        units = xp.where(real[:, None], units, EMPTY)
        counts = counts_of(units, self.n_experts)
        late = self._late(units, priorities, real if "mask" in state else None, training)
        units = xp.where(late, EMPTY, units)
        weights, late = xp.where(units == EMPTY, 0, xp.astype(weights, x.dtype)), xp.any(late, axis=1)
        real, length = state.get("mask"), state.get("length")
        selection = Selection(units, weights, logits, None, counts, late, real=real, length=length)
        return replace(selection, auxiliary_loss=self._loss(selection, probabilities, counts, counts))

    def _late(self, units: Array, priorities: Array, real: Array | None, training: bool) -> Any:
        """Places (m, k) beyond the room of their experts: first choices come before second ones, then by priority."""
        xp = namespace(units)
        m, k = units.shape
        size = m if self.group_size is None else self.group_size
        if self.capacity(1.0, training=training) is None or not m:
            return xp.zeros_like(units, dtype=xp.bool)
        arrived = xp.arange(m, dtype=xp.int64, device=units.device)
        group = arrived // size
        if self.priority == "weight":
            arrived = ascending(ascending(-xp.max(priorities, axis=1)))
        rank = ascending(ascending(-priorities, axis=1), axis=1) * m + arrived[:, None]
        queue = xp.reshape(xp.where(units == EMPTY, -1, units + self.n_experts * group[:, None]), (m * k,))
        order = ascending(xp.reshape(rank, (m * k,)))
        order = order[ascending(queue[order])]
        served = queue[order]
        lengths = counts_of(served + 1, self.n_experts * (m // size + 2) + 1)  # of queues, after that of nobody
        first = xp.cumsum(lengths, axis=0) - lengths
        before = xp.arange(m * k, dtype=xp.int64, device=units.device) - first[served + 1]
        place = xp.reshape(before[ascending(order)], (m, k))
        room = self.capacity(self._group_sizes(m, size, real, group), training=training)
        return (place >= room[group][:, None]) & (units != EMPTY)

    def pooled_loss(self, selection: Selection, counts: Array, load: Array, n_processes: int) -> Any:
        """Auxiliary loss of one process's inputs, whose mean over processes is the loss of all of them.

        ``counts`` (experts,) are summed over processes; ``load`` (experts,), for f, has earlier inputs too.
        """
        return self._loss(selection, self._probabilities(selection.logits), load, counts, n_processes)

    def _loss(self, its: Selection, probabilities: Array, load: Array, counts: Array, n_processes: int = 1) -> Any:
        xp, k = namespace(its.logits), self.max_active(1)
        logits = its.logits
        real = ones(logits.shape[:1], logits) if its.real is None else xp.astype(its.real, logits.dtype)
        n = xp.clip(xp.sum(xp.astype(counts, logits.dtype)) / k, 1, None) / n_processes  # without padding
        total = xp.zeros((), dtype=logits.dtype, device=logits.device)
        if self.load_balance:
            load = xp.astype(load, logits.dtype)
            total = total + self.load_balance * batch_balance(probabilities, real, load, n)
        if self.sequence_balance:
            best = largest(constant(logits), k)  # as in DeepSeek-V3, without biases
            total = total + self.sequence_balance * sequence_balance(probabilities, best, real, its.length, n)
        return total + self.z_loss * squared_normaliser(logits, real, n) if self.z_loss else total


def rounded_up(share: float | Array) -> Any:
    """The least whole number not below a number, or each number of an array, up to rounding."""
    if isinstance(share, float) or not hasattr(share, "shape"):  # torch.export has floats of a kind of its own
        return ceil(share - ROUNDING)
    return namespace(share).ceil(share - ROUNDING)


def softmax(logits: Array) -> Any:
    """Probabilities (m, t) of each row."""
    xp = namespace(logits)
    exponentials = xp.exp(logits - constant(xp.max(logits, axis=1, keepdims=True)))
    return exponentials / xp.sum(exponentials, axis=1, keepdims=True)


@dataclass(frozen=True)
class SoftmaxTopK(InputChoice):
    r"""Chooses the k most probable of E experts: the gate of Mixtral, OLMoE and Qwen3.

    With :math:`p(x) = \mathrm{softmax}(Gx)`, the k largest :math:`p_i(x)` are chosen. Their weights are
    :math:`p_i / \sum_{j\ \mathrm{chosen}} p_j`, a softmax over the chosen [1]_, or :math:`p_i` itself [2]_. The
    auxiliary loss is the one of [2]_ for k choices,

    .. math:: \lambda E \sum_i f_i P_i + \mu\, \mathbb{E}_x \big(\log \textstyle\sum_i e^{(Gx)_i}\big)^2,

    with :math:`f_i` the share of all choices that fell on expert i, before drops, and :math:`P_i` its mean probability:
    the first term is :math:`\lambda` when both are uniform, as in Megatron and DeepSeek-V3. The loss of transformers is
    k times as large.

    Parameters
    ----------
    n_experts, n_active : int
        E, and k, 2 by default.
    normalise : {"chosen", "all"}, default=None
        Experts over which the weights sum to 1. None means ``"chosen"`` for two or more experts, and ``"all"`` for
        one: a single chosen expert would always have weight 1, and the task would give the gate no gradient.
    capacity_factor, eval_capacity_factor : float or None, default=None
        In training and in evaluation, an expert takes at most ``ceil(factor * k * m / E)`` of m inputs. None: no limit.
        With a limit, an input may lose its expert to others in its group, including later tokens of a text.
    priority : {"weight", "arrival"}
        Inputs that keep a full expert: the ones with the largest probability, before normalisation over the chosen
        experts [3]_, or the first of the batch.
    group_size : int or None, default=None
        Number of consecutive inputs (a text, the inputs of a process) that share a room; None for the whole batch.
    load_balance, z_loss : float, default=1.0 and 0.1
        :math:`\lambda` and :math:`\mu`. Training adds 0.01 of the auxiliary loss, so that they are 0.01 and 0.001.
    sequence_balance : float, default=0.0
        Weight of the first term within each sequence, with choices without biases, averaged over sequences by their
        inputs without padding: equations (17) to (20) of [4]_, whose :math:`\alpha` of 0.0001 is 0.01 here.
    random_state : int, default=0
        Seed of the gate; used if no state is given.

    References
    ----------
    .. [1] A. Jiang et al., "Mixtral of Experts", 2024, Section 2.1.
    .. [2] W. Fedus, B. Zoph, N. Shazeer, "Switch Transformers", 2021, equation (4).
    .. [3] C. Riquelme et al., "Scaling Vision with Sparse Mixture of Experts", 2021, Section 4.
    .. [4] DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, Section 2.1.2.

    Examples
    --------
    Logits of 0, log 2 and log 4 are probabilities of 1/7, 2/7 and 4/7:

    >>> gate = {"gate": np.log([[1.0], [2.0], [4.0]])}
    >>> SoftmaxTopK(3, 2)([[1.0]], gate).weights.round(3)
    array([[0.333, 0.667]])
    >>> SoftmaxTopK(3, 2, normalise="all")([[1.0]], gate).weights.round(3)
    array([[0.286, 0.571]])
    """

    name: ClassVar[str] = "softmax_top_k"
    n_active: int = 2
    normalise: str | None = None

    def __post_init__(self) -> None:
        check_sizes(self, "n_active")
        checked_option(self.normalise or NORMALISERS[0], "`normalise`", NORMALISERS)
        super().__post_init__()

    def max_active(self, in_features: int) -> int:
        """``n_active``."""
        return self.n_active

    def _weights(self, logits: Array, probabilities: Array, units: Array) -> Any:
        chosen = taken(probabilities, units)
        if (self.normalise or ("all" if self.n_active == 1 else "chosen")) == "all":
            return chosen
        return chosen / namespace(chosen).sum(chosen, axis=1, keepdims=True)
