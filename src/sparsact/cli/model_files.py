"""Models and model inputs in files: models with the encoding of their table, arrays, named tensors, or text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from sparsact.datasets import Encoding
    from sparsact.inference.batches import Batch
    from sparsact.network import SparselyActivatedNetwork


def load_model(path: Path, remedy: str) -> Any:
    """Whatever a model file holds."""
    import sparsact

    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; name a model in it.")
    if not path.is_file():
        raise FileNotFoundError(f"no model {str(path)!r}; {remedy}")
    return sparsact.load(path)


def read_network(path: Path) -> SparselyActivatedNetwork:
    """The network of a file, or of the model in it."""
    model = load_model(path, f"make one with network.save({path.name!r}) in Python.")
    network = network_in(model)
    if network is None:
        raise ValueError(f"{path.name} holds a {type(model).__name__}; a SparselyActivatedNetwork is needed.")
    return network


def network_in(model: Any) -> SparselyActivatedNetwork | None:
    """The network that a file held, itself or as what a learner has learned; None of other models."""
    from sparsact.network import SparselyActivatedNetwork

    network = getattr(model, "network_", model)
    return network if isinstance(network, SparselyActivatedNetwork) else None


def read_model(path: Path) -> tuple[Any, Encoding]:
    """A model that was learned from a table, and the table's encoding."""
    model = load_model(path, f"make one with sparsact fit TABLE --target COLUMN --out {path.name}")
    return model, encoding_of(model, path)


def encoding_of(model: Any, path: Path) -> Encoding:
    """How the table was encoded from which a model was learned."""
    from sparsact.datasets import Encoding

    text = getattr(model, "table_encoding_", None)
    if text is None:
        raise ValueError(
            f"{path.name} was not made by sparsact fit, so it knows no columns; load it in Python instead."
        )
    try:
        encoding = Encoding.from_json(text)
    except ValueError as error:
        raise ValueError(
            f"{path.name} does not tell how its table was encoded ({error}); fit and save it again."
        ) from error
    if len(encoding.feature_names) != model.n_features_in_:
        raise ValueError(
            f"{path.name} learned {model.n_features_in_} columns, and its table has {len(encoding.feature_names)}; "
            "fit and save it again."
        )
    return encoding


INPUTS_HELP = (
    "An array in .npy (integers are tokens), or .safetensors whose tensors are keyword arguments. The first axis "
    "counts inputs."
)
TEXT_LENGTH = 512


def batches_given(
    name: str, model: nn.Module, inputs: Path | None, text: Path | None, batch_size: int
) -> Iterator[Batch]:
    """Batches of the one of two files that is given; ``name`` is the model's."""
    if inputs is not None and text is None:
        return batches_in(inputs, model, batch_size)
    if text is not None and inputs is None:
        return batches_of_text(text, Path(name), batch_size)
    raise ValueError("the model must be shown something: pass either --inputs FILE or --text FILE.")


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

    from sparsact.cli.torch_model import import_transformers

    if not any(folder.glob("tokenizer*")) and not any(folder.glob("vocab*")):
        raise ValueError(f"--text needs the folder of a model with its tokenizer; {str(folder)!r} has no tokenizer.")
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
