"""Names of parameters and attributes before they changed: they work for one minor version, with a FutureWarning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import isclass, signature
from typing import Any, Final, TypeVar, cast

GONE_IN: Final = "version 0.3"
PROBED: Final = {
    "coef_"
}  # scikit-learn and SHAP read a length per feature from it wherever hasattr finds it: it must be gone
FORMER_OPTIONS: Final = {"--seed": "--random-state", "--threads": "--n-threads"}  # of the command
Renamed = TypeVar("Renamed", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type[Any])


def renamed(**names: str) -> Callable[[Renamed], Renamed]:
    """Let a function, method or class take parameters by their former names too: ``renamed(width="n_units")``.

    The signature shows the new names only. A class also keeps its former attributes, and an estimator its former
    parameters in ``set_params``.

    Parameters
    ----------
    **names
        Former names of parameters, and what they are called now.

    Returns
    -------
    decorator : callable
        Of a function, which it wraps, or of a class, whose ``__init__`` it wraps in place.

    Raises
    ------
    TypeError
        From the call, if it passes a parameter by both names.

    Examples
    --------
    >>> @renamed(width="n_units")
    ... def n_weights(n: int, n_units: int) -> int:
    ...     return n * n_units
    >>> with warnings.catch_warnings(action="always", record=True) as caught:
    ...     n_weights(3, width=5)
    15
    >>> print(caught[0].message)
    `width` of n_weights is now called `n_units`; the former name goes in version 0.3.
    """

    def decorate(function: Renamed) -> Renamed:
        if not isclass(function):
            return cast("Renamed", _taking(function, names))
        cls: Any = function
        cls.__init__ = _taking(cls.__init__, names)
        if hasattr(cls, "set_params"):
            cls.set_params = _taking(cls.set_params, names)
        return cast("Renamed", renamed_attributes(**names)(cls))

    return decorate


def renamed_attributes(**names: str) -> Callable[[Class], Class]:
    """Let objects of a class have attributes and methods by their former names too.

    Parameters
    ----------
    **names
        Former names, and what they are called now. A name that the class still has stays what it is.

    Returns
    -------
    decorator : callable
        Of a class, which it changes in place.
    """

    def decorate(cls: Class) -> Class:
        for old, new in names.items():
            if not hasattr(cls, old):
                setattr(cls, old, _former(old, new))
        cls._former_names = {**former_names(cls), **names}
        return cls

    return decorate


def renamed_members(module: str, **names: Any) -> Callable[[str], Any]:
    """A module's ``__getattr__`` that gives classes and functions by their former names too.

    Parameters
    ----------
    module : str
        Its ``__name__``.
    **names
        Former names, and the objects that bear another name now.

    Returns
    -------
    getattr : callable
        To be assigned to ``__getattr__``.
    """

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_of(name, names[name].__name__, module)
        return names[name]

    return get


def former_names(cls: Any) -> dict[str, str]:
    """Former names of parameters and attributes of a class, and what they are called now."""
    return dict(getattr(cls, "_former_names", {}))


def present_names(cls: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that an earlier version wrote, by the names that the class takes them by now."""
    names = former_names(cls)
    return {names.get(name, name): value for name, value in parameters.items()}


def warn_of(old: str, new: str, owner: str, *, stacklevel: int = 3) -> None:
    """Say that a name of the owner is another now."""
    message = f"`{old}` of {owner} is now called `{new}`; the former name goes in {GONE_IN}."
    warnings.warn(message, FutureWarning, stacklevel=stacklevel)


def _taking(function: Any, names: Mapping[str, str]) -> Any:
    """The function, taking keywords by their former names too."""
    positions = {name: place for place, name in enumerate(signature(function).parameters)}
    of_a_class = function.__name__ in ("__init__", "set_params")

    @wraps(function)
    def taking(*args: Any, **options: Any) -> Any:
        for old in names.keys() & options.keys():
            new, owner = names[old], type(args[0]).__name__ if of_a_class else function.__qualname__
            if new in options or positions.get(new, len(args)) < len(args):
                raise TypeError(f"{owner} was given `{new}` and `{old}`, its former name; pass `{new}` alone.")
            warn_of(old, new, owner)
            options[new] = options.pop(old)
        return function(*args, **options)

    return taking


def _former(old: str, new: str) -> Any:
    def get(self: Any) -> Any:
        if old in PROBED:
            raise AttributeError(f"`{old}` of {type(self).__name__} is now called `{new}`.")
        warn_of(old, new, type(self).__name__)
        return getattr(self, new)

    def put(self: Any, value: Any) -> None:
        warn_of(old, new, type(self).__name__)
        setattr(self, new, value)

    return property(get, put)  # without a docstring, which would list it among the attributes
