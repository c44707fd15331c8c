"""Memories refuse bad input in one clear line."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from grids import grid
from memory_layers import d, hashing, products, states, texts

from sparsact.routing import ProductKeys

GATED = {"context": states(4)}
UNCLEAR = {
    "`n_slots` of NGramHash must be 1 or more; got 0": lambda: hashing(0),
    "7 slots are too few": lambda: hashing(7),
    "`vocabulary` must be .* from 0, .*; got float64": lambda: hashing(vocabulary=[0.5, 1]),
    r"`vocabulary` must be .* from 0, .*; got int64, shape \(2,\) from -1": lambda: hashing(vocabulary=[-1, 2]),
    r"`vocabulary` must be .* from 0, .*; got <U1, shape \(1,\)": lambda: hashing(vocabulary=["a"]),
    r"`vocabulary` must be .* from 0, .*; got int64, shape \(0,\)": lambda: hashing(vocabulary=np.arange(0)),
    "pass them as `context`": lambda: hashing()(texts(4)),
    "3-grams need texts of at least 3 tokens; got 2": lambda: hashing(gate=False)(texts(2)),
    "must be 0 to .*got -3 to 2: check the tokenizer": lambda: hashing(gate=False)(torch.tensor([1, 2, -3])),
    "must be 0 to 1; got 0 to 2": lambda: hashing(gate=False, vocabulary=[0, 1])(torch.tensor([1, 0, 2])),
    "must be 0 to 9007199254740991": lambda: hashing(gate=False)(texts(4) + 2**60),
    "`x` must be a tensor of token ids; got list: pass torch.as_tensor": lambda: hashing(gate=False)([1, 2, 3]),
    "`x` must be a tensor of token ids; got NoneType": lambda: hashing()(None, **GATED),
    "`x` must be a tensor of token ids; got ndarray": lambda: hashing()(texts(4).numpy(), **GATED),
    "`x` must be a tensor of token ids; got tuple": lambda: hashing().route((1, 2, 3)),
    "`x` must be a tensor of token ids; got str": lambda: hashing().collisions("text"),
    "token ids; got torch.float32: pass x.long": lambda: hashing(gate=False)(states(4)),
    "token ids; got torch.int8: pass x.long": lambda: hashing(gate=False)(texts(4).to(torch.int8)),
    "`context` must be the states of the last S of 4 tokens": lambda: hashing()(texts(4), context=states(5)),
    r"`context` must have 6 features in its last dimension; got shape \(4, 7\)": lambda: hashing()(
        texts(4), context=torch.zeros(4, 7)
    ),
    "`context` must be a torch tensor; got list: pass torch.as_tensor": lambda: hashing()(texts(4), context=[1.0]),
    "`context` must hold real numbers; got torch.int64": lambda: hashing()(texts(4), context=texts(4, d)),
    r"`mask` must be a tensor of bool of shape \(4,\); got torch.int64: pass mask.bool": lambda: hashing(gate=False)(
        texts(4), mask=texts(4)
    ),
    r"`mask` must be a tensor of bool of shape \(4,\); got list": lambda: hashing(gate=False)(texts(4), mask=[True]),
    r"`documents` .* of shape \(4,\), one for each token; got shape \(3,\)": lambda: hashing(gate=False)(
        texts(4), documents=texts(3)
    ),
    "`documents` must be a tensor of integers .* pass documents.long": lambda: hashing(gate=False)(
        texts(4), documents=torch.zeros(4)
    ),
    "each order of `ngram` must be 1 or more; got 0": lambda: hashing(ngram=(0, 2)),
    r"`ngram` must be increasing orders such as \(2, 3\); got \(3, 2\)": lambda: hashing(ngram=(3, 2)),
    "`n_keys` of ProductKeys must be 1 or more; got 0": lambda: products(0),
    "`n_keys` of ProductKeys must be an integer; got 4.5": lambda: products(4.5),
    "a router cannot choose 5 of 4 units; pass n_active <= 4": lambda: products(2, 5),
    "queries of 6 columns do not fall into two equal halves": lambda: products(d_query=3),
    r"`keys` of product_keys must have shape \(1, 2, 3, 1\)": lambda: ProductKeys(3, 2)(
        np.ones((1, 2)), {"keys": np.zeros((1, 2, 4, 1))}
    ),
    r"`x` must have 6 features in its last dimension; got shape \(4, 7\)": lambda: products()(torch.zeros(4, 7)),
    r"`mask` .* of shape \(4,\), one for each token; got shape \(3,\)": lambda: products()(
        states(4), mask=texts(3) > 4
    ),
    "`mask` must be a tensor of bool .* pass mask.bool": lambda: products().route(states(4), mask=texts(4)),
    "`batch_norm` needs at least two tokens in training; got 1": lambda: products(batch_norm=True)(states(1)),
    r"`batch_norm` needs at least two tokens in training; got 1: pass more tokens, or call eval": lambda: products(
        batch_norm=True
    )(states(3), mask=torch.arange(3) < 1),
    "`dtype` must be a floating-point type; got torch.int64": lambda: products(dtype=torch.int64),
    "`dtype` must be a floating-point type; got torch.complex64": lambda: hashing(dtype=torch.complex64),
}


@grid(complaint=list(UNCLEAR))
def test_bad_input_is_one_clear_line(complaint):
    with pytest.raises((ValueError, TypeError), match=complaint) as caught:
        UNCLEAR[complaint]()
    assert "\n" not in str(caught.value)
