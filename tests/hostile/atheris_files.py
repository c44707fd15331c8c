"""Coverage-guided search for files that do harm: ``python atheris_files.py FOLDER [libFuzzer's options]``.

Each input is a file of a model or a table, or, by its first byte, numbers that a signed file is altered by. What it may
do is a ValueError with the file's name; all else ends the search, and the input is kept. FOLDER holds the corpus, which
begins with a file of every kind.
"""

from __future__ import annotations

import sys
import tempfile
from functools import cache
from pathlib import Path
from random import Random

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))

with atheris.instrument_imports(include=["sparsact"]):
    from hostile.model_files import load_and_use, originals
    from hostile.mutations import mutated, write
    from hostile.tables import ENDINGS, read_table, tables


@cache
def place() -> Path:
    """A folder for the files that are tried."""
    return Path(tempfile.mkdtemp(prefix="sparsact-fuzz-"))


class Bytes(Random):
    """Random numbers that are the bytes of an input, then zeros: what coverage guides."""

    def __init__(self, data: bytes) -> None:
        super().__init__(0)
        self.provider = atheris.FuzzedDataProvider(data)

    def getrandbits(self, k: int) -> int:
        """The next k bits."""
        return int(self.provider.ConsumeIntInRange(0, 2 ** min(k, 62) - 1))


def try_one(data: bytes) -> None:
    """One input: a signed file altered, a model's bytes, or a table's."""
    kind, rest = (data[0] if data else 0), data[1:]
    if kind < 128:
        everything = list(originals(place()).values())
        try:
            content = mutated(everything[kind % len(everything)], everything, Bytes(rest)).signed()
        except (UnicodeEncodeError, OverflowError):
            return
        load_and_use(write(place() / "altered", content))
    elif kind < 160:
        load_and_use(write(place() / "model", rest))
    else:
        read_table(write(place() / f"table{ENDINGS[kind % len(ENDINGS)]}", rest))


def seed(folder: Path) -> None:
    """The files that a search begins with."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, content in enumerate(originals(place()).values()):
        write(folder / f"model-{i}", bytes([128]) + content.signed())
        write(folder / f"altered-{i}", bytes([i]) + Random(i).randbytes(64))
    for i, (ending, content) in enumerate(tables(place())):
        kind = next(kind for kind in range(160, 256) if ENDINGS[kind % len(ENDINGS)] == ending)
        write(folder / f"table-{i}", bytes([kind]) + content)


if __name__ == "__main__":
    seed(Path(sys.argv[1]))
    atheris.Setup(sys.argv, try_one)
    atheris.Fuzz()
