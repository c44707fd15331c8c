"""One file per model: numbers as safetensors, the rest as a JSON header, and a digest. Loading runs no code.

The header is the ``sparsact`` entry of the safetensors metadata: ``{"schema", "kind", "version", "state", "digest"}``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from sparsact import files, registry
from sparsact._version import __version__

SCHEMA: Final = 1
MAPPED: Final = ("CompactPredictor", "plan", "quantized plan")  # kinds whose arrays are never written to
_DTYPES: Final = {
    name: f"{'|' if name.endswith('8') else '<'}{name[0].lower()}{int(name[1:]) // 8}"
    for name in ("F64", "F32", "U64", "U32", "U16", "U8", "I64", "I32", "I8")
}
UNFINISHED_FIT: Final = "FitStatistic"  # kind of the files that `sparsact fit --resume` keeps


class ModelFileError(ValueError):
    """The error for a model file that is truncated, altered, or from another program or version."""


def write(path: str | Path, kind: str, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a model file; an existing one is replaced whole or, on any failure, not at all.

    Parameters
    ----------
    path : path-like
        The file.
    kind : str
        What it holds: the name of a class.
    state : mapping
        Whatever JSON can spell.
    arrays : mapping of names to ndarrays
        The numbers.
    """
    whole = {name: np.ascontiguousarray(array) for name, array in sorted(arrays.items())}
    header: dict[str, Any] = {"schema": SCHEMA, "kind": kind, "version": __version__, "state": dict(state)}
    header["digest"] = _digest(header, whole)
    content = to_bytes(whole, metadata={"sparsact": json.dumps(header, allow_nan=False, sort_keys=True)})
    files.write(path, content)


def read(path: str | Path) -> tuple[str, dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the kind, state and arrays of a model file.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    kind, state, arrays : str, dict, dict of ndarray
        As they were given to :func:`write`.

    Raises
    ------
    ModelFileError
        If the file is not one that :func:`write` wrote, whole and unaltered; names the file.
    OSError
        If it cannot be read at all.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no model {str(path)!r}; check the path, which is relative to {str(Path.cwd())!r}.")
    if not path.is_file() and not path.is_dir():  # a pipe or a device has no end
        raise ModelFileError(f"{path} is not a regular file; copy its content into one.")
    with path.open("rb"):  # an unreadable file is an OSError that names it
        pass
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {})["sparsact"])
            if header["kind"] in MAPPED:
                arrays = _mapped(path)
            else:
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
        digest = header.pop("digest")
        schema, kind, state = header["schema"], header["kind"], header["state"]
        if not isinstance(kind, str) or not isinstance(state, dict):
            raise ValueError("its kind is no text, or its state no mapping")
        whole = digest == _digest(header, arrays)
    except KeyError as error:
        raise ModelFileError(f"{path} is a safetensors file, but not a sparsact model; fit one and save it.") from error
    except (SafetensorError, ValueError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ModelFileError(f"{path} is not a readable sparsact model ({error}); save it again.") from error
    if schema != SCHEMA:
        raise ModelFileError(f"{path} has schema {schema!r}, this version reads {SCHEMA}; install a matching sparsact.")
    if not whole:
        raise ModelFileError(f"{path} was altered or damaged: its digest does not match; save the model again.")
    return kind, state, arrays


def _mapped(path: Path) -> dict[str, NDArray[Any]]:
    """Arrays of a safetensors file that are read from it when they are used; others must not write to it meanwhile."""
    content = np.memmap(path, dtype=np.uint8, mode="r")
    start = 8 + int(content[:8].view("<u8")[0])
    arrays = {}
    for name, entry in json.loads(content[8:start].tobytes()).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            arrays[name] = content[start + first : start + last].view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return arrays


def _digest(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"\0{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def load(path: str | Path) -> Any:
    """Load a fitted model from the file that its ``save`` wrote.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    model : estimator or SparselyActivatedNetwork
        An object of the class that was saved.

    Raises
    ------
    ModelFileError
        A ``ValueError``: if the file is truncated, altered, or not a sparsact model; if it holds an unfinished fit of
        the command, says how to go on.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sparsact.constructions import indexing
    >>> with TemporaryDirectory() as folder:
    ...     indexing(2).save(Path(folder) / "network.sparsact")
    ...     print(load(Path(folder) / "network.sparsact"))
    <SparselyActivatedNetwork of 4 units on 6 inputs (sparse, 12 weights), W = 1.5, B = 1.5>
    """
    kind, state, arrays = read(path)
    if kind == UNFINISHED_FIT:
        raise ModelFileError(
            f"{path} holds an unfinished fit, not a model; continue it with the command that began it and this file: "
            f"sparsact fit ... --resume {path}"
        )
    if kind not in registry.MODELS:
        raise ModelFileError(f"{path} holds a {kind!r}, which this version does not know; install a matching sparsact.")
    try:
        return registry.find(registry.MODELS[kind])._from_file(state, arrays)
    except ModelFileError as error:  # of a model that this version has not
        raise ModelFileError(f"{path} holds {error}") from error
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, MemoryError, RecursionError) as error:
        raise ModelFileError(f"{path} lacks something that a {kind} needs ({error}); save it again.") from error
