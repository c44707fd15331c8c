r"""Theorem 4.1: the error of constants in hash buckets against the number of buckets, on k-dimensional subspaces.

The learner is the theorem's: one Euclidean hash of K = 4k directions, which stay the same for all widths; a constant in
each bucket; the nearest bucket for an empty one. A table of N buckets has error of order N^(-1/k) there: a straight
line of slope -1/k on logarithmic axes. Dense networks trained on the same targets show what equal error costs them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact_papers.experiments import Experiment, Scale
from sparsact_papers.experiments.paper_b.theorem_4_1_claims import CLAIMS

Array = NDArray[np.float64]

AMBIENT, CENTRES = 16, 3
N_TEST = {Scale.SMOKE: 500, Scale.QUICK: 2000, Scale.FULL: 16_384}
# One rule for every k, applied to other seeds than those below: from the width that leaves about a dozen buckets to the
# one at which 2 % of fresh points meet an empty bucket, in steps of sqrt(2) (of 2 for k = 1, where no point misses).
WIDTHS = {
    1: tuple(2.0 ** -np.arange(0, 6)),
    2: tuple(2.0 ** -np.arange(-2, 4, 0.5)),
    3: tuple(2.0 ** -np.arange(-3, 2, 0.5)),
    4: tuple(2.0 ** -np.arange(-4.5, 0, 0.5)),
}
LOG2_ROWS = {
    Scale.SMOKE: {1: 10, 2: 11},
    Scale.QUICK: {1: 12, 2: 13, 3: 14, 4: 14},
    Scale.FULL: {1: 16, 2: 19, 3: 20, 4: 20},
}
FINER, FINER_ROWS = (1.0, 2.0**-0.5), 1 << 22  # where the curve of k = 4 continues, with more rows
SEEDS = {Scale.SMOKE: 2, Scale.QUICK: 2, Scale.FULL: 5}
TRAINED = {Scale.SMOKE: (1, 4), Scale.QUICK: (1, 8), Scale.FULL: (1, 4, 16)}  # dense operations over the hash's
RANDOM = {Scale.SMOKE: (1, 4), Scale.QUICK: (1, 8), Scale.FULL: (1, 4, 16, 64)}
DENSE_SEEDS = {Scale.SMOKE: 2, Scale.QUICK: 2, Scale.FULL: 3}
LOG2_DENSE_ROWS = {Scale.SMOKE: 10, Scale.QUICK: 12, Scale.FULL: 15}
RATES, EPOCHS = (1e-2, 1e-3, 1e-4), 40  # of Adam: rates one after the other, each with early stopping


def parameters(scale: Scale) -> Iterator[dict[str, int]]:
    """A curve for every dimension and seed, and dense networks of several widths on the same targets."""
    for seed in range(SEEDS[scale]):
        for k, power in LOG2_ROWS[scale].items():
            draw = {"k": k, "ambient": AMBIENT, "centres": CENTRES, "n_test": N_TEST[scale], "seed": seed}
            yield draw | {"n_directions": 4 * k, "rows": 1 << power}
            if k == 4 and scale is Scale.FULL:
                yield draw | {"n_directions": 4 * k, "rows": FINER_ROWS}
            if seed < DENSE_SEEDS[scale]:
                rows = 1 << LOG2_DENSE_ROWS[scale]
                yield from (draw | {"n_units": 4 * k * times, "rows": rows} for times in TRAINED[scale])
                yield from (draw | {"n_random_units": 4 * k * times, "rows": rows} for times in RANDOM[scale])


def measure(
    *,
    k: int,
    ambient: int,
    centres: int,
    rows: int,
    n_test: int,
    seed: int,
    n_directions: int | None = None,
    n_units: int | None = None,
    n_random_units: int | None = None,
) -> dict[str, Any]:
    """Errors on fresh points of hash tables of several widths, or of a dense layer, trained or random and solved."""
    from sparsact_papers.data import lower_envelope, random_subspace
    from sparsact_papers.experiments.hard_families import dense_error

    rng = np.random.default_rng([seed, k])
    domain = random_subspace(ambient, k, rng=rng)
    f = lower_envelope(domain.coordinates(domain.sample(centres, rng=rng)), rng.uniform(0, 0.5, centres))
    X, new = domain.sample(rows, rng=rng), domain.sample(n_test, rng=rng)
    y, truth = f(domain.coordinates(X)), f(domain.coordinates(new))
    if n_units is not None:
        return _trained(X, y, new, truth, n_units, seed) | _dense_cost(ambient, n_units)
    if n_random_units is not None:
        Z, at = domain.coordinates(X), domain.coordinates(new)
        error = dense_error(Z, y, at, truth, n_random_units, seed)
        return {"sup_error": error} | _dense_cost(ambient, n_random_units)
    if n_directions is None:
        raise ValueError("one of `n_directions`, `n_units` and `n_random_units` is needed; got none.")
    return _hashed(X, y, new, truth, n_directions, FINER if rows == FINER_ROWS else WIDTHS[k], seed)


def _hashed(
    X: Array, y: Array, new: Array, truth: Array, n_directions: int, widths: tuple[float, ...], seed: int
) -> dict[str, Any]:
    """Buckets, largest and mean error, and the share of points in empty buckets, for each width."""
    from sparsact.learners import LSHRegressor

    told: dict[str, list[float]] = {name: [] for name in ("buckets", "sup_errors", "mean_errors", "rmse", "misses")}
    for width in widths:
        model = LSHRegressor(1, n_directions, width, 0, "euclidean", "nearest", seed, directions="principal").fit(X, y)
        error = np.abs(model.predict(new) - truth)
        told["buckets"].append(model.n_buckets_)
        told["sup_errors"].append(float(error.max()))
        told["mean_errors"].append(float(error.mean()))
        told["rmse"].append(float(np.sqrt(np.mean(error**2))))
        told["misses"].append(float(np.mean(model.apply(new) < 0)))
    line = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y, rcond=None)[0]
    left = truth - np.column_stack([new, np.ones(len(new))]) @ line
    return {
        **told,
        "widths": list(widths),
        "deviation": float(truth.std()),
        "linear_rmse": float(np.sqrt(np.mean(left**2))),
        "operations": X.shape[1] * n_directions + n_directions,
        "parameters_read": X.shape[1] * n_directions + n_directions + 1,
    }


def _trained(X: Array, y: Array, new: Array, truth: Array, n_units: int, seed: int) -> dict[str, Any]:
    """Largest and mean error of a ReLU network trained by Adam: of all rates the best on validation rows."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor
    from sklearn.preprocessing import StandardScaler

    kept, inputs, outputs = len(X) * 7 // 8, StandardScaler(), StandardScaler()
    Z, z = inputs.fit_transform(X), outputs.fit_transform(y[:, None])[:, 0]
    network = MLPRegressor(
        hidden_layer_sizes=(n_units,),
        early_stopping=True,
        tol=1e-5,
        max_iter=EPOCHS,
        warm_start=True,
        random_state=seed,
    )
    least, found = np.inf, np.empty(0)
    for rate in RATES:  # each goes on where the one before stopped
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is a choice
            network.set_params(learning_rate_init=rate).fit(Z[:kept], z[:kept])
        left = float(np.abs(network.predict(Z[kept:]) - z[kept:]).max())
        if left < least:
            answers = outputs.inverse_transform(network.predict(inputs.transform(new))[:, None])[:, 0]
            least, found = left, np.abs(answers - truth)
    return {"sup_error": float(found.max()), "mean_error": float(found.mean())}


