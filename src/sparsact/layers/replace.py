"""Grouped products in place of the experts of models of transformers."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sparsact.layers.expert_outputs import experts_of, gated
from sparsact.layers.routed_layer import Activation, as_computed, is_recomputing
from sparsact.routing.selection import EMPTY, Selection

TAKEN: Final = "_replaced_forward"  # the attribute that holds a forward that was taken
# Attributes of a class of experts whose function is `down(act(gate) * up)` over stacked weights.
PLAIN: Final = {
    "has_bias": False,
    "is_transposed": False,
    "is_concatenated": True,
    "has_post_expert_norm": False,
}


def replace_experts(model: nn.Module) -> int:
    """Compute the experts of a model of transformers by grouped products, in place.

    Routers, parameters, their names and the model's class stay as they are: ``state_dict``, ``save_pretrained`` and
    optimizers see no change, and outputs are equal up to rounding.

    Parameters
    ----------
    model : torch.nn.Module
        Of transformers 5 or later: Mixtral, OLMoE, Qwen3-MoE, Switch transformers, and others whose experts are
        ``down(act(gate(x)) * up(x))`` with stacked weights and without biases.

    Returns
    -------
    n_replaced : int
        Number of layers.

    Raises
    ------
    ValueError
        If the model has no such experts; the message names what its experts have beside that, if it has any.

    Notes
    -----
    The models add their own balancing loss where ``output_router_logits=True``. Within :func:`routing_losses` the
    replaced layers report their load; ``losses.total`` is refused, as they have no loss of their own. Experts of Switch
    transformers are modules with a matrix each, which are stacked, a copy, in each call.

    Examples
    --------
    ``layers.replace_experts(AutoModelForCausalLM.from_pretrained("allenai/OLMoE-1B-7B-0924"))`` returns 16.

    >>> replace_experts(nn.Linear(2, 3))
    Traceback (most recent call last):
        ...
    ValueError: Linear has no experts that can be replaced; pass a mixture-of-experts model of transformers>=5.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"`model` must be a torch.nn.Module; got {type(model).__name__}.")
    replaced = 0
    for module in model.modules():
        forward = _forward(module)
        if forward is not None:
            module.forward = partial(forward, module)
            module.selections = None  # type: ignore[assignment] # where routing_losses collects them
            replaced += 1
    if not replaced:
        reasons = sorted({reason for module in model.modules() if (reason := _reason(module))})
        if reasons:
            raise ValueError(f"{type(model).__name__} keeps its experts: {'; '.join(reasons)}.")
        raise ValueError(
            f"{type(model).__name__} has no experts that can be replaced; pass a mixture-of-experts model of "
            "transformers>=5."
        )
    return replaced


def take_forward(module: nn.Module) -> None:
    """Let experts that were replaced run as they are written, until :func:`restore_forward`."""
    forward = vars(module).get("forward")
    if isinstance(forward, partial) and forward.func in (_stacked, _separate):
        vars(module)[TAKEN] = vars(module).pop("forward")


def restore_forward(module: nn.Module) -> None:
    """Compute experts by grouped products again, where :func:`take_forward` ended it."""
    if TAKEN in vars(module):
        vars(module)["forward"] = vars(module).pop(TAKEN)


def is_stacked(module: nn.Module, *, has_gate: bool = True) -> bool:
    """Whether a module of transformers computes ``down(act(gate) * up)``, or ``down(act(up))``, of stacked weights."""
    up, down = (getattr(module, name, None) for name in ("gate_up_proj" if has_gate else "up_proj", "down_proj"))
    if not (isinstance(up, nn.Parameter) and isinstance(down, nn.Parameter) and up.ndim == down.ndim == 3):
        return False
    units = down.shape[2] * (1 + has_gate)
    if up.shape != (len(down), units, down.shape[1]) or getattr(module, "has_gate", True) != has_gate:
        return False
    plain = all(getattr(module, name, value) == value for name, value in PLAIN.items())
    own_gate = getattr(type(module), "_apply_gate", None)
    return plain and hasattr(module, "act_fn") and (own_gate is None or own_gate.__name__ == "_default_apply_gate")


def _reason(module: Any) -> str:
    """Why the experts that a module holds stay as they are; empty where it holds none."""
    name = type(module).__name__
    if isinstance(module, nn.ModuleDict) and name.endswith("Experts"):
        return f"{name} are modules with a function of their own"
    stacked = [each for each in ("gate_up_proj", "up_proj") if getattr(getattr(module, each, None), "ndim", 0) == 3]
    if not stacked:
        return ""
    if "gate_up_proj" not in stacked:
        return f"{name} have no gate"
    if getattr(module, "gate_up_proj_bias", None) is not None:
        return f"{name} have biases"
    up, down = module.gate_up_proj, module.down_proj
    if getattr(module, "is_transposed", False) or up.shape[1] != 2 * down.shape[2]:
        return f"{name} compute with transposed weights"
    return f"{name} have an activation or a norm of their own"


def _forward(module: nn.Module) -> Any:
    """The function that replaces a module's forward; None where it has no experts that fit."""
    if is_stacked(module):
        return _stacked
    if isinstance(module, nn.ModuleDict) and type(module).__name__ == "SwitchTransformersExperts":
        return _separate
    return None


def _stacked(experts: Any, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
    """Outputs (m, d) of experts with weights ``gate_up_proj`` (E, 2 h, d) and ``down_proj`` (E, d, h)."""
    n_experts = experts.gate_up_proj.shape[0]
    # Where a model is cut among processes, experts of other processes have numbers past the last.
    indices = torch.where(top_k_index < n_experts, top_k_index, EMPTY)
    function = F.silu if type(experts.act_fn).__name__ in ("SiLU", "SiLUActivation") else experts.act_fn
    up, down = experts.gate_up_proj.transpose(1, 2), experts.down_proj.transpose(1, 2)
    return _computed(experts, hidden_states, indices, top_k_weights, up, down, partial(gated, function))


def _separate(experts: Any, hidden_states: Tensor, selected_experts: Tensor, routing_weights: Tensor) -> Tensor:
    """Outputs (m, d) of one expert for each token: ``selected_experts`` (m, 1, E) is 1 there, and 0 where dropped."""
    its = [experts[f"expert_{e}"] for e in range(experts.num_experts)]
    taken, indices = selected_experts.max(-1)
    up, down = (torch.stack([getattr(expert, name).weight for expert in its]).transpose(1, 2) for name in ("wi", "wo"))

    def activation(z: Tensor) -> Tensor:
        active: Tensor = its[0].act(z)
        return F.dropout(active, its[0].dropout.p, experts.training)

    indices = torch.where(taken > 0, indices, EMPTY)
    return _computed(experts, hidden_states, indices, routing_weights, up, down, activation)


def _computed(
    experts: Any, x: Tensor, indices: Tensor, weights: Tensor, up: Tensor, down: Tensor, activation: Activation
) -> Tensor:
    if experts.selections is not None and not is_recomputing():
        late = (indices == EMPTY).any(1)
        experts.selections.append(Selection.of(indices, weights.detach(), len(up), auxiliary_loss=None, dropped=late))
    rows = as_computed(x)
    return experts_of(rows, indices, weights.to(rows.dtype), up, down, activation).to(x.dtype)
