r"""Sparse autoencoders and transcoders on the CPU: features of activations, and activations of features.

.. math:: f = \sigma(W (x - c) + b), \qquad \hat x = V f + d \; (+ S x)

A certified screen proves most features off before their rows of W are read; V f reads the columns of the others alone.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, Final, NamedTuple, overload

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sparsact.inference.apply import Replacement
from sparsact.inference.certified_screen import NARROW
from sparsact.inference.certified_top_k import BoundedOutputs
from sparsact.inference.methods import SAMPLE, screen_of
from sparsact.inference.selectors import ActiveInputs, Readers, SwitchedOn, has_hooks
from sparsact.inference.sparse_linear import LayerState, SparseLinear
from sparsact.inference.weight_cache import ActivationConstants, WeightCache, count_writes
from sparsact.inference.weights import FloatWeights
from sparsact.kernels.screen import Products, products
from sparsact.validation.parameters import checked_size

ROWS: Final = 256  # that are reconstructed together: the features of more would fill the memory
# Measured at 768 -> 24,576 beside products of matrices, one thread: the screen is faster for up to that many rows (at
# 48, 128 and 256 by 1.05 to 1.27 times) and a fifth of the features, columns of the decoder for up to 4 % of them.
ROWS_SCREENED: Final = {Products.BY_ROWS: 48, Products.VNNI: 128, Products.AMX: ROWS}
SHARE_COMPUTED: Final = 0.2
SHARE_DECODED: Final = 0.04


class TopFeatures(NamedTuple):
    """Places (..., k) of the largest features of each row, int64, in descending order, and their values (..., k)."""

    indices: Tensor
    values: Tensor


class Jump(nn.Module):
    """z where it is above the threshold of its feature, else 0; a NaN stays one."""

    threshold: Tensor

    def __init__(self, threshold: Tensor) -> None:
        super().__init__()
        self.register_buffer("threshold", threshold)

    def forward(self, z: Tensor) -> Tensor:
        """Features, in the memory of z."""
        return z.masked_fill_(z <= self.threshold, 0)


class Gate(nn.Module):
    """The rectified magnitude, gain * z + offset, where z is above 0, else 0; a NaN stays one."""

    gain: Tensor
    offset: Tensor

    def __init__(self, gain: Tensor, offset: Tensor) -> None:
        super().__init__()
        self.register_buffer("gain", gain)
        self.register_buffer("offset", offset)

    def forward(self, z: Tensor) -> Tensor:
        """Features."""
        return torch.addcmul(self.offset, self.gain, z).masked_fill_(z <= 0, 0).relu_()


class Autoencoder(nn.Module):
    r"""A sparse autoencoder or transcoder that reads only the weights of active features.

    Where weights have changed, are on another device, or gradients are recorded, it computes densely. Features and
    outputs have the dtype of the weights, to which activations are converted.

    Parameters
    ----------
    encoder, decoder : nn.Linear
        W and b, V and d; the autoencoder uses these layers themselves, without gradients.
    activation : nn.ReLU, Jump or Gate
        :math:`\sigma`; units that are off are known for these alone.
    n_active : int, optional
        Number of the largest pre-activations that are kept, by default all.
    centred : bool
        Whether c is d rather than 0.
    skip : Tensor of shape (outputs, inputs), optional
        S.
    sample : Tensor of shape (..., inputs), optional
        A few hundred typical activations, so that fewer features are computed; results stay exact for all inputs.

    Examples
    --------
    >>> encoder, decoder = nn.Linear(2, 3, bias=False), nn.Linear(3, 2)
    >>> _ = encoder.weight.data.copy_(torch.tensor([[1.0, 0.0], [0.0, -1.0], [1.0, 1.0]]))
    >>> autoencoder = Autoencoder(encoder, decoder, nn.ReLU())
    >>> autoencoder.encode(torch.tensor([[3.0, 1.0]]))
    tensor([[3., 0., 4.]])
    >>> autoencoder.encode(torch.tensor([[3.0, 1.0]]), k=1)
    TopFeatures(indices=tensor([[2]]), values=tensor([[4.]]))
    """

    encoder: nn.Linear
    decoder: nn.Linear
    skip: Tensor | None

    def __init__(
        self,
        encoder: nn.Linear,
        decoder: nn.Linear,
        activation: nn.ReLU | Jump | Gate,
        *,
        n_active: int | None = None,
        centred: bool = False,
        skip: Tensor | None = None,
        sample: Tensor | None = None,
    ) -> None:
        if not isinstance(activation, nn.ReLU | Jump | Gate):
            raise TypeError(
                f"`activation` must be nn.ReLU, Jump or Gate; got {type(activation)}: see sparsact.sparsify."
            )
        if encoder.out_features != decoder.in_features:
            raise ValueError(
                f"`decoder` must read the {encoder.out_features} features of `encoder`; it reads {decoder.in_features}."
            )
        super().__init__()
        self.activation, self.encoder, self.decoder = activation, encoder, decoder
        self.n_active = None if n_active is None else checked_size(n_active, "`n_active`", 1, encoder.out_features)
        self.centred = centred and decoder.bias is not None
        self.register_buffer("skip", skip)
        self.requires_grad_(False).eval()
        for layer in (encoder, decoder):
            count_writes(layer)
        threshold = activation.threshold if isinstance(activation, Jump) else None
        constants = ActivationConstants([] if threshold is None else [(activation, "threshold")])
        seen = torch.empty(0) if sample is None else self._centred(sample).reshape(-1, encoder.in_features)[:SAMPLE]
        screens = WeightCache(partial(screen_of, threshold=threshold, sample=seen))
        self._bounded = WeightCache(partial(BoundedOutputs, sample=seen if len(seen) else None))
        switched = SwitchedOn(constants, Readers(self, ()), screens)
        layers = {
            "encoder": LayerState(FloatWeights, switched, ROWS_SCREENED[products()], SHARE_COMPUTED),
            "decoder": LayerState(FloatWeights, ActiveInputs(), sys.maxsize, SHARE_DECODED),
        }
        Replacement(layers).apply(self)

    @overload
    def encode(self, x: Tensor) -> Tensor: ...

    @overload
    def encode(self, x: Tensor, k: int) -> TopFeatures: ...

    def encode(self, x: Tensor, k: int | None = None) -> Tensor | TopFeatures:
        """All features (..., features) of activations x (..., inputs), or the k largest of each row.

        Raises
        ------
        ValueError
            If x has another width or holds integers, or fewer than k features can be on.
        """
        x, most = self._centred(x), self.n_active or self.encoder.out_features
        if k is None and self.n_active is None:
            return self._features(x)
        taken = most if k is None else checked_size(k, "`k`", maximum=most)
        top = self._largest(x, taken)
        return self._dense(*top) if k is None else top

    def decode(self, features: Tensor | tuple[Tensor, Tensor]) -> Tensor:
        """V f + d of features (..., features), or of indices and values (..., k)."""
        decoder: Any = self.decoder
        if isinstance(features, Tensor):
            out: Tensor = decoder(features.to(decoder.weight.dtype))
            return out
        indices, values = _places(*features, decoder.in_features)
        values = values.to(decoder.weight.dtype)
        plain = isinstance(decoder, SparseLinear) and not has_hooks(decoder) and not values.requires_grad
        row = values.new_empty(1, decoder.in_features)
        if not plain or not decoder.eligible_rows(row) or not decoder.weights.finite:
            return self.decode(self._dense(indices, values))
        places, weights = (one.view(-1, one.shape[-1]) for one in (indices.contiguous(), values.contiguous()))
        out = F.embedding_bag(places, decoder.weight.t(), per_sample_weights=weights, mode="sum")
        out = out if decoder.bias is None else out + decoder.bias
        return out.view(*values.shape[:-1], decoder.out_features)

    def forward(self, x: Tensor) -> Tensor:
        """The reconstruction of activations x (..., inputs), or the outputs of a transcoder."""
        parts = torch.split(self._checked(x).reshape(-1, x.shape[-1]), ROWS)
        features = (self.encode(one) if self.n_active is None else self.encode(one, self.n_active) for one in parts)
        out = torch.cat([self.decode(one) for one in features]).view(*x.shape[:-1], self.decoder.out_features)
        return out if self.skip is None else out + F.linear(x.to(out.dtype), self.skip)

    def _checked(self, x: Tensor) -> Tensor:
        width = self.encoder.in_features
        if not x.is_floating_point() or x.shape[-1:] != (width,):
            raise ValueError(
                f"activations must have shape (..., {width}) in floats; got {tuple(x.shape)}, {x.dtype}: pass what the "
                "model computes where this was trained, all heads in one row."
            )
        return x

    def _centred(self, x: Tensor) -> Tensor:
        """Activations minus c, in the dtype of the weights."""
        x = self._checked(x).to(self.encoder.weight.dtype)
        return x - self.decoder.bias if self.centred else x

    def _features(self, x: Tensor) -> Tensor:
        """Features of x - c before only the largest are kept."""
        z = self.encoder(x)
        f: Tensor = self.activation(z.clone() if has_hooks(self.encoder) else z)  # hooks may keep what they see
        return f

    def _largest(self, x: Tensor, k: int) -> TopFeatures:
        """The k largest features of x - c; of pre-activations that are 0 or less any."""
        encoder: Any = self.encoder
        plain = isinstance(encoder, SparseLinear) and isinstance(self.activation, nn.ReLU) and x.dtype in NARROW
        seen = has_hooks(encoder) or has_hooks(self.activation)
        rows = encoder.eligible_rows(x) if plain and not seen else 0
        if not rows:
            values, indices = torch.topk(self._features(x), k)
            return TopFeatures(indices, values)
        flat = x.reshape(rows, -1).contiguous()
        found = self._bounded.get(encoder._sparse.weight_version(encoder)).top_k(flat, k)
        unknown = found.indices[:, 0] < 0
        if bool(unknown.any()):
            found.values[unknown], found.indices[unknown] = torch.topk(encoder.dense(flat[unknown]), k)
        values, indices = (one.view(*x.shape[:-1], k) for one in found)
        return TopFeatures(indices, values.relu_())

    def _dense(self, indices: Tensor, values: Tensor) -> Tensor:
        """All features from some of each row."""
        return values.new_zeros(*values.shape[:-1], self.encoder.out_features).scatter_add_(-1, indices, values)


def _places(indices: Tensor, values: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Places and values of features; ValueError if there are no such features."""
    least, most = indices.aminmax() if indices.numel() else (0, 0)
    some = indices.dtype == torch.int64 and indices.ndim > 0 and indices.shape[-1] > 0
    if not some or indices.shape != values.shape or not 0 <= least <= most < n:
        raise ValueError(
            f"features must be places (..., k) in range({n}), int64, and their values; got {tuple(indices.shape)}, "
            f"{indices.dtype}, and {tuple(values.shape)}: pass what encode returns."
        )
    return indices, values
