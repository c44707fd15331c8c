"""Real functions of bits that have been measured: protein and antibody landscapes, configurable software, circuits.

:func:`load_poelwijk` reads a file of the package. The others lie in the folder that the environment variable
``SPARSACT_DATA`` names, by default ``sparsact`` in the user's cache folder.
"""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from sparsact.datasets.table_stream import open_table
from sparsact.notebook import to_pandas

SOFTWARE: Final = ("Apache", "BDBC", "BDBJ", "LLVM", "x264")


@dataclass(frozen=True)
class Landscape:
    """Measured values of a function of bits.

    It exports an Arrow stream, so :func:`sparsact.fit_table`, ``pyarrow.table`` and ``polars.DataFrame`` take it.

    Attributes
    ----------
    X : ndarray of shape (m, n), uint8
        Bits.
    y : ndarray of shape (m,) or (m, T), float64
        Values.
    names : tuple of str
        A name for each bit.
    target_names : tuple of str
        A name for each column of values.
    source, licence : str
        Whom to cite, and the terms.
    """

    X: NDArray[np.uint8]
    y: NDArray[np.float64]
    names: tuple[str, ...]
    target_names: tuple[str, ...]
    source: str
    licence: str

    def to_frame(self) -> Any:
        """Columns of bits, then of values, as a ``pandas.DataFrame``; needs pandas.

        >>> load_poelwijk().to_frame().shape
        (8192, 14)
        """
        names = [*self.names, *self.target_names]
        return to_pandas(dict(zip(names, self._columns(), strict=True)), names)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any:
        """Columns of bits, then of values."""
        return pa.table(self._columns(), [*self.names, *self.target_names]).__arrow_c_stream__(requested_schema)

    def _columns(self) -> list[NDArray[Any]]:
        return [*self.X.T, *np.atleast_2d(self.y.T)]


