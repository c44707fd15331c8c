"""Small transformers on characters and on images, whose feed-forward layers can be replaced."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sparsact.inference.block import Activation, Block
from sparsact.layers import Flops, HashMemory, MixtureOfExperts, ProductKeyMemory
from sparsact.layers.routed_layer import activation_of
from sparsact.routing import HashTable

ACTIVATIONS: Final[dict[str, type[nn.Module]]] = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU}
SPREAD: Final = 0.02  # standard deviation of embeddings at first, as GPT-2 has it


class FeedForward(nn.Module):
    """V f(W x + b) + c: ``up``, ``activation`` and ``down``."""

    def __init__(self, width: int, hidden: int, activation: str = "relu") -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"`activation` must be one of {', '.join(ACTIVATIONS)}; got {activation!r}.")
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.activation = ACTIVATIONS[activation]()

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (..., width) of inputs (..., width)."""
        y: Tensor = self.down(self.activation(self.up(x)))
        return y

    def flops(self) -> Flops:
        """Operations for a token."""
        units = 2 * (self.up.weight.numel() + self.down.weight.numel())
        return Flops(0, units, units)


class WithMemory(nn.Module):
    """A feed-forward layer and a memory beside it, of the same inputs: the sum of their outputs.

    Examples
    --------
    >>> layer = WithMemory(FeedForward(8, 24), HashMemory(100, 8, ngram=(2,), n_hashes=1))
    >>> layer(torch.zeros(3, 5, 8), torch.zeros(3, 5, dtype=torch.int64)).shape
    torch.Size([3, 5, 8])
    >>> layer.flops().active - FeedForward(8, 24).flops().active == layer.memory.flops().active
    True
    """

    def __init__(self, feed_forward: FeedForward | MixtureOfExperts, memory: HashMemory | ProductKeyMemory) -> None:
        super().__init__()
        self.feed_forward, self.memory = feed_forward, memory

    def forward(self, x: Tensor, route_by: Tensor) -> Tensor:
        """Outputs of the shape of ``x`` (m, length, width), whose tokens have the ids ``route_by`` (m, length)."""
        by_id = isinstance(self.memory, HashMemory)
        y: Tensor = self.feed_forward(x) + (self.memory(route_by, context=x) if by_id else self.memory(x))
        return y

    def flops(self) -> Flops:
        """Operations for a token."""
        one, other = self.feed_forward.flops(), self.memory.flops()
        return Flops(one.routing + other.routing, one.active + other.active, one.dense + other.dense)


