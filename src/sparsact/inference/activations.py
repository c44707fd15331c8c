"""Whether a traced expression is the activation of a feed-forward block, and the constants that it depends on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sparsact.inference.block import Activation
from sparsact.inference.expression import Expression, Leaf, Operation, alike, leaves, parts, replay
from sparsact.inference.thresholds import zero_below
from sparsact.inference.weight_cache import WeightVersion

NOT_NAMED = {"to_copy"}  # what the type of numbers is, not what they are


class NotAnActivation(Exception):  # noqa: N818 (an answer, never seen outside)
    """What keeps an expression from being the activation of a block."""


@dataclass(frozen=True, eq=False)
class Replay:
    """The activation of a block: what the model computes of pre-activations, (..., units), where ``up`` gives 1."""

    expression: Expression
    switch: Leaf
    up: Leaf | None
    precision: torch.dtype | None = None

    def __call__(self, pre_activations: Tensor) -> Tensor:
        """Activations of the same shape, in the type in which the model has them."""
        values = {self.switch: pre_activations}
        if self.up:
            values[self.up] = torch.ones_like(pre_activations)
        return replay(self.expression, values, self.precision)


def activation(expression: Expression, like: Tensor) -> tuple[Activation, Leaf, Leaf | None]:
    """The activation that an expression of one or two linear layers is; the layer that it acts on; that it scales.

    Parameters
    ----------
    expression : Expression
        What the next linear layer reads.
    like : Tensor
        Its type and device are those of pre-activations.

    Raises
    ------
    NotAnActivation
        If the expression mixes units, is affine, or of two layers is not f(one) * the other.
    """
    draw = _Draw(like, leaves(expression)[0].width)
    switch, up = _roles(expression, draw)
    f = Replay(expression, switch, up)
    _check_each_by_itself(f, draw)
    if _affine(f, draw):
        raise NotAnActivation("nothing but an affine function is between them")
    units = 1 if alike(expression) else draw.width
    thresholds = zero_below(lambda precision: Replay(expression, switch, up, precision), units, like)
    if thresholds is not None:
        thresholds = thresholds.expand(draw.width).contiguous()
    return Activation(_name(expression, switch), f, thresholds), switch, up


@dataclass(frozen=True)
class _Draw:
    """Numbers to probe with, the same every time."""

    like: Tensor
    width: int

    def __call__(self, rows: int, seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(rows, self.width, generator=generator, dtype=torch.float64).to(self.like) * 4


def _roles(expression: Expression, draw: _Draw) -> tuple[Leaf, Leaf | None]:
    """The layer that the activation acts on, and of a gated block the other."""
    found = leaves(expression)
    if len(found) == 1:
        return found[0], None
    for up, gate in (found, found[::-1]):
        if _scales(expression, gate, up, draw):
            if _scales(expression, up, gate, draw):
                raise NotAnActivation("their product has no activation")
            return gate, up
    raise NotAnActivation("what is computed of them is not a function of one, times the other")


def _scales(expression: Expression, gate: Leaf, up: Leaf, draw: _Draw) -> bool:
    """Whether the expression is f(gate) * up."""
    g, u = draw(37, 1), draw(37, 2)
    product = Replay(expression, gate, up)(g) * u
    eps = torch.finfo(draw.like.dtype).eps
    values = replay(expression, {gate: g, up: u})
    return torch.allclose(values, product, rtol=8 * eps, atol=eps * eps, equal_nan=True)


def _check_each_by_itself(f: Replay, draw: _Draw) -> None:
    """Changing every other unit changes nothing in the rest."""
    before, after = draw(5, 3), draw(5, 4)
    after[:, ::2] = before[:, ::2]
    if not torch.equal(f(before)[:, ::2].nan_to_num(), f(after)[:, ::2].nan_to_num()):
        raise NotAnActivation("a unit depends on others between them")


def _affine(f: Replay, draw: _Draw) -> bool:
    """Whether f(0), f(a), f(2a) and f(-a) lie on a line, for a of many magnitudes and all units."""
    steps = 10.0 ** torch.arange(-3, 4, dtype=torch.float64)[:, None].expand(-1, draw.width)
    at_0, at_a, at_2a, at_minus = (f((steps * k).to(draw.like)).double() for k in (0, 1, 2, -1))
    size = torch.stack([at_0, at_a, at_2a, at_minus]).abs().amax(0)
    rounding = 16 * torch.finfo(draw.like.dtype).eps * size
    line = ((at_a + at_minus - 2 * at_0).abs() <= rounding) & ((at_2a - 2 * at_a + at_0).abs() <= rounding)
    return bool(line.all())


def _name(expression: Expression, switch: Leaf) -> str:
    """The operations on the switch alone, in words."""
    path = [part for part in parts(expression) if isinstance(part, Operation) and leaves(part) == [switch]]
    return ", ".join(part.name for part in path if part.name not in NOT_NAMED)


class Constants:
    """Tensors of a model that an activation reads, by module and name, as they are now.

    Parameters
    ----------
    places : list of (nn.Module, str)
    """

    def __init__(self, places: list[tuple[nn.Module, str]]) -> None:
        self._places = places
        self._watch = WeightVersion(self._now()) if places else None

    def is_current(self) -> bool:
        """Whether none has moved or, as far as :class:`WeightVersion` sees it, changed."""
        return self._watch is None or self._watch.is_current(self._now())

    @property
    def trained(self) -> bool:
        """Whether gradients are being recorded for one of them."""
        return self._watch is not None and torch.is_grad_enabled() and any(one.requires_grad for one in self._now())

    def _now(self) -> list[Tensor]:
        return [_at(*place) for place in self._places]

    def __reduce__(self) -> tuple[type[Constants], tuple[list[tuple[nn.Module, str]]]]:
        """A copy is of the numbers that are copied with it."""
        return Constants, (self._places,)


def constants(model: nn.Module, activation: Activation) -> Constants | None:
    """What the activation reads of the model; None if it reads numbers that are computed from others as the model runs.

    Zeros count as numbers that are written in the model's code.
    """
    given = list(_tensors(activation))
    places = [(module, name) for module in model.modules() for name in (*module._parameters, *module._buffers)]
    found = [place for place in places if any(_shared(_at(*place), tensor) for tensor in given)] if given else []
    for tensor in given:
        if bool((tensor != 0).any()) and not any(_shared(_at(*place), tensor) for place in found):
            return None
    return None if any(_at(*place).is_inference() for place in found) else Constants(found)


def _tensors(activation: Activation) -> Iterator[Tensor]:
    if isinstance(activation.function, Replay):
        for part in parts(activation.function.expression):
            if isinstance(part, Operation):
                yield from (one for one in (*part.arguments, *part.keywords.values()) if isinstance(one, Tensor))


def _at(module: nn.Module, name: str) -> Tensor:
    """The tensor of that name; an empty one where there is none."""
    found = module._parameters.get(name, module._buffers.get(name))
    return torch.empty(0) if found is None else found


def _shared(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors lie in the same memory."""
    return one.numel() > 0 and one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
