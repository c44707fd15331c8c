"""How columns of a table become bits or numbers: the kinds of columns, and the encoding that is stored with a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparsact.datasets.cell_values import as_number, at_limits, codes, exact, logarithms, numbers_and_rest, too_long
from sparsact.datasets.sites import BitString, LetterString, Mutations, combined, letter_bits, places_in
from sparsact.datasets.table_files import PlacedRows
from sparsact.datasets.table_summary import TableDesign

CLASS_TYPES: Final = (
    "bool",
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *("float32", "float64"),
)
LONGEST_BIT_STRING: Final = 2**20
MISSING: Final = "(missing)"  # the category of rows that lack one, where a model takes them
Points = NDArray[Any]  # bits (m, n) as uint8, or float64 where some column is a real number


@dataclass(frozen=True)
class _OneFeature:
    """A column that gives one feature, of its own name."""

    name: str

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that the column gives."""
        return (self.name,)


@dataclass(frozen=True)
class Bit(_OneFeature):
    """A column of two values: bit 0 stands for ``values[0]``, bit 1 for ``values[1]``. A constant has one value."""

    kind: ClassVar[str] = "bit"
    values: tuple[str, ...]

    def encode(self, array: pa.Array, first_row: int) -> NDArray[np.uint8]:
        """Bits of a piece of the column, shape (m, 1)."""
        return codes(array, self.values, self.name, first_row)[:, None].astype(np.uint8)


@dataclass(frozen=True)
class MissingBit(Bit):
    """Where a column of numbers, which is another feature, lacks a value."""

    kind: ClassVar[str] = "missing bit"

    @property
    def features(self) -> tuple[str, ...]:
        """Name of the bit."""
        return (f"{self.name} is missing",)

    def encode(self, array: pa.Array, first_row: int) -> NDArray[np.uint8]:
        """Bits of a piece of the column, shape (m, 1)."""
        return np.asarray(array.is_null(nan_is_null=True))[:, None].astype(np.uint8)


