"""Models of PyTorch that a command works on: made by a function of the user's, or a folder of Hugging Face."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

MODEL_HELP = (
    "package.module:callable, which returns a torch.nn.Module (importing the module runs its code), or a folder of a "
    "Hugging Face model: config.json and *.safetensors."
)


def load_model(name: str, arguments: str | None = None, weights: Path | None = None) -> nn.Module:
    """The model that a command's words name: ``package.module:callable`` with keyword arguments in JSON, or a folder.

    The module is looked for in the current folder too; ``weights`` is a safetensors file with a state dict.
    """
    if Path(name).is_dir():
        if arguments is not None:
            raise ValueError("--arguments are for a callable; a folder's config.json says how its model is made.")
        model = _from_folder(Path(name))
    else:
        model = _from_callable(name, _object_in(arguments))
    if weights is not None:
        _load_weights(model, weights)
    return model


def _object_in(arguments: str | None) -> dict[str, Any]:
    if arguments is None:
        return {}
    try:
        told = json.loads(arguments)
    except json.JSONDecodeError as error:
        raise ValueError(f"--arguments must be a JSON object such as '{{\"width\": 64}}'; {error}.") from error
    if not isinstance(told, dict):
        raise ValueError(f"--arguments must be a JSON object such as '{{\"width\": 64}}', got {arguments}.")
    return told


def _from_callable(name: str, arguments: dict[str, Any]) -> nn.Module:
    from torch import nn

    module_name, _, attribute = name.partition(":")
    if not (module_name and attribute):
        raise ValueError(f"{name!r} is neither a folder nor package.module:callable; pass one of the two.")
    try:
        with _current_folder_importable():
            make: Any = importlib.import_module(module_name)
            for part in attribute.split("."):
                make = getattr(make, part)
            model = make(**arguments)
    except Exception as error:  # whatever the user's code raises
        raise ValueError(f"{name} makes no model: {type(error).__name__}: {error}") from error
    if not isinstance(model, nn.Module):
        raise ValueError(f"{name} must return a torch.nn.Module, got {type(model).__name__}.")
    return model


@contextmanager
def _current_folder_importable() -> Iterator[None]:
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _from_folder(folder: Path) -> nn.Module:
    """Safetensors alone, nothing from a network, no code from the folder."""
    if not (folder / "config.json").is_file() or not list(folder.glob("*.safetensors")):
        raise ValueError(f"{str(folder)!r} must hold config.json and *.safetensors, as save_pretrained writes them.")
    transformers = import_transformers()
    try:
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        kind: Any = getattr(transformers, (config.architectures or [""])[0], None)
        if not (isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel)):
            kind = transformers.AutoModel
        model: nn.Module = kind.from_pretrained(
            folder, config=config, local_files_only=True, use_safetensors=True, torch_dtype="auto"
        )
    except Exception as error:  # of many kinds, and none is a fault of ours
        raise ValueError(f"{str(folder)!r} holds no model to load: {type(error).__name__}: {error}") from error
    return model


@contextmanager
def torch_threads(wanted: int | None) -> Iterator[None]:
    """So many threads of torch, and afterwards as many as before."""
    import torch

    before = torch.get_num_threads()
    if wanted is not None:
        torch.set_num_threads(wanted)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def import_transformers() -> Any:
    """The library of Hugging Face, quiet."""
    try:
        transformers = importlib.import_module("transformers")
    except ImportError as error:
        raise ValueError('a folder of Hugging Face needs transformers: pip install "sparsact[hf]".') from error
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


def _load_weights(model: nn.Module, path: Path) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import load_model as load_weights

    try:
        load_weights(model, path, strict=True)
    except SafetensorError as error:
        raise ValueError(f"{str(path)!r} is not a file of safetensors: {error}.") from error
    except RuntimeError as error:
        raise ValueError(f"the weights in {str(path)!r} are not this model's: {error}") from error
