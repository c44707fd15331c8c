"""Digests of what the library computes, to compare a version with another while its parts are moved.

    python tests/digests/digests.py write      # on the version before
    python tests/digests/digests.py compare    # after: "equal", "equal to 1e-12", or "DIFFERENT" and how much

Golden numbers of the library itself are no tests here, and pytest does not run this: it tells a refactoring that it has
changed an answer, and which. ``tests/digests/manifest.json`` keeps a SHA-256 of the bits of each output, and numbers of
it to 15 digits: all of a short array, of a long one its size, its norm and five projections. Bits are those of one
machine and one thread. Prose (verdicts, reasons, notes), times, versions and paths are left out. An item may follow its
subject to another module; what it computes must stay.
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

import model_outputs  # noqa: E402, F401 # registers its items
import numpy as np  # noqa: E402 - after the number of its threads
from outputs import outputs  # noqa: E402

Array = np.ndarray[Any, Any]
MANIFEST = Path(__file__).with_name("manifest.json")
TOLERANCE = 1e-12
SHORT = 64  # numbers that are kept one by one
LEFT_OUT = {  # of JSON: prose, and what differs from run to run
    "verdict", "why", "notes", "solver_reason", "seconds", "peak_memory_bytes", "report", "model", "table", "layout",
    "fill", "reason", "warnings",
}  # fmt: skip
FORMER = {"bucket_width": "width"}  # names of the manifest


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Arrays of numbers and texts of anything nested, each under the names on the way to it; places have none."""
    if isinstance(value, dict) and "effect" in value:  # a term, which was a list
        value = [value[name] for name in ("columns", "coefficient", "low", "high")]
    if isinstance(value, dict) or hasattr(value, "_asdict"):
        for name, inner in (value if isinstance(value, dict) else value._asdict()).items():
            if str(name) not in LEFT_OUT:
                kept = FORMER.get(str(name), str(name))
                yield from leaves(inner, f"{key}/{kept}" if key else kept)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from leaves(inner, key)
    elif value is not None:
        yield key, np.asarray(value)


def digest(value: Any) -> dict[str, Any]:
    """What is kept of an output."""
    found: dict[str, list[Array]] = {}
    for key, array in leaves(value):
        found.setdefault(f"{key}:{'text' if array.dtype.kind in 'UO' else 'number'}", []).append(array)
    exact, kept = hashlib.sha256(), {}
    for key, arrays in sorted(found.items()):
        if key.endswith("text"):
            texts = [str(text) for array in arrays for text in array.ravel()]
            content = json.dumps(texts).encode()
            kept[key] = texts if len(texts) <= SHORT else hashlib.sha256(content).hexdigest()
        else:
            numbers = np.concatenate([array.ravel() for array in arrays])
            content = numbers.tobytes() if numbers.dtype.kind != "b" else numbers.astype(np.int64).tobytes()
            kept[key] = summary(numbers.astype(np.float64))
        exact.update(f"{key}\0".encode() + content)
    return {"sha256": exact.hexdigest(), "values": kept}


def summary(numbers: Array) -> list[str]:
    """Few numbers as they are; of many the size, the number that are not finite, the norm and projections."""
    if len(numbers) > SHORT:
        finite = np.where(np.isfinite(numbers), numbers, 0.0)
        largest = np.abs(finite).max() or 1.0
        places = np.arange(1.0, len(numbers) + 1)
        projections = [largest * (np.cos(w * places) @ (finite / largest)) for w in (0.0, 1.0, 2.3, 0.7, 3.1)]
        norm = largest * np.linalg.norm(finite / largest)
        numbers = np.array([len(numbers), (~np.isfinite(numbers)).sum(), norm, *projections])
    return [f"{number:.15g}" for number in numbers]


def error(old: dict[str, Any], new: dict[str, Any]) -> tuple[float, str]:
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
        worst = max(worst, (relative, key))
    return worst


def main(action: str) -> int:
    """Write the manifest, or compare with it; 1 if something is different."""
    warnings.simplefilter("ignore")
    start, found = perf_counter(), {}
    for name, value in outputs():
        found[name] = digest(value)
    print(f"{len(found)} outputs in {perf_counter() - start:.1f} s")
    if action == "write":
        MANIFEST.write_text(json.dumps(found, indent=0) + "\n")
        return 0
    kept = json.loads(MANIFEST.read_text())
    different = 0
    for name in [*kept, *(name for name in found if name not in kept)]:
        if name not in found or name not in kept:
            verdict, where = "DIFFERENT", "is new" if name in found else "is gone"
        elif found[name]["sha256"] == kept[name]["sha256"]:
            verdict, where = "equal", ""
        else:
            size, where = error(kept[name]["values"], found[name]["values"])
            verdict, where = "equal to 1e-12" if size <= TOLERANCE else "DIFFERENT", f"{size:.1e} {where}"
        different += verdict == "DIFFERENT"
        print(f"{name:<44} {verdict:<15} {where}".rstrip())
    print(f"{different} of {len(kept)} outputs are different")
    return int(different > 0)


if __name__ == "__main__":
    if sys.argv[1:] not in (["write"], ["compare"]):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
