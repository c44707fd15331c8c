"""Tables of numbers, texts and images that lie in the data folder."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow.csv
from numpy.typing import NDArray

from sparsact.datasets.landscapes import data_file, data_folder

TABLES: Final = (
    *("kin40k", "elevators", "pol", "airfoil", "parkinsons", "bike"),
    *("protein", "pumadyn32nm", "sml", "gas", "keggdirected", "concrete"),
)


@dataclass(frozen=True, eq=False)
class TabularData:
    """A table of numbers: X (m, n) and y (m,) float64, as in the file; ``test_masks`` (10, m) bool, a fold a row.

    Columns are not scaled: a learner's own affair, with the training rows alone.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    test_masks: NDArray[np.bool_]
    source: str
    licence: str


def load_tabular(name: str, folder: str | Path | None = None) -> TabularData:
    """One of twelve tables of measurements and simulations: ``"kin40k"``, ``"elevators"``, ``"pol"``, ``"protein"`` ...

    Parameters
    ----------
    name : str
    folder : path, optional
        Folder with ``tabular/<name>.data.csv.gz`` and ``tabular/<name>.test_mask.csv.gz``; default
        :func:`~sparsact.datasets.data_folder`.

    Returns
    -------
    data : TabularData
    """
    if name not in TABLES:
        raise ValueError(f"name={name!r} is unknown; choose one of {', '.join(TABLES)}.")
    rows = _numbers(data_file(f"tabular/{name}.data.csv.gz", folder))
    masks = _numbers(data_file(f"tabular/{name}.test_mask.csv.gz", folder)).T
    if masks.shape[1] != len(rows) or not np.isin(masks, (0, 1)).all():
        raise ValueError(f"the test masks of {name} do not belong to its {len(rows)} rows; fetch both files anew.")
    return TabularData(rows[:, :-1].copy(), rows[:, -1].copy(), masks.astype(bool), "UCI / Delve", "MIT (collection)")


def _numbers(path: Path) -> NDArray[np.float64]:
    table = pyarrow.csv.read_csv(path, read_options=pyarrow.csv.ReadOptions(autogenerate_column_names=True))
    return np.column_stack([column.to_numpy() for column in table.columns]).astype(np.float64)


TINYSHAKESPEARE: Final = "text/tinyshakespeare.txt"


@dataclass(frozen=True)
class WrittenText:
    """A text, and where it comes from."""

    text: str
    source: str
    licence: str


def load_tinyshakespeare(folder: str | Path | None = None) -> WrittenText:
    """A million characters of Shakespeare's plays, of 65 kinds.

    Parameters
    ----------
    folder : path, optional
        Folder that holds ``text/tinyshakespeare.txt``; default :func:`~sparsact.datasets.data_folder`.

    Returns
    -------
    text : WrittenText
        The characters, and where they come from.
    """
    path = data_file(TINYSHAKESPEARE, folder)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error}); fetch it again.") from error
    if not text:
        raise ValueError(f"{path} is empty; fetch it again.")
    return WrittenText(text, "Karpathy, char-rnn (2015): tinyshakespeare", "public domain")


CLASSES: Final = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SHAPE: Final = (3, 32, 32)
PIXELS: Final = 3 * 32 * 32
MOST_BYTES: Final = 11_000 * (PIXELS + 8)  # of a compressed file: 10,000 images and labels, and some room
AT_ONCE: Final = 1000  # images decoded together: a row of them stays in the cache
TRAIN: Final = tuple(f"data_batch_{i}" for i in range(1, 6))
TEST: Final = "test_batch"

# What readers raise at bytes that are not what they should be.
DAMAGED: Final = (
    *(ValueError, TypeError, LookupError, AttributeError, OverflowError, EOFError),
    *(MemoryError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error),
)

Batch = tuple[NDArray[np.uint8], NDArray[np.uint8]]


@dataclass(frozen=True, eq=False)
class Images:
    """Labelled images for training and for testing, in the set's own order.

    Images are uint8 of shape (m, 3, 32, 32): red, green and blue, rows from the top, columns from the left. Labels are
    places in ``classes``.
    """

    train_images: NDArray[np.uint8]
    train_labels: NDArray[np.uint8]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.uint8]
    classes: tuple[str, ...]
    source: str
    licence: str


def load_cifar10(folder: str | Path | None = None, *, n_train: int | None = None, n_test: int | None = None) -> Images:
    """CIFAR-10, 50,000 images for training and 10,000 for testing.

    Parameters
    ----------
    folder : path, optional
        Folder with the six files ``data_batch_1`` to ``data_batch_5`` and ``test_batch``, or with these in a folder
        ``cifar10`` or ``cifar-10-batches-bin``; default :func:`~sparsact.datasets.data_folder`. The files are the
        original binary version (``.bin``) or this project's compressed one (``.npz``).
    n_train, n_test : int, optional
        Number of images, the first of each part; files that are not needed may be missing. None for all.

    Returns
    -------
    data : Images

    Notes
    -----
    The set is also given out as pickles, for Python. These are not read: a pickle can hold a program.
    """
    home = data_folder() if folder is None else Path(folder).expanduser()
    place, ending = _found(home)
    return Images(
        *_first(n_train, [place / (name + ending) for name in TRAIN]),
        *_first(n_test, [place / (TEST + ending)]),
        CLASSES,
        "Krizhevsky, Learning Multiple Layers of Features from Tiny Images (2009)",
        "none stated",
    )


