"""A task: everything that one result depends on. Its hash is its name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b
from typing import Any

Parameter = bool | int | float | str | None
HASH_BYTES = 8


class Scale(StrEnum):
    """How large the experiments are run."""

    SMOKE = "smoke"  # seconds in all: does every experiment run from end to end?
    QUICK = "quick"  # minutes in all: every figure, at small size
    FULL = "full"  # hours in all: the sizes of the papers


@dataclass(frozen=True)
class Task:
    """One measurement of an experiment.

    Attributes
    ----------
    experiment : str
        Name of the experiment.
    version : int
        Version of its definition: raised whenever the same parameters would give another result.
    parameters : mapping of str to bool, int, float, str or None
        Target, model, optimiser, seed, sizes: the keyword arguments of the experiment's ``measure``.
    """

    experiment: str
    version: int
    parameters: Mapping[str, Parameter] = field(hash=False)

    def __post_init__(self) -> None:
        for name, value in self.parameters.items():
            if not isinstance(value, bool | int | float | str | None):
                raise TypeError(
                    f"parameter {name!r} of a task of {self.experiment} is a {type(value).__name__}; "
                    "it must be a plain number, text, bool or None, so that its hash is the same everywhere."
                )

    @cached_property
    def name(self) -> str:
        """Hash of the definition: 16 hexadecimal digits, the same on every machine."""
        definition = json.dumps(self.definition, sort_keys=True, allow_nan=False, separators=(",", ":"))
        return blake2b(definition.encode(), digest_size=HASH_BYTES).hexdigest()

    @property
    def definition(self) -> dict[str, Any]:
        """What the hash is taken of."""
        return {"experiment": self.experiment, "version": self.version, "parameters": dict(self.parameters)}
