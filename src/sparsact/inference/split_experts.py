"""Split experts, which a model stacks in one parameter per projection, into modules of their own.

Blocks are then found, measured and made sparse expert by expert. The experts' weights are views of the stacked ones,
which return when the experts are joined; ``state_dict`` and ``load_state_dict`` know the stacked ones alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from sparsact.inference.sparse_linear import holds_sparse_layer
from sparsact.layers.expert_outputs import GATED
from sparsact.layers.mixture import MixtureOfExperts
from sparsact.layers.replace import TAKEN, is_stacked, restore_forward, take_forward
from sparsact.layers.routed_layer import Activation, activation_of
from sparsact.routing.selection import Selection
from sparsact.validation.arrays import checked_layer_inputs


class Expert(nn.Module):
    """``down_proj(f(gate_proj(x)) * up_proj(x))``, or ``down_proj(f(up_proj(x)))``."""

    def __init__(self, parameters: Mapping[str, nn.Parameter], function: Activation) -> None:
        super().__init__()
        self._function = (function,)  # no child: it belongs to the module that holds the experts
        for name, weight in parameters.items():
            layer, _, part = name.partition(".")
            if part == "weight":
                linear = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
                linear.weight = weight
                linear.register_parameter("bias", parameters.get(f"{layer}.bias"))
                self.add_module(layer, linear)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (m, outputs) of tokens (m, d)."""
        layers: Any = self._modules
        function: Any = self._function[0]
        if "gate_proj" in layers:
            hidden = function(layers["gate_proj"](x)) * layers["up_proj"](x)
        else:
            hidden = function(layers["up_proj"](x))
        y: Tensor = layers["down_proj"](hidden)
        return y

    def state_dict(self, *args: object, destination: Any = None, **kwargs: object) -> Any:
        """Nothing: the module that holds the expert saves its weights."""
        return {} if destination is None else destination


