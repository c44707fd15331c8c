"""MixtureOfExperts: feed-forward layers among which a router chooses a few for each token."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from sparsact.layers.expert_outputs import GATED, check_sizes, expert_activation, expert_router, experts_of
from sparsact.layers.gather import gather_sum
from sparsact.layers.routed_layer import (
    Flops,
    RoutedLayer,
    Routing,
    as_computed,
    fill_uniform,
    is_exporting,
    is_recomputing,
    level_of_caller,
)
from sparsact.routing.array_functions import is_transformed
from sparsact.routing.expert_choice import ExpertChoice
from sparsact.routing.hash_table import HashTable
from sparsact.routing.router import Router
from sparsact.routing.selection import Selection
from sparsact.routing.sigmoid_top_k import SigmoidTopK
from sparsact.validation.parameters import checked_number, checked_option, checked_size

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


class MixtureOfExperts(RoutedLayer):
    r"""A mixture of experts: each token runs only through the feed-forward layers that a router chooses.

    .. math:: g(x) = \sum_{e \in S(x)} p_e(x)\, \phi(x B_e)\, A_e \quad\text{with}\quad
              \phi(u, v) = \mathrm{silu}(u) \odot v \text{ for SwiGLU}.

    Parameters
    ----------
    d_model, d_hidden : int
        Sizes of a token and of the hidden layer of one expert.
    n_experts, n_active : int
        Number of experts, and number of experts per token (default 2). A router object may define both.
    router : str or Router, default="top_k"
        A name or any router that reads inputs. ``"top_k"`` is :class:`~sparsact.routing.SoftmaxTopK`, as in Mixtral.
        ``"sigmoid"`` is :class:`~sparsact.routing.SigmoidTopK`, balanced by biases as in DeepSeek-V3. ``"switch"``
        takes one expert, and ``"hash_table"`` reads token ids (pass ``n_tokens=``). Further names: ``"expert_choice"``,
        ``"block_top1"``, ``"hyperplane_lsh"``, ``"learned_lsh"``, ``"tree"``, ``"random_hash"``.
    activation : {"swiglu", "geglu", "reglu", "gelu", "relu", "silu", "squared_relu", "tanh", "identity"} or callable
        :math:`\phi`; the first three take two pre-activations per unit.
    n_shared : int, default=0
        Number of shared experts, which every token runs through with weight 1: ``n_shared * d_hidden`` units.
    d_out : int, default=None
        Size of an output; None for ``d_model``.
    bias : bool, default=False
        Whether experts have biases.
    jitter : float, default=0.0
        In training, the inputs of a learned router are multiplied by uniform noise in [1 - jitter, 1 + jitter], as in
        Switch transformers. The noise comes from torch's own generator.
    causal : bool or None, default=None
        True raises for routers in which later tokens change the experts of earlier ones: ``"expert_choice"``, and all
        with limited capacity. None warns once if ``"expert_choice"`` trains on sequences (..., T, d_model). Pass False
        for encoders and images.
    route_features : int, default=None
        Columns of ``route_by``, if the router reads another tensor; 1 for the token ids of ``"hash_table"``.
    generator : torch.Generator, default=None
        Draws the parameters; None for torch's own.
    **router_options
        Hyperparameters of a router given by name: ``capacity_factor=1.25``, ``normalise="all"``, ``z_loss=0``.

    Attributes
    ----------
    up_weight, down_weight : Parameters of shapes (E, d_model, w) and (E, d_hidden, d_out)
        B, with w = 2 d_hidden for gated activations, first u, then v, else d_hidden; and A. Uniform within
        ``1 / sqrt(fan_in)``, as are ``up_bias`` (E, w) and ``down_bias`` (E, d_out).
    shared_up, shared_down : Parameters of shapes (d_model, n_shared * w) and (n_shared * d_hidden, d_out), or None
        Of the shared experts.

    Notes
    -----
    Tokens are sorted by expert, so that each expert is one product of matrices. An expert without tokens is not read.
    If all experts of a token are full, its output is 0: put a residual connection around the layer. In training, use
    :func:`routing_losses`, and with ``router="sigmoid"`` call :func:`update_biases` after each step.

    References
    ----------
    .. [1] W. Fedus et al., "Switch Transformers", 2021, Section 2.
    .. [2] DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, Section 2.1.2.

    Examples
    --------
    >>> layer = MixtureOfExperts(8, 16, n_experts=4, n_active=2)
    >>> y, selection = layer.forward_with_selection(torch.randn(3, 5, 8))
    >>> y.shape, selection.indices.shape
    (torch.Size([3, 5, 8]), torch.Size([15, 2]))
    >>> bool(torch.allclose(selection.weights.sum(1), torch.ones(15)))
    True
    """

    _activated: Callable[[Tensor], Tensor]
    load: Tensor  # no buffer: DistributedDataParallel would put one process's in the place of the others'
    exchange: Callable[[MixtureOfExperts, Tensor, Selection], Tensor] | None = None
    """Of :func:`shard_experts`, where experts lie on several processes."""

    def __init__(
        self,
        d_model: int,
        d_hidden: int,
        *,
        n_experts: int | None = None,
        n_active: int | None = None,
        router: str | Router = "top_k",
        activation: str | Callable[[Tensor], Tensor] = "swiglu",
        n_shared: int = 0,
        d_out: int | None = None,
        bias: bool = False,
        jitter: float = 0.0,
        causal: bool | None = None,
        route_features: int | None = None,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        **router_options: Any,
    ) -> None:
        super().__init__()
        self.in_features = checked_size(d_model, "`d_model`")
        self.n_units = checked_size(d_hidden, "`d_hidden`")
        self.out_features = d_model if d_out is None else checked_size(d_out, "`d_out`")
        self.jitter, self.activation = checked_number(jitter, "`jitter`", 1), activation
        self.is_gated = activation in tuple(GATED)
        self._activated = expert_activation(activation)
        made: dict[str, Any] = {"dtype": dtype, "device": device}
        chosen = expert_router(router, n_experts, n_active, router_options)
        if jitter and not chosen.trainable:
            raise ValueError(f"`jitter` is for learned gates, and {chosen!r} would hash other numbers; leave it out.")
        self.causal = checked_option(causal, "`causal`", (None, False, True))
        if causal and chosen.reads_others:
            raise ValueError(
                f"with causal=True a token's experts must not depend on later ones, but {chosen!r} reads the whole "
                'batch: take router="top_k" or "sigmoid" with capacity_factor=None.'
            )
        self._warns = causal is None and isinstance(chosen, ExpertChoice)  # until it has
        by_id = 1 if isinstance(chosen, HashTable) else d_model
        seen = by_id if route_features is None else checked_size(route_features, "`route_features`")
        self.routing = Routing(chosen, seen, generator=generator, **made)
        experts, w = chosen.width(seen), d_hidden * (1 + self.is_gated)
        check_sizes(chosen, seen, n_experts, n_active)
        self.up_weight = nn.Parameter(torch.empty(experts, d_model, w, **made))
        self.up_bias = nn.Parameter(torch.empty(experts, w, **made)) if bias else None
        self.down_weight = nn.Parameter(torch.empty(experts, d_hidden, self.out_features, **made))
        self.down_bias = nn.Parameter(torch.empty(experts, self.out_features, **made)) if bias else None
        shared = self.n_shared = checked_size(n_shared, "`n_shared`", 0)
        self.shared_up = nn.Parameter(torch.empty(d_model, shared * w, **made)) if shared else None
        self.shared_down = nn.Parameter(torch.empty(shared * d_hidden, self.out_features, **made)) if shared else None
        self.load = torch.zeros(experts, dtype=torch.int64, device=self.up_weight.device)
        self._fill(generator)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> MixtureOfExperts:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call] # torch's
        self.load = torch.zeros_like(fn(self.load)) if self.load.is_meta else fn(self.load)
        return self

    def _fill(self, generator: torch.Generator | None) -> None:
        fill_uniform(self.in_features**-0.5, (self.up_weight, self.up_bias), generator)
        fill_uniform(self.n_units**-0.5, (self.down_weight, self.down_bias), generator)
        fill_uniform(self.in_features**-0.5, (self.shared_up,), generator)
        if self.shared_down is not None:
            fill_uniform(len(self.shared_down) ** -0.5, (self.shared_down,), generator)
        if not self.load.is_meta:
            self.load = torch.zeros_like(self.load)

    @property
    def n_experts(self) -> int:
        """Number of experts without shared ones."""
        return self.up_weight.shape[0]

    def route(self, x: Tensor, *, route_by: Tensor | None = None, mask: Tensor | None = None) -> Selection:
        """Selection for each token of ``x`` (..., d_model); leading dimensions become one, in order."""
        return self._select(x, self._checked(x), route_by, mask)

    def forward_with_selection(
        self, x: Tensor, *, route_by: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, Selection]:
        """Outputs (..., d_out), and the selection that they were computed with.

        Parameters
        ----------
        x : Tensor of shape (..., d_model)
            Tokens.
        route_by : Tensor of shape (..., route_features) or (...), default=None
            What the router sees in place of ``x``: token ids, or an earlier layer's states.
        mask : bool Tensor of shape (...), default=None
            False for padding, which no expert computes and no loss counts.

        Returns
        -------
        y : Tensor of shape (..., d_out)
            Sums of the experts' outputs; 0 for padding, and from the routed experts for dropped tokens.
        selection : Selection
            Experts, weights, auxiliary loss, counts and drops, over tokens with leading dimensions flattened.
        """
        tokens = self._checked(x)
        if self._warns and self.training and x.ndim > 2:
            self._warn_of_later_tokens()
        selection = self._select(x, tokens, route_by, mask)
        if self.training and isinstance(self.routing.router, SigmoidTopK) and not is_recomputing():
            self._count(selection)
        rows = as_computed(tokens)
        padding = None if mask is None else ~mask.reshape(-1, 1)
        if padding is not None:
            rows = rows.masked_fill(padding, 0)  # it may hold NaN, which no product may see
        y = self._routed(rows, selection)
        if self.shared_up is not None and self.shared_down is not None:
            shared = self._activated(rows @ self.shared_up.to(rows.dtype)) @ self.shared_down.to(rows.dtype)
            y = y + (shared if padding is None else shared.masked_fill(padding, 0))
        return y.reshape(*x.shape[:-1], self.out_features), selection

    def _warn_of_later_tokens(self) -> None:
        if not torch.compiler.is_compiling():
            self._warns = False
            warnings.warn(
                "experts that choose their tokens also read later tokens, which a causal model must not do; "
                'take router="top_k" there, or for encoders and images pass causal=False.',
                UserWarning,
                stacklevel=level_of_caller(),
            )

    def _count(self, selection: Selection) -> None:
        """Add to the load, in place: a CUDA graph reads it where it was. Transforms and exports count nothing."""
        if is_transformed() or is_exporting():
            return
        if self.load.is_meta or (not torch.compiler.is_compiling() and self.load.is_inference()):
            self.load = torch.zeros_like(selection.counts) if self.load.is_meta else self.load.clone()
        self.load.add_(selection.counts)

    def _select(self, x: Tensor, tokens: Tensor, route_by: Tensor | None, mask: Tensor | None) -> Selection:
        columns, by_id = self.routing.in_features, isinstance(self.routing.router, HashTable)
        if route_by is None and columns != self.in_features:
            of = "token ids" if by_id else f"{columns} columns"
            raise ValueError(f"the router sees {of}; pass them as `route_by` to the layer's call.")
        seen = tokens if route_by is None else _flattened(route_by, x, columns)
        if self.training and self.jitter:
            seen = seen * torch.empty_like(seen).uniform_(1 - self.jitter, 1 + self.jitter)
        reads = self.routing.router.reads_mask
        length: dict[str, Any] = {"length": x.shape[-2]} if reads and x.ndim > 1 else {}
        if mask is None:
            selection: Selection = self.routing(seen, **length)
            return selection
        if not isinstance(mask, Tensor) or mask.shape != x.shape[:-1] or mask.dtype != torch.bool:
            is_tensor = isinstance(mask, Tensor)
            got = f"{mask.dtype} of shape {tuple(mask.shape)}" if is_tensor else type(mask).__name__
            raise ValueError(
                f"`mask` must be a bool tensor of shape {tuple(x.shape[:-1])}, as `x` has tokens; got {got}."
            )
        real = mask.reshape(-1)
        selection = self.routing(seen.masked_fill(~real[:, None], 0), mask=real, **length)  # padding may hold NaN
        return selection if reads else selection.masked(real)

    def _routed(self, rows: Tensor, selection: Selection) -> Tensor:
        if self.exchange is not None:
            return self.exchange(self, rows, selection)
        taken = self.routing.router.most_taken(rows.shape[0], training=self.training)
        weights, indices = selection.weights.to(rows.dtype), selection.indices
        parameters = self.up_weight, self.down_weight, self._activated, self.up_bias
        y = experts_of(rows, indices, weights, *parameters, max_taken=taken)
        if self.down_bias is not None:
            y = y + gather_sum(weights, self.down_bias.to(rows.dtype), indices)
        return y

    def flops(self, batch: int = 1) -> Flops:
        """Operations of a forward pass over ``batch`` tokens, none of them dropped (see :class:`Flops`)."""
        router, seen = self.routing.router, self.routing.in_features
        expert = 2 * self.n_units * (self.in_features * (1 + self.is_gated) + self.out_features)
        active = router.mean_active(seen) + self.n_shared
        dense = self.n_experts + self.n_shared
        return Flops(batch * router.flops(seen), round(batch * active * expert), batch * dense * expert)

    def extra_repr(self) -> str:
        """Sizes and choices, as the constructor takes them."""
        return (
            f"{self.in_features}, {self.n_units}, n_experts={self.n_experts}, activation={self.activation!r}, "
            f"n_shared={self.n_shared}, d_out={self.out_features}, bias={self.up_bias is not None}, "
            f"jitter={self.jitter}"
        )


@torch.no_grad()
def update_biases(model: nn.Module, *, group: ProcessGroup | None = None) -> None:
    """Update the biases of all routers that balance by biases; call it once after each training step.

    Parameters
    ----------
    model : torch.nn.Module
        Its layers with ``router="sigmoid"`` counted the tokens of each expert since the last call, in training.
    group : torch.distributed.ProcessGroup, default=None
        Processes whose tokens count together; all of them, where torch.distributed runs.

    Raises
    ------
    ValueError
        If no layer of the model is balanced by biases.

    Examples
    --------
    >>> layer = MixtureOfExperts(8, 16, n_experts=4, n_active=2, router="sigmoid", bias_rate=0.5)
    >>> y, selection = layer.forward_with_selection(torch.randn(9, 8))
    >>> update_biases(layer)
    >>> bool(((layer.routing.bias > 0) == (selection.counts < 4.5)).all())
    True
    """
    layers = [layer for layer in model.modules() if isinstance(layer, MixtureOfExperts)]
    biased = [(layer, router) for layer in layers if isinstance(router := layer.routing.router, SigmoidTopK)]
    if not biased:
        raise ValueError(f'{type(model).__name__} has no router with biases; build a layer with router="sigmoid".')
    for layer, router in biased:
        bias = layer.routing.state["bias"]
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(layer.load, group=group)
        bias.copy_(router.moved_bias(bias, layer.load))
        layer.load.zero_()


def _flattened(route_by: Tensor, x: Tensor, columns: int) -> Tensor:
    """``route_by`` as rows for the router, whole numbers exactly."""
    shapes = [(*x.shape[:-1], columns)] + ([tuple(x.shape[:-1])] if columns == 1 else [])
    if not isinstance(route_by, Tensor) or tuple(route_by.shape) not in shapes:
        got = tuple(route_by.shape) if isinstance(route_by, Tensor) else type(route_by).__name__
        wanted = " or ".join(map(str, shapes))
        raise ValueError(
            f"`route_by` must be a tensor of shape {wanted}, as `x` has tokens and the router columns; got {got}."
        )
    rows = route_by.reshape(-1, columns)
    return rows if rows.is_floating_point() else rows.double()
