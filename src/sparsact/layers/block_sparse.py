"""BlockSparseFeedForward: the feed-forward layer of Scaling Transformers, one unit of each block on."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sparsact.layers.routed_layer import Flops
from sparsact.layers.sparsely_activated import SparselyActivatedLayer
from sparsact.routing.block_top1 import BlockTop1
from sparsact.routing.selection import Selection
from sparsact.validation.arrays import checked_layer_inputs
from sparsact.validation.parameters import checked_positive, checked_size


class BlockSparseFeedForward(nn.Module):
    r"""A feed-forward layer in blocks of units; a controller chooses one unit of each block.

    .. math:: g(x) = \sum_{b} \sigma(\langle w_{u_b}, x \rangle + c_{u_b})\, a_{u_b} + d, \qquad
              u_b = \arg\max_{u \in b}\ (U D x)_u.

    As a DSM of [2]_ it is ``sparsact_papers.dsm.from_scaling``. In training Gumbel noise is added to the scores of the
    controller, so that they are sampled, and the choice has the gradient of a softmax over each block (a straight-
    through estimator): that needs every unit, and is computed by whole matrices. Out of training only the weights
    of units that are on are read.

    Parameters
    ----------
    d_model, d_ff, n_blocks : int
        Size of inputs and outputs, number of units, and number of blocks, which divides that of units.
    rank : int, default=None
        Rank of the controller; None for ``d_model`` over the size of a block, as in Section 3.1 of [1]_.
    temperature : float, default=0.1
        Temperature of the softmax in training.
    method : {"auto", "sparse", "dense"}
        Out of training, as in :class:`SparselyActivatedLayer`.
    bias : bool
        Whether there are c and d.
    generator : torch.Generator, default=None
        Draws the parameters; None for torch's own.

    Attributes
    ----------
    units : SparselyActivatedLayer
        The layer itself; its ``routing`` is the controller.

    Notes
    -----
    The noise comes from torch's own generator, as that of ``torch.nn.Dropout`` does. The authors' program takes the
    soft choice for the hard one in some steps of training; here the forward pass is always hard.

    References
    ----------
    .. [1] S. Jaszczur et al., "Sparse is Enough in Scaling Transformers", 2021, Section 3.1.
    .. [2] "A Theoretical View on Sparsely Activated Networks", 2022, Section 3.1.

    Examples
    --------
    >>> layer = BlockSparseFeedForward(8, 64, n_blocks=4).eval()
    >>> (layer.route(torch.randn(3, 8)).indices // 16).tolist()
    [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        n_blocks: int,
        *,
        rank: int | None = None,
        temperature: float = 0.1,
        method: str = "auto",
        bias: bool = True,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        if checked_size(d_ff, "`d_ff`") % checked_size(n_blocks, "`n_blocks`"):
            raise ValueError(f"`n_blocks` must divide `d_ff`; got {n_blocks} blocks for {d_ff} units.")
        self.temperature = checked_positive(temperature, "`temperature`")
        size = d_ff // n_blocks
        rank = max(1, checked_size(d_model, "`d_model`") // size) if rank is None else rank
        self.units = SparselyActivatedLayer(
            d_model,
            d_ff,
            d_model,
            router=BlockTop1(n_blocks, size, rank),
            bias=bias,
            method=method,
            generator=generator,
            dtype=dtype,
            device=device,
        )

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new parameters, the controller's included."""
        self.units.reset_parameters(generator)

    def route(self, x: Tensor) -> Selection:
        """Units of each row of ``x`` (..., d_model), without noise; leading dimensions become one, in order."""
        return self.units.route(x)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (..., d_model) of inputs (..., d_model)."""
        self.units._check_loaded()
        y, selection = self.forward_with_selection(x)
        self.units._report(selection)
        return y

    def forward_with_selection(self, x: Tensor) -> tuple[Tensor, Selection]:
        """Outputs (..., d_model), and the selection that they were computed with: in training, a sampled one."""
        if not self.training:
            return self.units.forward_with_selection(x)
        rows = checked_layer_inputs(x, self.units.in_features, self.units.up_weight.dtype)
        # Gumbel's, -log(-log u), in float32 from above 0; exponential_ is slower on CPU.
        noise = torch.rand(rows.shape[0], self.units.n_units, dtype=torch.float32, device=rows.device)
        noise = noise.clamp_min_(2**-25).log_().neg_().log_().neg_()
        routing = self.units.routing
        with torch.autocast(rows.device.type, enabled=False):  # units are weighted below, not by the router
            selection = routing.router.select(rows, {**routing.state, "noise": noise})
        blocks = ((selection.logits + noise) / self.temperature).unflatten(1, (selection.indices.shape[1], -1))
        soft = blocks.softmax(-1).flatten(1)
        hard = torch.zeros_like(soft).scatter(1, selection.indices, 1)
        y = self.units.masked(rows, hard + (soft - soft.detach()))
        return y.reshape(x.shape), selection

    def flops(self, batch: int = 1) -> Flops:
        """Operations of a forward pass over ``batch`` inputs, out of training (see :class:`Flops`)."""
        return self.units.flops(batch)

    def extra_repr(self) -> str:
        """Temperature; the layer of units has the rest."""
        return f"temperature={self.temperature}"
