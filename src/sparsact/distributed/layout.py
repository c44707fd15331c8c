"""A sample of all rows that does not depend on the partitions, and the blank learner that is laid out on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _get_feature_names, check_X_y

from sparsact.distributed.additive import empty
from sparsact.distributed.work import PartitionError, PassTask, of_partition
from sparsact.learners.lsh.choice import ROWS_FOR_WIDTH, distinct

MOST_NUMBERS = 1 << 25  # of a sample: a quarter of a gigabyte


@dataclass(frozen=True)
class Question:
    """What is asked of every partition: so many rows, labels by their place among the classes."""

    most: int = ROWS_FOR_WIDTH
    classes: NDArray[Any] | None = None


@dataclass(frozen=True)
class Sample:
    """Distinct rows with the smallest hashes, (k, d); targets (k, T); and the weight of each."""

    name: str
    X: NDArray[np.float64]
    Y: NDArray[np.float64]
    weights: NDArray[np.float64]
    one_target: bool
    names: tuple[str, ...] | None

    def first(self, most: int) -> Sample:
        """The rows of smallest hash, each once."""
        most = max(1, min(most, MOST_NUMBERS // self.X.shape[1]))
        X, Y, weights = (part[:most] for part in distinct(self.X, self.Y, self.weights))
        return Sample(self.name, X, Y, weights, self.one_target, self.names)


@of_partition
def sampled(question: Question, task: PassTask, *pieces: Any) -> tuple[int, Sample | None]:
    """The sample of one partition."""
    n_rows, kept = 0, None
    for X, y, weights in task.reader.batches(*pieces):
        if not len(y):
            continue
        n_rows += len(y)
        names = _get_feature_names(X)
        targets = y if question.classes is None else np.searchsorted(question.classes, y)
        rows, targets = check_X_y(X, targets, dtype=np.float64, multi_output=True, y_numeric=True)
        part = Sample(
            task.name,
            rows,
            targets.reshape(len(rows), -1).astype(np.float64),
            np.ones(len(rows)) if weights is None else np.asarray(weights, dtype=np.float64),
            targets.ndim == 1,
            None if names is None else tuple(names),
        ).first(question.most)
        kept = part if kept is None else _both(kept, part).first(question.most)
    return n_rows, kept


def samples_joined(question: Question, parts: Sequence[Sample | None]) -> Sample | None:
    """The sample of some partitions."""
    kept = None
    for part in parts:
        if part is not None:
            kept = part if kept is None else _both(kept, part)
    return None if kept is None else kept.first(question.most)


def _both(one: Sample, other: Sample) -> Sample:
    for what, mine, theirs in (
        ("columns", one.X.shape[1], other.X.shape[1]),
        ("targets", one.Y.shape[1], other.Y.shape[1]),
        ("names of columns", one.names, other.names),
    ):
        if mine != theirs:
            raise PartitionError(f"{other.name} has {what} {theirs}, but {one.name} has {mine}; make them alike.")
    X, Y, weights = (
        np.concatenate(pair) for pair in ((one.X, other.X), (one.Y, other.Y), (one.weights, other.weights))
    )
    return Sample(one.name, X, Y, weights, one.one_target, one.names)


def laid_out(estimator: Any, question: Question, sample: Sample | None) -> Any:
    """A blank learner whose layout or layer suits the sample; None where there are no rows."""
    if sample is None:
        return None
    X: Any = sample.X
    if sample.names is not None:
        import pandas as pd  # comes with the extra `dask`

        X = pd.DataFrame(X, columns=list(sample.names))
    y: Any = sample.Y[:, 0] if sample.one_target else sample.Y
    options: dict[str, Any] = {}
    if question.classes is not None:
        y, options = question.classes[y.astype(np.intp)], {"classes": question.classes}
    return empty(estimator.partial_fit(X, y, sample_weight=sample.weights, **options))
