"""Tables of the scaling page: what was measured, and what it comes to on many machines. Computed from kept rows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import ceil, log
from pathlib import Path
from typing import Any

from sparsact.distributed.engine import ARITY

ROWS = Path(__file__).parents[1] / "results" / "scaling.jsonl"
TASK_SECONDS = 1e-3  # of Dask's scheduler, a task; its documentation says about a millisecond
BYTES_PER_SECOND = 1.25e9  # a network of 10 Gbit/s
ROW_KEY_BYTES = 16  # of a table of buckets, a row: its key and its copies


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
    def of(cls, row: dict[str, Any], rows: float = 1e12, machines: int = 1000, partition: float = 1e7) -> Cost:
        """From the measured cost of one partition; statistics as large as that one's, at every level of the tree."""
        partitions = ceil(rows / partition)
        depth = max(1, ceil(log(partitions) / log(ARITY)))
        merges = sum(ceil(partitions / ARITY**level) for level in range(1, depth + 1))
        one = row["merge_seconds"] + row["bytes"] / BYTES_PER_SECOND
        return cls(
            partitions,
            depth,
            rows / machines * row["seconds"] / row["rows"],
            float(partitions + merges - 1) * row["bytes"],
            (partitions + merges) / machines * one + depth * ARITY * one,
            (partitions + merges) * TASK_SECONDS,
            (ARITY + 1.0) * row["bytes"],
        )

    @property
    def first(self) -> str:
        """What takes most of the time: it is what to mend first."""
        parts = {"reading rows": self.learning, "moving and merging": self.merging, "the scheduler": self.scheduling}
        return max(parts, key=lambda name: parts[name])


def scaling_tables(path: Path) -> None:
    """Write the tables, to be included by ``scaling.rst``."""
    rows = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()]
    partitions = [row for row in rows if row["what"] == "partition"]
    lines = [":orphan:", "", "**Measured**, one partition, one thread.", ""]
    lines += table(
        ("learner", "rows", "columns", "degree", "form", "µs a row", "statistic", "of the rows' bytes", "merge"),
        [
            (
                row["learner"],
                f"{row['rows']:,}",
                row["columns"],
                row["degree"],
                row["form"],
                f"{1e6 * row['seconds'] / row['rows']:.2f}",
                size(row["bytes"]),
                f"{row['bytes'] / row['bytes_of_rows']:.3g}",
                f"{1e3 * row['merge_seconds']:.1f} ms",
            )
            for row in partitions
        ],
    )
    lines += ["", "**Workers**: the same rows, in turns.", ""]
    by_workers = [row for row in rows if row["what"] == "workers"]
    alone = {row["rows"]: row["seconds"] for row in by_workers if row["workers"] == 1}
    lines += table(
        ("workers", "rows", "seconds (least to most)", "of one worker's time"),
        [
            (
                row["workers"],
                f"{row['rows']:,}",
                f"{row['seconds']:.2f} ({row['least']:.2f} to {row['most']:.2f})",
                f"{row['seconds'] / alone[row['rows']]:.2f}",
            )
            for row in by_workers
        ],
    )
    lines += ["", "**On paper**: 10\\ :sup:`12` rows on 1,000 machines of one thread, partitions of 10\\ :sup:`7`.", ""]
    largest = {(row["learner"], row["columns"], row["degree"]): row for row in partitions}
    costs = [(key, Cost.of(row)) for key, row in largest.items() if row["form"] not in ("Rows", "LSHRegressor")]
    lines += table(
        ("learner", "depth", "reading rows", "moved", "moving, merging", "scheduler", "memory of a merge", "slowest"),
        [
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
            for (name, columns, degree), cost in costs
        ],
    )
    about = rows[-1]["machine"]
    busy = f"busy (load {about['load']:.1f})" if about["busy"] else "quiet"
    lines += ["", f"Rows of {about['processor']}, {about['cores']} cores, {busy}, commit {about['commit']}.", ""]
    keys = 1e12 * ROW_KEY_BYTES
    lines += [
        "Hash tables are not in that table, because they grow with the rows: the keys of 10\\ :sup:`12` rows are "
    ]
    lines += [f"{size(keys)}, and most move once a level, {size(keys * costs[0][1].depth)} in all.", ""]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines), encoding="utf-8")


def table(head: tuple[str, ...], body: list[tuple[Any, ...]]) -> list[str]:
    """A list-table."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for first, *rest in (head, *body):
        lines += [f"   * - {first}", *(f"     - {cell}" for cell in rest)]
    return lines


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
