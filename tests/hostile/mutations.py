"""What a malicious writer of model files does to one: to the header, to the arrays, to the bytes."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as to_bytes

from sparsact.saving import modelfile

NUMBERS = (0, 1, -1, 2, 3, 7, 63, 64, 65, 2**16, 2**31, 2**40, 2**53 + 1, 2**62, 2**63, -(2**63), 10**30, 10**400)
FLOATS = (0.5, -0.5, 1e-320, 1e308, float("nan"), float("inf"), -float("inf"))
TEXTS = ("", "ridge", "../../etc/passwd", "<script>alert(1)</script>", "\x1b[2J", "a\0b", "\ud800", "9" * 4000, "real")
OTHERS = (None, True, False, [], {}, [1, [2, [3]]], {"a": {"b": None}}, [None] * 50)
VALUES: tuple[Any, ...] = NUMBERS + FLOATS + TEXTS + OTHERS
DTYPES = ("f8", "f4", "f2", "i8", "i4", "i1", "u8", "u4", "u1", "?")
FILLS = (0, 1, -1, 2**31, 2**62, -(2**62), np.nan, np.inf, -np.inf, 1e308, 1e-320, 0.5)


@dataclass(repr=False)  # which hypothesis prints
class Content:
    """Kind, state and arrays of a model file."""

    kind: str
    state: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    def signed(self) -> bytes:
        """A file with this content and the digest that belongs to it."""
        header = {"schema": modelfile.SCHEMA, "kind": self.kind, "version": "0", "state": self.state}
        arrays = {name: np.ascontiguousarray(array) for name, array in self.arrays.items()}
        header["digest"] = modelfile._digest(header, arrays)
        return to_bytes(arrays, metadata={"sparsact": json.dumps(header)})


def mutated(content: Content, others: list[Content], random: Random) -> Content:
    """A copy with one to three changes in state, arrays or both."""
    content = copy.deepcopy(content)
    for _ in range(random.randint(1, 3)):
        if random.randint(0, 1) and content.arrays:
            change_array(content, others, random)
        else:
            change_state(content, others, random)
    return content


def change_state(content: Content, others: list[Content], random: Random) -> None:
    """One entry of the header, at any depth, replaced, deleted, doubled, scaled or taken from another file."""
    places = list(_places(content.state))
    if not places or random.randint(0, 30) == 0:
        content.kind = random.choice(others).kind
        return
    container, key = random.choice(places)
    value, act = container[key], random.randint(0, 9)
    if act <= 4:
        container[key] = copy.deepcopy(random.choice(VALUES))
    elif act == 5:
        del container[key]
    elif act == 6 and isinstance(value, list):
        container[key] = value * 2
    elif act == 7 and isinstance(value, int | float):
        container[key] = random.choice((value + 1, value - 1, -value, 2 * value, str(value), [value], bool(value)))
    elif act == 8 and isinstance(value, str):
        container[key] = random.choice((value[1:], value * 2, [value], value.swapcase(), value + "\n"))
    else:
        container[key] = copy.deepcopy(random.choice([c[k] for c, k in _places(random.choice(others).state)]))


def change_array(content: Content, others: list[Content], random: Random) -> None:
    """One array with another shape, type or entries; deleted; or taken from another file."""
    name = random.choice(sorted(content.arrays))
    array, act = content.arrays[name], random.randint(0, 8)
    if act == 0:
        del content.arrays[name]
    elif act == 1:
        with np.errstate(all="ignore"):
            content.arrays[name] = array.astype(random.choice(DTYPES))
    elif act == 2:
        content.arrays[name] = np.zeros(
            random.choice(((0,), (0, 2**40), (2**40, 0), (1,), (1, 1), (), (3, 0, 5))), array.dtype
        )
    elif act == 3 and array.ndim:
        axis, places = (
            random.randrange(array.ndim),
            random.choice(([], [0], [0, 0], list(range(min(array.shape[0], 99)))[:-1])),
        )
        content.arrays[name] = array.take([i for i in places if i < array.shape[axis]], axis=axis)
    elif act == 4:
        content.arrays[name] = random.choice(
            (array[None], array.ravel(), array.T, np.concatenate([np.atleast_1d(array)] * 2))
        )
    elif act == 5 and random.choice(others).arrays:
        content.arrays[name] = random.choice([a for other in others for a in other.arrays.values()])
    elif array.size:
        array = array.copy()
        places = slice(None) if act == 6 else random.randrange(array.size)
        with np.errstate(all="ignore"):
            array.reshape(-1)[places] = np.array(random.choice(FILLS)).astype(array.dtype)
        content.arrays[name] = array


def damaged(content: bytes, random: Random) -> bytes:
    """Bytes truncated, flipped, cut out, doubled, filled, or with another length of the header."""
    act, place = random.randint(0, 5), random.randrange(len(content))
    length = random.choice((1, 2, 8, 64, 1000))
    if act == 0:
        return content[:place]
    if act == 1:
        return content[:place] + bytes([content[place] ^ 1 << random.randint(0, 7)]) + content[place + 1 :]
    if act == 2:
        return content[:place] + content[place + length :]
    if act == 3:
        return content[: place + length] + content[place:]
    if act == 4:
        return (
            content[:place] + bytes([random.choice((0, 0x22, 0x5B, 0x7B, 0xFF))]) * length + content[place + length :]
        )
    claimed = random.choice((0, 1, 2**20, 2**31, 2**62, 2**63, 2**64 - 1, len(content)))
    return claimed.to_bytes(8, "little") + content[8:]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in nested lists and dictionaries."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


def write(path: Path, content: bytes) -> Path:
    """The path, after its file has been given this content."""
    path.write_bytes(content)
    return path
