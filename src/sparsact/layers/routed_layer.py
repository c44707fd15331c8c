"""Parts of every layer: initial parameters, activations, routing and FLOP counts."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sparsact.routing.router import Router, checked_selection
from sparsact.routing.selection import Selection
from sparsact.validation.arrays import checked_layer_inputs


def as_computed(rows: Tensor) -> Tensor:
    """``rows`` in the dtype that torch.nn.functional.linear would compute in: that of autocast, where it is on."""
    device = rows.device.type
    if torch.is_autocast_enabled(device) and rows.dtype != torch.float64:
        return rows.to(torch.get_autocast_dtype(device))
    return rows


@torch.no_grad()
def fill_uniform(bound: float, parameters: Iterable[Tensor | None], generator: torch.Generator | None) -> None:
    """Fill each with numbers uniform in [-bound, bound]; a generator draws on its own device, whatever theirs is."""
    for parameter in parameters:
        if parameter is None or parameter.is_meta:
            continue
        if generator is None:
            parameter.uniform_(-bound, bound)
        else:
            drawn = torch.empty(parameter.shape, dtype=torch.float64, device=generator.device)
            parameter.copy_(drawn.uniform_(-bound, bound, generator=generator))


Activation = Callable[[Tensor], Tensor]


def identity(z: Tensor) -> Tensor:
    """``z`` itself."""
    return z


def squared_relu(z: Tensor) -> Tensor:
    """``max(z, 0) ** 2``."""
    return F.relu(z).square()


ACTIVATIONS: Final[dict[str, Activation]] = {
    "gelu": F.gelu,
    "identity": identity,
    "relu": F.relu,
    "silu": F.silu,
    "squared_relu": squared_relu,
    "tanh": torch.tanh,
}


def activation_of(name: str | Activation) -> Activation:
    """The function that a name stands for; a function stands for itself."""
    if callable(name):
        return name
    if name not in ACTIVATIONS:
        raise ValueError(f"`activation` must be one of {', '.join(ACTIVATIONS)} or a function; got {name!r}.")
    return ACTIVATIONS[name]


class Routing(nn.Module):
    """A router over inputs of ``in_features`` columns, with its state.

    The state is drawn by a NumPy generator that ``generator`` seeds, so that a seed fixes it on any device. Trainable
    entries are parameters of the module, the others buffers.
    """

    def __init__(
        self,
        router: Router,
        in_features: int,
        *,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(router, Router):
            raise TypeError(f"`router` must be a router, such as routing.TopK(64); got {router!r}.")
        self.router, self.in_features = router, in_features
        dtype = torch.get_default_dtype() if dtype is None else dtype
        if not dtype.is_floating_point:
            raise TypeError(f"`dtype` must be a floating-point type; got {dtype}: pass torch.float32.")
        device = torch.empty(0).device if device is None else device  # "meta" under `with torch.device("meta")`
        drawn = self._drawn(generator)
        if lacking := [repr(name) for name in router.trainable if name not in drawn]:
            fact = f"`trainable` of {router.name} names {', '.join(lacking)}"
            raise ValueError(f"{fact}, but initial_state has {', '.join(drawn) or 'nothing'}; use its names.")
        for name, value in drawn.items():
            own = torch.promote_types(dtype, torch.float32) if name in router.kept_wide else dtype
            tensor = value.to(device=device, dtype=own if value.is_floating_point() else None)
            if name in router.trainable:
                self.register_parameter(name, nn.Parameter(tensor))
            else:
                self.register_buffer(name, tensor)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Routing:
        before = {name: self._buffers[name] for name in self.router.kept_wide}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call] # torch's
        for name, wide in before.items():
            moved = self._buffers[name]
            if wide is not None and moved is not None and moved.dtype in (torch.bfloat16, torch.float16):
                self._buffers[name] = moved.float() if wide.is_meta else wide.to(moved.device)
        return self

    def _drawn(self, generator: torch.Generator | None) -> dict[str, Tensor]:
        device = "cpu" if generator is None else generator.device
        seed = torch.randint(2**63 - 1, (), generator=generator, device=device).item()
        state = self.router.initial_state(self.in_features, rng=np.random.default_rng(int(seed)))
        return {name: torch.as_tensor(value, device="cpu") for name, value in state.items()}

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw a new state."""
        for name, value in self._drawn(generator).items():
            getattr(self, name).copy_(value)

    @property
    def state(self) -> Mapping[str, Tensor]:
        """Arrays of the router by name, as :meth:`Router.select` takes them."""
        return {**self._parameters, **self._buffers}  # type: ignore[dict-item] # none of them is None

    def forward(self, x: Tensor, **entries: Tensor | int) -> Selection:
        """Units for each row of ``x`` (m, in_features), chosen outside autocast.

        Routing in low precision makes training unstable ("Switch Transformers", Section 2.4), and a hash of a rounded
        input is another hash. ``entries`` join the state.
        """
        with torch.autocast(x.device.type, enabled=False):
            selection = self.router.select(x, {**self.state, **entries}, training=self.training)
        return checked_selection(selection, self.router, x, self.training)

    def extra_repr(self) -> str:
        """The router, as it was written."""
        return repr(self.router)


