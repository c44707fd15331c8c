"""Validated options of a table fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from math import inf
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final, Self

from sparsact.validation.parameters import checked_size

if TYPE_CHECKING:  # the command reads the names of the options for its help
    from sparsact.datasets import Encoding

OPTIONS: Final = {
    "model": ("auto", "low-degree", "sparse", "gp", "letters", "latent", "lsh", "network", "ensemble"),
    "domain": ("auto", "cube", "real"),
    "task": ("auto", "regression", "classification"),
    "link": ("identity", "log", "sigmoid", "monotone", "auto"),
}

POWERS: Final = {"weights": 1, "sigma": -2, "variance": -1}  # of the column: the weight of a row
ROW_OPTIONS: Final = ("groups", *POWERS, "split")  # name columns that are about rows

Censor = str | tuple[float | None, float | None]


@dataclass(frozen=True)
class FitOptions:
    """Arguments of :func:`sparsact.fit_table` that decide its result; ``"auto"`` of a number means cross-validation.

    Checkpoints and the printed call read names and defaults here; a test compares the signatures.
    """

    target: tuple[str, ...] = ()
    model: str = "auto"
    degree: int | str = "auto"  # a text of the command is made a number
    alpha: float | str = "auto"
    lasso: bool = False
    columns: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    domain: str = "auto"
    task: str = "auto"
    strict: bool = False
    wild_type: str | None = None
    groups: str | None = None
    weights: str | None = None
    sigma: str | None = None
    variance: str | None = None
    split: str | None = None
    drop_missing: bool = False
    log_target: bool | None = None  # decided by the rows
    encoding: str | None = None  # as JSON
    link: str = "identity"
    censor: Censor = "auto"  # or "none", or a pair of numbers or None, which texts such as "7," spell
    folds: int = 5
    random_state: int = 0
    held_out_rows: bool = False
    explain: bool = True
    separator: str = "auto"
    decimal: str = "auto"

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Options among the arguments of :func:`sparsact.fit_table`."""
        found: dict[str, Any] = {name: given[name] for name in OPTION_NAMES}
        for name in ("target", "columns", "ignore"):
            value = found[name]
            many = isinstance(value, Iterable) and not isinstance(value, str)
            found[name] = value if value is None else tuple(map(str, value if many else (value,)))
        found |= {name: str(found[name]) for name in ROW_OPTIONS if found[name] is not None}
        if found["encoding"] is not None:
            found["encoding"] = found["encoding"].to_json()
        return cls(**found)

    def __post_init__(self) -> None:
        for name, known in OPTIONS.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name} {getattr(self, name)!r} is none of {', '.join(map(repr, known))}.")
        if not self.target:
            raise ValueError("no target is given; name at least one column.")
        numbers: dict[str, Any] = {
            "folds": checked_size(self.folds, "folds"),
            "random_state": checked_size(self.random_state, "random_state", 0, 2**32 - 1),
        }
        if numbers["folds"] < 2:
            raise ValueError(f"folds {self.folds}: held-out scores need at least 2.")
        if self.degree != "auto":
            numbers["degree"] = _number(self.degree, int)
            if numbers["degree"] is None or numbers["degree"] < 1:
                raise ValueError(f"degree {self.degree} is neither 'auto' nor a whole number from 1.")
        if self.alpha != "auto":
            numbers["alpha"] = _number(self.alpha, float)
            if numbers["alpha"] is None or not 0 <= numbers["alpha"] < inf:
                raise ValueError(f"alpha {self.alpha} is neither 'auto' nor a number that is not negative.")
        for name, value in numbers.items():  # NumPy's as Python's
            object.__setattr__(self, name, value)
        for name in self.given if self.model not in ("auto", "low-degree") else ():
            said = name if name == "lasso" else f"{name} {getattr(self, name)}"
            raise ValueError(
                f"{said} applies to low-degree models only, and model {self.model} chooses its own; "
                "leave one of the two out."
            )
        if about := set(self.row_columns) & set(self.target):
            raise ValueError(f"column {about.pop()!r} is a target; {', '.join(ROW_OPTIONS)} need other columns.")
        if len(of_precision := [name for name in POWERS if getattr(self, name) is not None]) > 1:
            raise ValueError(f"{' and '.join(of_precision)} all set the weights of rows; pass one of them.")
        if self.weighted and self.model not in ("auto", "low-degree", "gp"):
            raise ValueError(f"model {self.model} takes no row weights; choose low-degree or gp, or leave them out.")
        if self.task == "classification" and (self.weighted or self.log_target):
            raise ValueError("weights, errors and log_target need a target of numbers; leave them out for classes.")
        object.__setattr__(self, "censor", _bounds(self.censor))
        if self.asks_for_measurement and (self.given or self.weighted or self.model not in ("auto", "latent")):
            other = f"{self.given[0]} is given" if self.given else f"model {self.model} has neither"
            other = "they take no row weights" if self.weighted else other
            raise ValueError(f"link and censor apply to measurement models, and {other}; leave one of the two out.")
        decided = [name for name in ("columns", "ignore", "strict", "task", "wild_type") if name in self.changed]
        if self.encoding is not None and decided:
            raise ValueError(f"the encoding fixes {' and '.join(decided)}; leave one of the two out.")

    @property
    def bounds(self) -> Censor | None:
        """The bounds of measurements as :class:`sparsact.LatentRegressor` takes them."""
        return None if self.censor == "none" else self.censor

    @property
    def asks_for_measurement(self) -> bool:
        """Whether a curve or bounds of measurements are named."""
        return self.link != "identity" or self.censor not in ("auto", "none")

    @property
    def given(self) -> tuple[str, ...]:
        """Options of polynomials that were given; other kinds of model are then not fitted."""
        return tuple(name for name in ("degree", "alpha", "lasso") if name in self.changed)

    @property
    def has_no_polynomial(self) -> bool:
        """Whether the requested model is compared with no polynomial."""
        return self.model not in ("auto", "low-degree", "ensemble")

    def domain_of(self, encoding: Encoding) -> str:
        """The domain of the learners: ``"cube"`` where every column is bits."""
        return "real" if self.domain == "real" or encoding.real else "cube"

    @property
    def weighted(self) -> bool:
        """Whether rows differ in precision."""
        return self.precision is not None

    @property
    def precision(self) -> tuple[str, int] | None:
        """The column that says how precise rows are, and the power of it that is their weight."""
        named = ((getattr(self, name), power) for name, power in POWERS.items())
        return next(((column, power) for column, power in named if column is not None), None)

    @property
    def row_columns(self) -> tuple[str, ...]:
        """Columns that are about rows, and no features."""
        return tuple(name for option in ROW_OPTIONS if (name := getattr(self, option)) is not None)

    @property
    def changed(self) -> dict[str, Any]:
        """Options that differ from their defaults."""
        return {one.name: value for one in fields(self) if (value := getattr(self, one.name)) != one.default}

    def named(self) -> Mapping[str, Any]:
        """All that decides the result, by the names of the command's options, as checkpoints hold it."""
        named: dict[str, Any] = {name: None if value == "auto" else value for name, value in asdict(self).items()}
        named |= {name: getattr(self, name) for name in OPTIONS}
        named |= {name: list(named[name] or ()) for name in ("target", "columns", "ignore")}
        named |= {name: named[name] or [] for name in ROW_OPTIONS}
        named["link"] = self.changed.get("link")  # None in older files, which had none
        named["censor"] = list(self.censor) if isinstance(self.censor, tuple) else named["censor"]
        named["report"] = named.pop("held_out_rows")
        del named["explain"]
        return {f"--{name.replace('_', '-')}": value for name, value in named.items()}

    def call(self, data: str, test: str | None = None, target: str | None = None) -> str:
        """Python code that fits the table again, and scores the test table; ``target`` stands for its values."""
        target = target or repr(self.target[0] if len(self.target) == 1 else list(self.target))
        options = {name: list(value) if isinstance(value, tuple) else value for name, value in self.changed.items()}
        words = [data, target]
        words += [f"{name}={value!r}" for name, value in options.items() if name not in ("target", "encoding")]
        words += [] if test is None else [f"test={test}"]
        return f"sa.fit_table({', '.join(words + ['encoding=encoding'] * (self.encoding is not None))})"


OPTION_NAMES: Final = tuple(one.name for one in fields(FitOptions))


def _bounds(censor: Censor) -> Censor:
    """Bounds of measurements as they are given, or as a text spells them: ``"7,"`` is a floor, ``",1"`` a ceiling."""
    if censor in ("auto", "none"):
        return censor
    parts = censor.split(",") if isinstance(censor, str) else censor
    try:
        lower, upper = (None if part in (None, "") else float(part) for part in parts)
    except (TypeError, ValueError):
        raise ValueError(
            f"censor {censor!r} is neither 'auto', 'none' nor LOWER,UPPER: two numbers, or one alone, "
            "such as '7,' or '0,1'."
        ) from None
    if (lower is None and upper is None) or not (-inf if lower is None else lower) < (inf if upper is None else upper):
        raise ValueError(f"censor {censor!r}: the lower bound must be below the upper one; name at least one of them.")
    return lower, upper


def _number(value: float | str, kind: type[int] | type[float]) -> float | None:
    """A number, also of NumPy or as the command was given it; None of anything else."""
    if isinstance(value, bool) or (kind is int and not isinstance(value, Integral | str)):
        return None
    try:
        return kind(value)
    except (TypeError, ValueError):
        return None
