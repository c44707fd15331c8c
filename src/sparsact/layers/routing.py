"""A router as a part of a module: its hyperparameters, and its state as parameters and buffers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from sparsact.routing.router import Router
from sparsact.routing.selection import Selection


class Routing(nn.Module):
    """A router over inputs of ``in_features`` columns, with its state.

    The state is drawn by a NumPy generator that ``generator`` seeds, so that a seed fixes it on any device. It moves
    and is saved with the module; what the router names trainable is a parameter.
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
            raise TypeError(f"`router` must be a router of sparsact.routing; got {router!r}.")
        self.router, self.in_features = router, in_features
        dtype = torch.get_default_dtype() if dtype is None else dtype
        for name, value in self._drawn(generator).items():
            tensor = value.to(device=device, dtype=dtype if value.is_floating_point() else None)
            if name in router.trainable:
                self.register_parameter(name, nn.Parameter(tensor))
            else:
                self.register_buffer(name, tensor)

    def _drawn(self, generator: torch.Generator | None) -> dict[str, Tensor]:
        device = "cpu" if generator is None else generator.device
        seed = torch.randint(2**63 - 1, (), generator=generator, device=device).item()
        state = self.router.initial_state(self.in_features, rng=np.random.default_rng(int(seed)))
        return {name: torch.as_tensor(value, device="cpu") for name, value in state.items()}

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the state anew."""
        for name, value in self._drawn(generator).items():
            getattr(self, name).copy_(value)

    @property
    def state(self) -> Mapping[str, Tensor]:
        """Arrays of the router by name, as :meth:`Router.select` takes them."""
        return {**self._parameters, **self._buffers}  # type: ignore[dict-item] # none of them is None

    def forward(self, x: Tensor, **entries: Tensor) -> Selection:
        """Units for each row of ``x`` (m, in_features), chosen outside autocast.

        Routing in low precision makes training unstable ("Switch Transformers", Section 2.4), and a hash of a rounded
        input is another hash. ``entries`` join the state.
        """
        with torch.autocast(x.device.type, enabled=False):
            return self.router.select(x, {**self.state, **entries}, training=self.training)

    def extra_repr(self) -> str:
        """The router, as it was written."""
        return repr(self.router)
