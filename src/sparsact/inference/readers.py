"""Modules that are given the pre-activations of a block: what they show to hooks, and whether they are still there."""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn
from torch.nn.modules.module import _has_any_global_hook


class Readers:
    """Modules between the layers of a block.

    Parameters
    ----------
    model : nn.Module
    names : iterable of str
        As in ``model.get_submodule``.
    """

    def __init__(self, model: nn.Module, names: Iterable[str]) -> None:
        self._places = []
        for name in names:
            parent, _, last = name.rpartition(".")
            self._places.append((model.get_submodule(parent), last, model.get_submodule(name)))

    @property
    def hooked(self) -> bool:
        """Whether a hook sees what one is given, or another module stands in its place."""
        return any(parent._modules.get(name) is not module or hooked(module) for parent, name, module in self._places)


def hooked_globally() -> bool:
    """Whether there are hooks for all modules of the process."""
    return bool(_has_any_global_hook())  # type: ignore[no-untyped-call]


def hooked(module: nn.Module) -> bool:
    """Whether a module has hooks that see, or change, what it is given or gives."""
    return bool(module._forward_hooks or module._forward_pre_hooks)
