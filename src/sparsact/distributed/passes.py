"""Passes over the partitions: count rows, find classes, choose a layout on a sample, then learn all rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, Final

import numpy as np
from dask.delayed import delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _get_feature_names, check_X_y

from sparsact.distributed.additive import WITH_CLASSES, WITH_LAYOUT, L, LearnerSum, empty, seeded
from sparsact.distributed.partitions import CountedReader
from sparsact.learners import LowDegreeRegressorCV
from sparsact.learners.lsh.model_choice import distinct
from sparsact.learners.lsh.tuning import ROWS_FOR_WIDTH
from sparsact.passes.dask import Engine, leaves, of_partition
from sparsact.passes.progress import OnProgress, StageProgress, listening
from sparsact.passes.source import Partition
from sparsact.saving.schema import Arrays, State
from sparsact.statistics.statistic import Batch

MOST_NUMBERS: Final = 1 << 25  # of a sample: a quarter of a gigabyte


@dataclass
class LabelSet:
    """The labels of the rows, sorted; None before the first row."""

    found: NDArray[Any] | None = None
    n_rows: int = 0

    def empty(self) -> LabelSet:
        """No labels."""
        return LabelSet()

    def add(self, batch: Batch) -> None:
        """Add labels of more rows."""
        if len(batch):
            self._join(np.unique(batch.y), len(batch))

    def merge(self, other: LabelSet) -> None:
        """Add labels of other rows."""
        if other.found is not None:
            self._join(other.found, other.n_rows)

    def _join(self, labels: NDArray[Any], n_rows: int) -> None:
        self.found = labels if self.found is None else np.union1d(self.found, labels)
        self.n_rows += n_rows

    def state(self) -> tuple[State, Arrays]:
        """Return the labels as an array."""
        return {"n_rows": self.n_rows}, {} if self.found is None else {"labels": self.found}

    def restore(self, state: State, arrays: Arrays) -> None:
        """Restore the labels from a saved state."""
        self.found, self.n_rows = arrays.get("labels"), state["n_rows"]


@dataclass
class DistinctSample:
    """Distinct rows with the smallest hashes: (X (k, d), targets (k, T), weights (k,)), labels by their place.

    ``form`` is what all partitions must share: numbers of columns and targets, whether the target is one, the names.
    """

    most: int = ROWS_FOR_WIDTH
    classes: NDArray[Any] | None = None
    rows: tuple[NDArray[np.float64], ...] = ()
    form: tuple[Any, ...] = ()

    def empty(self) -> DistinctSample:
        """The same without rows."""
        return DistinctSample(self.most, self.classes)

    @property
    def n_rows(self) -> int:
        """Rows of the sample."""
        return len(self.rows[0]) if self.rows else 0

    def add(self, batch: Batch) -> None:
        """Add rows."""
        if not len(batch):
            return
        X, y, weights = batch.X, batch.y, batch.weights
        names = _get_feature_names(X)
        targets = y if self.classes is None else np.searchsorted(self.classes, y)
        points, targets = check_X_y(X, targets, dtype=np.float64, multi_output=True, y_numeric=True)
        one_target, Y = targets.ndim == 1, targets.reshape(len(points), -1).astype(np.float64)
        weights = np.ones(len(points)) if weights is None else np.asarray(weights, dtype=np.float64)
        form = points.shape[1], Y.shape[1], one_target, None if names is None else tuple(names)
        self._join((points, Y, weights), form)

    def merge(self, other: DistinctSample) -> None:
        """Rows of another sample."""
        if other.rows:
            self._join(other.rows, other.form)

    def _join(self, rows: tuple[NDArray[np.float64], ...], form: tuple[Any, ...]) -> None:
        named = ("columns", "targets", "targets", "names of columns")
        for what, mine, theirs in zip(named, self.form or form, form, strict=True):
            if mine != theirs:
                raise ValueError(f"{what} are {mine} in the first and {theirs} in the second; make them alike.")
        both = tuple(map(np.concatenate, zip(self.rows, rows, strict=True))) if self.rows else rows
        most = max(1, min(self.most, MOST_NUMBERS // both[0].shape[1]))
        self.rows, self.form = tuple(part[:most] for part in distinct(*both)), form

    def state(self) -> tuple[State, Arrays]:
        """Return the form, and the rows as arrays."""
        return {"form": self.form}, {str(i): part for i, part in enumerate(self.rows)}

    def restore(self, state: State, arrays: Arrays) -> None:
        """Restore the rows from a saved state."""
        self.rows, self.form = tuple(arrays[str(i)] for i in range(len(arrays))), tuple(state["form"])


def laid_out(estimator: L, sample: DistinctSample) -> L:
    """A blank learner whose layout or layer suits the sample, which has rows."""
    X: Any
    X, Y, weights = sample.rows
    _, _, one_target, names = sample.form
    if names is not None:
        import pandas as pd  # comes with the extra `dask`

        X = pd.DataFrame(X, columns=list(names))
    y: Any = Y[:, 0] if one_target else Y
    options: dict[str, Any] = {}
    if sample.classes is not None:
        y, options = sample.classes[y.astype(np.intp)], {"classes": sample.classes}
    return empty(estimator.partial_fit(X, y, sample_weight=weights, **options))


@of_partition
def counted(shared: None, part: Partition[CountedReader], *pieces: object) -> tuple[int, int]:
    """Number of rows of one partition."""
    n_rows = part.reader.count(*pieces)
    return n_rows, n_rows


BLOCK: Final = 32  # batches of an iterable that are summed in one graph
_EMPTY: Final = "the data have no rows; pass partitions with rows."


class Passes:
    """Passes over partitions on an engine; of batches that can be had once only, all but the last see the first few."""

    def __init__(
        self,
        parts: list[Partition[CountedReader]] | Iterator[Partition[CountedReader]],
        engine: Engine,
        on_progress: OnProgress | None,
    ) -> None:
        self.engine, self.on_progress = engine, on_progress
        self.more: Iterator[Partition[CountedReader]] | None = None if isinstance(parts, list) else parts
        self.parts = parts if isinstance(parts, list) else list(islice(parts, BLOCK))
        if not self.parts:
            raise ValueError(_EMPTY)

    def fitted(self, estimator: L, classes: ArrayLike | None) -> L:
        """A new estimator that has learned every row, and is solved."""
        whole = self._blank(seeded(estimator), classes)
        stage = self._stage("learning")
        if self.more is None:
            parts = self._counted() if isinstance(whole.learner, LowDegreeRegressorCV) else self.parts
            self.engine.add(whole, parts, stage)
        else:
            self.engine.add(whole, chain(self.parts, self.more), stage, BLOCK)
        if not whole.seen:
            raise ValueError(_EMPTY)
        _ = getattr(whole.learner, "intercept_", None)  # found now, so that predictions change nothing
        return whole.learner

    def _blank(self, blank: L, classes: ArrayLike | None) -> LearnerSum[L]:
        """What every partition begins with: the classes, and the layout of hash tables or of a bottom layer."""
        known = None
        if isinstance(blank, WITH_CLASSES):
            known = self._classes() if classes is None else np.unique(np.asarray(classes))
        elif classes is not None:
            raise ValueError(f"a {type(blank).__name__} has no classes; leave `classes` out.")
        if not isinstance(blank, WITH_LAYOUT):
            return LearnerSum(blank, known)
        sample = DistinctSample(classes=known)
        self.engine.add(sample, self.parts, self._stage("sampling"))
        if not sample.rows:
            raise ValueError(_EMPTY)
        return LearnerSum(laid_out(blank, sample), known)

    def _classes(self) -> NDArray[Any]:
        if self.more is not None:
            raise ValueError("batches can be read only once, so classes cannot be found beforehand; pass classes=.")
        labels = LabelSet()
        self.engine.add(labels, self.parts, self._stage("classes"))
        if labels.found is None:
            raise ValueError(_EMPTY)
        return labels.found

    def _counted(self) -> list[Partition[CountedReader]]:
        """The partitions with the number of their rows, which determines the fold of each row."""
        if all(part.n_rows is not None for part in self.parts):
            return self.parts
        stage = StageProgress(self.on_progress, "counting", n_partitions=len(self.parts))
        with listening(stage, self.engine.client) as topic:
            counts = self.engine.start(delayed(list)(leaves(counted, None, self.parts, topic=topic))).result()
        return [replace(part, n_rows=n_rows) for part, n_rows in zip(self.parts, counts, strict=True)]

    def _stage(self, name: str) -> StageProgress:
        return StageProgress(self.on_progress, name)
