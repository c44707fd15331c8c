"""Gates of sigmoid scores, balanced by biases."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.routing.array_functions import Array, namespace, sigmoid, taken
from sparsact.routing.expert_gates import InputChoice
from sparsact.routing.router import State
from sparsact.validation.parameters import check_numbers, check_sizes

_TINY: Final = 1e-20  # where all scores underflow, weights are 0 and not NaN


@dataclass(frozen=True)
class SigmoidTopK(InputChoice):
    r"""The k experts of the largest :math:`\sigma((Gx)_i) + b_i`, balanced by the bias b instead of a loss.

    The bias decides the choice alone: the weights are :math:`c\, s_i / \sum_{j\ \mathrm{chosen}} s_j` with
    :math:`s = \sigma(Gx)`, and :math:`c\, s_i` for a single choice, so that the gate learns. After each step of
    training ``sparsact.layers.update_biases`` adds :math:`u\, \mathrm{sign}(\bar n - n_i)` to :math:`b_i`, for the
    number :math:`n_i` of inputs that expert i had [1]_.

    Parameters
    ----------
    n_experts, n_active : int
        E, and k, 2 by default.
    bias_rate : float, default=0.001
        u. In runs of a few hundred steps biases need 0.01 to reach the spread of the scores.
    scale : float, default=1.0
        c.
    capacity_factor, eval_capacity_factor, priority, group_size, load_balance, z_loss, sequence_balance, random_state
        As in :class:`SoftmaxTopK`; the losses are 0 by default, and take :math:`s_i / \sum_j s_j` for probabilities.
        A full expert keeps the inputs of the largest :math:`s_i`, as in DeepSeek-V2 [2]_.

    References
    ----------
    .. [1] L. Wang et al., "Auxiliary-Loss-Free Load Balancing Strategy for Mixture-of-Experts", 2024, Algorithm 1, and
       DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, Section 2.1.2.
    .. [2] DeepSeek-AI, "DeepSeek-V2", 2024, Section 2.2.4.

    Examples
    --------
    The bias brings in the third expert, and the weights follow from the scores 1/2:

    >>> state = {"gate": np.zeros((3, 1)), "bias": np.array([0.0, 0.0, 0.1])}
    >>> chosen = SigmoidTopK(3, 2)([[1.0]], state)
    >>> chosen.indices.tolist(), chosen.weights.tolist()
    ([[0, 2]], [[0.5, 0.5]])
    >>> SigmoidTopK(3, 2).moved_bias(state["bias"], np.array([7, 1, 4]))
    array([-0.001,  0.001,  0.1  ])
    """

    name: ClassVar[str] = "sigmoid_top_k"
    state_names: ClassVar[tuple[str, ...]] = ("gate", "bias")
    kept_wide: ClassVar[tuple[str, ...]] = ("bias",)
    n_active: int = 2
    bias_rate: float = 0.001
    scale: float = 1.0
    _: KW_ONLY
    load_balance: float = 0.0
    z_loss: float = 0.0

    def __post_init__(self) -> None:
        check_sizes(self, "n_active")
        check_numbers(self, "bias_rate")
        check_numbers(self, "scale", positive=True)
        super().__post_init__()

    def max_active(self, in_features: int) -> int:
        """``n_active``."""
        return self.n_active

    def initial_state(self, in_features: int, *, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """``gate`` (experts, in_features) as in :class:`SoftmaxTopK`, and ``bias`` (experts,) of zeros."""
        return {**super().initial_state(in_features, rng=rng), "bias": np.zeros(self.n_experts)}

    def moved_bias(self, bias: Array, counts: Array) -> Any:
        """The bias (experts,) after a step in which ``counts`` (experts,) inputs chose each expert."""
        xp = namespace(bias)
        beyond = xp.sum(counts) - self.n_experts * counts  # whole numbers: exact
        return bias + self.bias_rate * xp.astype(xp.sign(beyond), bias.dtype)

    def _probabilities(self, logits: Array) -> Any:
        values = sigmoid(logits)
        return values / (namespace(values).sum(values, axis=1, keepdims=True) + _TINY)

    def _keys(self, logits: Array, state: State) -> Any:
        return sigmoid(logits) + state["bias"]

    def _priorities(self, logits: Array, probabilities: Array, units: Array) -> Any:
        return taken(logits, units)  # in the order of s, also where that rounds to 0 or 1

    def _weights(self, logits: Array, probabilities: Array, units: Array) -> Any:
        if self.n_active == 1:
            return self.scale * sigmoid(taken(logits, units))
        chosen = taken(probabilities, units)
        return self.scale * chosen / (namespace(chosen).sum(chosen, axis=1, keepdims=True) + _TINY)
