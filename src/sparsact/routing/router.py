"""The router contract, hyperparameters in and an input's units out; and the routers by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.kernels.hashing import hash_generator
from sparsact.routing.array_functions import Array, like, namespace
from sparsact.routing.selection import Selection
from sparsact.saving.schema import present_names
from sparsact.validation.arrays import Shape, checked_reals, checked_router_inputs, checked_tensor, has_shape, is_tensor
from sparsact.validation.parameters import checked_size

if TYPE_CHECKING:
    from torch import Tensor

State = Mapping[str, Any]
ROUTERS: Final[dict[str, type[Router]]] = {}
"""Every router of the library by its name; subclassing :class:`Router` in this package adds one."""


@dataclass(frozen=True)
class Router(ABC):
    """A rule that chooses units for an input; a frozen record of hyperparameters, for NumPy arrays and torch tensors.

    Anything else that a rule needs (random directions, a learned gate, centres) is its *state*: a mapping of names to
    arrays. A layer keeps it as parameters and buffers and passes it in; ``router(x)`` draws it from ``random_state``.

    Attributes
    ----------
    name : str
        In the registry, :data:`sparsact.routing.ROUTERS`.
    state_names, trainable : tuple of str
        Entries of the state, and the trainable ones among them.
    kept_wide : tuple of str
        Entries that stay in float32 in layers of a narrower dtype, in which small steps would be lost.
    free_length : bool
        Whether a state may have any number of units, as a set of points has.
    routes_on : str
        ``"features"``: the rule looks at the pre-activations of the units themselves; ``"inputs"``: at the input.
    reads_mask : bool
        Whether the state may hold ``mask`` (m,), False for padding, which the rule leaves out of loads and losses, and
        ``length``, the number of inputs of a sequence.
    """

    name: ClassVar[str]
    state_names: ClassVar[tuple[str, ...]] = ()
    trainable: ClassVar[tuple[str, ...]] = ()
    kept_wide: ClassVar[tuple[str, ...]] = ()
    free_length: ClassVar[bool] = False
    routes_on: ClassVar[str] = "inputs"
    reads_mask: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Register routers of this package."""
        if "name" in cls.__dict__ and cls.__module__.startswith(f"{__package__}."):
            ROUTERS[cls.name] = cls

    @abstractmethod
    def width(self, in_features: int) -> int:
        """Number of units to choose from, for inputs of ``in_features`` columns."""

    def max_active(self, in_features: int) -> int:
        """Maximum number of active units per input outside of training: one, unless a router defines more."""
        return 1

    def mean_active(self, in_features: int) -> float:
        """Mean number of active units per input."""
        return self.max_active(in_features)

    def most_taken(self, m: int, *, training: bool) -> int | None:
        """Largest number of choices that all units accept from a batch of m inputs; None for no limit."""
        return None

    @property
    def reads_others(self) -> bool:
        """Whether the units of an input may depend on other inputs of its batch."""
        return False

    def initial_state(self, in_features: int, *, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """Fresh state for inputs of ``in_features`` columns; empty for a rule that needs none."""
        return {}

    @abstractmethod
    def select(self, x: Array, state: State, *, training: bool = False) -> Selection:
        """Units for each row of ``x`` (m, in_features). Arrays are trusted here."""

    @abstractmethod
    def flops(self, in_features: int) -> int:
        """Multiplications and additions (each counts as one) that routing one input costs, comparisons included."""

    def __call__(self, x: ArrayLike | Tensor, state: State | None = None, *, training: bool = False) -> Selection:
        """Units for each row of ``x``: checked, then :meth:`select`.

        Parameters
        ----------
        x : array-like or tensor of shape (m, in_features)
            Inputs; whole numbers and float16 of NumPy are taken as float64, tensors keep their dtype and device.
        state : mapping of names to arrays, optional
            As :meth:`initial_state` returns it. Default: drawn from ``random_state``, the same in every call.
        training : bool, default=False
            Whether to route as in training: Switch drops tokens beyond its capacity, Tree mixes its leaves.

        Raises
        ------
        ValueError
            If x is not finite, not of two axes, or does not fit the router or its state, or if scores overflow.
        """
        rows = checked_router_inputs(x)
        self.width(rows.shape[1])  # raises where the columns do not fit
        own = _own_state(self, rows.shape[1])
        if state is None:
            state = {name: like(array, rows) for name, array in own.items()}
        else:
            first = (None,) if self.free_length else ()
            shapes: dict[str, Shape] = {name: (*first, *array.shape[len(first) :]) for name, array in own.items()}
            state = _checked_state(state, shapes, rows, self.name)
        with np.errstate(over="ignore", invalid="ignore"):
            selection = checked_selection(self.select(rows, state, training=training), self, rows, training)
        if selection.logits is not None and not bool(namespace(rows).isfinite(selection.logits).all()):
            raise ValueError(f"the scores of {self.name} overflow; scale the inputs down.")
        return selection

    def to_dict(self) -> dict[str, Any]:
        """``{"router": name, ...hyperparameters}``, as JSON spells it; :func:`sparsact.routing.from_dict` reads it."""
        return {"router": self.name, **asdict(self)}


def checked_selection(selection: Any, router: Router, x: Any, training: bool) -> Selection:
    """What ``select`` of the router returned for ``x``, if it is a selection with as many rows and places as it may."""
    if not isinstance(selection, Selection):
        fact = f"select of {router.name} must return a Selection; got {type(selection).__name__}"
        raise TypeError(f"{fact}: use Selection.of(indices, weights, n_units).")
    (m, k), most = selection.indices.shape, router.max_active(x.shape[1])
    if m != x.shape[0]:
        raise ValueError(f"select of {router.name} returned {m} rows for {x.shape[0]} inputs; return one for each.")
    if k > most and not (training and k == router.width(x.shape[1])):  # a tree mixes all of its leaves in training
        raise ValueError(f"select of {router.name} chose {k} units; return at most max_active = {most}, or raise that.")
    return selection


def check_choice(n_active: int, n_units: int) -> None:
    """Raise a ValueError if ``n_active`` exceeds the number of units."""
    if n_active > n_units:
        raise ValueError(f"a router cannot choose {n_active} of {n_units} units; pass n_active <= {n_units}.")


@lru_cache(maxsize=64)
def _own_state(router: Router, in_features: int) -> dict[str, NDArray[Any]]:
    return router.initial_state(
        in_features, rng=hash_generator(getattr(router, "random_state", vars(router).get("seed", 0)))
    )


def _checked_state(state: Any, shapes: Mapping[str, Shape], x: Any, name: str) -> dict[str, Any]:
    """A state with all arrays of these shapes, of the kind and on the device of ``x``."""
    missing = [each for each in shapes if not isinstance(state, Mapping) or each not in state]
    if missing:
        raise ValueError(f"the state of {name} lacks {', '.join(missing)}; start from initial_state().")
    free = [each for each in ("mask", "length") if each in state and each not in shapes]
    others = [each for each in state if each not in free]
    checked = {each: _checked_entry(state[each], shapes.get(each), x, f"`{each}` of {name}") for each in others}
    if "length" in free:
        checked["length"] = checked_size(state["length"], f"`length` of {name}")
        if len(x) % checked["length"]:
            raise ValueError(f"`length` of {name} must divide the {len(x)} inputs; got {checked['length']}.")
    if "mask" in free:  # of padding
        mask = checked["mask"] = state["mask"] if is_tensor(state["mask"]) else like(np.asarray(state["mask"]), x)
        if tuple(mask.shape) != (len(x),) or mask.dtype != namespace(x).bool:
            raise ValueError(f"`mask` of {name} must be bool of shape ({len(x)},); got shape {tuple(mask.shape)}.")
    return checked


def _checked_entry(value: ArrayLike | Tensor, shape: Shape | None, x: Any, what: str) -> Any:
    array = checked_tensor(value, what) if is_tensor(value) else checked_reals(value, what)
    if shape is not None and not has_shape(array, shape):
        need = ", ".join("any" if n is None else str(n) for n in shape)
        raise ValueError(f"{what} must have shape ({need}) for these inputs; got {tuple(array.shape)}.")
    if not is_tensor(array):
        return like(array, x) if is_tensor(x) else array
    if not is_tensor(x):
        raise ValueError(f"{what} is a torch tensor but the inputs are not; pass both as tensors or both as arrays.")
    if array.device != x.device:
        raise ValueError(f"{what} is on {array.device}, the inputs on {x.device}; move both to one device.")
    return array


def named(name: str, **hyperparameters: Any) -> Router:
    """Make a router by its name.

    Parameters
    ----------
    name : str
        Name of a router, such as ``"top_k"`` or ``"tree"``.
    **hyperparameters
        Hyperparameters of that router.

    Returns
    -------
    router : Router
        The frozen record.

    Raises
    ------
    ValueError
        If no router has that name, or it has no such hyperparameter; lists the known ones.

    Examples
    --------
    >>> named("top_k", n_active=3)
    TopK(n_active=3, absolute=False)
    """
    if name not in ROUTERS:
        raise ValueError(f"there is no router {name!r}; choose one of {', '.join(ROUTERS)}.")
    kind = ROUTERS[name]
    known = list(signature(kind).parameters)
    unknown = [key for key in hyperparameters if key not in known]
    if unknown:
        raise ValueError(f"{kind.__name__} has no hyperparameter {unknown[0]!r}; it has {', '.join(known)}.")
    try:
        return kind(**hyperparameters)
    except TypeError as error:
        raise ValueError(f"{kind.__name__} cannot be made from {hyperparameters}: {error}.") from error


def from_dict(record: Mapping[str, Any]) -> Router:
    """Make a router from the output of :meth:`Router.to_dict`.

    Parameters
    ----------
    record : mapping
        Name and hyperparameters.

    Returns
    -------
    router : Router
        Equal to the one that was written.

    Examples
    --------
    >>> from_dict({"router": "tree", "depth": 3})
    Tree(depth=3, random_state=0)
    """
    if not isinstance(record, Mapping) or not isinstance(record.get("router"), str):
        raise ValueError(f'a router is recorded as {{"router": name, ...}}; got {record!r}.')
    given = {str(key): value for key, value in record.items() if key != "router"}
    kind = ROUTERS.get(record["router"])
    return named(record["router"], **present_names(given, signature(kind).parameters if kind else ()))
