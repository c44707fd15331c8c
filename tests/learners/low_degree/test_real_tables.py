"""Facts of real tables, when SPARSACT_DATA names the folder that holds them."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pyarrow import csv

from sparsact import LowDegreeRegressor
from sparsact.fourier import Spectrum

DATA = os.environ.get("SPARSACT_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="SPARSACT_DATA does not name the folder of the real tables")


def table(name):
    path = Path(DATA) / name
    if not path.exists():
        pytest.skip(f"SPARSACT_DATA holds no {name}")
    return csv.read_csv(gzip.open(path)).to_pydict()


def bits_of(text, width):
    """Bit strings that lost their leading zeros as numbers, or kept them."""
    return np.array([[int(c) for c in str(word).strip("'").zfill(width)] for word in text], dtype=np.int8)


def poelwijk():
    columns = table("landscapes/poelwijk2019_eqfp611_2e13.csv.gz")
    return bits_of(columns["genotype"], 13), np.array(columns["brightness_combined"])


def s309():
    columns = table("landscapes/moulana2023_s309_2e15.csv.gz")
    return bits_of(columns["genotype"], 15), np.array(columns["S309"])


def llvm():
    columns = table("config_performance/LLVM.csv.gz")
    *options, target = columns.values()
    return np.array(options, dtype=np.int8).T, np.array(target, dtype=float)


@pytest.mark.parametrize("read", [poelwijk, s309, llvm], ids=["Poelwijk 2019", "S309", "LLVM"])
def test_variance_by_degree(read):
    """Complete tables: the share of variance of each degree, by fit, by transform, and by sums and differences here."""
    X, y = read()
    n = X.shape[1]
    assert len(X) == 2**n == len(np.unique(X, axis=0))
    explained = [LowDegreeRegressor(degree).fit(X, y).r2_ for degree in range(5)]
    values = np.empty((2,) * n)
    values[tuple(X.T)] = y
    coefficients = values
    for axis in range(n):
        zero, one = np.moveaxis(coefficients, axis, 0)
        coefficients = np.stack([zero + one, zero - one], axis) / 2
    weights = np.bincount(np.indices(values.shape).sum(axis=0).ravel(), coefficients.ravel() ** 2)
    assert_allclose(np.diff(explained), weights[1:5] / y.var(), atol=1e-9)
    assert_allclose(Spectrum.of(values.T.ravel()).weight_by_degree(), weights, rtol=1e-9, atol=1e-9 * y.var())


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_a_parity_of_16_bits_cannot_be_learned(degree):
    """IWLS 2020, ex74. An R2 above 0.01 on 6,400 rows is a correlation of 0.1 with a coin: a chance below 1e-13."""
    path = Path(DATA) / "iwls2020" / "iwls2020.npz"
    if not path.exists():
        pytest.skip("SPARSACT_DATA holds no iwls2020/iwls2020.npz")
    with np.load(path) as archive:
        n = int(archive["ex74_n"])
        X, y = {}, {}
        for part in ("train", "valid"):
            m = int(archive[f"ex74_{part}_m"])
            X[part] = np.unpackbits(archive[f"ex74_{part}_X"], axis=1)[:, :n]
            y[part] = 1.0 - 2.0 * np.unpackbits(archive[f"ex74_{part}_y"])[:m]
    model = LowDegreeRegressor(degree).fit(X["train"], y["train"])
    assert model.score(X["valid"], y["valid"]) < 0.01
