"""Whether a statistic file is of this very fit: the same files, the same options, the same version."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparsact import __version__
from sparsact.datasets.parts import Parts

BYTES_OF_ENDS = 1 << 16


def identity(parts: Parts, options: Mapping[str, Any]) -> dict[str, Any]:
    """All that decides the result of a fit; ``options`` by the name that the user knows.

    Of a file the name without its folder, the size, the time of its last change, and a digest of both its ends.
    """
    files = [
        [source.path.name, stamp.size, stamp.written, _ends(source.path)]
        for source, stamp in zip(parts.sources, parts.stamps, strict=True)
    ]
    return {"version": __version__, "options": dict(options), "files": files}


def refuse_other_fit(path: Path, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise unless both are the same; tells the first difference.

    Raises
    ------
    ValueError
        If they are not.
    """
    fact = _difference(then, now)
    if fact:
        raise ValueError(f"{path} keeps another fit: {fact}; undo that, or name another file with --resume.")


def _difference(then: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    if then["version"] != now["version"]:
        return f"it is of sparsact {then['version']}, and this is {now['version']}"
    for name, value in now["options"].items():
        had = then["options"].get(name)
        if had != value:
            return f"{name} was {_spelled(had)}, now it is {_spelled(value)}"
    for before, after in zip(then["files"], now["files"], strict=False):
        if before[0] != after[0]:
            return f"it was of a file {before[0]} where {after[0]} now stands"
        if before != after:
            return f"{after[0]} has changed since"
    if len(then["files"]) != len(now["files"]):
        return f"it was of {len(then['files']):,} files, now there are {len(now['files']):,}"
    return None


def _spelled(value: Any) -> str:
    if value is None:
        return "auto"
    if isinstance(value, bool):
        return "given" if value else "not given"
    return (", ".join(map(str, value)) or "not given") if isinstance(value, list) else str(value)


def _ends(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        digest.update(file.read(BYTES_OF_ENDS))
        file.seek(max(0, path.stat().st_size - BYTES_OF_ENDS))
        digest.update(file.read(BYTES_OF_ENDS))
    return digest.hexdigest()
