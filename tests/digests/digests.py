"""Digests of what the library computes: a net that tells a change of code that it has changed an answer, and which.

    python tests/digests/digests.py compare [WORD ...]    # what differs and by how much; status 1 if anything does
    python tests/digests/digests.py renew [WORD ...]      # keep what is computed now; prints old beside new

Items whose name holds a WORD, or all. ``make digests`` compares; a change that means to change an answer renews. A
digest does not prove that an answer is right: tests by definition do that. ``tests/digests/manifest.json`` keeps the
texts of each output and eight digits of its numbers: all if they are few, else their count, norm and five projections.
Each item has a tolerance, relative to the largest number or the norm, for what processors and libraries round
differently. Prose (verdicts, reasons, notes), times, versions and paths are left out.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"

import learner_outputs  # noqa: E402, F401 # registers its items
import model_outputs  # noqa: E402, F401
import numpy as np  # noqa: E402 - after the number of its threads
from outputs import ITEMS, TOLERANCES, outputs  # noqa: E402

Array = np.ndarray[Any, Any]
Kept = dict[str, list[Any]]
MANIFEST = Path(__file__).with_name("manifest.json")
SHORT = 8  # numbers that are kept one by one
LEFT_OUT = {  # of JSON: prose, and what differs from run to run
    "verdict", "why", "notes", "solver_reason", "seconds", "peak_memory_bytes", "report", "model", "table", "layout",
    "fill", "reason", "warnings",
}  # fmt: skip


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Arrays of numbers and texts of anything nested, each under the names on the way to it; places have none."""
    if isinstance(value, dict) or hasattr(value, "_asdict"):
        for name, inner in (value if isinstance(value, dict) else value._asdict()).items():
            if str(name) not in LEFT_OUT:
                yield from leaves(inner, f"{key}/{name}" if key else str(name))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from leaves(inner, key)
    elif value is not None:
        yield key, np.asarray(value)


def digest(value: Any) -> Kept:
    """What is kept of an output: texts, numbers, or the summary of many, under the names of its parts."""
    found: dict[str, list[Array]] = {}
    for key, array in leaves(value):
        found.setdefault(f"{key}:{'text' if array.dtype.kind in 'UO' else 'number'}", []).append(array)
    kept: Kept = {}
    for key, arrays in sorted(found.items()):
        if key.endswith("text"):
            texts = [str(text) for array in arrays for text in array.ravel()]
            kept[key] = texts if len(texts) <= SHORT else [hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16]]
        else:
            kept |= numbers_of(key, np.concatenate([array.ravel() for array in arrays]).astype(np.float64))
    return kept


def numbers_of(key: str, numbers: Array) -> Kept:
    """Few numbers as they are; for many the count, how many are not finite, the norm and projections."""
    if len(numbers) <= SHORT:
        return {key: digits(numbers)}
    finite = np.where(np.isfinite(numbers), numbers, 0.0)
    largest = np.abs(finite).max() or 1.0
    places = np.arange(1.0, len(numbers) + 1)
    projections = [largest * (np.cos(w * places) @ (finite / largest)) for w in (0.0, 1.0, 2.3, 0.7, 3.1)]
    norm = largest * np.linalg.norm(finite / largest)
    count = [f"{len(numbers)} numbers, {len(numbers) - np.isfinite(numbers).sum()} not finite"]
    return {f"{key} count:text": count, key: digits([norm, *projections])}


def digits(numbers: Any) -> list[str]:
    return [f"{number:.8g}" for number in numbers]


def error(old: Kept, new: Kept) -> tuple[float, str]:
    """The largest relative error over the values of an item, and where; infinite where they are not comparable."""
    worst = (0.0, "")
    for key in sorted(old.keys() | new.keys()):
        if key not in old or key not in new:
            return np.inf, f"{key} is {'new' if key in new else 'gone'}"
        then, now = old[key], new[key]
        if then == now:
            continue
        if key.endswith("text") or len(then) != len(now):
            return np.inf, f"{key}: {str(then)[:60]} -> {str(now)[:60]}"
        a, b = (np.array(side, dtype=np.float64) for side in (then, now))
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        a, b = np.where(same, 0.0, a), np.where(same, 0.0, b)
        scale = np.abs([float(x) for x in then if np.isfinite(float(x))] or [1.0]).max() or 1.0
        with np.errstate(invalid="ignore"):
            relative = float(np.nan_to_num(np.abs(a - b) / scale, nan=np.inf, posinf=np.inf).max())
        at = int(np.abs(a - b).argmax())
        worst = max(worst, (relative, f"{key}: {then[at]} -> {now[at]}"))
    return worst


def tolerance(name: str) -> float:
    return TOLERANCES[name.partition(":")[0]]


def main(action: str, words: list[str]) -> int:
    """Compare with the manifest, or renew it; 1 if something that is compared is different."""
    warnings.simplefilter("ignore")
    start = perf_counter()
    chosen = [item for item in ITEMS if not words or any(word in item for word in words)]
    found = {name: digest(value) for name, value in outputs(chosen)}
    kept: dict[str, Kept] = json.loads(MANIFEST.read_text()) if MANIFEST.exists() else {}
    others = {name: value for name, value in kept.items() if name.partition(":")[0] not in chosen}
    if not words:
        others = {}
    different = 0
    for name in [*(name for name in kept if name not in others), *(name for name in found if name not in kept)]:
        if name not in found or name not in kept:  # what is new changes no answer
            different += name not in found
            print(f"{name:<44} {'is new: `renew` keeps it' if name in found else 'is gone'}")
            continue
        size, where = error(kept[name], found[name])
        if size > tolerance(name):
            different += 1
            print(f"{name:<44} DIFFERENT by {size:.1e}, more than {tolerance(name):g}: {where}")
        elif action == "renew":
            found[name] = kept[name]
    print(f"{len(found)} outputs in {perf_counter() - start:.1f} s, {different} different")
    if action == "renew":
        lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in sorted((others | found).items()))
        MANIFEST.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return 0
    return int(different > 0)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in ("compare", "renew"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
