"""Model files: safetensors with a JSON header. Each class declares the fields that its file holds."""

from sparsact.saving.modelfile import ModelFileError, load

__all__ = ["ModelFileError", "load"]
