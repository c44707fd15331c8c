"""The array functions of the library that an array belongs to: NumPy, or torch where the caller has brought it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import array_api_compat.numpy
import numpy as np


def namespace(array: Any) -> Any:
    """Array-API functions for ``array``: ``array_api_compat.numpy`` or ``array_api_compat.torch``.

    ``array_api_compat.array_namespace`` asks a cache, which torch.compile cannot see through.
    """
    return array_api_compat.numpy if isinstance(array, np.ndarray) else import_module("array_api_compat.torch")
