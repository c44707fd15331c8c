"""LSHLayer: a value, or an affine map, in each bucket of locality-sensitive hash tables."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from sparsact.layers.gather import gather_sum
from sparsact.layers.routed_layer import Flops, RoutedLayer, Routing, as_computed
from sparsact.routing.router import Router
from sparsact.routing.selection import Selection
from sparsact.validation.parameters import checked_size


class LSHLayer(RoutedLayer):
    r"""Sum over hash tables of the value, or affine map, in the bucket of the input.

    .. math:: g(x) = \sum_{i=1}^{s} \hat g^i_{z^i(x)}(x), \qquad
              \hat g^i_z(x) = v^i_z \quad\text{or}\quad v^i_z + x M^i_z,

    the model LSH(d, s, m, Delta) of Section 2.2 of [B]_, for Delta = 0 or 1.

    Parameters
    ----------
    in_features, out_features : int
        Sizes of an input and of an output.
    router : Router
        The hash tables, such as ``HyperplaneLSH`` and ``EuclideanLSH``; each of its units is a bucket.
    degree : {0, 1}
        Degree of the polynomial in a bucket.
    generator : torch.Generator, default=None
        Draws the hashes; None for torch's own.

    Attributes
    ----------
    values : Parameter of shape (buckets, out_features)
        v, initially 0: an untrained bucket returns 0.
    slopes : Parameter of shape (buckets, in_features * out_features), or None
        M, row by row; 0 at first.

    Notes
    -----
    Hashing is not differentiable: the gradient in x is that of the affine maps, and 0 for degree 0. The maps of the
    tables are added first and then applied, once.

    References
    ----------
    .. [B] "A Theoretical View on Sparsely Activated Networks", 2022, Sections 2.2 and 3.2.

    Examples
    --------
    >>> from sparsact.routing import HyperplaneLSH
    >>> layer = LSHLayer(6, 2, router=HyperplaneLSH(3, n_tables=2), degree=1)
    >>> layer.values.shape, layer.slopes.shape
    (torch.Size([16, 2]), torch.Size([16, 12]))
    >>> layer(torch.ones(5, 6)).shape
    torch.Size([5, 2])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        router: Router,
        degree: int = 0,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.in_features = checked_size(in_features, "`in_features`")
        self.out_features = checked_size(out_features, "`out_features`")
        if degree not in (0, 1):
            raise ValueError(f"`degree` must be 0 or 1; got {degree!r}.")
        self.degree = degree
        made: dict[str, Any] = {"dtype": dtype, "device": device}
        self.routing = Routing(router, in_features, generator=generator, **made)
        if router.routes_on != "inputs":
            raise ValueError(f"buckets are chosen by the input, but {router!r} reads pre-activations.")
        buckets = router.width(in_features)
        self.values = nn.Parameter(torch.zeros(buckets, out_features, **made))
        self.slopes = nn.Parameter(torch.zeros(buckets, in_features * out_features, **made)) if degree else None

    @torch.no_grad()
    def _fill(self, generator: torch.Generator | None) -> None:
        for parameter in (self.values, self.slopes):
            if parameter is not None:
                parameter.zero_()

    def forward_with_selection(self, x: Tensor) -> tuple[Tensor, Selection]:
        """Outputs (..., out_features), and the buckets that they came from."""
        rows = self._checked(x)
        selection: Selection = self.routing(rows)
        rows = as_computed(rows)
        weights = selection.weights.to(rows.dtype)
        y = gather_sum(weights, self.values.to(rows.dtype), selection.indices)
        if self.slopes is not None:
            maps = gather_sum(weights, self.slopes.to(rows.dtype), selection.indices)
            y = y + torch.einsum("mn,mno->mo", rows, maps.reshape(rows.shape[0], self.in_features, self.out_features))
        return y.reshape(*x.shape[:-1], self.out_features), selection

    def flops(self, batch: int = 1) -> Flops:
        """Operations of a forward pass over ``batch`` inputs; ``dense`` would read every bucket."""
        router = self.routing.router
        bucket = 2 * self.out_features * (1 + self.in_features * self.degree)
        application = 2 * self.in_features * self.out_features * self.degree
        max_active, buckets = router.max_active(self.in_features), router.width(self.in_features)
        return Flops(
            batch * router.flops(self.in_features),
            batch * (max_active * bucket + application),
            batch * (buckets * bucket + application),
        )

    def extra_repr(self) -> str:
        """Sizes, as the constructor takes them."""
        return f"{self.in_features}, {self.out_features}, degree={self.degree}"
