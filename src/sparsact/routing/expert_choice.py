"""Experts that choose their inputs."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from sparsact.routing.array_functions import Array, ascending, constant, integers, namespace, scores
from sparsact.routing.expert_gates import ExpertGate, rounded_up, softmax
from sparsact.routing.router import State
from sparsact.routing.selection import EMPTY, Selection
from sparsact.validation.parameters import check_numbers


@dataclass(frozen=True)
class ExpertChoice(ExpertGate):
    r"""Each of E experts chooses the inputs with its largest probabilities, the same number for every expert.

    With :math:`p(x) = \mathrm{softmax}(Gx)`, expert i takes the :math:`\lceil c\, m / E \rceil` of m inputs with the
    largest :math:`p_i(x)` and weights them by it [1]_. The load is even by construction, so there is no auxiliary loss;
    an input has between none and all of the experts.

    Parameters
    ----------
    n_experts : int
        E.
    capacity_factor : float, default=2.0
        Mean number c of experts per input.
    random_state : int, default=0
        Seed of the gate; used if no state is given.
    group_size : int or None, default=None
        Number of consecutive inputs (a text, an image) that experts choose among; None for the whole batch.

    Notes
    -----
    Whether an expert takes an input depends on all inputs of its group, later ones of a text too: a causal language
    model that trains with this router reads the future. Take a router by which each input chooses.
    As with learned gates, the state may hold ``mask`` (m,), False for padding: no expert takes that.

    References
    ----------
    .. [1] Y. Zhou et al., "Mixture-of-Experts with Expert Choice Routing", 2022, Section 3.2.

    Examples
    --------
    Two experts take one of two inputs each, the first expert the larger one:

    >>> gate = {"gate": [[1.0], [-1.0]]}
    >>> ExpertChoice(2, capacity_factor=1.0)([[1.0], [-2.0]], gate).indices.tolist()
    [[0, -1], [-1, 1]]
    """

    name: ClassVar[str] = "expert_choice"
    _: KW_ONLY
    capacity_factor: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(self, "capacity_factor", positive=True)

    def max_active(self, in_features: int) -> int:
        """``n_experts``: all of them may take one input."""
        return self.n_experts

    def mean_active(self, in_features: int) -> float:
        """Mean number of experts per input."""
        return min(self.capacity_factor, self.n_experts)

    def select(self, x: Array, state: State, *, training: bool = False) -> Selection:
        """The experts that take each row, with its probabilities; place i of a row is that of expert i."""
        xp = namespace(x)
        m, logits = x.shape[0], scores(x, state["gate"])
        probabilities = softmax(logits)
        ranked, real = constant(probabilities), state.get("mask")
        if real is not None:
            ranked = xp.where(real[:, None], ranked, -1.0)
        size = max(m if self.group_size is None else self.group_size, 1)
        group = xp.arange(m, dtype=xp.int64, device=x.device) // size
        room = self.capacity(self._group_sizes(m, size, real, group), training=training)[group]
        rank = ascending(ascending(-ranked, axis=0), axis=0) + m * group[:, None]
        place = ascending(ascending(rank, axis=0), axis=0) - size * group[:, None]
        taken = (place < room[:, None]) & (ranked >= 0)
        units = xp.where(taken, integers(self.n_experts, x), EMPTY)
        weights = xp.where(taken, xp.astype(probabilities, x.dtype), 0)
        dropped = ~xp.any(taken, axis=1)
        others = {"dropped": dropped if real is None else dropped & real, "real": real, "is_partial": True}
        return Selection.of(units, weights, self.n_experts, logits=logits, **others)

    def capacity(self, n_inputs: float | Array, *, training: bool) -> Any:
        """Inputs of a batch that each expert takes."""
        return rounded_up(self.capacity_factor * n_inputs / self.n_experts)
