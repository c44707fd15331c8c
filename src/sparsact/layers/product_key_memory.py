"""ProductKeyMemory: rows of a large table whose keys fit a query best, by product keys."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from sparsact.layers.memory import Memory, ZeroEmbedding, of_tokens
from sparsact.layers.routed_layer import Flops, Routing, as_computed, fill_uniform
from sparsact.routing.array_functions import scores
from sparsact.routing.product_keys import ProductKeys
from sparsact.routing.selection import EMPTY, Selection
from sparsact.validation.parameters import checked_size


class ProductKeyMemory(Memory):
    r"""Sums of the k table rows whose keys match a query best, exactly and in :math:`O(\sqrt t)`: product keys [1]_.

    .. math:: g(x) = \sum_{h} \sum_{j \in S_h(x)} p_{hj}(x)\, v_j, \qquad q(x) = W x,

    with the k best units :math:`S_h` of head h among :math:`t = n^2`, and their softmax p, by
    :class:`~sparsact.routing.ProductKeys`. Heads share the table v.

    Parameters
    ----------
    n_keys, d_model : int
        n, and size of inputs and outputs.
    n_active : int, default=32
        k, of each head.
    n_heads : int, default=4
        Heads.
    d_query : int, default=None
        Size of the query of one head, even; None for ``d_model`` over 2, rounded to an even number.
    batch_norm : bool, default=False
        Whether queries are normalised over the batch, as [1]_ recommends: it spreads them over more units. A token then
        depends on its batch in training; out of training, and for causal models, it does not.
    sparse : bool, default=True
        Whether the gradient of the table is sparse, as in :class:`HashMemory`.
    generator : torch.Generator, default=None
        Draws keys and W; None for torch's own.

    Attributes
    ----------
    values : Parameter of shape (n_keys ** 2, d_model)
        v, 0 at first; ``table.weight`` in ``state_dict``.
    query_weight : Parameter of shape (n_heads * d_query, d_model)
        W, uniform within ``1 / sqrt(d_model)``.

    Notes
    -----
    :class:`~sparsact.routing.RoutingStatistics` of a selection has the share of units in use, ``1 - dead_share``, and
    the entropy of their load; each head counts for itself.

    References
    ----------
    .. [1] G. Lample et al., "Large Memory Layers with Product Keys", 2019.

    Examples
    --------
    >>> memory = ProductKeyMemory(64, 16, n_active=4, n_heads=2)
    >>> y, selection = memory.forward_with_selection(torch.randn(5, 16))
    >>> memory.values.shape, selection.indices.shape
    (torch.Size([4096, 16]), torch.Size([5, 8]))
    """

    def __init__(
        self,
        n_keys: int,
        d_model: int,
        n_active: int = 32,
        n_heads: int = 4,
        *,
        d_query: int | None = None,
        batch_norm: bool = False,
        sparse: bool = True,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.in_features = checked_size(d_model, "`d_model`")
        made: dict[str, Any] = {"dtype": dtype, "device": device}
        self._router = router = ProductKeys(n_keys, n_active, n_heads)
        d_query = 2 * max(1, d_model // 4) if d_query is None else checked_size(d_query, "`d_query`")
        router.width(n_heads * d_query)  # raises where it is odd
        self.routing = Routing(router, n_heads * d_query, generator=generator, **made)
        self.table = ZeroEmbedding(router.n_keys**2, d_model, sparse=bool(sparse), **made)
        self.query_weight = nn.Parameter(torch.empty(n_heads * d_query, d_model, **made))
        self.norm = nn.BatchNorm1d(n_heads * d_query, **made) if batch_norm else None
        self._fill(generator)

    @torch.no_grad()
    def _fill(self, generator: torch.Generator | None) -> None:
        self.table.reset_parameters()
        fill_uniform(self.in_features**-0.5, (self.query_weight,), generator)
        if self.norm is not None:
            self.norm.reset_parameters()

    def route(self, x: Tensor, *, mask: Tensor | None = None) -> Selection:
        """Units of each token of ``x`` (..., d_model); leading dimensions become one, in order."""
        return self._select(x, mask)

    def forward_with_selection(self, x: Tensor, *, mask: Tensor | None = None) -> tuple[Tensor, Selection]:
        """Outputs (..., d_model) of tokens (..., d_model), and the units that they were read from.

        ``mask`` (...) is False for padding: its output is 0, and it counts nowhere, the norm of the batch included.
        """
        selection = self._select(x, mask)
        indices = selection.indices
        slots = (indices % len(self.values)).masked_fill(indices == EMPTY, EMPTY)  # heads share the table
        return as_computed(self._read(selection, slots)).reshape(x.shape), selection

    def _select(self, x: Tensor, mask: Tensor | None) -> Selection:
        rows = self._checked(x)
        real = None if mask is None else of_tokens(mask, "mask", "bool", x.shape[:-1]).reshape(-1)
        if real is not None:
            rows = rows.masked_fill(~real[:, None], 0)  # padding may hold NaN
        queries = scores(rows, self.query_weight)
        if self.norm is not None:
            queries = queries.to(self.norm.weight.dtype)  # scores are float32 where the layer is narrower
            with torch.autocast(rows.device.type, enabled=False):
                seen = queries[real] if real is not None and self.training else queries
                if self.training and len(seen) == 1:
                    raise ValueError(
                        "`batch_norm` needs at least two tokens in training; got 1: pass more tokens, or call eval()."
                    )
                normal = self.norm(seen)
                queries = normal if seen is queries or real is None else queries.masked_scatter(real[:, None], normal)
        selection: Selection = self.routing(queries)
        return selection if real is None else selection.masked(real)

    def flops(self, batch: int = 1) -> Flops:
        """Operations of a forward pass over ``batch`` tokens; ``dense`` would read every unit (see :class:`Flops`)."""
        router, d = self._router, self.in_features
        routing = 2 * self.query_weight.numel() + router.flops(len(self.query_weight))
        active, dense = (2 * router.n_heads * rows * d for rows in (router.n_active, router.n_keys**2))
        return Flops(batch * routing, batch * active, batch * dense)
