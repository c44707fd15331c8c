"""The targets and models of Section A.1: a frozen bottom layer, a mask, and a top layer that is trained or solved."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.dsm.features import Bottom, SparseLayer
from sparsact.learners.dsm.training import RMSProp, TopLayer
from sparsact.routing import RandomHash, TopK
from sparsact_papers.data import Target, random_composed, random_hypercube, random_polynomial
from sparsact_papers.paper_b.frozen_features import FrozenFeatures

Array = NDArray[np.float64]
N, DEGREE, AMBIENT = 8, 4, 64
TARGET, TRAIN, TEST, BOTTOM, HASH, TOP, ORDER = range(1, 8)  # streams of random numbers of a seed


class FrozenModel(NamedTuple):
    """A frozen layer: activation of its units, whether they have biases, the share that is on, and who chooses it."""

    label: str
    activation: str = "identity"
    biased: bool = False
    share: float = 1.0
    hashed: bool = False


MODELS: Final = {
    "dense-linear": FrozenModel("dense, linear"),
    "dense-relu": FrozenModel("dense, ReLU", "relu"),
    "dense-relu-biased": FrozenModel("dense, ReLU with biases", "relu", biased=True),
    "dsm-50": FrozenModel("DSM 50 %", share=0.5),
    "dsm-25": FrozenModel("DSM 25 %", share=0.25),
    "random-hash-50": FrozenModel("random hash 50 %", share=0.5, hashed=True),
    "random-hash-25": FrozenModel("random hash 25 %", share=0.25, hashed=True),
    "random-hash-relu-50": FrozenModel("random hash 50 %, ReLU", "relu", share=0.5, hashed=True),
}
TARGETS: Final = {
    "polynomial": "random polynomial",
    "hypercube": "random hypercube function",
    "projected": "p(Ax), n = 64",
}


def measure(
    *, target: str, model: str, active: int, optimiser: str, seed: int, n_train: int, n_test: int, intercept: bool,
    **settings: Any,
) -> dict[str, float]:  # fmt: skip
    """Test error of one model with one top layer, beside the target's variance, the best line, and the cost.

    The settings are ``alpha`` of ridge; of RMSProp ``learning_rate``, ``rho``, ``epsilon``, ``epochs``, ``batch_size``.
    """
    f = drawn_target(target, seed)
    X, new = (_generator(seed, stream).uniform(-1, 1, (m, f.n)) for stream, m in ((TRAIN, n_train), (TEST, n_test)))
    y, truth = f(X), f(new)
    layer = layer_of(model, f.n, active, seed)
    features = FrozenFeatures.of(layer, X)
    if optimiser == "ridge":
        A, constant = features.ridge(y, settings["alpha"], fit_intercept=intercept)
    else:
        top = TopLayer.glorot(layer.bottom.t, 1, rng=_generator(seed, TOP))
        steps = RMSProp(*(settings[name] for name in ("learning_rate", "rho", "epsilon")))
        sizes = {name: settings[name] for name in ("epochs", "batch_size")}
        features.train(top, y, steps, **sizes, fit_intercept=intercept, rng=_generator(seed, ORDER))
        A, constant = top.A[0], float(top.intercept[0])
    return {
        "mse": _mse(FrozenFeatures.of(layer, new).predict(A, constant), truth),
        "train_mse": _mse(features.predict(A, constant), y),
        "variance": float(truth.var()),
        "linear_mse": _mse(best_line(X, y, new), truth),
        "width": layer.bottom.t,
        "flops": layer.flops(1, routing=False),
        "flops_with_routing": layer.flops(1, routing=MODELS[model].share < 1),  # a dense layer chooses nothing
    }


def drawn_target(name: str, seed: int) -> Target:
    """The target of a seed."""
    rng = _generator(seed, TARGET)
    if name == "hypercube":
        return random_hypercube(N, rng=rng)
    polynomial = random_polynomial(N, DEGREE, rng=rng)
    return polynomial if name == "polynomial" else random_composed(polynomial, AMBIENT, rng=rng)


def layer_of(name: str, d: int, active: int, seed: int) -> SparseLayer:
    """The frozen layer of a model: layers of one width and seed have the same weights, whatever the model."""
    model = MODELS[name]
    t = round(active / model.share)
    bottom = Bottom.random(d, t, bias=model.biased, activation=model.activation, rng=_generator(seed, BOTTOM))
    drawn = int(_generator(seed, HASH).integers(2**62))
    return SparseLayer(bottom, RandomHash(active, t, random_state=drawn) if model.hashed else TopK(active), {})


def best_line(X: Array, y: Array, new: Array) -> Array:
    """Least squares with an intercept."""
    weights, *_ = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y, rcond=None)
    return np.asarray(new @ weights[:-1] + weights[-1])


def _mse(predicted: Array, truth: Array) -> float:
    return float(np.mean((predicted - truth) ** 2))


def _generator(seed: int, stream: int) -> np.random.Generator:
    return np.random.default_rng([seed, stream])
