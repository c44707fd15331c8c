"""Tests of many values: in one item, or few of them in quick runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from functools import wraps
from itertools import product
from typing import Any

import pytest


def grid(**axes: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test on every combination of values, and raise an ExceptionGroup that names all that fail.

    As ``pytest.mark.parametrize`` of each name, for tests of milliseconds: thousands of items take longer to collect
    than to run. Fixtures are shared by all combinations.
    """

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        combinations = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
        assert combinations, f"{test.__name__}: an axis has no values"

        @wraps(test)
        def run(**fixtures: Any) -> None:
            errors = []
            for values in combinations:
                try:
                    test(**fixtures, **values)
                except (Exception, pytest.fail.Exception) as error:  # the latter: nothing was raised, or warned
                    error.add_note(f"with {values}")
                    errors.append(error)
            if errors:
                raise BaseExceptionGroup(f"{len(errors)} of {len(combinations)} combinations fail", errors)

        signature = inspect.signature(test)
        left = [parameter for name, parameter in signature.parameters.items() if name not in axes]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorated


def few_of(values: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """Values of a parametrised test, for ``pytest.mark.parametrize``; all but the quick ones are marked ``grid``."""
    values = list(values)
    assert all(value in values for value in quick), f"{quick} are not all among {values}"
    return [
        value
        if value in quick
        else pytest.param(*(value if isinstance(value, tuple) else [value]), marks=pytest.mark.grid)
        for value in values
    ]
