"""Grouped products in place of the experts of models of transformers."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sparsact.layers.expert_outputs import experts_of, gated
from sparsact.layers.gather import gather_sum
from sparsact.layers.routed_layer import Activation, as_computed, is_recomputing
from sparsact.routing.selection import EMPTY, Selection

TAKEN: Final = "_replaced_forward"  # the attribute that holds a forward that was taken
# Attributes of a class of experts whose function is `down(act(gate) * up)` over stacked weights.
PLAIN: Final = {"has_bias": False, "is_transposed": False, "is_concatenated": True, "has_post_expert_norm": False}


def replace_experts(model: nn.Module) -> int:
    """Replace the experts of a transformers model, in place, by experts that compute all their tokens in one product.

    Routers, parameters, their names and the model's class stay as they are: ``state_dict``, ``save_pretrained`` and
    optimizers see no change, and outputs are equal up to rounding.

    Parameters
    ----------
    model : torch.nn.Module
        A model of transformers 5 or later: Mixtral, Qwen3-MoE, DeepSeek-V3, gpt-oss, Nemotron-H and others whose
        experts have stacked weights; Llama 4; and Switch transformers.

    Returns
    -------
    n_replaced : int
        Number of layers.

    Raises
    ------
    ValueError
        If the model has no such experts; the message says what its experts are instead.

    Notes
    -----
    The models add their own balancing loss where ``output_router_logits=True``. Within :func:`routing_losses` the
    replaced layers report their load; ``losses.total`` is refused, as they have no loss of their own. Each call copies
    the experts of Switch transformers, modules with a matrix each, into one array. A token of Llama 4, which runs
    through every expert in transformers, runs through its chosen experts only.

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
    if isinstance(forward, partial) and forward.func in (_stacked, _separate, _scaled):
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


def _reason(module: nn.Module) -> str:
    """Why the experts that a module holds stay as they are; empty where it holds none."""
    name = type(module).__name__
    if getattr(module, "has_post_expert_norm", False):
        return f"{name} normalise the output of each expert"
    if isinstance(module, nn.ModuleDict | nn.ModuleList) and name.endswith("Experts"):
        return f"{name} are modules, one for each expert"
    holds_experts = any(type(each).__name__.endswith("Experts") for each in module.children())
    if name.endswith("Experts") or (name.endswith("MoE") and not holds_experts):
        return f"{name} has a function of its own, not that of transformers' use_experts_implementation"
    return ""


def _forward(module: nn.Module) -> Any:
    """The function that replaces a module's forward; None where it has no experts that fit."""
    name = type(module).__name__
    if name in ("Llama4TextMoe", "SwitchTransformersExperts"):
        return _scaled if name == "Llama4TextMoe" else _separate
    # transformers.integrations.moe.use_experts_implementation says by these attributes what it multiplies.
    is_told = all(each in vars(module) for each in ("has_bias", "is_transposed", "is_concatenated"))
    return _stacked if is_told and not getattr(module, "has_post_expert_norm", False) else None


def _stacked(experts: Any, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
    """Outputs (m, d) of experts with weights ``gate_up_proj`` (E, 2 h, d) and ``down_proj`` (E, d, h), or transposed.

    Without a gate ``up_proj`` (E, h, d) stands in place of the first.
    """
    name = "gate_up_proj" if experts.has_gate else "up_proj"
    up, down = getattr(experts, name), experts.down_proj
    if not experts.is_transposed:
        up, down = up.transpose(1, 2), down.transpose(1, 2)
    biases = (getattr(experts, f"{name}_bias"), experts.down_proj_bias) if experts.has_bias else (None, None)
    # Where a model is cut among processes, experts of other processes have numbers past the last.
    indices = torch.where(top_k_index < len(up), top_k_index, EMPTY)
    return _computed(experts, hidden_states, indices, top_k_weights, up, down, _activation(experts), *biases)


def _activation(experts: Any) -> Activation:
    """What lies between the products of stacked experts."""
    if not experts.has_gate:
        function: Activation = experts.act_fn
        return function
    if experts._apply_gate.__name__ != "_default_apply_gate":
        of_its_own: Activation = experts._apply_gate
        return of_its_own
    is_silu = type(experts.act_fn).__name__ in ("SiLU", "SiLUActivation")
    return partial(gated, F.silu if is_silu else experts.act_fn)


def _scaled(moe: Any, hidden_states: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs (m, d) and logits of a layer of Llama 4, whose weights scale the inputs of the chosen experts."""
    rows = hidden_states.reshape(-1, moe.hidden_dim)
    scores, logits = moe.router(rows)
    weights, indices = scores.topk(moe.top_k, 1)
    up, down, activation = moe.experts.gate_up_proj, moe.experts.down_proj, partial(gated, moe.experts.act_fn)
    inputs = (rows[:, None] * weights[..., None]).flatten(0, 1)
    y = _computed(moe, inputs, indices.reshape(-1, 1), torch.ones_like(inputs[:, :1]), up, down, activation)
    return moe.shared_expert(rows) + y.reshape(*indices.shape, -1).sum(1), logits


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
    experts: Any,
    x: Tensor,
    indices: Tensor,
    weights: Tensor,
    up: Tensor,
    down: Tensor,
    activation: Activation,
    up_bias: Tensor | None = None,
    down_bias: Tensor | None = None,
) -> Tensor:
    if experts.selections is not None and not is_recomputing():
        late = (indices == EMPTY).any(1)
        experts.selections.append(Selection.of(indices, weights.detach(), len(up), auxiliary_loss=None, dropped=late))
    rows = as_computed(x)
    weights = weights.to(rows.dtype)
    y = experts_of(rows, indices, weights, up, down, activation, up_bias)
    if down_bias is not None:
        y = y + gather_sum(weights, down_bias.to(rows.dtype), indices)
    return y.to(x.dtype)