@dataclass(frozen=True)
class OneHot:
    """A column of a few categories: one bit a category, 1 where the row has it."""

    kind: ClassVar[str] = "one-hot"
    name: str
    values: tuple[str, ...]

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the bits that the column gives."""
        return tuple(f"{self.name}={value}" for value in self.values)

    def encode(self, array: pa.Array, first_row: int) -> NDArray[np.uint8]:
        """Bits of a piece of the column, shape (m, categories)."""
        if MISSING in self.values:
            array = pc.fill_null(pc.if_else(array.is_null(nan_is_null=True), None, array.cast(pa.string())), MISSING)
        which = codes(array, self.values, self.name, first_row)
        return np.equal(which[:, None], np.arange(len(self.values))).astype(np.uint8)


@dataclass(frozen=True)
class Real(_OneFeature):
    """A column of numbers: a target, or a feature, which is read as ``(x - centre) / scale``.

    Both are frozen with the encoding, so that a new table is scaled as the one that was learned from. ``fill`` stands
    for a missing value; None refuses it.
    """

    kind: ClassVar[str] = "real"
    centre: float = 0.0
    scale: float = 1.0
    fill: float | None = None

    def encode(self, array: pa.Array, first_row: int) -> NDArray[np.float64]:
        """Scaled numbers of a piece of the column, shape (m, 1)."""
        missing = array.is_null(nan_is_null=True)
        if self.fill is None or not pc.any(missing).as_py():
            return self._scaled(array, first_row)
        filled = np.full((len(array), 1), (self.fill - self.centre) / self.scale)
        filled[~np.asarray(missing)] = self._scaled(array.filter(pc.invert(missing)), first_row)
        return filled

    def _scaled(self, array: pa.Array, first_row: int) -> NDArray[np.float64]:
        values, rest = numbers_and_rest(array, self.name, first_row)
        if rest is None:
            with np.errstate(over="ignore"):
                apart = values - self.centre
            if not np.isfinite(apart).all():  # numbers near 1e308, whose differences are twice as large
                return ((values / 2 - self.centre / 2) / (self.scale / 2))[:, None]
            return (apart / self.scale)[:, None]
        if (self.centre, self.scale) == (0.0, 1.0):
            raise too_long(array, self.name, first_row, int(np.flatnonzero(rest)[0]))
        apart = values - self.centre
        back = apart - values  # of Knuth's exact difference
        lost = (values - (apart - back)) - (self.centre + back)
        return ((apart + (rest + lost)) / self.scale)[:, None]


@dataclass(frozen=True)
class LogReal(Real):
    """A target of positive numbers, learned as its natural logarithm."""

    kind: ClassVar[str] = "log"

    def encode(self, array: pa.Array, first_row: int) -> NDArray[np.float64]:
        """Logarithms of a piece of the column, shape (m, 1)."""
        return logarithms(super().encode(array, first_row), self.name, first_row)


@dataclass(frozen=True)
class Classes(_OneFeature):
    """A target of categories: the number of each row's class in ``values``, which are in the order of ``labels``.

    ``dtype`` is that of the column, and ``names`` are the classes as a column of texts spells them, if otherwise.
    """

    kind: ClassVar[str] = "classes"
    values: tuple[str, ...]
    dtype: str = "str"
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.named) != len(self.values):
            raise ValueError(f"{len(self.names)} names of {len(self.values)} classes")

    def encode(self, array: pa.Array, first_row: int) -> NDArray[np.float64]:
        """Class numbers of a piece of the column, shape (m, 1)."""
        return codes(array, self.values, self.name, first_row)[:, None].astype(np.float64)

    def labelled(self, y: NDArray[np.float64]) -> NDArray[Any]:
        """Labels (m,) of rows whose class numbers (m,) are given."""
        return self.labels[y.astype(np.intp)]

    @property
    def named(self) -> NDArray[Any]:
        """The classes as the column has them, in the order of ``values``."""
        if self.dtype == "str":
            return np.array(self.names or self.values)
        if self.dtype not in CLASS_TYPES:
            raise ValueError(f"classes of type {self.dtype!r}")
        number = float if self.dtype.startswith("float") else int
        return np.array(list(map(number, self.values)), dtype=self.dtype)

    @property
    def labels(self) -> NDArray[Any]:
        """What a classifier calls the classes: whole numbers where all are, else texts. Sorted."""
        if all(as_number(value) is not None for value in self.values):
            numbers = [exact(value) for value in self.values]
            if all(n.denominator == 1 and abs(n) < 2**63 for n in numbers) and len(set(numbers)) == len(numbers):
                return np.array([int(n) for n in numbers])
        return np.array(self.values)


Column = Bit | BitString | OneHot | LetterString | Mutations | Real | Classes
KINDS: Final[dict[str, Any]] = {
    kind.kind: kind for kind in (Bit, MissingBit, BitString, OneHot, LetterString, Mutations, Real, LogReal, Classes)
}


def column_of(description: dict[str, Any]) -> Column:
    """A column from its JSON description (see :class:`~sparsact.datasets.columns.Encoding`)."""
    fields = {key: tuple(v) if isinstance(v, list) else v for key, v in description.items() if key != "kind"}
    column: Column = KINDS[description["kind"]](**fields)
    for name, value in fields.items():
        if not _FIELDS[name](value):
            raise ValueError(f"`{name}` of a column is {str(value)[:40]}, which it cannot be")
    return column


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


# What the fields of a column hold, in a description that may come from anyone.
_FIELDS: Final[dict[str, Callable[[Any], bool]]] = {
    "name": _is_text,
    "letters": lambda value: isinstance(value, tuple) and len(value) > 0 and all(_is_text(v) and v for v in value),
    "values": lambda value: isinstance(value, tuple) and len(value) > 0 and all(map(_is_text, value)),
    "dtype": _is_text,
    "names": lambda value: isinstance(value, tuple) and all(map(_is_text, value)),
    "length": lambda value: type(value) is int and 0 < value <= LONGEST_BIT_STRING,
    "padded": lambda value: type(value) is bool,
    "mutated": lambda value: type(value) is bool,
    "pattern": lambda value: isinstance(value, str),
    "fill": lambda value: value is None or (type(value) in (int, float) and isfinite(value)),
    "centre": lambda value: type(value) in (int, float) and isfinite(value),
    "scale": lambda value: type(value) in (int, float) and isfinite(value) and value != 0,
}


@dataclass(frozen=True)
class Encoding:
    """The encoding of a table: its feature columns, its target columns, and the options of the reader.

    Features come in the order of the file. ``notes`` are sentences for people; ``design`` is what is kept of the rows
    that a model was learned from. ``reference`` has the letter of each site from which effects are counted, if any.
    """

    columns: tuple[Column, ...]
    targets: tuple[Real | Classes, ...]
    notes: tuple[str, ...] = ()
    design: TableDesign | None = None
    reference: tuple[str, ...] = ()

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name of every column of X."""
        return tuple(name for column in self.columns for name in column.features)

    @property
    def target_names(self) -> tuple[str, ...]:
        """Name of every target."""
        return tuple(target.name for target in self.targets)

    @property
    def sites(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Name and letters, or other values, of every site: a column, or a place of a string; no numbers.

        For a site X has a bit for each letter. The first letter has none if there are only two, or if it is the wild
        type's.
        """
        found: list[tuple[str, tuple[str, ...]]] = []
        for column in self.columns:
            if isinstance(column, LetterString | Mutations):
                found += [(name, tuple(letters)) for name, letters in column.sites]
            elif isinstance(column, BitString):
                found += [(name, ("0", "1")) for name in column.features]
            elif isinstance(column, Bit | OneHot):
                found.append((column.name, column.values))
        return tuple(found)

    @property
    def mutated_sites(self) -> frozenset[str]:
        """Names of the sites whose bits are mutations: their first letter is the wild type's, and has no bit."""
        of = [one.sites for one in self.columns if isinstance(one, LetterString | Mutations) and one.mutated]
        return frozenset(name for sites in of for name, _ in sites)

    @property
    def patterns(self) -> list[NDArray[np.uint8]]:
        """Bits (q, b) of the letters of each site."""
        mutated = self.mutated_sites
        return [letter_bits(len(own), mutated=name in mutated) for name, own in self.sites]

    def codes(self, X: Points) -> NDArray[np.intp]:
        """Places (m, sites) among the letters of each site, of points X of bits."""
        return places_in(self.patterns, X)

    def bits(self, codes: NDArray[np.intp]) -> NDArray[np.uint8]:
        """Points of bits whose letters have these places (m, sites): the inverse of :meth:`codes`."""
        return combined(self.patterns, codes)

    def letters(self, X: Points) -> NDArray[np.str_]:
        """Letters (m, sites) of points X of bits."""
        return np.stack([np.array(own)[i] for (_, own), i in zip(self.sites, self.codes(X).T, strict=True)], axis=1)

    @property
    def real(self) -> bool:
        """Whether some feature is a number that is not a bit."""
        return any(isinstance(column, Real) for column in self.columns)

    @property
    def has_letters(self) -> bool:
        """Whether some site has more than two letters, and no column is a number."""
        return not self.real and any(len(letters) > 2 for _, letters in self.sites)

    @property
    def source_columns(self) -> list[str]:
        """Columns of the file that hold features."""
        return list(dict.fromkeys(column.name for column in self.columns))

    def points(self, rows: PlacedRows) -> Points:
        """X of some rows: bits (m, n) as uint8; with real columns, float64 in which a bit is its sign, 1 - 2 * bit."""
        pairs = [(column, column.encode(rows.columns.column(column.name), rows.row)) for column in self.columns]
        signs = self.real
        return np.concatenate([1.0 - 2.0 * own if signs and not isinstance(of, Real) else own for of, own in pairs], 1)

    def answers(self, rows: PlacedRows) -> NDArray[np.float64]:
        """Targets of some rows: shape (m,), or (m, T) where there are several."""
        cells = [(target, rows.columns.column(target.name)) for target in self.targets]
        pieces = [one.encode(at_limits(own) if isinstance(one, Real) else own, rows.row) for one, own in cells]
        return pieces[0][:, 0] if len(pieces) == 1 else np.concatenate(pieces, axis=1)

    def to_json(self) -> str:
        """Text from which :meth:`from_json` makes an equal encoding."""
        described: dict[str, Any] = {
            "columns": [{"kind": column.kind, **asdict(column)} for column in self.columns],
            "targets": [{"kind": target.kind, **asdict(target)} for target in self.targets],
            "notes": list(self.notes),
        }
        described |= {} if self.design is None else {"design": asdict(self.design)}
        described |= {"reference": self.reference} if self.reference else {}
        return json.dumps(described, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Encoding:
        """Inverse of :meth:`to_json`; a ValueError if the text is not what that wrote."""
        try:
            described = json.loads(text)
            columns = tuple(column_of(column) for column in described["columns"])
            targets = tuple(column_of(target) for target in described["targets"])
            notes = tuple(str(note) for note in described["notes"])
            design = TableDesign.from_dict(described["design"]) if "design" in described else None
            reference = tuple(map(str, described.get("reference", ())))
        except (LookupError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            raise ValueError(f"an encoding lacks something: {error}") from error
        one = [target for target in targets if isinstance(target, Real | Classes)]
        if not one or len(one) < len(targets) or (len(one) > 1 and not all(isinstance(t, Real) for t in one)):
            raise ValueError("an encoding has targets that are no targets")
        encoding = cls(columns, tuple(one), notes, design, reference)
        pairs = zip(reference, encoding.sites, strict=False)
        if reference and (len(reference) != len(encoding.sites) or not all(one in own for one, (_, own) in pairs)):
            raise ValueError("an encoding has a reference of other letters than its sites")
        if design is not None:
            reals = sum(isinstance(column, Real) for column in columns)
            sizes = design.n_bits + reals, len(design.low), len(design.high)
            n_errors = 0 if design.held_out is None else design.held_out.errors.shape[1]
            if sizes != (len(encoding.feature_names), reals, reals) or n_errors not in (0, len(one)):
                raise ValueError("an encoding has a design of other columns")
        return encoding
