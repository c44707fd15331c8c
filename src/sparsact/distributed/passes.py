"""Passes over the partitions: count rows, find classes, choose a layout on a sample, then learn all rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice
from typing import Any

import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray
from sklearn.utils.validation import _get_feature_names, check_X_y

from sparsact.distributed.additive import empty, needs, seeded, seen_in, solved
from sparsact.distributed.engine import (
    Engine,
    Lesson,
    PartialSum,
    PartitionError,
    PassTask,
    all_classes,
    classes_in,
    concatenated,
    counted,
    joined,
    learned,
    of_partition,
    tree,
)
from sparsact.distributed.partitions import Partition
from sparsact.distributed.progress import OnProgress, ProgressCounter, listening
from sparsact.learners.lsh.tuning import ROWS_FOR_WIDTH, distinct

MOST_NUMBERS = 1 << 25  # of a sample: a quarter of a gigabyte


@dataclass(frozen=True)
class Question:
    """What every partition must give: its rows, labels by their place among the classes."""

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


BLOCK = 32  # batches of an iterable that are summed in one graph
AT_ONCE = 2  # such graphs under way
_EMPTY = "the data hold no row; pass partitions with some."


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
        lesson = self._lesson(seeded(estimator), classes)
        whole = self._learned(lesson) if self.more is None else self._learned_in_blocks(lesson, self.more)
        if whole.seen is None:
            raise ValueError(_EMPTY)
        return solved(seen_in(lesson.blank, *whole.seen))

    def _lesson(self, blank: Any, classes: Any) -> Lesson:
        """What every partition must know: the classes, and the layout of hash tables or of a bottom layer."""
        known = None
        if needs(blank, "classes"):
            known = self._classes() if classes is None else np.unique(np.asarray(classes))
        elif classes is not None:
            raise ValueError(f"a {type(blank).__name__} has no classes; leave `classes` out.")
        if not needs(blank, "layout"):
            return Lesson(blank, known)
        question = Question(classes=known)
        laid = self._run(
            "sampling", sampled, samples_joined, question, lambda sample: _laid_out(blank, question, sample)
        )
        if laid is None:
            raise ValueError(_EMPTY)
        return Lesson(laid, known)

    def _classes(self) -> Any:
        if self.more is not None:
            raise ValueError("batches can be had once only, so their classes cannot be looked for; pass classes=.")
        found = self._run("classes", classes_in, all_classes, None)
        if found is None:
            raise ValueError(_EMPTY)
        return found

    def _learned(self, lesson: Lesson) -> PartialSum:
        first_rows: list[int] = [0] * len(self.parts)
        if needs(lesson.blank, "row_numbers"):
            sizes = [part.n_rows for part in self.parts]
            if None in sizes:
                sizes = list(self._run("counting", counted, concatenated, None))
            first_rows = _starts(sizes)
        part: PartialSum = self._run("learning", learned, joined, lesson, first_rows=first_rows)
        return part

    def _learned_in_blocks(self, lesson: Lesson, more: Iterator[Partition]) -> PartialSum:
        """One graph for every few batches, which are let go when it is done; two of them at once."""
        tally = None if self.on_progress is None else ProgressCounter("learning", self.on_progress)
        running: deque[Any] = deque()
        whole, number, n_rows = PartialSum("batch 0", "batch 0", 0, None), 0, 0
        with listening(tally, self.engine.client) as topic:
            try:
                for block in _blocks(chain(self.parts, more)):
                    if tally is not None:
                        tally.n_partitions += len(block)
                    first_rows = [n_rows + start for start in _starts([part.n_rows for part in block])]
                    graph = tree(block, first_rows, learned, joined, lesson, number=number, topic=topic)
                    running.append(self.engine.start(graph))
                    number, n_rows = number + len(block), n_rows + sum(part.n_rows or 0 for part in block)
                    if len(running) == AT_ONCE:
                        whole = joined(lesson, [whole, running[0].result()])
                        running.popleft()
                while running:
                    whole = joined(lesson, [whole, running[0].result()])
                    running.popleft()
            finally:
                for left in running:
                    left.cancel()
        return whole

    def _run(
        self,
        stage: str,
        leaf: Callable[..., Any],
        merge: Callable[..., Any],
        shared: Any,
        last: Callable[[Any], Any] = lambda root: root,
        first_rows: Sequence[int] | None = None,
    ) -> Any:
        """One pass; ``last`` may put another step behind the merges."""
        tally = None if self.on_progress is None else ProgressCounter(stage, self.on_progress, len(self.parts))
        with listening(tally, self.engine.client) as topic:
            root = tree(self.parts, first_rows or [0] * len(self.parts), leaf, merge, shared, topic=topic)
            return self.engine.start(last(root)).result()


def _laid_out(blank: Any, question: Question, sample: Any) -> Any:
    return delayed(laid_out, pure=False)(delayed(blank, pure=False, traverse=False), question, sample)


def _starts(sizes: Sequence[int | None]) -> list[int]:
    return [0, *accumulate(size or 0 for size in sizes)][: len(sizes)]


def _blocks(parts: Iterator[Partition]) -> Iterator[list[Partition]]:
    """The partitions, a fixed number at a time."""
    while block := list(islice(parts, BLOCK)):
        yield block
