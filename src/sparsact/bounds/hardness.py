r"""What sparsely activated networks can express, and hence how hard they are to learn: Section 4 of the paper.

References
----------
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Section 4.
.. [B] A. Blum et al., "Weakly learning DNF and characterizing statistical query learning", STOC 1994.
"""

from __future__ import annotations

from math import inf, log2, sqrt
from typing import Final, NamedTuple

from sparsact.bounds.arithmetic import spelled
from sparsact.bounds.registry import bound, log_bound

_LARGEST_EXACT: Final = 1 << 16  # bits of an exact number of units


class NetworkSize(NamedTuple):
    """Inputs, units and scale (W, B) of Definition 2 that suffice to express a class of functions."""

    n_inputs: int
    n_units: int | float
    W: float
    B: float

    def __repr__(self) -> str:
        return f"NetworkSize({', '.join(f'{name}={spelled(number)}' for name, number in self._asdict().items())})"


@bound("Theorem 13", "A", "proved", "size of a network for any p-junta")
def junta_size(p: int) -> NetworkSize:
    r"""Size of a 1-sparse network for any function of p of its variables with values +-1 (proof of Theorem 13).

    *Proved*: :math:`2^p` units, :math:`W = \frac12 \sqrt p`, :math:`B = \frac12 |p - 2|`; exactly one unit is active on
    every input. Half of the paper's :math:`W = \sqrt p`, :math:`B = p - 1` (except B at p = 1), because
    :func:`~sparsact.constructions.junta` uses ties. The least number of inputs is p; a constant (p = 0) is one unit
    without weights and threshold -2. The number of units is exact up to p = 65,536, and infinite beyond.

    >>> junta_size(3)
    NetworkSize(n_inputs=3, n_units=8, W=0.8660254037844386, B=0.5)
    >>> junta_size(20_000).n_units == 2**20_000
    True
    """
    units = 2 ** int(p) if p <= _LARGEST_EXACT else inf
    return NetworkSize(max(1, int(p)), units, sqrt(p) / 2, abs(p - 2) / 2)


@log_bound("Theorem 13", "A", "conjectured", "time to learn 1-sparse networks, at least")
def junta_time(n: int, s: int, *, c: float = 1.0) -> float:
    r"""Time that learning 1-sparse networks of s units takes if juntas are hard (Theorem 13): :math:`n^{c \log_2 s}`.

    *Conjectured*: it rests on Conjecture 12 (no algorithm learns p-juntas in time :math:`n^{o(p)}`), which says that
    some c > 0 exists. It holds already with :math:`W = \frac12 \sqrt{\log_2 s}` and :math:`B = \frac12 |\log_2 s - 2|`
    (printed: :math:`\sqrt{\log_2 s}` and :math:`\log_2 s`), under uniform inputs.
    """
    return c * log2(s) * log2(n)


@log_bound("Theorem 14", "A", "up to constants", "statistical queries, at least")
def parity_queries(length: int, tau: float, *, c: float = 1.0) -> float:
    r"""Statistical queries to learn parities of m = ``length`` bits (Theorem 14): :math:`c\, 2^m \tau^2`.

    *Up to constants*: a theorem of Blum et al. (1994) whose constant c the paper does not state; tau is the tolerance.
    By :func:`lifted_parity_size` it holds for 1-sparse networks on :math:`m^2` inputs, under the lifted distribution.

    >>> parity_queries(20, tau=0.125)
    16384.0
    """
    return length + 2 * log2(tau) + log2(c)


@bound("Section 4, parity", "A", "proved", "size of a network for a lifted parity")
def lifted_parity_size(length: int) -> NetworkSize:
    r"""Size of a network for any parity of m = ``length`` bits, 0 or 1, on lifted points :math:`(y_i, y_i y_j)`.

    *Proved*, and 1-sparse on lifted points only. Mended (Section 4): :math:`\lfloor m/2 \rfloor + 1` units, one for
    each a in -m..m with :math:`a = m \pmod 4`, at most; weights are -1/4 within S alone and a/2 on its diagonal;
    :math:`b = \frac14 (|S| + a^2) - 1`; u = 1. So :math:`W = \frac14 \sqrt{m(m-1) + 4 m^3}` and
    :math:`B = \max\{1, \frac14 (m + m^2) - 1\}`, which no smaller S exceeds; the constant (no S) has B = 1. An
    eighth of what the paper's bumps :math:`2 \sigma(\frac12 - (\cdot)^2)` need: :func:`~sparsact.constructions.parity`
    uses ties.

    >>> lifted_parity_size(3)
    NetworkSize(n_inputs=9, n_units=2, W=2.669269563007828, B=2.0)
    """
    m = int(length)
    return NetworkSize(m * m, m // 2 + 1, sqrt(m * (m - 1) + 4.0 * m**3) / 4, max(1.0, (m + m * m) / 4 - 1))


@bound("Section 4, rounding", "A", "proved", "units of a network for lifted rounding")
def rounding_units(length: int, p_modulus: int, q_modulus: int) -> float:
    r"""Units of a network to learn with rounding, m = ``length`` entries modulo q (Section 4): :math:`m (q - 1)^2 + 1`.

    *Proved*, and 1-sparse on lifted points only: one unit for each value of :math:`\langle w, y \rangle`, which lies in
    :math:`0 \dots m (q-1)^2`. The paper counts :math:`O(q^2 m)`. That no polynomial algorithm solves the problem is
    Conjecture 16; where p divides q, reduction modulo p (the printed Definition 15) is linear and easy, and rounding
    is meant. Modulo a prime q that is easy, too, if q / p is constant: see
    :class:`~sparsact.hardness.LearningWithRounding`.

    Raises
    ------
    ValueError
        Unless 2 <= p < q: with p = 1 every value is 0, and p >= q rounds nothing.
    """
    if p_modulus >= q_modulus:
        raise ValueError(
            f"`p_modulus` must be below `q_modulus`, or nothing is rounded; got p = {p_modulus}, q = {q_modulus}."
        )
    return float(int(length) * (int(q_modulus) - 1) ** 2 + 1)
