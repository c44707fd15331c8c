"""SwitchLayer: a mixture of experts, each token computed by the expert that it is routed to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 # as torch writes it

from sparsact.layers.common import Flops, Routing, as_computed, fill_uniform
from sparsact.layers.segments import segment_matmul
from sparsact.routing.router import Router
from sparsact.routing.selection import Selection
from sparsact.validation.arrays import checked_layer_inputs
from sparsact.validation.former_names import renamed
from sparsact.validation.parameters import checked_size


@renamed(hidden="n_units")
class SwitchLayer(nn.Module):
    r"""Experts of two layers each; an input runs through those that a router chooses, and through no others.

    .. math:: g(x) = \sum_{e \in S(x)} p_e(x) \left( \sigma(x B_e + b_e)\, A_e + a_e \right),

    with the router's probabilities p: for ``Switch`` one expert a token, the most probable. A token whose expert is
    full is dropped and gives 0: pass it around the layer by a residual connection, as [1]_ does. It is the DSM of [2]_
    (``sparsact_papers.dsm.from_switch``).

    Parameters
    ----------
    in_features, n_units, out_features : int
        Sizes of a token, of the hidden layer of one expert, and of an output.
    router : Router
        Chooses among as many experts as it has units.
    bias : bool
        Whether there are a and b.
    generator : torch.Generator, default=None
        Draws the parameters; None for torch's own.

    Attributes
    ----------
    up_weight, up_bias : Parameters of shapes (experts, in_features, n_units) and (experts, n_units)
        B and b, uniform within ``1 / sqrt(in_features)``.
    down_weight, down_bias : Parameters of shapes (experts, n_units, out_features) and (experts, out_features)
        A and a, uniform within ``1 / sqrt(n_units)``.

    Notes
    -----
    Tokens are put in the order of their experts, so that each expert is one product of matrices; an expert without
    tokens is not read. The auxiliary loss of ``forward_with_selection`` is not yet scaled: the paper takes 0.01 of it.

    References
    ----------
    .. [1] W. Fedus et al., "Switch Transformers", 2021, Section 2.
    .. [2] "A Theoretical View on Sparsely Activated Networks", 2022, Section 3.1.

    Examples
    --------
    Equal tokens go to one expert, which takes ``ceil(1.25 * 8 / 4)`` of them in training:

    >>> from sparsact.routing import Switch
    >>> layer = SwitchLayer(6, 16, 6, router=Switch(4, capacity_factor=1.25))
    >>> y, selection = layer.forward_with_selection(torch.ones(8, 6))
    >>> selection.dropped.tolist()
    [False, False, False, True, True, True, True, True]
    >>> (y != 0).any(dim=1).tolist()
    [True, True, True, False, False, False, False, False]
    """

    def __init__(
        self,
        in_features: int,
        n_units: int,
        out_features: int,
        *,
        router: Router,
        bias: bool = True,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.in_features = checked_size(in_features, "`in_features`")
        self.n_units = checked_size(n_units, "`n_units`")
        self.out_features = checked_size(out_features, "`out_features`")
        made: dict[str, Any] = {"dtype": dtype, "device": device}
        self.routing = Routing(router, in_features, generator=generator, **made)
        if router.routes_on != "inputs":
            raise ValueError(f"experts are chosen by the input; {router!r} looks at pre-activations, which it has not.")
        experts = router.width(in_features)
        self.up_weight = nn.Parameter(torch.empty(experts, in_features, n_units, **made))
        self.up_bias = nn.Parameter(torch.empty(experts, n_units, **made)) if bias else None
        self.down_weight = nn.Parameter(torch.empty(experts, n_units, out_features, **made))
        self.down_bias = nn.Parameter(torch.empty(experts, out_features, **made)) if bias else None
        self._fill(generator)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw parameters and the router's state anew."""
        self.routing.reset_parameters(generator)
        self._fill(generator)

    def _fill(self, generator: torch.Generator | None) -> None:
        fill_uniform(self.in_features**-0.5, (self.up_weight, self.up_bias), generator)
        fill_uniform(self.n_units**-0.5, (self.down_weight, self.down_bias), generator)

    @property
    def n_experts(self) -> int:
        """Number of experts."""
        return self.up_weight.shape[0]

    def route(self, x: Tensor) -> Selection:
        """Experts of each row of ``x`` (..., in_features); leading dimensions become one, in order."""
        selection: Selection = self.routing(checked_layer_inputs(x, self.in_features, self.up_weight.dtype))
        return selection

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (..., out_features) of tokens (..., in_features); 0 for tokens that are dropped."""
        return self.forward_with_selection(x)[0]

    def forward_with_selection(self, x: Tensor) -> tuple[Tensor, Selection]:
        """Outputs (..., out_features), and the selection, with the auxiliary loss to train with."""
        tokens = checked_layer_inputs(x, self.in_features, self.up_weight.dtype)
        selection: Selection = self.routing(tokens)
        m, k = selection.indices.shape
        groups = Groups.of(selection.indices.reshape(-1), self.n_experts)
        sorted_tokens = as_computed(tokens)[groups.order // k]
        hidden = F.relu(groups.linear(sorted_tokens, self.up_weight, self.up_bias))
        outputs = groups.linear(hidden, self.down_weight, self.down_bias)
        each = groups.restored(outputs).reshape(m, k, self.out_features)
        y = (each * selection.weights.to(each.dtype)[..., None]).sum(1)
        return y.reshape(*x.shape[:-1], self.out_features), selection

    def flops(self, batch: int = 1) -> Flops:
        """Operations of a forward pass over ``batch`` tokens, none of them dropped (see :class:`Flops`)."""
        router = self.routing.router
        expert = 2 * self.n_units * (self.in_features + self.out_features)
        active = router.max_active(self.in_features) * expert
        return Flops(batch * router.flops(self.in_features), batch * active, batch * self.n_experts * expert)

    def extra_repr(self) -> str:
        """Sizes, as the constructor takes them."""
        return f"{self.in_features}, {self.n_units}, {self.out_features}, bias={self.up_bias is not None}"


@dataclass(frozen=True)
class Groups:
    """Places in the order of the experts that they name, those without one (-1) first."""

    order: Tensor
    experts: Tensor
    starts: Tensor

    @classmethod
    def of(cls, indices: Tensor, n_experts: int) -> Groups:
        """Groups of ``indices`` (p,), experts or -1."""
        experts, order = torch.sort(indices, stable=True)
        starts = torch.searchsorted(experts, torch.arange(n_experts + 1, device=indices.device))
        return cls(order, experts, starts)

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Each row of ``x`` (p, n) times its expert's matrix of ``weight`` (E, n, o), plus its row of ``bias``."""
        products: Tensor = segment_matmul(x, weight.to(x.dtype), self.starts)
        return products if bias is None else products + gathered_rows(bias.to(x.dtype), self.experts)

    def restored(self, rows: Tensor) -> Tensor:
        """``rows`` in the order of the places."""
        return torch.zeros_like(rows).index_copy(0, self.order, rows)


def gathered_rows(values: Tensor, indices: Tensor) -> Tensor:
    """Rows of ``values`` (t, n) that ``indices`` (p,) names; 0 where it is -1."""
    return values[indices.clamp(min=0)].masked_fill((indices < 0)[:, None], 0)
