"""Features computed once: the layer's own, and what is trained and solved on them."""

from __future__ import annotations

import numpy as np
import pytest

from sparsact.learners.dsm.features import Bottom, SparseLayer
from sparsact.learners.dsm.training import RMSProp, TopLayer
from sparsact.routing import RandomHash, TopK
from sparsact_papers.paper_b.frozen_features import FrozenFeatures

D, T, M = 5, 24, 71
rng = np.random.default_rng(11)
X, y = rng.normal(size=(M, D)), rng.normal(size=M)
ROUTERS = {
    "all": TopK(T),
    "top-k": TopK(7),
    "absolute": TopK(7, absolute=True),
    "hash": RandomHash(9, T, random_state=3),
}


def layer(router, activation="identity") -> SparseLayer:
    bottom = Bottom.random(D, T, bias=True, activation=activation, rng=np.random.default_rng(2))
    return SparseLayer(bottom, router, {})


@pytest.mark.parametrize("activation", ["identity", "relu"])
@pytest.mark.parametrize("router", ROUTERS.values(), ids=ROUTERS)
def test_features_match_the_layer_in_single_precision(router, activation):
    one = layer(router, activation)
    frozen = FrozenFeatures.of(one, X)
    np.testing.assert_array_equal(frozen.dense(slice(None)), one.features(X).astype(np.float32).astype(np.float64))
    assert (frozen.units is None) == (router == TopK(T))


def test_a_router_that_leaves_places_empty_is_refused():
    class Half(RandomHash):
        def select(self, x, state, *, training=False):
            chosen = super().select(x, state)
            chosen.indices[:, -1] = -1
            return chosen

    with pytest.raises(ValueError, match="left places empty"):
        FrozenFeatures.of(layer(Half(9, T, 3)), X)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_training_is_that_of_the_top_layer(fit_intercept):
    frozen = FrozenFeatures.of(layer(TopK(7)), X)
    settings = {"batch_size": 16, "fit_intercept": fit_intercept}
    optimiser = RMSProp(1e-2, 0.9, 1e-7)
    found, expected = (TopLayer.glorot(T, 1, rng=np.random.default_rng(0)) for _ in range(2))
    frozen.train(found, y, optimiser, epochs=3, rng=np.random.default_rng(8), **settings)
    same = np.random.default_rng(8)
    for _ in range(3):
        expected.epoch(frozen.dense(slice(None)).__getitem__, y[:, None], np.ones(M), optimiser, rng=same, **settings)
    np.testing.assert_allclose(found.A, expected.A, rtol=1e-9)
    np.testing.assert_allclose(found.intercept, expected.intercept, rtol=1e-9)
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-12)
    predicted = frozen.predict(found.A[0], float(found.intercept[0]))
    np.testing.assert_allclose(predicted, frozen.dense(slice(None)) @ found.A[0] + found.intercept[0], rtol=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_ridge_solves_the_normal_equations(fit_intercept):
    frozen, alpha = FrozenFeatures.of(layer(TopK(7)), X), 0.3
    A, intercept = frozen.ridge(y, alpha, fit_intercept=fit_intercept)
    rows = frozen.dense(slice(None))
    residual = rows @ A + intercept - y
    centred = rows - rows.mean(axis=0) * fit_intercept
    penalty = alpha * np.sum(centred**2) / T
    np.testing.assert_allclose(centred.T @ residual + penalty * A, 0, atol=1e-9)
    assert residual.mean() == pytest.approx(0, abs=1e-12) if fit_intercept else intercept == 0
