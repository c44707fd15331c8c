"""Kinds of model that compete on a table, a file each."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

from sparsact.fit.candidate import CandidateKind

# In the order in which they are fitted. A new kind is a file of this folder that binds `CANDIDATE`, and its name here.
KINDS: Final = ("low-degree", "lsh", "sparse", "lasso", "gp", "latent", "letters", "trees", "network", "ensemble")


@cache
def candidates() -> dict[str, CandidateKind]:
    """Every kind by its name."""
    return {kind: import_module(f"{__name__}.{kind.replace('-', '_')}").CANDIDATE for kind in KINDS}
