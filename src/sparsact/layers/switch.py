"""SwitchLayer: a mixture of experts, each token computed by the expert that it is routed to."""

from __future__ import annotations

import torch

from sparsact.layers.mixture import MixtureOfExperts
from sparsact.routing.router import Router
from sparsact.validation.parameters import checked_size


class SwitchLayer(MixtureOfExperts):
    r"""A mixture of two-layer experts: each input runs only through the experts that a router chooses.

    .. math:: g(x) = \sum_{e \in S(x)} p_e(x) \left( \sigma(x B_e + b_e)\, A_e + a_e \right),

    with the router's probabilities p: for ``Switch`` one expert per token, the most probable. A token whose expert is
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
        super().__init__(
            checked_size(in_features, "`in_features`"),
            checked_size(n_units, "`n_units`"),
            router=router,
            activation="relu",
            d_out=checked_size(out_features, "`out_features`"),
            bias=bias,
            generator=generator,
            dtype=dtype,
            device=device,
        )

    def extra_repr(self) -> str:
        """Sizes, as the constructor takes them."""
        return f"{self.in_features}, {self.n_units}, {self.out_features}, bias={self.up_bias is not None}"
