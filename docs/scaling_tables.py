"""Tables of the scaling page: what was measured, and what it comes to on many machines. Computed from kept rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil, log
from pathlib import Path
from typing import Any

from list_table import list_table

from benchmarks.table import newest
from benchmarks.table.cells import Row, Rows, spread
from sparsact.passes.dask import ARITY

ROWS = Path(__file__).parents[1] / "results" / "benchmarks.jsonl"
TASK_SECONDS = 1e-3  # of Dask's scheduler, a task; its documentation says about a millisecond
BYTES_PER_SECOND = 1.25e9  # a network of 10 Gbit/s
ROW_KEY_BYTES = 16  # of a table of buckets, a row: its key and its copies
WORK = re.compile(r"(\S+) n=(\d+) d=(\d+) m=([\d,]+) as (\w+)")
GROWING = ("Rows", "Buckets")  # statistics that are as many as the rows


@dataclass(frozen=True)
class Partition:
    """What was measured of one partition."""

    learner: str
    columns: int
    degree: int
    rows: int
    form: str
    seconds: float
    merge_seconds: float
    nbytes: float
    nbytes_of_rows: float


def partitions(rows: Rows) -> list[Partition]:
    """All that were measured."""
    found = []
    for work in dict.fromkeys(work for work, quantity in rows if quantity == "partition, seconds"):
        learner, columns, degree, m, form = WORK.fullmatch(work).groups()
        figures = (
            rows[work, quantity]["value"]
            for quantity in ("partition, seconds", "merge, seconds", "statistic, bytes", "rows, bytes")
        )
        found.append(Partition(learner, int(columns), int(degree), int(m.replace(",", "")), form, *figures))
    return found


@dataclass(frozen=True)
class Cost:
    """What a fit of many rows comes to, on machines of one thread each."""

    partitions: int
    depth: int
    learning: float
    moved: float
    merging: float
    scheduling: float
    memory: float

    @classmethod
    def of(cls, row: Partition, rows: float = 1e12, machines: int = 1000, partition: float = 1e7) -> Cost:
        """From the measured cost of one partition; statistics as large as that one's, at every level of the tree."""
        partitions = ceil(rows / partition)
        depth = max(1, ceil(log(partitions) / log(ARITY)))
        merges = sum(ceil(partitions / ARITY**level) for level in range(1, depth + 1))
        one = row.merge_seconds + row.nbytes / BYTES_PER_SECOND
        return cls(
            partitions,
            depth,
            rows / machines * row.seconds / row.rows,
            float(partitions + merges - 1) * row.nbytes,
            (partitions + merges) / machines * one + depth * ARITY * one,
            (partitions + merges) * TASK_SECONDS,
            (ARITY + 1.0) * row.nbytes,
        )

    @property
    def first(self) -> str:
        """What takes most of the time: it is what to mend first."""
        parts = {"reading rows": self.learning, "moving and merging": self.merging, "the scheduler": self.scheduling}
        return max(parts, key=lambda name: parts[name])


def scaling_tables(path: Path) -> None:
    """Write the tables, to be included by ``scaling.rst``."""
    rows = newest(ROWS)
    measured = partitions(rows)
    lines = ["**Measured**, one partition, one thread.", "", *of_partitions(measured)]
    lines += ["", "**Workers**: the same rows, in turns.", "", *of_workers(rows)]
    lines += ["", "**On paper**: 10\\ :sup:`12` rows on 1,000 machines of one thread, partitions of 10\\ :sup:`7`.", ""]
    largest = {(each.learner, each.columns, each.degree): each for each in measured if each.form not in GROWING}
    costs = {key: Cost.of(each) for key, each in largest.items()}
    lines += [*on_paper(costs), "", origin(next(row for row in rows.values() if row["benchmark"] == "scaling")), ""]
    keys, depth = 1e12 * ROW_KEY_BYTES, next(iter(costs.values())).depth
    lines += [
        (
            "Hash tables are not in that table, because they grow with the rows: the keys of 10\\ :sup:`12` rows are "
            f"{size(keys)}, and most move once a level, {size(keys * depth)} in all."
        ),
        "",
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines), encoding="utf-8")


def of_partitions(measured: list[Partition]) -> list[str]:
    """A line a partition."""
    head = ("learner", "rows", "columns", "degree", "form", "µs a row", "statistic", "of the rows' bytes", "merge")
    body = [
        (
            each.learner,
            f"{each.rows:,}",
            each.columns,
            each.degree,
            each.form,
            f"{1e6 * each.seconds / each.rows:.2f}",
            size(each.nbytes),
            f"{each.nbytes / each.nbytes_of_rows:.3g}",
            f"{1e3 * each.merge_seconds:.1f} ms",
        )
        for each in measured
    ]
    return table(head, body)


def of_workers(rows: Rows) -> list[str]:
    """One worker process and two."""
    ratios = {work: row for (work, quantity), row in rows.items() if quantity == "two workers, times as fast as one"}
    body = [
        (work, *(spread(rows[work, f"{who}, seconds"]) for who in ("one worker", "two workers")), spread(row, "times"))
        for work, row in ratios.items()
    ]
    return table(("work", "one worker", "two workers", "as fast"), body)


def on_paper(costs: dict[tuple[str, int, int], Cost]) -> list[str]:
    """A line a learner."""
    head = ("learner", "depth", "reading rows", "moved", "moving, merging", "scheduler", "memory of a merge", "slowest")
    body = [
        (
            f"{name}, {columns} columns, degree {degree}",
            cost.depth,
            duration(cost.learning),
            size(cost.moved),
            duration(cost.merging),
            duration(cost.scheduling),
            size(cost.memory),
            cost.first,
        )
        for (name, columns, degree), cost in costs.items()
    ]
    return table(head, body)


def origin(row: Row) -> str:
    """Where the rows were measured."""
    return f"Rows of {row['processor']}, {row['cores']} cores, commit {row['commit']}."


def table(head: tuple[str, ...], body: list[tuple[Any, ...]]) -> list[str]:
    """A list-table."""
    return list_table((head, *body))


def size(count: float) -> str:
    """Bytes for people."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:.3g} {unit}" if count < 1000 else f"{count:,.0f} {unit}"
        count /= 1000
    raise AssertionError


def duration(seconds: float) -> str:
    """A time for people."""
    for unit, length in (("h", 3600.0), ("min", 60.0)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s"