class Attention(nn.Module):
    """Attention with several heads, causal or to all places."""

    def __init__(self, width: int, n_heads: int, *, is_causal: bool = True) -> None:
        super().__init__()
        if width % n_heads:
            raise ValueError(f"`n_heads` must divide `width`; got {n_heads} heads and width {width}.")
        self.n_heads, self.is_causal = n_heads, is_causal
        self.projections, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (m, length, width) of inputs of the same shape; where causal, none sees a later place."""
        m, length, width = x.shape
        heads = self.projections(x).view(m, length, 3, self.n_heads, width // self.n_heads)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=self.is_causal)
        y: Tensor = self.out(seen.transpose(1, 2).reshape(m, length, width))
        return y


class TransformerLayer(nn.Module):
    """Attention, then the feed-forward layer, each of normalised inputs and added to them."""

    def __init__(self, width: int, n_heads: int, feed_forward: nn.Module, *, is_causal: bool = True) -> None:
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(width), Attention(width, n_heads, is_causal=is_causal)
        self.feed_forward_norm, self.feed_forward = nn.LayerNorm(width), feed_forward

    def forward(self, x: Tensor, ids: Tensor) -> Tensor:
        """Outputs of the shape of ``x``, (m, length, width), whose tokens have ``ids`` (m, length)."""
        x = x + self.attention(self.attention_norm(x))
        inputs = self.feed_forward_norm(x)
        layer = self.feed_forward
        by_id = isinstance(layer, WithMemory) or (
            isinstance(layer, MixtureOfExperts) and isinstance(layer.routing.router, HashTable)
        )
        y: Tensor = x + (layer(inputs, route_by=ids) if by_id else layer(inputs))
        return y


class Transformer(nn.Module):
    """A decoder with pre-norm layers and learned positions, from tokens to logits of the next one.

    ``feed_forward`` makes the feed-forward module of a layer from (width, hidden); None for :class:`FeedForward` with
    the ``activation`` "relu", "gelu" or "silu". Parameters are drawn by torch's own generator.

    Examples
    --------
    >>> model = Transformer(vocabulary=11, width=8, n_layers=2, n_heads=2, hidden=24, context=5)
    >>> model(torch.zeros(3, 4, dtype=torch.int64)).shape
    torch.Size([3, 4, 11])
    >>> [block.up for block in model.feed_forward_blocks()]
    ['blocks.0.feed_forward.up', 'blocks.1.feed_forward.up']
    """

    def __init__(
        self,
        vocabulary: int,
        width: int,
        n_layers: int,
        n_heads: int,
        hidden: int,
        context: int,
        feed_forward: Callable[[int, int], nn.Module] | None = None,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.context = context
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        for embedding in (self.tokens, self.places):
            nn.init.normal_(embedding.weight, std=SPREAD)
        make = feed_forward or partial(FeedForward, activation=activation)
        self.blocks = nn.ModuleList(TransformerLayer(width, n_heads, make(width, hidden)) for _ in range(n_layers))
        self.norm, self.logits = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (m, length, vocabulary) of the token after each of ``tokens`` (m, length)."""
        length = tokens.shape[1]
        if length > self.context:
            raise ValueError(f"the model reads {self.context} tokens at most, got {length}; pass the last of them.")
        x = self.tokens(tokens) + self.places.weight[:length]
        for block in self.blocks:
            x = block(x, tokens)
        logits: Tensor = self.logits(self.norm(x))
        return logits

    def feed_forward_blocks(self) -> list[Block]:
        """The blocks whose feed-forward module is a :class:`FeedForward`."""
        found = []
        for i, layer in enumerate(self.blocks):
            if isinstance(module := layer.feed_forward, FeedForward):
                name = f"blocks.{i}.feed_forward"
                found.append(Block(name, f"{name}.up", f"{name}.down", None, _activation(module)))
        return found


class VisionTransformer(nn.Module):
    """An encoder of image patches with pre-norm layers and learned positions; logits of their mean.

    ``feed_forward`` as in :class:`Transformer`. A patch's id, for routers that look at ids, is its place.

    Examples
    --------
    >>> model = VisionTransformer(size=8, patch=4, classes=5, width=8, n_layers=2, n_heads=2, hidden=24)
    >>> model(torch.zeros(3, 3, 8, 8, dtype=torch.uint8)).shape
    torch.Size([3, 5])
    """

    def __init__(
        self,
        size: int,
        patch: int,
        classes: int,
        width: int,
        n_layers: int,
        n_heads: int,
        hidden: int,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
    ) -> None:
        super().__init__()
        if size % patch:
            raise ValueError(f"`patch` must divide `size`; got patches of {patch} and images of {size}.")
        self.n_patches = (size // patch) ** 2
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.places = nn.Embedding(self.n_patches, width)
        nn.init.normal_(self.places.weight, std=SPREAD)
        layers = (
            TransformerLayer(width, n_heads, feed_forward(width, hidden), is_causal=False) for _ in range(n_layers)
        )
        self.blocks = nn.ModuleList(layers)
        self.norm, self.logits = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (m, classes) of images (m, 3, size, size) uint8."""
        x = self.patches(images.to(self.places.weight.dtype) / 127.5 - 1).flatten(2).transpose(1, 2)
        x = x + self.places.weight
        ids = torch.arange(self.n_patches, device=x.device).expand(len(x), -1)
        for block in self.blocks:
            x = block(x, ids)
        logits: Tensor = self.logits(self.norm(x).mean(1))
        return logits


def _activation(module: FeedForward) -> Activation:
    name = next(name for name, kind in ACTIVATIONS.items() if isinstance(module.activation, kind))
    weight = module.up.weight
    zeros = torch.zeros(len(weight), dtype=weight.dtype, device=weight.device) if name == "relu" else None
    return Activation(name, activation_of(name), zeros)
