r"""The maximum number of active units in each layer of a stack, over all points of the cube.

The inputs of layer l are the image of the cube under the layers below. What can be said of it:

- Up to n = 24 every point is computed, and active units are counted exactly.
- *From above*, for any n: a unit of layer l is on only where :math:`V_j x - b_j + \rho_j > 0`, with :math:`\rho_j` the
  largest :math:`W_j a` for outputs a within their bounds with at most :math:`k_{l-1}` nonzeros. So no point
  switches on more units than it does of a network with weights V and thresholds :math:`b - \rho`, which is certified as
  any other. That proves gates that close on all that can come from below.
- If that leaves a gap, a mixed-integer program holds all layers below: x in 0 and 1, for each unit its output a and a
  binary d with :math:`z \le a \le z + N(1 - d)`, :math:`0 \le a \le M d`, and :math:`\sum d \le k_l`.
- *From below*: units that random points, and solutions of the program, switch on by exact count.

Rows of the program are scaled to pre-activations below 1 and then relaxed by ``SLACK``, more than rounding, tolerances
and dropped weights of HiGHS amount to. So points are only added, and the bound stays valid; what is trusted is the
search of HiGHS, as in :mod:`sparsact.certificate.milp`. A unit whose pre-activation is zero counts as
off where pre-activations do not round, and as active otherwise.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsact.activity import Certificate, StackCertificate
from sparsact.certificate.milp import Program, solve
from sparsact.certificate.most_active import certify
from sparsact.certificate.sampling import certificate_of_sample
from sparsact.certificate.symmetry import Variables
from sparsact.hypercube import bits_to_signs
from sparsact.network import SparselyActivatedNetwork
from sparsact.stack import Array, Stack, most_outputs, reach_from_below
from sparsact.validation.parameters import (
    checked_generator,
    checked_limit,
    checked_option,
    checked_probability,
    checked_size,
)

METHODS_OF_STACKS: Final = ("auto", "enumeration", "milp", "sampled")
MOST_INPUTS: Final = 24
MULTIPLICATIONS: Final = 2**35  # of an enumeration that "auto" takes, some seconds
POINTS_AT_ONCE: Final = 2**16
WITNESSES: Final = 2**13  # random points
SLACK: Final = 1e-6


def certify_stack(
    stack: Stack,
    method: str = "auto",
    *,
    time_limit: float = 60.0,
    n_samples: int = 10_000,
    confidence: float = 0.99,
    rng: np.random.Generator | None = None,
) -> StackCertificate:
    """Find the maximum number of active units in each layer of a stack, over all points of the cube.

    Parameters
    ----------
    stack : Stack
        On n inputs.
    method : {"auto", "enumeration", "milp", "sampled"}
        - ``"enumeration"``: every point, n up to 24; exact, with the distribution;
        - ``"milp"``: proved bounds from above, at any n, and witnesses from below; exact where they meet;
        - ``"sampled"``: no proof, but bounds on how often more units are active than the sample shows, which hold for
          all layers together with the given confidence;
        - ``"auto"``: enumeration where that is a matter of seconds, else ``"milp"``.
    time_limit : float
        Seconds for ``"milp"``.
    n_samples, confidence
        For ``"sampled"``.
    rng : numpy.random.Generator, optional
        Draws the sample, and the points that ``"milp"`` begins with (seed 0 by default).

    Returns
    -------
    certificate : StackCertificate

    Notes
    -----
    An enumeration takes :math:`2^n` evaluations. The first layer is certified like a network. The bounds of higher
    layers depend on the bounds of the layers below, so a gap grows from layer to layer.

    Examples
    --------
    >>> stack = Stack([1.0, -1.0], [([[1, 1], [-1, -1]], [1, 1]), ([[2, 2], [-1, -1]], [1, -1])])
    >>> print(certify_stack(stack))
    layer 1: at most 1 of 2 units is active at any point of {-1,1}^2: proved by enumeration of all 4 points
    layer 2: at most 1 of 2 units is active at any point of {-1,1}^2: proved by enumeration of all 4 points
    all layers: at most 2 of 4 units are active at any point of {-1,1}^2: proved by enumeration of all 4 points
    """
    start = time.perf_counter()
    checked_option(method, "`method`", METHODS_OF_STACKS)
    if not isinstance(stack, Stack):
        raise TypeError(f"certify_stack takes a Stack; got {type(stack).__name__}.")
    rng = np.random.default_rng(0) if rng is None else checked_generator(rng)
    work = 2**stack.n * sum(s * (stack.n + r) for s, r in zip(stack.n_units, (0, *stack.n_units), strict=False))
    if method == "auto":
        method = "enumeration" if stack.n <= MOST_INPUTS and work <= MULTIPLICATIONS else "milp"
    if method == "enumeration":
        found = _enumerated(stack)
    elif method == "sampled":
        found = _sampled(
            stack, checked_size(n_samples, "`n_samples`"), checked_probability(confidence, "`confidence`"), rng
        )
    else:
        checked_limit(time_limit, "`time_limit`")
        found = _bounded(stack, time.monotonic() + time_limit, rng)
    seconds = time.perf_counter() - start
    *layers, whole = (replace(one, seconds=seconds) for one in found)
    return StackCertificate(tuple(layers), whole)


def _with_total(counts: NDArray[np.intp]) -> NDArray[np.intp]:
    return np.column_stack([counts, counts.sum(axis=1)])


def _sizes(stack: Stack) -> tuple[int, ...]:
    return (*stack.n_units, sum(stack.n_units))


def _enumerated(stack: Stack) -> list[Certificate]:
    if stack.n > MOST_INPUTS:
        raise ValueError(f"enumeration takes up to {MOST_INPUTS} inputs; there are {stack.n}: use method='milp'.")
    sizes, total = _sizes(stack), 2**stack.n
    tallies = [np.zeros(size + 1, dtype=np.int64) for size in sizes]
    witnesses: list[NDArray[np.int8]] = [np.ones(stack.n, dtype=np.int8)] * len(sizes)
    for first in range(0, total, POINTS_AT_ONCE):
        numbers = np.arange(first, min(first + POINTS_AT_ONCE, total))
        X = bits_to_signs(numbers[:, None] >> np.arange(stack.n) & 1)
        for part, counts in enumerate(_with_total(stack.n_active(X)).T):
            if first == 0 or counts.max() >= np.flatnonzero(tallies[part])[-1] + 1:
                witnesses[part] = X[counts.argmax()]
            tallies[part] += np.bincount(counts, minlength=sizes[part] + 1)
    found = []
    for tally, witness, size in zip(tallies, witnesses, sizes, strict=True):
        most = int(np.flatnonzero(tally)[-1])
        proof, inputs = f"enumeration of all {total:,} points", f"any point of {{-1,1}}^{stack.n}"
        distribution = tuple(tally[: most + 1].tolist())
        found.append(Certificate(most, most, witness, "enumeration", proof, inputs, size, distribution=distribution))
    return found


def _sampled(stack: Stack, n_samples: int, confidence: float, rng: np.random.Generator) -> list[Certificate]:
    X = bits_to_signs(rng.integers(2, size=(n_samples, stack.n), dtype=np.int8))
    each = 1 - (1 - confidence) / (stack.depth + 1)
    where = f"a uniform point of {{-1,1}}^{stack.n}"
    counted = zip(_with_total(stack.n_active(X)).T, _sizes(stack), strict=True)
    return [certificate_of_sample(X, counts, size, size, where, None, each) for counts, size in counted]


def _bounded(stack: Stack, deadline: float, rng: np.random.Generator) -> list[Certificate]:
    inputs = f"any point of {{-1,1}}^{stack.n}"
    X = bits_to_signs(rng.integers(2, size=(WITNESSES, stack.n), dtype=np.int8))
    first = certify(stack.first, time_limit=max(0.0, (deadline - time.monotonic()) / stack.depth), rng=rng)
    found, upper = [first], [first.upper]
    extra = [] if first.witness is None else [np.asarray(first.witness, dtype=np.int8)]
    for layer in range(1, stack.depth):
        counts = stack.n_active(X)[:, layer]
        best = int(counts.argmax())
        lower, witness = int(counts[best]), X[best]
        most, proof, doubt = _by_gates(stack, layer, upper, deadline), "gates on the inputs", ""
        if lower < most and (left := deadline - time.monotonic()) > 0:
            answer = solve(program_of_stack(stack, layer, upper), left / (stack.depth - layer))
            if answer.t is not None:
                point = bits_to_signs(np.rint(answer.t[: stack.n]))
                extra.append(point)
                if (count := int(stack.n_active(point[None])[0, layer])) > lower:
                    lower, witness = count, point
            if not answer.failed and answer.bound < most:
                most, proof = max(lower, answer.bound), "mixed-integer programming"
        if lower < most:
            doubt = "the bound from above is not attained by any point found"
        upper.append(most)
        found.append(Certificate(lower, most, witness, "milp", proof, inputs, stack.n_units[layer], doubt=doubt))
    X = np.concatenate([X, *(point[None] for point in extra)])
    totals = stack.n_active(X).sum(axis=1)
    best = int(totals.argmax())
    proof = "the sum of the bounds of the layers"
    found.append(Certificate(int(totals[best]), sum(upper), X[best], "milp", proof, inputs, sum(stack.n_units)))
    return found


def _by_gates(stack: Stack, layer: int, active: list[int], deadline: float) -> int:
    """No point switches on more units of the layer, whatever outputs within their bounds come from below."""
    W, b, V = stack.layers[layer]
    most = most_outputs(stack, active)[layer - 1]
    rho = reach_from_below(W, most, active[-1])
    thresholds = b - rho
    thresholds -= 1e-12 * (np.abs(b) + np.abs(W) @ most)
    relaxed = SparselyActivatedNetwork(np.ones(len(b)), np.zeros((len(b), stack.n)) if V is None else V, thresholds)
    left = max(0.0, deadline - time.monotonic())
    return certify(relaxed, time_limit=left / (2 * (stack.depth - layer))).upper


def program_of_stack(stack: Stack, layer: int, active: list[int]) -> Program:
    """The mixed-integer program of most active units of a layer; ``active`` bounds the layers below.

    Variables are t in 0 and 1 with x = 1 - 2 t, then for each layer below outputs over their scale and binaries, and
    the indicators of the layer.
    """
    most = most_outputs(stack, active)
    exact = stack.grid()[layer]
    sizes = [stack.n] + [2 * s for s in stack.n_units[:layer]] + [stack.n_units[layer]]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    rows, right = list[Array](), list[Array]()
    a_scale, a_at = np.ones(0), slice(0, 0)
    for level, (W, b, V) in enumerate(stack.layers[: layer + 1]):
        s = len(b)
        direct = W if not level else np.zeros((s, stack.n)) if V is None else V
        z = np.zeros((s, starts[-1]))  # pre-activations are z @ variables + constant
        z[:, : stack.n] = -2 * direct
        constant = direct.sum(axis=1) - b
        least = np.abs(direct).sum(axis=1) + b
        if level:
            z[:, a_at] = W * a_scale
            least = least + reach_from_below(-W, most[level - 1], active[level - 1])
        scale = np.exp2(np.ceil(np.log2(np.maximum.reduce([most[level], least, np.full(s, 1e-300)]))))
        z, constant, least = z / scale[:, None], constant / scale, least / scale + SLACK
        one = np.eye(s)
        if level == layer:  # indicator 1: z >= theta
            theta = np.where(exact[0], np.ldexp(1.0, exact[1]) / scale, 0.0)
            big = least + theta
            row = -z
            row[:, starts[level + 1] :] += one * big[:, None]
            rows.append(row)
            right.append(constant - theta + big + SLACK)
            break
        a_at, d_at = slice(starts[level + 1], starts[level + 1] + s), slice(starts[level + 1] + s, starts[level + 2])
        above = z.copy()  # z <= a
        above[:, a_at] -= one
        below = -z  # a <= z + N (1 - d)
        below[:, a_at] += one
        below[:, d_at] += one * least[:, None]
        off = np.zeros_like(z)  # a <= M d
        off[:, a_at] += one
        off[:, d_at] -= one * (most[level] / scale)[:, None]
        together = np.zeros((1, starts[-1]))
        together[0, d_at] = 1
        rows += [above, below, off, together]
        right += [-constant + SLACK, constant + least + SLACK, np.full(s, SLACK), np.array([float(active[level])])]
        a_scale = scale
    size = starts[-2]
    integral = np.ones(size, dtype=bool)
    for level, s in enumerate(stack.n_units[:layer]):
        integral[starts[level + 1] : starts[level + 1] + s] = False
    variables = Variables(np.ones(size), integral, sp.csr_array((0, size)), np.zeros(0), np.zeros(0, dtype=np.intp))
    return Program(variables, stack.n_units[layer], sp.csr_array(np.concatenate(rows)), np.concatenate(right))