def data_folder() -> Path:
    """Folder of the data: ``$SPARSACT_DATA``, else ``sparsact`` in the user's cache.

    Returns
    -------
    folder : Path
        It need not exist.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("SPARSACT_DATA") or cache / "sparsact")


def data_file(name: str, folder: str | Path | None = None) -> Path:
    """Path of a data file in a folder, by default :func:`data_folder`; a FileNotFoundError if it is not there."""
    home = data_folder() if folder is None else Path(folder)
    path = home / name
    if not path.is_file():
        raise FileNotFoundError(f"no {name} in {home}; set SPARSACT_DATA to the folder that holds it.")
    return path


def load_poelwijk() -> Landscape:
    """Brightness of all 2**13 genotypes between two fluorescent proteins, mTagBFP2 (all bits 0) and mKate2 (all 1).

    A bit is one of the 13 mutations between them, named by both amino acids and its place among the 13: ``N11D``. The
    brightness combines measurements in two colours. The package holds the table, under CC BY 4.0 [1]_.

    Returns
    -------
    landscape : Landscape
        8,192 rows of 13 bits; the target is ``brightness``.

    References
    ----------
    .. [1] F. J. Poelwijk, M. Socolich and R. Ranganathan, "Learning the pattern of epistasis linking genotype and
       phenotype in a protein", Nature Communications 10:4213, 2019.

    Examples
    --------
    >>> landscape = load_poelwijk()
    >>> landscape.X.shape, landscape.names[10], landscape.y[:2].round(2).tolist()
    ((8192, 13), 'N11D', [1.57, 1.54])
    """
    path = Path(__file__).with_name("poelwijk2019.csv.gz")
    with gzip.open(path, "rt", encoding="ascii") as file:
        *names, target = file.readline().strip().split(",")
        rows = np.loadtxt(file, delimiter=",")
    source = "Poelwijk, Socolich and Ranganathan, Nature Communications 10:4213 (2019)"
    return Landscape(rows[:, :-1].astype(np.uint8), rows[:, -1], tuple(names), (target,), source, "CC BY 4.0")


def moulana_s309() -> Landscape:
    """Affinity, -log10 Kd, of the antibody S309 to all 2**15 genotypes between two SARS-CoV-2 variants.

    Returns
    -------
    landscape : Landscape
        32,768 rows of 15 bits.
    """
    return _landscape(
        "landscapes/moulana2023_s309_2e15.csv.gz", "S309", "Moulana et al., eLife 12:e83442 (2023)", "CC BY 4.0"
    )


def phillips_cr6261() -> Landscape:
    """Affinities of the antibody CR6261 to two antigens, ``y`` of shape (m, 2), for the genotypes measured on both.

    The 2**11 table is incomplete, and values are censored at 7.0 (no binding seen).

    Returns
    -------
    landscape : Landscape
        Rows of 11 bits with two targets.
    """
    path = data_file("landscapes/phillips2021_cr6261_2e11.csv.gz")
    table = pyarrow.csv.read_csv(
        path, convert_options=pyarrow.csv.ConvertOptions(column_types={"genotype": pyarrow.string()})
    )
    y = np.column_stack([table["h1"].to_numpy(), table["h9"].to_numpy()]).astype(np.float64)
    measured = np.isfinite(y).all(axis=1)
    X = np.array([list(genotype) for genotype in table["genotype"].to_pylist()]).astype(np.uint8)
    names = tuple(f"genotype[{i + 1}]" for i in range(X.shape[1]))
    source = "Phillips et al., eLife 10:e71393 (2021)"
    return Landscape(X[measured], y[measured], names, ("h1", "h9"), source, "CC BY 4.0")


def config_performance(system: str) -> Landscape:
    """Measured cost of configurable software: ``"Apache"``, ``"BDBC"``, ``"BDBJ"``, ``"LLVM"`` or ``"x264"``.

    LLVM is a complete cube of 10 switches; the others obey constraints between switches.

    Parameters
    ----------
    system : str
        One of the five.

    Returns
    -------
    landscape : Landscape
        A row a configuration.
    """
    if system not in SOFTWARE:
        raise ValueError(f"system={system!r} is unknown; choose one of {', '.join(SOFTWARE)}.")
    source = "Siegmund et al. (SPLConqueror); Ha and Zhang, ICSE 2019"
    return _landscape(f"config_performance/{system}.csv.gz", "PERF", source, "none stated", every_column=True)


def iwls2020(example: int, part: str = "train") -> Landscape:
    """A Boolean function of the IWLS 2020 contest: ``example`` 0 to 79, ``part`` ``"train"`` or ``"valid"``.

    Parameters
    ----------
    example : int
        Its number.
    part : {"train", "valid"}
        Which rows.

    Returns
    -------
    landscape : Landscape
        Rows of bits, with signs for targets.
    """
    if not 0 <= example < 80 or part not in ("train", "valid"):
        raise ValueError(f"example={example}, part={part!r}: need 0 <= example < 80 and part 'train' or 'valid'.")
    with np.load(data_file("iwls2020/iwls2020.npz")) as archive:
        key = f"ex{example:02d}"
        n, m = int(archive[f"{key}_n"]), int(archive[f"{key}_{part}_m"])
        X = np.unpackbits(archive[f"{key}_{part}_X"], axis=1, count=n)
        y = np.unpackbits(archive[f"{key}_{part}_y"], count=m).astype(np.float64)
    return Landscape(X, y, tuple(f"x{i}" for i in range(n)), ("y",), "IWLS 2020 programming contest", "none stated")


def _landscape(file: str, target: str, source: str, licence: str, *, every_column: bool = False) -> Landscape:
    table = open_table(data_file(file), target, None if every_column else ["genotype"])
    X, y = zip(*table.batches(), strict=True)
    return Landscape(np.concatenate(X), np.concatenate(y), table.feature_names, (target,), source, licence)
