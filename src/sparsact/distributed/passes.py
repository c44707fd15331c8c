"""Passes over the partitions: rows counted, classes found, a layout chosen where that is due; then all is learned."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain, islice
from typing import Any

import numpy as np
from dask.delayed import delayed

from sparsact.distributed.additive import seeded, seen_in, solved, takes_classes, takes_layout, takes_row_numbers
from sparsact.distributed.engine import Engine, tree
from sparsact.distributed.layout import Question, laid_out, sampled, samples_joined
from sparsact.distributed.partitions import Partition
from sparsact.distributed.progress import OnProgress, ProgressCounter, listening
from sparsact.distributed.work import (
    Lesson,
    PartialSum,
    all_classes,
    classes_in,
    concatenated,
    counted,
    joined,
    learned,
)

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
        """What every partition must be told: the classes, and the layout of hash tables or of a bottom layer."""
        known = None
        if takes_classes(blank):
            known = self._classes() if classes is None else np.unique(np.asarray(classes))
        elif classes is not None:
            raise ValueError(f"a {type(blank).__name__} has no classes; leave `classes` out.")
        if not takes_layout(blank):
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
        if takes_row_numbers(lesson.blank):
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
    """The partitions, so many at a time."""
    while block := list(islice(parts, BLOCK)):
        yield block