def cifar10_missing(folder: str | Path | None = None) -> str | None:
    """What keeps :func:`load_cifar10` from finding its files, with the remedy; None where they are all there."""
    try:
        _found(data_folder() if folder is None else Path(folder).expanduser())
    except FileNotFoundError as error:
        return str(error)
    return None


def _found(home: Path) -> tuple[Path, str]:
    """Folder and ending of six files in one form."""
    places = [home / name for name in ("cifar10", "cifar-10-batches-bin", ".")]
    for place, ending in product(places, _READERS):
        if all((place / (name + ending)).is_file() for name in (*TRAIN, TEST)):
            return place, ending
    raise FileNotFoundError(
        f"no complete CIFAR-10 in {home}: need data_batch_1 to data_batch_5 and test_batch, as .bin or .npz (pickles "
        "are not read), there or in cifar10/ or cifar-10-batches-bin/; set SPARSACT_DATA to the folder that "
        "holds it, or unpack https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz there."
    )


def _first(wanted: int | None, paths: list[Path]) -> Batch:
    """Images and labels of files, one after the other, until there are as many as are wanted."""
    batches: list[Batch] = []
    for path in paths:
        batches.append(_batch(path))
        if wanted is not None and sum(len(labels) for _, labels in batches) >= wanted:
            break
    images, labels = (np.concatenate(parts)[:wanted] for parts in zip(*batches, strict=True))
    if wanted is not None and not 0 < wanted <= len(labels):
        raise ValueError(f"{wanted} images are wanted; {paths[0].name} and so on hold 1 to {len(labels)}.")
    return images, labels


def _batch(path: Path) -> Batch:
    """Images and labels of one file."""
    try:
        images, labels = _READERS[path.suffix](path)
    except DAMAGED as error:
        raise ValueError(f"{path} is not a batch of CIFAR-10 ({error}); fetch it again.") from error
    if not len(labels) or images.shape != (len(labels), *SHAPE) or labels.max() >= len(CLASSES):
        raise ValueError(
            f"{path} holds images of shape {images.shape} and {len(labels)} labels; a batch of CIFAR-10 has as many "
            f"images of shape {SHAPE} with labels 0 to {len(CLASSES) - 1}: fetch it again."
        )
    return images, labels


def _read_bin(path: Path) -> Batch:
    records = np.frombuffer(path.read_bytes(), np.uint8).reshape(-1, 1 + PIXELS)
    return records[:, 1:].reshape(-1, *SHAPE).copy(), records[:, 0].copy()


def _read_npz(path: Path) -> Batch:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        unpacked = sum(member.file_size for member in archive.zip.infolist())
        if unpacked > MOST_BYTES:
            raise ValueError(f"{unpacked} bytes unpacked, where a batch has {MOST_BYTES} at most")
        return decoded(archive["residual"]), archive["labels"].astype(np.uint8)


_READERS: Final[dict[str, Callable[[Path], Batch]]] = {".bin": _read_bin, ".npz": _read_npz}


def decoded(residual: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Images (m, 3, height, width) from differences to the median edge predictor, red's and blue's also to green's.

    All modulo 256. A pixel is predicted by the one to its left in the first row, by the one above it in the first
    column, and elsewhere by the median of left, above, and left + above - upper left, as in [1]_.

    References
    ----------
    .. [1] M. Weinberger, G. Seroussi, G. Sapiro, "The LOCO-I Lossless Image Compression Algorithm", 2000, equation (1).
    """
    if residual.dtype != np.uint8 or residual.ndim != 4:
        raise ValueError(f"need residuals (m, 3, height, width) uint8; got {residual.shape} {residual.dtype}")
    images = np.empty_like(residual)
    for start in range(0, len(residual), AT_ONCE):
        images[start : start + AT_ONCE] = _undone(residual[start : start + AT_ONCE])
    return images


def _undone(residual: NDArray[np.uint8]) -> NDArray[np.int16]:
    error = np.ascontiguousarray(residual.transpose(2, 3, 1, 0), dtype=np.int16)  # a step works on whole rows of images
    error[:, :, (0, 2)] += error[:, :, 1:2]
    pixels = np.empty_like(error)
    pixels[0] = error[0].cumsum(axis=0) & 255
    pixels[:, 0] = error[:, 0].cumsum(axis=0) & 255
    height, width = error.shape[:2]
    for i, j in product(range(1, height), range(1, width)):
        left, above, corner = pixels[i, j - 1], pixels[i - 1, j], pixels[i - 1, j - 1]
        median = np.clip(left + above - corner, np.minimum(left, above), np.maximum(left, above))
        pixels[i, j] = (error[i, j] + median) & 255
    return pixels.transpose(3, 2, 0, 1)