def _dense_cost(ambient: int, width: int) -> dict[str, int]:
    return {"operations": (ambient + 1) * width, "parameters_read": (ambient + 2) * width + 1}


EXPERIMENT = Experiment(
    name="theorem-4-1",
    paper="B",
    place="Theorem 4.1",
    title="Constants in hash buckets on a subspace",
    summary=(
        "Points are uniform on the part of a random k-dimensional subspace within [-1, 1]^16, and the target is the "
        "lower envelope of three cones, exactly 1-Lipschitz. One Euclidean hash of 4k normal directions in "
        "all 16 columns, as the theorem has it, constants, the nearest bucket for an empty one. Widths run from about "
        "a dozen buckets to the first with 2 % of misses (for k = 4 further, on 2^22 rows). Dense layers of ReLU "
        "units, on 2^15 rows: scikit-learn's MLPRegressor with 4k, 16k and 64k units, all weights trained by Adam on "
        "standardised columns with rates .01, .001 and .0001 one after the other, each until early stopping or 40 "
        "epochs, the state with the least largest error on validation rows; and random units, up to 256k, whose kinks "
        "are spread over the points, under the best linear layer. Test points: 16,384 fresh ones."
    ),
    version=1,
    parameters=parameters,
    measure=measure,
    claims=CLAIMS,
    order=40,
)
