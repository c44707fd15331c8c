"""Errors of quantised layers, and column scales where a few large inputs take the digits of the rest."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import torch
from torch import Tensor, nn

from sparsact.inference.batches import Batch, observe
from sparsact.inference.layer_facts import WeightRows

# Of outputs, relative: several times the error that rounding makes with normal weights and inputs.
LARGEST_ERROR: Final = {"int8": 0.05, "int4": 0.25}
REMEDY: Final = {"int8": 'weights="keep"', "int4": 'weights="int8"'}
LARGEST_EXPONENT: Final = 60  # of a column scale: a product of it and a float32 of usual size does not overflow


def layer_errors(model: nn.Module, names: Sequence[str], shown: Sequence[Batch]) -> dict[str, float]:
    """Relative error of each quantised layer's output over the batches, for the inputs that it receives."""
    layers: dict[str, Any] = {name: model.get_submodule(name) for name in names}
    squares = {name: torch.zeros(2, dtype=torch.float64) for name in names}

    def add(name: str, args: tuple[Tensor, ...], output: Tensor) -> None:
        expected = layers[name].dense(args[0]).double()
        rest = output.double() - expected
        both = [part[expected.isfinite()].square().sum() for part in (rest, expected)]
        squares[name] += torch.stack(both).cpu()

    observe(model, names, shown, add)
    return {name: float((error / size).sqrt()) if size else 0.0 for name, (error, size) in squares.items()}


def smooth(model: nn.Module, errors: dict[str, float], weights: str, shown: Sequence[Batch]) -> set[str]:
    """Scale the columns of layers with large errors, update these, and return the names of the layers that gained."""
    large = [name for name, error in errors.items() if error > LARGEST_ERROR[weights]]
    if not large:
        return set()
    layers: dict[str, Any] = {name: model.get_submodule(name) for name in large}
    before = {name: layer._sparse.weights for name, layer in layers.items()}
    for name, sizes in _largest_inputs(model, layers, shown).items():
        layers[name]._sparse.smooth(column_scales(WeightRows().of(layers[name])[0], sizes))
    after = layer_errors(model, large, shown)
    gained = {name for name in large if after[name] < errors[name]}
    for name in layers.keys() - gained:
        layers[name]._sparse.weights = before[name]
    errors |= {name: after[name] for name in gained}
    return gained


def column_scales(weight: Tensor, sizes: Tensor) -> Tensor:
    r"""Powers of two c (inputs,), float32, so that column k of W diag(c)^-1 and input k of diag(c) x vary alike.

    .. math:: c_k \approx \lambda \sqrt{\max_j |w_{jk}| \,/\, \max |x_k|}

    as in SmoothQuant [1]_ with an exponent of 1/2; products with them are exact. The largest weight stays as large as
    it was, so that no input becomes larger than the largest was.

    Parameters
    ----------
    weight : Tensor of shape (outputs, inputs)
    sizes : Tensor of shape (inputs,)
        Largest absolute value of each input; 0 is replaced by the median of the others.

    References
    ----------
    .. [1] G. Xiao et al., "SmoothQuant: Accurate and Efficient Post-Training Quantization for Large Language Models",
       2023, eq. 4.

    Examples
    --------
    >>> column_scales(torch.tensor([[1.0, -1.0], [0.5, 1 / 256]]), torch.tensor([1.0, 256.0]))
    tensor([16.,  1.])
    """
    columns = weight.detach().abs().amax(0).double().cpu()
    sizes = torch.where(sizes > 0, sizes, sizes[sizes > 0].median()) if sizes.any() else torch.ones_like(sizes)
    balanced = (columns * sizes).sqrt()
    largest = (balanced.max() / columns.max().clamp(min=1e-300)).clamp(min=1e-300)
    exponents = (largest * (columns / sizes).sqrt()).log2().round()
    return exponents.clamp(-LARGEST_EXPONENT, LARGEST_EXPONENT).exp2().float()


def warn_of_errors(weights: str, errors: Mapping[str, float], output_error: float) -> None:
    """Warn if quantisation changes what a layer, or the model, returns by more than is usual."""
    limit = LARGEST_ERROR[weights]
    large = {name: error for name, error in errors.items() if not error <= limit}  # NaN: only the float is finite
    if large or output_error > limit:
        worst = sorted(large, key=lambda name: -large[name])
        named = ", ".join(f"{name} ({large[name]:.0%})" for name in worst[:5])
        more = f" and {len(worst) - 5} more" if len(worst) > 5 else ""
        layers = f", and of layers {named}{more}" if large else ""
        warnings.warn(
            f"outputs should change by at most {limit:.0%} under {weights} weights; relative errors on the inputs "
            f"shown are {output_error:.0%} of the model's outputs{layers}: pass {REMEDY[weights]}, or check that this "
            "is accurate enough for you.",
            UserWarning,
            stacklevel=5,
        )


def _largest_inputs(model: nn.Module, names: Iterable[str], shown: Sequence[Batch]) -> dict[str, Tensor]:
    """Largest absolute value of each input (inputs,) of the layers over the batches, float64."""
    found: dict[str, Tensor] = {}

    def add(name: str, args: tuple[Tensor, ...], output: Tensor) -> None:
        if args[0].numel():
            sizes = args[0].detach().abs().reshape(-1, args[0].shape[-1]).amax(0).double().cpu()
            found[name] = sizes.maximum(found.get(name, sizes))

    observe(model, names, shown, add)
    return found
