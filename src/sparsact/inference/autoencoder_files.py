"""Files of trained autoencoders and transcoders: of SAELens, of dictionary_learning, of Gemma Scope.

Tensors get the names of SAELens first: ``W_enc`` (inputs, features), ``W_dec`` (features, outputs), ``b_dec``
(outputs,), and vectors with a number a feature.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Final
from zipfile import BadZipFile

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from sparsact.inference.autoencoder import Autoencoder, Gate, Jump
from sparsact.inference.certified_screen import NARROW
from sparsact.saving import ModelFileError
from sparsact.validation.parameters import checked_option, checked_size

_VECTORS: Final = {  # by kind of autoencoder
    "standard": ("b_enc",),
    "topk": ("b_enc",),
    "jumprelu": ("b_enc", "threshold"),
    "gated": ("b_gate", "r_mag", "b_mag"),
}
_TRANSCODERS: Final = {  # of SAELens, and their kinds
    **dict.fromkeys(("transcoder", "skip_transcoder"), "standard"),
    **dict.fromkeys(("jumprelu_transcoder", "jumprelu_skip_transcoder"), "jumprelu"),
}
_KNOWN: Final = (  # to files of SAELens 6; earlier ones also hold what a training was given
    *("architecture", "metadata", "d_in", "d_sae", "d_out", "k", "dtype", "device", "apply_b_dec_to_input"),
    *("normalize_activations", "reshape_activations", "rescale_acts_by_decoder_norm"),
)
_DICTIONARIES: Final = {  # of dictionary_learning: the kind, and whether encoders subtract the bias of decoders
    "AutoEncoder": ("standard", True),
    "AutoEncoderNew": ("standard", False),
    "AutoEncoderTopK": ("topk", True),
    "BatchTopKSAE": ("jumprelu", True),
    "MatryoshkaBatchTopKSAE": ("jumprelu", True),
    "JumpReluAutoEncoder": ("jumprelu", False),
    "GatedAutoEncoder": ("gated", True),
}
_NAMES: Final = {  # of dictionary_learning, where they differ
    "encoder.weight": "W_enc",
    "encoder.bias": "b_enc",
    "decoder.weight": "W_dec",
    "gate_bias": "b_gate",
    "mag_bias": "b_mag",
    **dict.fromkeys(("bias", "decoder.bias", "decoder_bias"), "b_dec"),
}
_DAMAGES: Final = (
    *(SafetensorError, BadZipFile, zlib.error, UnpicklingError),
    *(OSError, RuntimeError, EOFError, LookupError, AttributeError, TypeError, ValueError),
)


def load_sae(path: str | Path, sample: Tensor | None = None) -> Autoencoder:
    """Load a sparse autoencoder or a transcoder that another library trained.

    Parameters
    ----------
    path : str or Path
        A folder with ``cfg.json`` and ``sae_weights.safetensors`` (SAELens), with ``config.json`` and ``ae.pt``
        (dictionary_learning), or with ``params.npz`` (Gemma Scope).
    sample : Tensor of shape (..., inputs), optional
        A few hundred typical activations, so that fewer features are computed; results stay exact for all inputs.

    Returns
    -------
    autoencoder : Autoencoder
        On the CPU, in float32, to which bfloat16 and float16 are widened.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ModelFileError
        If a file is damaged, or its tensors do not match its configuration.
    TypeError or ValueError
        If the configuration lacks a size, or describes something else than :class:`Autoencoder` computes.

    Notes
    -----
    Features are as SAELens 6 computes them, and as ``load_dictionary`` and ``encode`` of dictionary_learning do, where
    top-k over a batch becomes a threshold. A pre-activation of minus infinity is off.

    Examples
    --------
    >>> import tempfile
    >>> eye, zeros = np.eye(3, dtype=np.float32), np.zeros(3, dtype=np.float32)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/params", W_enc=eye, b_enc=zeros, threshold=zeros + 1, W_dec=eye, b_dec=zeros)
    ...     load_sae(folder).encode(torch.tensor([2.0, 0.5, 1.0]))
    tensor([2., 0., 0.])
    """
    folder = Path(path)
    for names, read in _FORMATS.items():
        if all((folder / name).is_file() for name in names):
            with torch.inference_mode(False):  # within it torch counts no writes to weights
                return read(folder, sample)
    wanted = ", or ".join(" and ".join(names) for names in _FORMATS)
    raise FileNotFoundError(
        f"`path` must be a folder with {wanted}; {folder} is not: download all files of one release."
    )


def _sae_lens(folder: Path, sample: Tensor | None) -> Autoencoder:
    cfg = _read(folder / "cfg.json", _json)
    tensors = _read(folder / "sae_weights.safetensors", load_file)
    cfg = cfg if "metadata" in cfg else _as_in_6(cfg)
    normalised, centred = cfg.get("normalize_activations"), cfg.get("apply_b_dec_to_input", True)
    if unknown := [name for name in cfg if name not in _KNOWN]:
        raise ValueError(
            f"cfg.json may hold {', '.join(_KNOWN)}; that of {folder} has {', '.join(unknown)} too, which might change "
            "features: save the autoencoder by SAELens's save_inference_model."
        )
    if normalised not in (None, False, "none"):
        raise ValueError(
            f'activations must be taken as they are, normalize_activations "none"; {folder} has "{normalised}": fold '
            'the factor into the weights, or normalise what you pass, and write "none" into cfg.json.'
        )
    checked_option(centred, f"apply_b_dec_to_input in {folder}", (False, True))
    name = checked_option(cfg.get("architecture"), f"architecture in {folder}", (*_VECTORS, *_TRANSCODERS))
    if name in _TRANSCODERS and centred:
        raise ValueError(f"transcoders need apply_b_dec_to_input false; {folder} has {centred!r}: correct cfg.json.")
    kind, n = _TRANSCODERS.get(name, name), _count(cfg, "d_sae", folder)
    sizes = _count(cfg, "d_in", folder), n, _count(cfg, "d_out" if name in _TRANSCODERS else "d_in", folder)
    if "scaling_factor" in tensors and bool((tensors["scaling_factor"] == 1).all()):
        del tensors["scaling_factor"]  # some releases wrote one that does nothing
    return _autoencoder(
        *(folder, sample, kind, tensors, sizes, bool(centred)),
        n_active=_count(cfg, "k", folder, n) if kind == "topk" else None,
        skips="skip" in name,
        by_norm=kind == "topk" and bool(cfg.get("rescale_acts_by_decoder_norm")),
    )


def _as_in_6(cfg: dict[str, Any]) -> dict[str, Any]:
    """What SAELens 6 would write in the place of an earlier release."""
    activation = cfg.get("activation_fn_str", cfg.get("activation_fn", "relu"))
    checked_option(activation, "activation_fn_str", ("relu", "topk"))
    if cfg.get("finetuning_scaling_factor"):
        raise ValueError("finetuning_scaling_factor must be false; got true: multiply W_dec by the factors first.")
    kept = {"architecture": "standard"} | {name: value for name, value in cfg.items() if name in _KNOWN}
    given = cfg.get("activation_fn_kwargs")
    k = given.get("k", cfg.get("k")) if isinstance(given, dict) else cfg.get("k")
    return kept | ({"architecture": "topk", "k": k} if activation == "topk" else {})


def _dictionary_learning(folder: Path, sample: Tensor | None) -> Autoencoder:
    def read(path: Path) -> dict[str, Tensor]:
        held = torch.load(path, map_location="cpu", weights_only=True)
        tensors = {key: torch.as_tensor(one) for key, one in held.items()}
        for key, one in tensors.items():
            if one.layout is not torch.strided or one.is_nested or one.is_quantized or not one.is_cpu:
                raise TypeError(f"no plain numbers in {key}")
        named = {_NAMES.get(key, key): one.t() if key.endswith(".weight") else one for key, one in tensors.items()}
        if len(named) < len(tensors):
            raise ValueError(f"two of {', '.join(tensors)} for one tensor")
        return named

    trainer = _read(folder / "config.json", lambda path: _json(path)["trainer"])
    tensors = _read(folder / "ae.pt", read)
    name = checked_option(trainer.get("dict_class"), f"dict_class in {folder}", _DICTIONARIES)
    kind, centred = _DICTIONARIES[name]
    d, n = (_count(trainer, size, folder) for size in ("activation_dim", "dict_size"))
    n_active, trained = None, tensors.pop("k", None)
    tensors.pop("group_sizes", None)  # of features that were trained together
    if kind == "topk":
        tensors.pop("threshold", None)  # an alternative to k that is off by default
        n_active = _count(trainer, "k", folder, n)
        if trained is not None and trained.tolist() != n_active:
            raise ModelFileError(f"k must be one number; in {folder} it is {n_active} and {trained}: take one release.")
    elif kind == "jumprelu" and "threshold" in tensors and not tensors["threshold"].ndim:
        tensors["threshold"] = tensors["threshold"].expand(n)
    norms = tensors.get("W_dec", torch.ones(1, 1)).float().norm(dim=-1)
    by_norm = name == "AutoEncoder" and not torch.allclose(norms, torch.ones_like(norms))
    return _autoencoder(folder, sample, kind, tensors, (d, n, d), centred, n_active=n_active, by_norm=by_norm)


def _gemma_scope(folder: Path, sample: Tensor | None) -> Autoencoder:
    def read(path: Path) -> dict[str, Tensor]:
        with path.open("rb") as file:
            return {name: torch.from_numpy(array) for name, array in np.load(file, allow_pickle=False).items()}

    tensors = _read(folder / "params.npz", read)
    weights, n, out = (tensors[name].numel() if name in tensors else 0 for name in ("W_enc", "b_enc", "b_dec"))
    return _autoencoder(folder, sample, "jumprelu", tensors, (weights // max(n, 1), n, out), centred=False)


def _autoencoder(
    folder: Path,
    sample: Tensor | None,
    kind: str,
    tensors: dict[str, Tensor],
    sizes: tuple[int, int, int],
    centred: bool,
    *,
    n_active: int | None = None,
    skips: bool = False,
    by_norm: bool = False,
) -> Autoencoder:
    """The module that these tensors make; ModelFileError unless names and sizes are as its kind has them.

    ``by_norm`` multiplies features by the norms of their rows of ``W_dec``, and divides the rows by them.
    """
    d, n, out = sizes
    shapes = {"W_enc": (d, n), "W_dec": (n, out), "b_dec": (out,), **dict.fromkeys(_VECTORS[kind], (n,))}
    shapes |= {"W_skip": (out, d)} if skips else {}
    for name in sorted(shapes.keys() | tensors.keys()):
        found, wanted = tensors.get(name), shapes.get(name)
        if found is None or found.shape != wanted or found.dtype not in NARROW or bool(found.isnan().any()):
            is_there = "is missing" if found is None else f"is {found.dtype} of shape {tuple(found.shape)}"
            raise ModelFileError(
                f"autoencoders of kind {kind} hold {shapes} in float32 or narrower, without NaN; in {folder} {name} "
                f"{is_there}: take all files of one release, unchanged."
            )
    part = {name: tensor.float() for name, tensor in tensors.items()}
    W_enc, W_dec, bias = part["W_enc"].t().contiguous(), part["W_dec"], part[_VECTORS[kind][0]]
    if by_norm:
        norms = W_dec.norm(dim=1)
        W_enc, W_dec, bias = W_enc * norms[:, None], W_dec / norms[:, None], bias * norms
    activation: nn.ReLU | Jump | Gate = nn.ReLU(inplace=True)
    if kind == "jumprelu":
        activation = Jump(part["threshold"].clamp(min=0))  # what is above is rectified
    elif kind == "gated":
        gain = part["r_mag"].double().exp()
        activation = Gate(gain.float(), (part["b_mag"] - gain * bias).float())
    encoder, decoder = (nn.Linear(*shape, device="meta") for shape in ((d, n), (n, out)))
    encoder.weight, encoder.bias = nn.Parameter(W_enc), nn.Parameter(bias)
    decoder.weight, decoder.bias = nn.Parameter(W_dec.contiguous().t()), nn.Parameter(part["b_dec"])
    return Autoencoder(
        encoder, decoder, activation, n_active=n_active, centred=centred, skip=part.get("W_skip"), sample=sample
    )


def _count(config: dict[str, Any], name: str, folder: Path, most: int | None = None) -> int:
    return checked_size(config.get(name), f"{name} in {folder}", maximum=most)


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _read(path: Path, read: Callable[[Path], Any]) -> dict[str, Any]:
    """The dictionary that a file holds; ModelFileError if it is damaged or of another kind."""
    try:
        found = read(path)
        if not isinstance(found, dict):
            raise TypeError(f"a {type(found).__name__}")
    except _DAMAGES as error:
        raise ModelFileError(f"{path} must be whole, as it was released; got {error}: download it again.") from error
    return found


_FORMATS: Final[dict[tuple[str, ...], Callable[[Path, Tensor | None], Autoencoder]]] = {
    ("cfg.json", "sae_weights.safetensors"): _sae_lens,
    ("config.json", "ae.pt"): _dictionary_learning,
    ("params.npz",): _gemma_scope,
}
