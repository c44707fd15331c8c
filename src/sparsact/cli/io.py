"""Files of commands: outputs are checked before the work, and models are read with the encoding of their table."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from sparsact.extras import EXTRAS, missing

if TYPE_CHECKING:
    from sparsact.datasets import Encoding
    from sparsact.network import SparselyActivatedNetwork

REPORT_SUFFIXES: Final = (".html", ".htm")

PIPE: Final = "-"


@contextmanager
def readable(tables: Sequence[str]) -> Iterator[list[str]]:
    """The tables; for ``-`` a copy of stdin on disk, since a table is read more than once."""
    if PIPE not in tables:
        yield list(tables)
        return
    if len(tables) > 1:
        raise ValueError("'-' is the whole table on stdin; name no other file, or write stdin to a file.")
    with TemporaryDirectory(prefix="sparsact-") as folder:
        path = Path(folder, "stdin.csv")
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)  # a block at a time
        yield [str(path)]


def check_report(path: Path | None) -> None:
    """Raise if a report cannot be written there, or not at all."""
    if path is None:
        return
    check_writable(path, REPORT_SUFFIXES)
    if reason := why_no_report():
        raise ValueError(reason)


def why_no_report() -> str:
    """What a report lacks here, and how to install it; empty if nothing."""
    lacking = [name for name, extra in EXTRAS.items() if extra == "report" and find_spec(name) is None]
    return missing("a report", *lacking) if lacking else ""


def check_writable(path: Path | None, suffixes: tuple[str, ...] = ()) -> None:
    """Raise if a file cannot be written there."""
    if path is None:
        return
    if suffixes and path.suffix.lower() not in suffixes:
        raise ValueError(f"cannot write {str(path)!r}: its name must end in {' or '.join(suffixes)}.")
    if path.is_dir():
        raise ValueError(f"cannot write {str(path)!r}: it is a folder; name a file in it.")
    if not path.parent.is_dir():
        raise ValueError(f"cannot write {str(path)!r}: there is no folder {str(path.parent)!r}; make it first.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"cannot write {str(path)!r}: permission denied; choose another place.")


def check_apart(written: Mapping[str, Path | None], read: Iterable[Path] = ()) -> None:
    """Raise if a file that is written, by the name of its option, is also read, or written by another option."""
    taken = {os.path.realpath(path): "is read" for path in read}
    for option, path in written.items():
        if path is None or (path.exists() and not path.is_file()):
            continue
        place = os.path.realpath(path)
        if place in taken:
            raise ValueError(f"cannot write {str(path)!r} by {option}: it {taken[place]} too; name another file.")
        taken[place] = f"is written by {option}"


def load_model(path: Path, remedy: str) -> Any:
    """Whatever a model file holds."""
    import sparsact
    from sparsact.datasets.readers import SUFFIXES, kind_of
    from sparsact.saving.modelfile import ModelFileError

    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; name a model in it.")
    if not path.is_file():
        raise FileNotFoundError(f"no model {str(path)!r}; {remedy}")
    try:
        return sparsact.load(path)
    except ModelFileError:
        if kind_of(path) not in SUFFIXES:
            raise
        raise ValueError(f"{path.name} is a table, and a model is needed; {remedy}") from None


def read_network(path: Path) -> SparselyActivatedNetwork:
    """The network of a file, or of the model in it."""
    model = load_model(path, f"make one with network.save('{path.stem}.sparsact') in Python.")
    network = network_in(model)
    if network is None:
        raise ValueError(f"{path.name} holds a {type(model).__name__}; a SparselyActivatedNetwork is needed.")
    return network


def network_in(model: object) -> SparselyActivatedNetwork | None:
    """The network that a file held, itself or as what a learner has learned; None of other models."""
    from sparsact.network import SparselyActivatedNetwork

    network = getattr(model, "network_", model)
    return network if isinstance(network, SparselyActivatedNetwork) else None


def read_model(path: Path, tables: Iterable[Path] = ()) -> tuple[Any, Encoding]:
    """A model that was learned from a table, and the table's encoding; ``tables`` are the words after it."""
    from sparsact.datasets.readers import SUFFIXES, kind_of

    remedy = f"make one with sparsact fit TABLE --target COLUMN --out {path.stem}.sparsact"
    if last := next((one for one in tables if kind_of(one) not in SUFFIXES), None):
        remedy = f"the model comes first: sparsact predict {last.name} {path.name}"
    model = load_model(path, remedy)
    return model, encoding_of(model, path)


def encoding_of(model: object, path: Path) -> Encoding:
    """The encoding of the table that a model was learned from."""
    from sparsact.datasets import Encoding
    from sparsact.datasets.columns import Real

    text = getattr(model, "table_encoding_", None)
    if text is None:
        raise ValueError(
            f"{path.name} was not made by sparsact fit, so its columns are unknown; load it in Python instead."
        )
    try:
        encoding = Encoding.from_json(text)
    except ValueError as error:
        raise ValueError(
            f"{path.name} does not say how its table was encoded ({error}); fit and save it again."
        ) from error
    columns = len(encoding.feature_names)
    if hasattr(model, "letters_"):  # a site each, and of numbers a column each
        columns = len(encoding.sites) + sum(isinstance(column, Real) for column in encoding.columns)
    if columns != (learned := getattr(model, "n_features_in_", None)):
        raise ValueError(f"{path.name} learned {learned} columns, and its table has {columns}; fit and save it again.")
    return encoding
