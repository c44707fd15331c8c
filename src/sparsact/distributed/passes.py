"""Passes over the partitions: count rows, find classes, choose a layout on a sample, then learn all rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice
from typing import Any, Final

import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray
from sklearn.utils.validation import _get_feature_names, check_X_y

from sparsact.distributed.additive import LearnerSum, empty, needs, seeded, solved
from sparsact.distributed.engine import Engine, PartialSum, concatenated, counted, joined, restored, tree
from sparsact.distributed.partitions import Partition
from sparsact.distributed.progress import OnProgress, ProgressCounter, listening
from sparsact.learners.lsh.model_choice import distinct
from sparsact.learners.lsh.tuning import ROWS_FOR_WIDTH
from sparsact.saving.schema import Arrays, State

MOST_NUMBERS: Final = 1 << 25  # of a sample: a quarter of a gigabyte


@dataclass
class LabelSet:
    """The labels of the rows, sorted; None before the first row."""

    found: NDArray[Any] | None = None

    def empty(self) -> LabelSet:
        """No labels."""
        return LabelSet()

    def add(self, X: Any, y: Any, weights: Any, first: int) -> None:
        """Labels of more rows."""
        if len(y):
            labels = np.unique(y)
            self.found = labels if self.found is None else np.union1d(self.found, labels)

    def merge(self, other: LabelSet) -> None:
        """Labels of other rows."""
        if other.found is not None:
            self.add(None, other.found, None, 0)

    def state(self, arrays: Arrays) -> State:
        """The labels, which are put among the arrays."""
        arrays |= {} if self.found is None else {"labels": self.found}
        return {}

    def restore(self, state: State, arrays: Arrays) -> None:
        """The labels of another."""
        self.found = arrays.get("labels")


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

    def add(self, X: Any, y: Any, weights: Any, first: int) -> None:
        """Rows, targets and weights."""
        if not len(y):
            return
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

    def state(self, arrays: Arrays) -> State:
        """The form; the rows are put among the arrays."""
        arrays |= {str(i): part for i, part in enumerate(self.rows)}
        return {"form": self.form}

    def restore(self, state: State, arrays: Arrays) -> None:
        """The rows of another."""
        self.rows, self.form = tuple(arrays[str(i)] for i in range(len(arrays))), tuple(state["form"])


def laid_out(estimator: Any, sample: DistinctSample, part: PartialSum) -> Any:
    """A blank learner whose layout or layer suits the sample; None where there are no rows."""
    sample = restored(sample, part)
    if not sample.rows:
        return None
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


BLOCK: Final = 32  # batches of an iterable that are summed in one graph
AT_ONCE: Final = 2  # such graphs under way
_EMPTY: Final = "the data hold no row; pass partitions with some."


class Passes:
    """Passes over partitions on an engine; of batches that can be had once only, all but the last see the first few."""

    def __init__(
        self, parts: list[Partition] | Iterator[Partition], engine: Engine, on_progress: OnProgress | None
    ) -> None:
        self.engine, self.on_progress = engine, on_progress
        self.more: Iterator[Partition] | None = None if isinstance(parts, list) else parts
        self.parts = parts if isinstance(parts, list) else list(islice(parts, BLOCK))
        if not self.parts:
            raise ValueError(_EMPTY)

    def fitted(self, estimator: Any, classes: Any) -> Any:
        """A new estimator that has learned every row, and is solved."""
        blank = self._blank(seeded(estimator), classes)
        part = self._learned(blank) if self.more is None else self._learned_in_blocks(blank, self.more)
        whole = restored(blank, part)
        if not whole.seen:
            raise ValueError(_EMPTY)
        return solved(whole.learner)

    def _blank(self, blank: Any, classes: Any) -> LearnerSum:
        """What every partition begins with: the classes, and the layout of hash tables or of a bottom layer."""
        known = None
        if needs(blank, "classes"):
            known = self._classes() if classes is None else np.unique(np.asarray(classes))
        elif classes is not None:
            raise ValueError(f"a {type(blank).__name__} has no classes; leave `classes` out.")
        if not needs(blank, "layout"):
            return LearnerSum(blank, known)
        sample = DistinctSample(classes=known)
        laid = self._run("sampling", sample, last=lambda root: _laid_out(blank, sample, root))
        if laid is None:
            raise ValueError(_EMPTY)
        return LearnerSum(laid, known)

    def _classes(self) -> Any:
        if self.more is not None:
            raise ValueError("batches can be had once only, so their classes cannot be looked for; pass classes=.")
        found = restored(LabelSet(), self._run("classes", LabelSet())).found
        if found is None:
            raise ValueError(_EMPTY)
        return found

    def _learned(self, blank: LearnerSum) -> PartialSum:
        first_rows: list[int] | None = None
        if needs(blank.learner, "row_numbers"):
            sizes = [part.n_rows for part in self.parts]
            if None in sizes:
                sizes = list(self._run("counting", None, leaf=counted, merge=concatenated))
            first_rows = _starts(sizes)
        part: PartialSum = self._run("learning", blank, first_rows=first_rows)
        return part

    def _learned_in_blocks(self, blank: LearnerSum, more: Iterator[Partition]) -> PartialSum:
        """One graph for every few batches, which are let go when it is done; two of them at once."""
        tally = None if self.on_progress is None else ProgressCounter("learning", self.on_progress)
        running: deque[Any] = deque()
        whole, number, n_rows = PartialSum("batch 0", "batch 0", 0, ({"rows": 0, "seen": None}, {})), 0, 0
        with listening(tally, self.engine.client) as topic:
            try:
                for block in _blocks(chain(self.parts, more)):
                    if tally is not None:
                        tally.n_partitions += len(block)
                    first_rows = [n_rows + start for start in _starts([part.n_rows for part in block])]
                    graph = tree(block, blank, first_rows, number=number, topic=topic)
                    running.append(self.engine.start(graph))
                    number, n_rows = number + len(block), n_rows + sum(part.n_rows or 0 for part in block)
                    if len(running) == AT_ONCE:
                        whole = joined(blank, [whole, running[0].result()])
                        running.popleft()
                while running:
                    whole = joined(blank, [whole, running[0].result()])
                    running.popleft()
            finally:
                for left in running:
                    left.cancel()
        return whole

    def _run(
        self,
        stage: str,
        shared: Any,
        first_rows: Sequence[int] | None = None,
        *,
        last: Callable[[Any], Any] = lambda root: root,
        **functions: Any,
    ) -> Any:
        """One pass; ``last`` may put another step behind the merges."""
        tally = None if self.on_progress is None else ProgressCounter(stage, self.on_progress, len(self.parts))
        with listening(tally, self.engine.client) as topic:
            root = tree(self.parts, shared, first_rows, **functions, topic=topic)
            return self.engine.start(last(root)).result()


def _laid_out(blank: Any, sample: DistinctSample, root: Any) -> Any:
    return delayed(laid_out, pure=False)(delayed(blank, pure=False, traverse=False), sample, root)


def _starts(sizes: Sequence[int | None]) -> list[int]:
    return [0, *accumulate(size or 0 for size in sizes)][: len(sizes)]


def _blocks(parts: Iterator[Partition]) -> Iterator[list[Partition]]:
    """The partitions, a fixed number at a time."""
    while block := list(islice(parts, BLOCK)):
        yield block