class SplitExperts(nn.Module):
    """A module whose experts were stacked, and are children now that are named by their numbers."""

    shows_all = False  # whether a call also shows its first token to experts that no token of it chooses
    transposed = False  # whether stacked weights are (E, inputs, outputs)
    _stacked: dict[str, nn.Parameter]  # as they were; on the meta device once their memory is given up
    _joined_class: type[nn.Module]

    def projections(self) -> dict[str, tuple[str, ...]]:
        """The layers of an expert that each stacked parameter (E, ...) holds one below the other."""
        raise NotImplementedError

    def function(self) -> Activation:
        """The activation of the experts: of the gate alone, if there is one."""
        raise NotImplementedError

    def outputs(self, x: Tensor, indices: Tensor, weights: Tensor, width: int) -> Tensor:
        """Sums (m, width) of the chosen experts' outputs times their weights; other numbers stand for no expert."""
        experts: list[Any] = [self._modules[str(e)] for e in range(self.n_split)]
        y = x.new_zeros(len(x), width, dtype=torch.promote_types(x.dtype, weights.dtype))
        if _is_recorded():  # which experts are chosen must be a part of the graph
            for e, expert in enumerate(experts):
                y = y + expert(x).to(y.dtype) * (weights * (indices == e)).sum(1, keepdim=True)
            return y.to(x.dtype)
        chosen = [e for e in set(indices.flatten().tolist()) if 0 <= e < len(experts)]
        for e in chosen:
            if len(x) == 1:
                y += experts[e](x).to(y.dtype) * weights[indices == e].sum()
            else:
                token, slot = torch.where(indices == e)
                y.index_add_(0, token, experts[e](x[token]).to(y.dtype) * weights[token, slot, None].to(y.dtype))
        if self.shows_all:
            for e in set(range(len(experts))) - set(chosen):
                experts[e](x[:1])
        return y.to(x.dtype)

    @property
    def n_split(self) -> int:
        """Number of experts."""
        return len(next(iter(self._stacked.values())))

    def parts(self, stacked: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        """Views of stacked tensors, by the names of the experts' parameters."""
        for name, layers in self.projections().items():
            if name in stacked:
                tensor = stacked[name]
                rows = tensor.transpose(1, 2) if self.transposed and tensor.ndim == 3 else tensor
                part = "bias" if tensor.ndim == 2 else "weight"
                for layer, some in zip(layers, rows.chunk(len(layers), 1), strict=True):
                    yield from ((f"{e}.{layer}.{part}", view) for e, view in enumerate(some))

    def split(self) -> None:
        """Register the experts in the place of the stacked parameters."""
        held = {name: self._parameters.get(name) for name in self.projections()}
        self._stacked = {name: one for name, one in held.items() if one is not None}
        for name in self._stacked:
            del self._parameters[name]
        experts: dict[str, dict[str, nn.Parameter]] = {}
        for name, view in self._views(self._stacked):
            number, _, part = name.partition(".")
            experts.setdefault(number, {})[part] = view
        for number, parameters in experts.items():
            self.add_module(number, Expert(parameters, self.function()).train(self.training))

    def _views(self, stacked: Mapping[str, nn.Parameter]) -> Iterator[tuple[str, nn.Parameter]]:
        """Parameters of the experts, as views of the stacked ones; trained if the stacked ones are."""
        for name, one in stacked.items():
            trained = one.requires_grad and not one.is_inference()
            for part, view in self.parts({name: one}):
                yield part, nn.Parameter(view.detach(), requires_grad=trained)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """As in ``nn.Module``, on the stacked parameters; the experts' are views of them again afterwards."""
        stacked = self.joined()
        for name in [part for part, _ in self.parts(stacked)]:
            self._holder(name)[name.rpartition(".")[2]] = None
        self._parameters.update(stacked)
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call] # torch's
        moved: dict[str, Any] = {name: self._parameters.pop(name) for name in stacked}
        self._stacked = {name: moved.get(name, one) for name, one in self._stacked.items()}
        for name, view in self._views(moved):
            self._holder(name)[name.rpartition(".")[2]] = view
        return self

    def _holder(self, name: str) -> dict[str, Any]:
        """The parameters of the layer of an expert that holds the one of this name."""
        return self.get_submodule(name.rpartition(".")[0])._parameters

    def join(self) -> None:
        """Register the stacked parameters again, with the numbers that the experts have now."""
        stacked, others = self.joined(), dict(self._parameters)
        for e in range(self.n_split):
            del self._modules[str(e)]
        self._parameters.clear()
        self._parameters.update(stacked | others)
        self.__class__ = self._joined_class  # type: ignore[assignment]
        del self._stacked, self._joined_class

    def joined(self) -> dict[str, nn.Parameter]:
        """The stacked parameters, without any whose parts were dropped; built again unless the experts share memory."""
        held = dict(self.named_parameters())
        found: dict[str, nn.Parameter] = {}
        for name, one in self._stacked.items():
            views = dict(self.parts({name: one}))
            if views.keys() <= held.keys():
                first = held[next(iter(views))]
                if any(held[part].data_ptr() != view.data_ptr() for part, view in views.items()):
                    one = nn.Parameter(torch.empty_like(one, dtype=first.dtype, device=first.device))
                    with torch.no_grad():
                        for part, view in self.parts({name: one}):
                            view.copy_(held[part])
                if not one.is_inference():
                    one.requires_grad_(first.requires_grad)
                found[name] = one
        return found

    def release(self) -> None:
        """Give up the stacked parameters, so that the memory of weights that are dropped is free."""
        self._stacked = self.__getstate__()["_stacked"]

    def __getstate__(self) -> dict[str, Any]:
        """Copies hold experts of their own, and no stacked parameters."""
        stacked = {name: nn.Parameter(one.to("meta"), one.requires_grad) for name, one in self._stacked.items()}
        return self.__dict__ | {"_stacked": stacked}

    def _save_to_state_dict(self, destination: dict[str, Tensor], prefix: str, keep_vars: bool) -> None:
        destination |= {prefix + name: one if keep_vars else one.detach() for name, one in self.joined().items()}
        super()._save_to_state_dict(destination, prefix, keep_vars)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        stacked = {name: state_dict.pop(prefix + name) for name in self._stacked if prefix + name in state_dict}
        for name, one in stacked.items():
            shape = self._stacked[name].shape
            if one.shape != shape:
                args[-1].append(f"size mismatch for {prefix + name}: {tuple(one.shape)} is not {tuple(shape)}.")
                stacked[name] = torch.zeros(shape)  # the error is raised when all is loaded
        state_dict |= {prefix + name: view for name, view in self.parts(stacked)}
        super()._load_from_state_dict(state_dict, prefix, *args)


