"""Fail if a package that the library needs, or an extra of it brings, has a licence that is not permissive.

Run it as ``python licences.py`` in the environment to be judged; needs pip-licenses. Tools that only build, test or
document are not part of what a user installs, and are left out.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires

EXTRAS = ("report", "torch", "dask", "hf", "gpu")
COPYLEFT = re.compile(r"\bA?GPL|Affero|(?<!Lesser )General Public|SSPL|Commons Clause", re.IGNORECASE)


def needed() -> set[str]:
    """The library's dependencies, theirs, and so on."""
    open_, found = [("sparsact", EXTRAS)], set()
    while open_:
        name, extras = open_.pop()
        try:
            lines = requires(name) or []
        except PackageNotFoundError:
            continue  # of another system or Python
        for line in lines:
            extra = re.search(r"extra == ['\"]([^'\"]+)", line)
            word = re.match(r"[A-Za-z0-9._-]+", line)
            if word and (extra is None or extra.group(1) in extras) and word.group().lower() not in found:
                found.add(word.group().lower())
                open_.append((word.group(), ()))
    return found


def main() -> None:
    """List name, version and licence; fail if some are not permissive, and name them."""
    command = [sys.executable, "-m", "piplicenses", "--from=mixed", "--format=csv", "--packages", *sorted(needed())]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    print("\n".join(lines))
    if len(lines) < 10:
        sys.exit("pip-licenses listed fewer than ten packages: is the library installed here?")
    if bad := [line for line in lines[1:] if COPYLEFT.search(line) or "UNKNOWN" in line]:
        sys.exit("not permissive, or unknown: " + "; ".join(bad))


if __name__ == "__main__":
    main()
