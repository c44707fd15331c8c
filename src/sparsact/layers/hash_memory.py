"""HashMemory: rows of large tables that hashes of the last token ids name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn import functional as F

from sparsact.layers.memory import Memory, ZeroEmbedding, of_tokens
from sparsact.layers.routed_layer import Flops, Routing, as_computed, fill_uniform
from sparsact.routing.array_functions import is_readable
from sparsact.routing.ngram_hash import Collisions, NGramHash
from sparsact.routing.selection import Selection
from sparsact.validation.arrays import checked_layer_inputs
from sparsact.validation.parameters import checked_size

MOST_IDS: Final = 2**53  # routers see them as float64
NO_TOKEN: Final = -1  # before the beginning of a text or document, and in place of padding


class HashMemory(Memory):
    r"""Sums of table rows chosen by hashes of the last token ids, gated by the state of the token: Engram [1]_.

    .. math:: g(x) = \alpha\, e, \qquad e = \sum_{j \in S(x)} v_j, \qquad
              \alpha = \sigma\Big(\frac{1}{\sqrt d} \langle c \odot \overline h, \overline{W e} \rangle\Big),

    with the slots S(x) of :class:`~sparsact.routing.NGramHash`, the state h of the token, its ``context``, and
    :math:`\overline u = u / \mathrm{rms}(u)`. A token reads no later one.

    Parameters
    ----------
    n_slots, d_model : int
        Number of rows over all tables (the primes that fit give a few less), and size of outputs and contexts.
    ngram : sequence of int, default=(2, 3)
        Orders of n-grams.
    n_hashes : int, default=2
        Number of tables for each order.
    gate : bool, default=True
        Whether outputs are gated by the context; without, :math:`\alpha = 1`.
    vocabulary : array-like of int of shape (n_tokens,), default=None
        Canonical id of each token id, so that spellings of a word share rows; None to use token ids directly.
    random_state : int, default=0
        Seed of the hash.
    sparse : bool, default=True
        Whether the gradient of the table is sparse, as of ``torch.nn.Embedding``: it holds the rows that were read, for
        ``torch.optim.SparseAdam`` or SGD. Give the other parameters to an optimizer of their own.
        ``DistributedDataParallel`` takes both kinds.
    generator : torch.Generator, default=None
        Draws the gate; None for torch's own.

    Attributes
    ----------
    values : Parameter of shape (slots, d_model)
        v, 0 at first; ``table.weight`` in ``state_dict``.
    key_weight, gain : Parameters of shapes (d_model, d_model) and (d_model,), or None
        W, uniform within ``1 / sqrt(d_model)``; and c, 1 at first.

    Notes
    -----
    A token costs as many rows as there are tables, whatever ``n_slots``. In [1]_ a table holds a part of the vector,
    which a matrix then mixes; here rows are whole and add up, as in :math:`A \circ \mathrm{mask}(x)`.

    References
    ----------
    .. [1] X. Cheng et al., "Conditional Memory via Scalable Lookup", 2026 (Engram), Section 2.

    Examples
    --------
    >>> memory = HashMemory(1000, 8)
    >>> ids = torch.tensor([[4, 7, 1, 4, 7, 1]])
    >>> memory(ids, context=torch.randn(1, 6, 8)).shape
    torch.Size([1, 6, 8])

    In decoding the last three ids are enough:

    >>> memory(ids[:, -3:], context=torch.randn(1, 1, 8)).shape
    torch.Size([1, 1, 8])
    """

    vocabulary: Tensor | None

    def __init__(
        self,
        n_slots: int,
        d_model: int,
        ngram: Sequence[int] = (2, 3),
        n_hashes: int = 2,
        gate: bool = True,
        *,
        vocabulary: ArrayLike | None = None,
        random_state: int = 0,
        sparse: bool = True,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.in_features = checked_size(d_model, "`d_model`")
        made: dict[str, Any] = {"dtype": dtype, "device": device}
        self._router = NGramHash(n_slots, ngram, n_hashes, random_state)
        self.routing = Routing(self._router, self._router.ngram[-1], generator=generator, **made)
        self.table = ZeroEmbedding(sum(self._router.sizes), d_model, sparse=bool(sparse), **made)
        self.key_weight = nn.Parameter(torch.empty(d_model, d_model, **made)) if gate else None
        self.gain = nn.Parameter(torch.empty(d_model, **made)) if gate else None
        self._canonical = None if vocabulary is None else np.asarray(vocabulary)  # as given, for an empty layer
        if (ids := self._canonical) is not None and not (
            ids.dtype.kind in "iu" and ids.ndim == 1 and ids.size and ids.min() >= 0
        ):
            raise ValueError(
                "`vocabulary` must be one axis of integers from 0, the canonical id of each token id; got "
                f"{ids.dtype}, shape {ids.shape}{f' from {ids.min()}' if ids.size and ids.dtype.kind in 'if' else ''}."
            )
        empty = None if ids is None else torch.empty(len(ids), dtype=torch.int64, device=device)
        self.register_buffer("vocabulary", empty)
        self._fill(generator)

    @torch.no_grad()
    def _fill(self, generator: torch.Generator | None) -> None:
        self.table.reset_parameters()
        fill_uniform(self.in_features**-0.5, (self.key_weight,), generator)
        if self.gain is not None:
            self.gain.fill_(1)
        if self.vocabulary is not None:
            self.vocabulary.copy_(torch.as_tensor(self._canonical, device="cpu"))

    def route(self, x: Tensor, *, documents: Tensor | None = None, mask: Tensor | None = None) -> Selection:
        """Slots of each token of ``x`` (..., T); leading dimensions become one, in order."""
        return self._select(x, None, documents, mask)

    def forward_with_selection(
        self, x: Tensor, *, context: Tensor | None = None, documents: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, Selection]:
        """Outputs (..., S, d_model) for token ids ``x`` (..., T), and the slots that they were read from.

        ``context`` (..., S, d_model) holds the states of the last S tokens, which alone are computed; all are without.
        ``documents`` (..., T) numbers the document of each token: no n-gram reaches into another one. ``mask`` (..., T)
        is False for padding, which stands for no token: its output is 0, and it counts nowhere.
        """
        of_tokens(x, "x", "token ids")
        if context is None and self.key_weight is not None:
            raise ValueError("the gate needs the states of the tokens: pass them as `context`, or set gate=False.")
        rows: Tensor | None = None
        if context is not None:
            rows = checked_layer_inputs(context, self.in_features, self.values.dtype, "context")
        last = x.shape[-1:] if context is None else context.shape[-2:-1]
        if context is not None and (context.shape[:-2] != x.shape[:-1] or not last or last > x.shape[-1:]):
            raise ValueError(
                f"`context` must be the states of the last S of {x.shape[-1]} tokens, shape "
                f"{(*x.shape[:-1], 'S', self.in_features)}; got {tuple(context.shape)}."
            )
        selection = self._select(x, last[0] if last else None, documents, mask)
        y = as_computed(self._read(selection, selection.indices))
        if rows is not None and self.key_weight is not None and self.gain is not None:
            if selection.real is not None:
                rows = rows.masked_fill(~selection.real[:, None], 0)  # padding may hold NaN
            keys = F.rms_norm(F.linear(y, self.key_weight.to(y.dtype)), y.shape[1:])
            states = F.rms_norm(as_computed(rows), y.shape[1:], self.gain.to(y.dtype))
            y = y * ((states * keys).sum(-1, keepdim=True) * self.in_features**-0.5).sigmoid()
        return y.reshape(*x.shape[:-1], *last, self.in_features), selection

    def _select(self, x: Tensor, last: int | None, documents: Tensor | None, mask: Tensor | None) -> Selection:
        windows = self._windows(x, documents, mask)
        first = 0 if last is None else x.shape[-1] - last
        windows = windows[..., first:, :]
        found: Selection = self.routing(windows.flatten(0, -2).double())
        own = {"weights": found.weights.to(self.values), "auxiliary_loss": found.auxiliary_loss.to(self.values)}
        selection = replace(found, **own)
        return selection if mask is None else selection.masked(mask[..., first:].reshape(-1))

    def _windows(self, x: Tensor, documents: Tensor | None, mask: Tensor | None) -> Tensor:
        """Canonical ids (..., T, N) of each token and the tokens before it; -1 for none."""
        n = self._router.ngram[-1]
        ids = of_tokens(x, "x", "token ids")
        if not ids.ndim or ids.shape[-1] < n:
            raise ValueError(
                f"{n}-grams need texts of at least {n} tokens; got {ids.shape[-1] if ids.ndim else 0}: pass more of "
                "the text, or pad it on the left and mark the padding by mask=."
            )
        ids = ids if mask is None else ids.masked_fill(~of_tokens(mask, "mask", "bool", x.shape), 0)
        limit = MOST_IDS if self.vocabulary is None else len(self.vocabulary)
        if is_readable(ids) and ids.numel() and (ids.min() < 0 or ids.max() >= limit):
            raise ValueError(
                f"token ids must be 0 to {limit - 1}; got {int(ids.min())} to {int(ids.max())}: check the tokenizer."
            )
        ids = ids if self.vocabulary is None else self.vocabulary[ids]
        ids = ids if mask is None else ids.masked_fill(~mask, NO_TOKEN)
        windows = _shifted_back(ids, n)
        if documents is None:
            return windows
        own = of_tokens(documents, "documents", "integers", x.shape)
        return windows.where(_shifted_back(own, n) == own[..., None], NO_TOKEN)

    def collisions(self, x: Tensor, *, documents: Tensor | None = None, mask: Tensor | None = None) -> Collisions:
        """How often different n-grams of the texts ``x`` (..., T) share slots."""
        windows = self._windows(x, documents, mask)
        windows = windows.flatten(0, -2) if mask is None else windows[mask]
        return self._router.collisions(windows.cpu().numpy())

    def flops(self, batch: int = 1) -> Flops:
        """Operations of a forward pass over ``batch`` tokens; ``dense`` would read every slot (see :class:`Flops`)."""
        d, tables = self.in_features, len(self._router.sizes)
        gate = 0 if self.key_weight is None else 2 * d * d + 9 * d  # norms, inner product and scaling
        active, dense = (2 * rows * d + gate for rows in (tables, len(self.values)))
        return Flops(batch * self._router.flops(self._router.ngram[-1]), batch * active, batch * dense)


def _shifted_back(tokens: Tensor, n: int) -> Tensor:
    """The entry of each token and of the n - 1 before it, (..., T, n); -1 before the first."""
    length = tokens.shape[-1]
    return torch.stack([F.pad(tokens, (j, 0), value=NO_TOKEN)[..., :length] for j in range(n)], -1)