class StackedExperts(SplitExperts):
    """Experts of a model of transformers."""

    def projections(self) -> dict[str, tuple[str, ...]]:
        """As they are named there."""
        return {"gate_up_proj": ("gate_proj", "up_proj"), "up_proj": ("up_proj",), "down_proj": ("down_proj",)}

    def function(self) -> Activation:
        """The module's own activation."""
        function: Any = self.act_fn
        return function  # type: ignore[no-any-return] # a module's attributes have no types

    def forward(self, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
        """Outputs (m, d) for tokens (m, d), their experts and weights (m, k)."""
        return self.outputs(hidden_states, top_k_index, top_k_weights, hidden_states.shape[1])


class SplitMixture(SplitExperts, MixtureOfExperts):
    """A mixture of this library."""

    transposed = True

    def projections(self) -> dict[str, tuple[str, ...]]:
        """Names of the projections of experts with a gate or without."""
        up = ("gate_proj", "up_proj") if self.is_gated else ("up_proj",)
        return {"up_weight": up, "up_bias": up, "down_weight": ("down_proj",), "down_bias": ("down_proj",)}

    def function(self) -> Activation:
        """By the name that the mixture was made with."""
        name: Any = self.activation
        return GATED[name] if self.is_gated else activation_of(name)

    @property
    def n_experts(self) -> int:
        """Number of experts without shared ones."""
        return self.n_split

    def _checked(self, x: Tensor) -> Tensor:
        dtype = next(self.parameters(), next(iter(self._stacked.values()))).dtype
        rows: Tensor = checked_layer_inputs(x, self.in_features, dtype)
        return rows

    def _routed(self, rows: Tensor, selection: Selection) -> Tensor:
        return self.outputs(rows, selection.indices, selection.weights.to(rows.dtype), self.out_features)


@contextmanager
def split_experts(model: nn.Module) -> Iterator[None]:
    """The model with its stacked experts split; joined afterwards where no layer of theirs has become sparse.

    Those that were split before stay so.
    """
    done = False
    found: list[Any] = []
    taken: list[nn.Module] = []
    try:
        for module in list(model.modules()):
            if "forward" in vars(module):
                take_forward(module)
                taken += [] if "forward" in vars(module) else [module]
            kind = _split_class(module)
            if kind is not None:
                found.append(module)
                found[-1]._joined_class, found[-1].__class__ = type(module), kind
                found[-1].split()
        yield
        done = True
    finally:
        for module in found:
            if isinstance(module, SplitExperts) and not (done and holds_sparse_layer(module)):
                module.join()
        for module in taken:
            if not (done and holds_sparse_layer(module)):
                restore_forward(module)


def _split_class(module: nn.Module) -> type[SplitExperts] | None:
    """What a module is while its experts are split; None if it has none that are stacked, or a forward of its own."""
    kind = type(module)
    if "forward" in vars(module):
        return None
    if kind is MixtureOfExperts:
        held = {"up_weight", "down_weight"} <= module._parameters.keys()  # they are neither pruned nor parametrised
        return SplitMixture if held and module.exchange is None else None
    stacked = kind.__module__.startswith("transformers.") and any(
        is_stacked(module, has_gate=one) for one in (True, False)
    )
    return StackedExperts if stacked else None


def join_experts(model: nn.Module) -> None:
    """Stack the experts of a model again."""
    for module in list(model.modules()):
        if isinstance(module, SplitExperts):
            module.join()
        if TAKEN in vars(module):
            restore_forward(module)


@contextmanager
def showing_all_experts(model: nn.Module) -> Iterator[None]:
    """Let each call of split experts show its first token to experts that no token chooses, to observe them too."""
    found = [module for module in model.modules() if isinstance(module, SplitExperts)]
    try:
        for module in found:
            module.shows_all = True
        yield
    finally:
        for module in found:
            module.__dict__.pop("shows_all", None)


def _is_recorded() -> bool:
    """Whether torch makes a graph of the operations, or transforms them. Compiled code breaks its graph instead."""
    if torch.compiler.is_compiling():
        return torch.compiler.is_exporting()
    return bool(
        torch._C._get_tracing_state()
        or torch._C._len_torch_dispatch_stack()
        or torch._C._are_functorch_transforms_active()
    )
