"""What SparselyActivatedRegressor and SparselyActivatedClassifier have in common: their parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from sparsact.learners.constraints import AUTO, COUNT, DOMAIN, NONNEGATIVE, POSITIVE, SIZE
from sparsact.learners.points import Encoding, kernel_dtype, pack, set_encoding, unpack
from sparsact.learners.sparsely_activated.descent_search import Bounds
from sparsact.learners.sparsely_activated.leaf_models import Array, TrainingSample
from sparsact.statistics.distinct_rows import distinct_rows
from sparsact.validation.estimators import checked_rows, checked_sample_weight, weights_as_counts

ROWS_PER_WEIGHT, MOST_UNITS = 4, 128  # of n_units="auto"
LARGEST_TARGET: Final = 1e301


@dataclass(eq=False, repr=False)
class SparselyActivatedModel(BaseEstimator):  # type: ignore[misc] # scikit-learn ships no types
    """Base of the learners of sparsely activated networks."""

    n_units: int | str = 64
    max_active: int = 1
    _: KW_ONLY
    max_weight: float | None = None
    max_bias: float | None = None
    n_restarts: int = 8
    max_iter: int = 200
    tol: float = 1e-08
    domain: str = "auto"
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    encoding_: Encoding | None = field(init=False)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_units": [COUNT, AUTO],
        "max_active": [COUNT],
        "max_weight": [POSITIVE, None],
        "max_bias": [POSITIVE, None],
        "n_restarts": [SIZE],
        "max_iter": [COUNT],
        "tol": [NONNEGATIVE],
        "domain": DOMAIN,
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def _bounds(self, sample: TrainingSample) -> Bounds:
        n_units = self.n_units
        if isinstance(n_units, str):
            n_units = min(max(int(sample.total / (ROWS_PER_WEIGHT * (sample.n + 1))), 2), MOST_UNITS)
        return Bounds(int(n_units), int(self.max_active), self.n_restarts, self.max_iter, self.tol)

    def _fork(self) -> Callable[[bool], None]:
        """For :func:`.transaction`: a fit changes nothing in place."""
        return lambda done: None

    def _rows(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[Array, Array, Array]:
        """Inputs of a network (m, n), targets and weights of the rows of weight above zero; notes the encoding."""
        rows, targets = checked_rows(
            self, X, y, dtype="numeric", y_numeric=True, ensure_all_finite=self.domain != "cube"
        )
        _check_targets(targets)
        weights = weights_as_counts(checked_sample_weight(sample_weight, rows))
        set_encoding(self, kernel_dtype(rows))
        there = weights > 0
        return self._inputs(rows)[there], np.asarray(targets, dtype=np.float64)[there], weights[there]

    def _inputs(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """What the network takes: signs on the cube, else the columns."""
        if self.encoding_ is None:
            return rows.astype(np.float64)
        names = getattr(self, "feature_names_in_", None)
        return unpack(pack(kernel_dtype(rows), self.encoding_, names)).astype(np.float64)


def generator_of(random_state: int | np.random.RandomState | None) -> np.random.Generator:
    """A generator of its own; scikit-learn's None means a fresh one, not the global state."""
    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1, size=4))


def _check_targets(y: NDArray[Any]) -> None:
    """Refuse targets so large that usual columns would be too narrow: their weights would overflow."""
    largest = float(np.abs(np.asarray(y, dtype=np.float64)).max())
    if largest > LARGEST_TARGET:
        raise ValueError(
            f"`y` holds {largest:.4g}; targets go up to {LARGEST_TARGET:g}, so that weights are floats: scale `y` down."
        )


def distinct_examples(X: Array, y: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Each distinct row and target once, in an order that is theirs alone, and the sums of their weights.

    So a weight is a number of rows, and what is found does not depend on the order of the rows.
    """
    rows, _, total = distinct_rows(np.column_stack([X, y]) + 0.0, weights)
    return rows[:, :-1].copy(), rows[:, -1].copy(), total
