"""Model files: safetensors with a JSON header, made of the fields that each class declares."""

from sparsact.saving.modelfile import ModelFileError, load

__all__ = ["ModelFileError", "load"]
