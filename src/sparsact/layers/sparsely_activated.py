"""SparselyActivatedLayer: the data-dependent sparse model of paper B as a layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sparsact.layers.gather import gather_dot, gather_sum
from sparsact.layers.routed_layer import Flops, RoutedLayer, Routing, activation_of, as_computed, fill_uniform
from sparsact.routing.router import Router
from sparsact.routing.selection import Selection
from sparsact.validation.parameters import checked_option, checked_size

METHODS: Final = ("auto", "sparse", "dense")
# "auto" computes sparsely while a batch of m inputs selects at most max(a, m b) rows for each row that there is, and no
# input more than half of them: whole matrices take the time of a such reads at any batch, and of m b at large ones.
# Measured (python -m benchmarks gather) on one thread of a processor that multiplies whole bfloat16 matrices by units
# of its own; what the kernels do not serve copies the rows it selects, and pays for few inputs only.
SPARSE_READS: Final = {torch.float32: (2.0, 1 / 16), torch.float64: (2.0, 1 / 16), torch.bfloat16: (1.0, 1 / 50)}
COPIED_READS: Final = (0.25, 0.0)
# torch 2.6 cannot tell an export, whose program must not depend on the size of its example, from a compilation.
takes_any_batch: Callable[[], bool] = getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)


class SparselyActivatedLayer(RoutedLayer):
    r"""A layer of ``n_units`` units; a router chooses the active units of each input.

    .. math:: g(x) = \sum_{j \in S(x)} m_j(x)\, \phi(\langle b_j, x \rangle + c_j)\, a_j + d,

    the model :math:`(A \circ \mathrm{mask}(x))\, \phi(x)` of Section 2.1 of [B]_ with vectors :math:`a_j` for outputs;
    the weights m are 1 where the router's choice is a mask, and its probabilities where it is a gate.

    Parameters
    ----------
    in_features, n_units, out_features : int
        Sizes of an input, of the layer of units, and of an output.
    router : Router
        Chooses the units. A router of pre-activations (``TopK``) needs all of them: products with b are then dense,
        and products with a sparse. A router of the input does not read the other units at all. If a router has fewer
        units than ``n_units``, each of them stands for ``n_units / n`` neighbours.
    activation : {"identity", "relu", "gelu", "silu", "tanh"} or callable
        :math:`\phi`, applied to each unit.
    bias : bool
        Whether there are c and d.
    method : {"auto", "sparse", "dense"}
        ``"sparse"``: forward and backward read the weights of units that are on, and no others. ``"dense"``: products
        of whole matrices, then the mask. Values and gradients agree up to rounding. ``"auto"`` takes the faster one.
    generator : torch.Generator, default=None
        Draws the parameters; None for torch's own.

    Attributes
    ----------
    up_weight : Parameter of shape (n_units, in_features)
        b, uniform within ``1 / sqrt(in_features)``, as ``torch.nn.Linear`` has it; so is ``up_bias`` (n_units,).
    down_weight : Parameter of shape (n_units, out_features)
        a, one row per unit, uniform within ``1 / sqrt(max_active)``, as only active units reach an output. So is
        ``down_bias`` (out_features,).

    Notes
    -----
    The sparse backward returns a dense gradient, whose untouched rows are zeros that nothing was computed for. Router
    and parameters are drawn from different streams of the generator.

    References
    ----------
    .. [B] "A Theoretical View on Sparsely Activated Networks", 2022, Section 2.1.

    Examples
    --------
    Table 1 of [B]_ counts the units that are on, and not the pre-activations that choose them:

    >>> from sparsact.routing import TopK
    >>> layer = SparselyActivatedLayer(8, 4096, 1, router=TopK(1024), bias=False)
    >>> layer.flops()
    Flops(routing=53248, active=18432, dense=73728)
    >>> y, selection = layer.forward_with_selection(torch.zeros(5, 8))
    >>> y.shape, selection.indices.shape
    (torch.Size([5, 1]), torch.Size([5, 1024]))
    """

    def __init__(
        self,
        in_features: int,
        n_units: int,
        out_features: int,
        *,
        router: Router,
        activation: str | Callable[[Tensor], Tensor] = "relu",
        bias: bool = True,
        method: str = "auto",
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.in_features = checked_size(in_features, "`in_features`")
        self.n_units = checked_size(n_units, "`n_units`")
        self.out_features = checked_size(out_features, "`out_features`")
        checked_option(method, "`method`", METHODS)
        self.method, self.activation = method, activation
        self._activation = activation_of(activation)
        made: dict[str, Any] = {"dtype": dtype, "device": device}
        routed = n_units if getattr(router, "routes_on", None) == "features" else in_features
        self.routing = Routing(router, routed, generator=generator, **made)
        self.up_weight = nn.Parameter(torch.empty(n_units, in_features, **made))
        self.up_bias = nn.Parameter(torch.empty(n_units, **made)) if bias else None
        self.down_weight = nn.Parameter(torch.empty(n_units, out_features, **made))
        self.down_bias = nn.Parameter(torch.empty(out_features, **made)) if bias else None
        units = router.width(routed)
        if n_units % units:
            raise ValueError(f"`n_units` = {n_units} is no multiple of the {units} units of {router!r}; change it.")
        self._block = n_units // units  # neighbours that one unit of the router stands for
        self._fill(generator)

    def _fill(self, generator: torch.Generator | None) -> None:
        fill_uniform(self.in_features**-0.5, (self.up_weight, self.up_bias), generator)
        fill_uniform(self.max_active**-0.5, (self.down_weight, self.down_bias), generator)

    @property
    def max_active(self) -> int:
        """Maximum number of active units per input."""
        return self.routing.router.max_active(self.routing.in_features) * self._block

    def route(self, x: Tensor) -> Selection:
        """Units of each row of ``x`` (..., in_features); leading dimensions become one, in order."""
        rows = self._checked(x)
        return self._select(rows, self._dense_up(rows) if self._routes_on_features else None)

    def forward_with_selection(self, x: Tensor) -> tuple[Tensor, Selection]:
        """Outputs (..., out_features), and the selection that they were computed with, as :meth:`route` returns it."""
        rows = self._checked(x)
        z = self._dense_up(rows) if self._routes_on_features else None
        selection = self._select(rows, z)
        if self._is_dense(selection):
            y = self.masked(rows, selection.dense(), z)
        else:
            y = self._sparse(as_computed(rows), z, selection)
            if self.down_bias is not None:
                y = y + self.down_bias.to(y.dtype)
        return y.reshape(*x.shape[:-1], self.out_features), selection

    def masked(self, rows: Tensor, mask: Tensor, z: Tensor | None = None) -> Tensor:
        """Outputs (m, out_features) of every unit times its entry of ``mask`` (m, n_units), by whole matrices.

        ``rows`` (m, in_features) are trusted; ``z`` are their pre-activations, where they are at hand.
        """
        units = self._activation(self._dense_up(rows) if z is None else z)
        y = (units * mask.to(units.dtype)) @ self.down_weight
        return y if self.down_bias is None else y + self.down_bias.to(y.dtype)

    def _is_dense(self, selection: Selection) -> bool:
        if self.method != "auto":
            return self.method == "dense"
        on_cpu = self.up_weight.device.type == "cpu"
        any_batch, each_input = SPARSE_READS.get(self.up_weight.dtype, COPIED_READS) if on_cpu else COPIED_READS
        m, k = selection.indices.shape
        if takes_any_batch():
            return bool(2 * k > self.n_units)
        return bool(2 * k > self.n_units or m * k > max(any_batch, m * each_input) * self.n_units)

    @property
    def _routes_on_features(self) -> bool:
        return self.routing.router.routes_on == "features"

    def _select(self, rows: Tensor, z: Tensor | None) -> Selection:
        selection: Selection = self.routing(rows if z is None else z)
        return selection if self._block == 1 else selection.expand(self._block)

    def _dense_up(self, rows: Tensor) -> Tensor:
        return F.linear(rows, self.up_weight, self.up_bias)

    def _sparse(self, rows: Tensor, z: Tensor | None, selection: Selection) -> Tensor:
        indices = selection.indices
        if z is None or torch.is_grad_enabled():
            # Pre-activations at hand would send a dense gradient to b: the chosen units' own are computed again.
            chosen = gather_dot(rows, self.up_weight.to(rows.dtype), indices)
            if self.up_bias is not None:
                chosen = chosen + self.up_bias.to(rows.dtype)[indices.clamp(min=0)]
        else:
            chosen = z.gather(1, indices.clamp(min=0))
        units = self._activation(chosen) * selection.weights.to(rows.dtype)
        y: Tensor = gather_sum(units, self.down_weight.to(rows.dtype), indices)
        return y

    def flops(self, batch: int = 1) -> Flops:
        """Operations of a forward pass over ``batch`` inputs (see :class:`Flops`)."""
        unit = 2 * self.in_features + 2 * self.out_features
        routing = self.routing.router.flops(self.routing.in_features)
        if self._routes_on_features:
            routing += 2 * self.in_features * (self.n_units - self.max_active)
        return Flops(batch * routing, batch * self.max_active * unit, batch * self.n_units * unit)

    def extra_repr(self) -> str:
        """Sizes and choices, as the constructor takes them."""
        return (
            f"{self.in_features}, {self.n_units}, {self.out_features}, activation={self.activation!r}, "
            f"bias={self.up_bias is not None}, method={self.method!r}"
        )
