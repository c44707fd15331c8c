"""Bytes counted by hand, and the bounds that the issue's bars rest on."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from sparsact.inference.roofline import amdahl, bytes_read, roofline

SIZES = (5, 16, 3)  # inputs, units, outputs


def test_a_plain_block_by_hand():
    """16 x 5 and 3 x 16 weights of 4 bytes; a quarter of the units are active."""
    found = roofline(*SIZES, gated=False, itemsize=4, density=0.25)
    assert found.dense == 4 * (80 + 48)
    assert found.oracle == 4 * 32
    assert found.exact == 4 * (80 + 12)
    assert found.certified == 80 + 4 * (20 + 12)


def test_a_gated_block_by_hand():
    """The gate is read whole, and a quarter of both other matrices."""
    found = roofline(*SIZES, gated=True, itemsize=2, density=0.25)
    assert found.dense == 2 * (80 + 80 + 48)
    assert found.oracle == 2 * 52
    assert found.exact == 2 * (80 + 20 + 12)
    assert found.certified == 80 + 2 * (20 + 20 + 12)


@pytest.mark.parametrize(
    ("gated", "itemsize", "method", "bound"),
    [
        (False, 4, "exact", 2 / 1.03),
        (True, 4, "exact", 3 / 1.06),
        (False, 4, "oracle", 1 / 0.03),
        (False, 2, "certified", 4 / (1 + 4 * 0.03)),
        (False, 4, "certified", 8 / (1 + 8 * 0.03)),
    ],
)
def test_bounds_at_three_percent(gated, itemsize, method, bound):
    found = roofline(2048, 8192, 2048, gated=gated, itemsize=itemsize, density=0.03)
    assert found.speedup(method) == pytest.approx(bound, rel=1e-12)
    assert found.saved(method) == pytest.approx(found.dense * (1 - 1 / bound), rel=1e-12)


def test_nothing_active_and_everything_active():
    nothing = roofline(*SIZES, gated=False, itemsize=4, density=0)
    assert nothing.speedup("oracle") == math.inf
    everything = roofline(*SIZES, gated=False, itemsize=4, density=1)
    assert everything.oracle == everything.exact == everything.dense
    assert everything.speedup("certified") < 1


def test_without_zeros_no_exact_method_applies():
    found = roofline(*SIZES, gated=False, itemsize=4, density=0.5, zeros=False)
    assert (found.exact, found.certified, found.speedup("exact"), found.saved("exact")) == (None, None, None, 0)
    assert found.speedup("oracle") == 2


def test_without_thresholds_nothing_is_screened():
    found = roofline(*SIZES, gated=True, itemsize=4, density=0.1, thresholds=False)
    assert found.certified == found.exact == roofline(*SIZES, gated=True, itemsize=4, density=0.1).exact


@pytest.mark.parametrize("density", [-0.1, 1.1, math.nan])
def test_a_density_is_a_share(density):
    with pytest.raises(ValueError, match="`density` must lie between 0 and 1"):
        roofline(*SIZES, gated=False, itemsize=4, density=density)


def test_a_model_reads_its_parameters_and_a_row_of_each_embedding():
    model = nn.ModuleDict(
        {"tokens": nn.Embedding(100, 6), "norm": nn.LayerNorm(6), "head": nn.Linear(6, 100, bias=False)}
    )
    own = 4 * (6 + 6 + 600)
    assert bytes_read(model) == own + 4 * 6
    assert bytes_read(model, batch=16) == own + 16 * 4 * 6
    model["head"].weight = model["tokens"].weight  # tied: the head reads all of it, the embedding a row
    assert bytes_read(model) == own + 4 * 6
    assert bytes_read(model.to(torch.bfloat16)) == (own + 4 * 6) // 2


def test_amdahl():
    assert amdahl(300, 200) == 3
    assert amdahl(300, 0) == 1
    assert amdahl(300, 300) == math.inf
    assert amdahl(0, 0) == 1
