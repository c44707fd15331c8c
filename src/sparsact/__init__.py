"""Sparsely activated networks: models in which each input switches on only a few units."""

from sparsact._version import __version__

__all__ = ["__version__"]
