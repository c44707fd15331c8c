"""A model on disk together with the encoding of the table that it was learned from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparsact.datasets import Encoding
    from sparsact.network import SparselyActivatedNetwork


def load_model(path: Path, remedy: str) -> Any:
    """Whatever a model file holds.

    Raises
    ------
    FileNotFoundError
        If there is no such file; tells the remedy.
    ValueError
        If the file is not a model.
    """
    import sparsact

    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; name a model in it.")
    if not path.is_file():
        raise FileNotFoundError(f"no model {str(path)!r}; {remedy}")
    return sparsact.load(path)


def read_network(path: Path) -> SparselyActivatedNetwork:
    """The network of a file, or of the model in it.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it holds something else.
    """
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
    """A model that was learned from a table, and the table's encoding.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not a model, or holds one that was not learned from a table.
    """
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
