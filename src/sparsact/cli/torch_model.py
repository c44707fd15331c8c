"""Models of PyTorch that commands work on (made by a function, or a folder of Hugging Face), and their inputs."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sparsact.extras import missing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from sparsact.inference.batches import Batch

TEXT_LENGTH: Final = 512


def load_model(name: str, arguments: str | None = None, weights: Path | None = None) -> nn.Module:
    """The model that a command's words name: ``package.module:callable`` with keyword arguments in JSON, or a folder.

    The module is looked for in the current folder too; ``weights`` is a safetensors file with a state dict.
    """
    if Path(name).is_dir():
        if arguments is not None:
            raise ValueError("--arguments apply to a callable; a folder's config.json defines its model.")
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
    except json.JSONDecodeError:
        told = None
    if not isinstance(told, dict):
        raise ValueError(f"--arguments must be a JSON object such as '{{\"width\": 64}}', got {arguments}.")
    return told


def _from_callable(name: str, arguments: dict[str, Any]) -> nn.Module:
    from torch import nn

    module_name, _, attribute = name.partition(":")
    if not (module_name and attribute):
        raise ValueError(f"{name!r} is neither a folder nor package.module:callable; pass one of the two.")
    if module_name.endswith(".py"):
        raise ValueError(f"{name!r} names a file; leave out .py: {module_name.removesuffix('.py')}:{attribute}.")
    try:
        with _current_folder_importable():
            make: Any = importlib.import_module(module_name)
            for part in attribute.split("."):
                make = getattr(make, part)
            model = make(**arguments)
    except Exception as error:  # whatever the user's code raises
        raise ValueError(f"{name} failed to make a model: {type(error).__name__}: {error}") from error
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
    """Run a block on a number of torch threads, and restore the former number afterwards."""
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
        raise ValueError(missing("a folder of Hugging Face", "transformers")) from error
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


@contextmanager
def errors_of_model() -> Iterator[None]:
    """Turn an error of the model's own code into a ValueError that says so."""
    try:
        yield
    except (RuntimeError, TypeError, IndexError) as error:
        parts = f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])  # by inference.batches.call
        told = " ".join(f"{part.rstrip('.')}." for part in parts)
        raise ValueError(f"the model cannot take these inputs: {told}") from error


# ---- inputs ----


def batches_given(
    name: str, model: nn.Module, inputs: Path | None, text: Path | None, batch_size: int
) -> Iterator[Batch]:
    """Batches of the one of two files that is given; ``name`` is the model's."""
    if inputs is not None and text is None:
        return batches_in(inputs, model, batch_size)
    if text is not None and inputs is None:
        return batches_of_text(text, Path(name), batch_size)
    raise ValueError("the model needs inputs: pass either --inputs FILE or --text FILE.")


def batches_in(path: Path, model: nn.Module, batch_size: int) -> Iterator[Batch]:
    """Batches of a file, cut along the first axis; numbers with a point become what the model's weights are."""
    if path.suffix.lower() == ".npy":
        yield from _of_array(_array(path), model, batch_size)
    elif path.suffix.lower() == ".safetensors":
        yield from _of_tensors(path, model, batch_size)
    else:
        raise ValueError(f"{str(path)!r} must end in .npy or .safetensors.")


def batches_of_text(path: Path, folder: Path, batch_size: int) -> Iterator[Batch]:
    """Tokens of a text by the tokenizer in a folder, in sequences of ``TEXT_LENGTH``; what is over is left out."""
    import torch

    if not any(folder.glob("tokenizer*")) and not any(folder.glob("vocab*")):
        raise ValueError(f"{str(folder)!r} has no tokenizer, and --text needs one: pass token ids by --inputs ids.npy.")
    transformers = import_transformers()
    text = path.read_text(encoding="utf-8")
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        tokens = torch.tensor(tokenizer(text)["input_ids"], dtype=torch.int64)
    except Exception as error:  # of many kinds
        raise ValueError(f"{str(folder)!r} has no tokenizer for {str(path)!r}: {error}") from error
    if not len(tokens):
        raise ValueError(f"{str(path)!r} holds no text.")
    length = min(TEXT_LENGTH, len(tokens))
    whole = len(tokens) // length
    yield from torch.split(tokens[: whole * length].reshape(whole, length), batch_size)


def _array(path: Path) -> NDArray[Any]:
    import numpy as np

    try:
        with np.errstate(over="raise"):  # in the product of the lengths
            array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, TypeError, ArithmeticError, MemoryError) as error:
        raise ValueError(f"{str(path)!r} is not an array of numbers as numpy.save writes it: {error}") from error
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{str(path)!r} must hold integers or floats, got {array.dtype}.")
    _check_rows(path, array.shape)
    return array


def _of_array(array: NDArray[np.generic], model: nn.Module, batch_size: int) -> Iterator[Batch]:
    import numpy as np
    import torch

    kind = {"f": np.float64 if array.dtype.itemsize > 4 else np.float32, "b": np.bool_}.get(array.dtype.kind, np.int64)
    for start in range(0, len(array), batch_size):
        part = torch.from_numpy(np.array(array[start : start + batch_size], dtype=kind))
        yield _as_weights(part, model)


def _of_tensors(path: Path, model: nn.Module, batch_size: int) -> Iterator[Batch]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        named = load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{str(path)!r} is not a file of safetensors: {error}.") from error
    lengths = {tuple(tensor.shape[:1]) for tensor in named.values()}
    if len(lengths) != 1 or () in lengths:
        shapes = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in named.items())
        raise ValueError(
            f"the tensors in {str(path)!r} must share their first axis, of inputs; got {shapes or 'none'}."
        )
    (shape,) = lengths
    _check_rows(path, shape)
    for start in range(0, shape[0], batch_size):
        yield {name: _as_weights(tensor[start : start + batch_size], model) for name, tensor in named.items()}


def _check_rows(path: Path, shape: tuple[int, ...]) -> None:
    if not shape or not shape[0]:
        raise ValueError(f"{str(path)!r} must hold at least one input along its first axis, got the shape {shape}.")


def _as_weights(tensor: Tensor, model: nn.Module) -> Tensor:
    """Floats in the type of the model's first floating parameter; other numbers as they are."""
    weights = next((parameter for parameter in model.parameters() if parameter.is_floating_point()), None)
    return tensor.to(weights.dtype) if weights is not None and tensor.is_floating_point() else tensor
