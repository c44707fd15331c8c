from __future__ import annotations

import numpy as np
import pytest

from sparsact.learners.low_degree.factor import Factor


def gram_of(eigenvalues, seed):
    n = len(eigenvalues)
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
    gram = (rotation * eigenvalues) @ rotation.T
    return (gram + gram.T) / 2


def asked(gram, alpha=0.0):
    """The factor, and whether it counted the rank."""
    calls = []
    factor = Factor(gram, alpha, lambda: calls.append(0) or len(gram))
    return factor, bool(calls)


@pytest.mark.parametrize("alpha", [0.0, 1e-3])
@pytest.mark.parametrize("least", [1.0, 1e-2, 1e-5, 1e-9])
@pytest.mark.parametrize("size", [2, 3, 41])
def test_a_condition_above_the_bound_is_not_doubted(size, least, alpha):
    """Rank is counted where LAPACK's own estimate of the condition calls for it, and only there."""
    gram = gram_of(np.r_[least, np.linspace(1.5, 2, size - 1)], size)
    shifted = gram + alpha * np.eye(size)
    condition = 1 / (np.linalg.norm(shifted, 1) * np.linalg.norm(np.linalg.inv(shifted), 1))
    factor, counted = asked(gram, alpha)
    assert counted == (condition < 1e-7)
    assert factor.method == "Cholesky"


@pytest.mark.parametrize("size", [2, 7, 64])
def test_the_determinant_alone_shows_a_good_condition(size, monkeypatch):
    monkeypatch.setattr(Factor, "_condition", lambda *_: pytest.fail("LAPACK was asked"))
    gram = 1e5 * gram_of(np.random.default_rng(size).uniform(0.8, 1.2, size), size)
    assert not asked(gram)[1]


@pytest.mark.parametrize("least", [1e-3, 1e-5, 1e-6, 1e-7])
@pytest.mark.parametrize("rest", [np.ones(29), np.geomspace(0.1, 10, 29)], ids=["equal", "spread"])
def test_the_determinant_shows_no_condition_that_is_not_there(least, rest, monkeypatch):
    """Under equal eigenvalues the bound is attained."""
    asked_lapack = []
    monkeypatch.setattr(Factor, "_condition", lambda *_: asked_lapack.append(0) or 1.0)
    gram = gram_of(np.r_[least, rest], 5)
    asked(gram)
    assert asked_lapack or 1 / (np.linalg.norm(gram, 1) * np.linalg.norm(np.linalg.inv(gram), 1)) > 1e-7
