"""Checkpoints of a training: everything that the steps to come depend on, as tensors and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sparsact.saving import modelfile

KIND, FILE = "training", "checkpoint.safetensors"


@dataclass(frozen=True, eq=False)
class TrainingState:
    """What moves while a model is trained: its parameters, the optimiser's, and the generator of batches."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    batches: torch.Generator
    device: torch.device

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything as arrays, by name."""
        found = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        for i, entries in self.optimizer.state_dict()["state"].items():
            found |= {f"optimizer.{i}.{name}": value for name, value in entries.items()}
        return {name: value.detach().cpu().numpy() for name, value in (found | self._generators()).items()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take everything from arrays."""
        tensors = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
        model = self.model.state_dict()
        self.model.load_state_dict({name: tensors[f"model.{name}"].reshape(old.shape) for name, old in model.items()})
        whole = self.optimizer.state_dict()
        parameters = [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            if name.startswith("optimizer."):
                _, place, entry = name.split(".")
                shape = () if entry == "step" else parameters[int(place)].shape
                state.setdefault(int(place), {})[entry] = tensor.reshape(shape)
        self.optimizer.load_state_dict({**whole, "state": state})
        self.batches.set_state(tensors["generator.batches"])
        torch.set_rng_state(tensors["generator.model"])
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(tensors["generator.cuda"], self.device)

    def _generators(self) -> dict[str, Tensor]:
        found = {"generator.batches": self.batches.get_state(), "generator.model": torch.get_rng_state()}
        if self.device.type == "cuda":
            found["generator.cuda"] = torch.cuda.get_rng_state(self.device)
        return found


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Torch's own generator, which dropout draws from, set by a seed for a while and then as it was."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def write(folder: str | Path, settings: Mapping[str, Any], rows: list[Any], training: TrainingState) -> None:
    """Write the checkpoint of a folder; the one before is replaced whole, or on any failure not at all."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    state = {"settings": dict(settings), "rows": [asdict(row) for row in rows]}
    modelfile.write(Path(folder) / FILE, KIND, state, training.arrays())


def read(folder: str | Path, settings: Mapping[str, Any], training: TrainingState) -> list[dict[str, Any]]:
    """Restore a training from the checkpoint of a folder; rows of its evaluations, none without a checkpoint."""
    path = Path(folder) / FILE
    if not path.exists():
        return []
    kind, state, arrays = modelfile.read(path)
    if kind != KIND:
        raise ValueError(f"{path} holds a {kind!r}, not a checkpoint of a training; choose another folder.")
    trained = state.get("settings")
    if not isinstance(trained, dict) or not isinstance(state.get("rows"), list):
        raise modelfile.ModelFileError(f"{path} holds no settings or no rows; pass resume=False to start over.")
    for name, wanted in settings.items():
        if (found := trained.get(name)) != wanted:
            raise ValueError(
                f"the checkpoint in {folder} was trained with {name} = {found!r}, wanted {wanted!r}: "
                "choose another folder, or pass resume=False to begin anew."
            )
    try:
        training.restore(arrays)
    except (LookupError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        what = f"{path} lacks something that this training needs ({error})"
        raise modelfile.ModelFileError(f"{what}; pass resume=False to start over.") from error
    rows: list[dict[str, Any]] = state["rows"]
    return rows


def fingerprint(*tensors: Tensor) -> int:
    """A number that distinguishes tensors of integers."""
    digest = blake2b(digest_size=6)
    for tensor in tensors:
        digest.update(np.ascontiguousarray(tensor.cpu().numpy()).data)
    return int.from_bytes(digest.digest(), "big")
