"""Copies of sparse models, and what they hold."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import pytest
import torch
from sparse_models import METHODS, assert_same, both, gated, jump, plain, rows

from sparsact.inference import sparsify


@pytest.mark.parametrize("method", ["auto", "certified"])
def test_samples_are_let_go(method):
    model = plain()
    x = rows(800, model)
    alive = weakref.ref(x)
    sparsify(model, method, x, time_limit=0.02)
    del x
    gc.collect()
    assert alive() is None
    assert len(pickle.dumps(model)) < 800 * model.d * 4


def test_copies_keep_their_own_thresholds():
    model, dense = both(lambda: jump(gate=True), "certified")
    other = copy.deepcopy(model)
    with torch.no_grad():
        model.activation.theta.fill_(0.01)
        assert_same(other(rows(8, model)), dense(rows(8, model)))
        other.activation.theta.fill_(0.2)
        dense.activation.theta.fill_(0.2)
        assert_same(other(rows(8, model)), dense(rows(8, model)))


@pytest.mark.parametrize("make", [plain, gated, jump])
@pytest.mark.parametrize("method", METHODS)
def test_copies_made_in_inference_mode_are_sparse(make, method):
    dense = make()
    x = rows(2, dense)
    with torch.inference_mode():
        model = sparsify(make(), method, rows(64, dense), copy=True)
        other = copy.deepcopy(model)
    before = other.down._sparse.sparse_calls
    with torch.no_grad():
        assert_same(other(x), dense(x))
    assert other.down._sparse.sparse_calls == before + 1