MAX_UNCOLLECTED: Final = 8  # steps of training without their auxiliary losses, after which a layer warns once


class RoutedLayer(nn.Module):
    """Base of layers whose ``routing`` chooses units for each input; ``_fill`` draws the other parameters."""

    """What the load lines of :func:`routing_losses` call the units."""
    routing: Routing
    in_features: int
    selections: list[Selection] | None = None
    """List in which :func:`routing_losses` collects the selections of a forward pass; None outside of it."""
    _n_uncollected = 0

    def _fill(self, generator: torch.Generator | None) -> None:
        raise NotImplementedError

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new parameters, and a new state of the router."""
        self.routing.reset_parameters(generator)
        self._fill(generator)

    def _checked(self, x: Tensor) -> Tensor:
        """``x`` (..., in_features) as rows of the dtype of the layer's own parameters."""
        rows: Tensor = checked_layer_inputs(x, self.in_features, next(self.parameters()).dtype)
        return rows

    def route(self, x: Tensor) -> Selection:
        """Selection for each row of ``x`` (..., in_features); leading dimensions become one, in order."""
        selection: Selection = self.routing(self._checked(x))
        return selection

    def forward(self, x: Tensor, **others: Tensor | None) -> Tensor:
        """Outputs (..., out_features) of inputs (..., in_features); ``others`` as :meth:`forward_with_selection`."""
        self._check_loaded()
        y, selection = self.forward_with_selection(x, **others)
        self._report(selection)
        return y

    def forward_with_selection(self, x: Tensor) -> tuple[Tensor, Selection]:
        """Outputs (..., out_features), and the selection that they were computed with."""
        raise NotImplementedError

    def _check_loaded(self) -> None:
        if any(parameter.is_meta for parameter in self.parameters()):
            raise RuntimeError(
                f"the {type(self).__name__} has parameters on the meta device; load a checkpoint by "
                "load_state_dict(..., assign=True), or call to_empty and reset_parameters."
            )

    def _report(self, selection: Selection) -> None:
        """Hand the selection to :func:`routing_losses`, or warn once that its loss is lost to training."""
        if is_recomputing():
            return
        if self.selections is not None:
            self.selections.append(selection)
        elif self.training and not torch.compiler.is_compiling():
            self._n_uncollected += bool(selection.auxiliary_loss.requires_grad)
            if self._n_uncollected == MAX_UNCOLLECTED:
                self._n_uncollected += 1
                warnings.warn(
                    f"the auxiliary loss of a {type(self).__name__} is not collected, so nothing balances its load; "
                    "run the model within `with sparsact.layers.routing_losses(model) as losses` and add losses.total, "
                    "or set load_balance=0 and z_loss=0 in its router.",
                    UserWarning,
                    stacklevel=level_of_caller(),
                )


def level_of_caller() -> int:
    """``stacklevel`` of a warning where this is called, to name the first line outside this library and torch."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals["__name__"].partition(".")[0] in ("sparsact", "torch"):
        frame, level = frame.f_back, level + 1
    return level


is_exporting: Callable[[], bool] = getattr(torch.compiler, "is_exporting", lambda: False)  # since torch 2.7


def is_recomputing() -> bool:
    """Whether this forward pass runs within a backward one, as ``torch.utils.checkpoint`` runs it a second time."""
    return not torch.compiler.is_compiling() and torch._C._current_graph_task_id() != -1


@dataclass(frozen=True)
class Flops:
    """Operations of a forward pass; a multiplication and an addition count as one each, biases and activations not.

    Attributes
    ----------
    routing, active, dense : int
        Operations of the choice of units, with pre-activations that only the choice needs; of the active units, as
        Table 1 of paper B counts; and of the same layer without a router, with every unit active.

    Examples
    --------
    >>> cost = Flops(routing=64, active=288, dense=4608)
    >>> cost.total
    352
    """

    routing: int
    active: int
    dense: int

    @property
    def total(self) -> int:
        """Operations of the sparse layer: routing and active units."""
        return self.routing + self.active
