r"""A certified screen: proves units to be off before their weights are read.

A unit of a rectified layer is zero when :math:`\langle w_j, x\rangle + b_j \le t_j`. The screen proves that for most of
the units that are off, from an int8 copy of the weights: half the bytes of bfloat16, a quarter of float32's.
Units that it does not prove off are left to be computed. The statement is about real numbers: a layer that computes
the survivors and takes zero elsewhere equals the dense layer up to the order of summation, for every input.

**Proof.** Let :math:`c` be powers of two, :math:`x' = x / c` and :math:`w' = w \circ c`, coordinate by coordinate; both
are exact in float64, for weights and inputs are float32 or narrower and :math:`2^{-60} \le c_i \le 2^{60}`. Then
:math:`\langle w, x\rangle = \langle w', x'\rangle`.

*For each unit* the screen keeps a scale :math:`a > 0`, integers :math:`|q_i| \le 127`, and coefficients :math:`G` along
directions :math:`m_1, \ldots, m_k` (rows of :math:`M`), so that

.. math:: w' = a q + r, \qquad r = M^T G + r', \qquad Q \ge a \|q\|, \qquad R \ge \|r'\|,
          \qquad |\langle r', m_t \rangle| \le \delta R .

*For each input* it takes a power of two :math:`b` with :math:`|x'_i / b| \le 32639`, and :math:`z = x' / b`,
:math:`p = \operatorname{rint}(z)`, :math:`h \approx M z`. A :math:`p_i` is 256 times one byte plus another, so that
:math:`I = \langle q, p \rangle` comes exactly from two products of bytes. The rest :math:`z - p` is exact, for
:math:`z_i` has 24 bits. With :math:`E \ge \|z - p\|` and :math:`N \ge \|z - M^T h\| + \delta \|h\|_1`, by
Cauchy-Schwarz,

.. math:: \langle w', z \rangle
          &= a I + a \langle q, z - p \rangle + \langle G, M z \rangle + \langle r', z - M^T h \rangle
            + \sum_t h_t \langle r', m_t \rangle \\
          &\le a I + Q E + \langle G, M z \rangle + R N ,

    \langle w, x \rangle + b_j - t_j \le U = b \, (a I + \langle G, h \rangle + Q E + R N) + (b_j - t_j) .

Any :math:`M` will do; when it spans what inputs have in common, a mean or outlying coordinates, :math:`N` is
much less than :math:`\|z\|`.

*Rounding.* Let :math:`u = 2^{-53}` and :math:`d \le 2^{16}`, :math:`k \le 64`, :math:`\|m_t\| \le 2`. Sums of d terms
of one sign are computed to :math:`2^{-36}`, relatively: norms are multiplied by :math:`1 + 2^{-30}`. Computed
:math:`h_t` differ from :math:`\langle m_t, z \rangle` by at most :math:`2^{-35} \|z\|`, the computed
:math:`z - M^T h` from the exact one by at most :math:`2^{-34} \|z\|`, and the computed :math:`r'` by at most
:math:`2^{-44} (\|r\| + \|G\|_1)`. So

.. math:: R &= (1 + 2^{-30}) \left(\|r'\| + 2^{-16} (\|G\|_1 + \|r\|)\right), \\
          N &= (1 + 2^{-30}) \left(\|z - M^T h\| + \delta \|h\|_1 + 2^{-18} \|z\|\right)

of computed norms hold, and :math:`2^{-16} \|G\|_1 \cdot 2^{-18} \|z\|` covers
:math:`\langle G, M z - h \rangle`. :math:`\delta` is the largest computed ratio plus :math:`2^{-26}`. The sum
:math:`U` takes fewer than :math:`2^8` operations in float64, each wrong by :math:`u` times the sum of the sizes of its
terms at most, so that :math:`U` plus :math:`2^{-45}` times that sum is at least the true one. Exponents stay between
:math:`-800` and :math:`800`: nothing over- or underflows, except where a float32 in G does, which :math:`r'` then
takes up. Rows, biases and inputs that are not finite make U NaN or infinite, and ``U <= 0`` false: nothing is proved. A
threshold of infinity is one below which everything lies.

*Lower bounds.* :math:`-w` has the copy :math:`-q`, :math:`-G`, with the same :math:`a, Q, R, \delta`, and
floating-point numbers are negated exactly. So :math:`L = b \, (a I + \langle G, h \rangle - Q E - R N) + (b_j - t_j)`,
less the same slack, is minus the upper bound of :math:`\langle -w, x \rangle - (b_j - t_j)`: a lower bound.

*Bounds of rounded outputs.* A sum of d products and a bias in float32, in any order, with or without fused
operations, differs from the real one by at most :math:`\gamma (\|w'\| \|x'\| + |b_j|) + \epsilon` with
:math:`\gamma = 1.1 (d + 2) 2^{-24}`, where no partial sum overflows: for that :math:`\|w'\| \|x'\|` may be a quarter of
the dtype's largest number. :math:`\epsilon` is for numbers that are not normal, also where they are flushed to zero.
Rounding the sum to the dtype changes it by at most its ``eps`` times its size. R may be replaced by any larger number:
with :math:`R \ge 2^{-8} \|w'\|`, :math:`N + 2^8 \gamma \|z\|` in place of N and a slack of :math:`2^{-45} + \gamma +`
``eps`` times the sizes of the terms, plus :math:`\epsilon`, cover all of this.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Final

import torch
from torch import Tensor

from sparsact.inference.int8_copy import Int8Copy, int8_copy, scales_and_directions
from sparsact.kernels.screen import MAX_INPUTS, screen

NARROW: Final = (torch.float32, torch.bfloat16, torch.float16)  # dtypes that are screened or quantised


@dataclass(frozen=True, eq=False)
class Screen(Int8Copy):
    """Proves for each input that most inactive units are inactive; the module's docstring holds the proof.

    Attributes
    ----------
    offset : Tensor of shape (s,), float64
        b - t.
    columns : Tensor of shape (d,), float64
        c.
    directions : Tensor of shape (k, d), float32
        M.

    Examples
    --------
    >>> import torch
    >>> from sparsact.inference.certified_screen import Screen
    >>> screen = Screen.of(torch.eye(3), torch.tensor([0.0, -1.0, -3.0]))
    >>> screen.survivors(torch.tensor([[2.0, 2.0, 2.0]]))
    tensor([[ True,  True, False]])
    """

    offset: Tensor
    columns: Tensor
    directions: Tensor

    @classmethod
    def of(
        cls, weight: Tensor, bias: Tensor | None = None, threshold: Tensor | None = None, sample: Tensor | None = None
    ) -> Screen:
        """The screen of a layer.

        Parameters
        ----------
        weight : Tensor of shape (s, d)
            float32, bfloat16 or float16.
        bias : Tensor of shape (s,), optional
        threshold : Tensor of shape (s,), optional
            t; by default 0, that of ReLU.
        sample : Tensor of shape (n, d), optional
            Some hundred typical inputs of the layer, which make the bounds tighter. They hold for all inputs.

        Raises
        ------
        TypeError
            If ``weight`` is wider than float32.
        ValueError
            If shapes disagree, ``sample`` has no finite row, or d is 0 or exceeds 65,536.
        """
        if weight.dtype not in NARROW:
            raise TypeError(
                f"`weight` must be float32, bfloat16 or float16, which the bounds cover; got {weight.dtype}."
            )
        if weight.ndim != 2 or not 1 <= weight.shape[1] <= MAX_INPUTS:
            raise ValueError(f"`weight` must have shape (s, d) with 1 <= d <= {MAX_INPUTS}; got {tuple(weight.shape)}.")
        weight = weight.detach().cpu()
        s, d = weight.shape
        columns, directions = torch.ones(d, dtype=torch.float64), torch.empty(0, d)
        if sample is not None:
            points = _points(sample, d)
            columns, directions = scales_and_directions(weight, points)
        copy = int8_copy(weight, columns, directions)
        return cls(**vars(copy), offset=offsets(bias, threshold, s), columns=columns, directions=directions)

    def survivors(self, x: Tensor) -> Tensor:
        """Units that are not proved inactive, (m, s), bool, for inputs x (m, d) in float32, bfloat16 or float16."""
        return self.active(self._checked(x)).view(torch.bool)

    def active(self, x: Tensor) -> Tensor:
        """:meth:`survivors` as bytes, for contiguous inputs of a dtype that the kernel takes, which are not checked."""
        rows = len(x)
        found = torch.empty(rows, len(self.a), dtype=torch.uint8)
        counts = self._counts if rows <= len(self._counts) else torch.empty(rows, dtype=torch.int64)
        self.kernel.survivors(
            x.data_ptr(), NARROW.index(x.dtype), rows, found.data_ptr(), counts.data_ptr(), torch.get_num_threads()
        )
        return found

    def upper_bounds(self, x: Tensor) -> Tensor:
        """Upper bounds of pre-activations minus thresholds, (m, s), float64; NaN where nothing is known."""
        x = self._checked(x)
        bounds = torch.empty(len(x), len(self.a), dtype=torch.float64)
        self.kernel.bounds(x.data_ptr(), NARROW.index(x.dtype), len(x), bounds.data_ptr(), torch.get_num_threads())
        return bounds

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the screen holds."""
        return sum(part.nbytes for part in self._parts() if isinstance(part, Tensor))

    @cached_property
    def _counts(self) -> Tensor:
        """Buffer for counts that the kernel writes and nobody reads."""
        return torch.empty(16, dtype=torch.int64)

    @cached_property
    def kernel(self) -> Any:
        """The screen as kernels hold it."""
        rows, a, Q, R, offset = (part.numpy() for part in (self.rows, self.a, self.Q, self.R, self.offset))
        along, columns, directions = self.along.numpy(), (1 / self.columns).numpy(), self.directions.numpy()
        return screen(rows, a, Q, R, offset, along, columns, directions, self.leak)

    def _checked(self, x: Tensor) -> Tensor:
        """Inputs as the kernel takes them."""
        d = len(self.columns)
        if x.ndim != 2 or x.shape[1] != d or x.dtype not in NARROW:
            raise ValueError(
                f"inputs must have shape (m, {d}) in float32, bfloat16 or float16; got {tuple(x.shape)}, {x.dtype}."
            )
        return x.detach().contiguous()

    def _parts(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and files hold the numbers, not the kernel, which holds addresses."""
        return Screen, self._parts()


def _points(sample: Tensor, d: int) -> Tensor:
    """The finite rows of a sample, in float64."""
    if sample.shape[-1:] != (d,):
        raise ValueError(f"`sample` must have shape (..., {d}), inputs of the layer; got {tuple(sample.shape)}.")
    points = sample.detach().cpu().reshape(-1, d).double()
    points = points[points.isfinite().all(1)]
    if not len(points):
        raise ValueError(f"`sample` must hold finite inputs of {d} numbers; none of its {len(sample)} rows is finite.")
    return points


def offsets(bias: Tensor | None, threshold: Tensor | None, s: int) -> Tensor:
    """Biases minus thresholds of s units."""
    return _per_unit(bias, s, "bias") - _per_unit(threshold, s, "threshold")


def _per_unit(values: Tensor | None, s: int, name: str) -> Tensor:
    if values is None:
        return torch.zeros(s, dtype=torch.float64)
    if values.shape != (s,):
        raise ValueError(f"`{name}` must have shape ({s},), one number per unit; got {tuple(values.shape)}.")
    return values.detach().cpu().double()
