"""The points over which a certificate holds: the cube, its part within half-spaces, or the image of a lift."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint

from sparsact.exact_sign import exact_signs
from sparsact.lift import Lift

InputsLike: TypeAlias = LinearConstraint | Sequence[LinearConstraint] | Lift | None


@dataclass(frozen=True, eq=False)
class Inputs:
    r"""The signs x with :math:`\langle a, x \rangle \ge c` for every half-space, or x(y) for every y of a lift.

    The half-spaces are ``normals`` (q, n) and ``offsets`` (q,); there are none with a lift.
    """

    n: int
    normals: NDArray[np.float64]
    offsets: NDArray[np.float64]
    lift: Lift | None
    words: str

    @classmethod
    def of(cls, inputs: InputsLike, n: int) -> Inputs:
        """The inputs of None (the cube), one linear constraint or several, or a lift, on n coordinates."""
        nothing = np.zeros((0, n)), np.zeros(0)
        if isinstance(inputs, Lift):
            if inputs.n != n:
                raise ValueError(f"the lift must have {n} outputs, the inputs of the network; it has {inputs.n}.")
            words = f"any lifted point x(y), y in {{-1,1}}^{inputs.m}, of {{-1,1}}^{n}"
            return cls(n, *nothing, inputs, words)
        if inputs is None:
            return cls(n, *nothing, None, f"any point of {{-1,1}}^{n}")
        constraints = [inputs] if isinstance(inputs, LinearConstraint) else inputs
        if not isinstance(constraints, Sequence) or not all(isinstance(c, LinearConstraint) for c in constraints):
            remedy = ": pass its `quadratic`" if hasattr(inputs, "quadratic") else ""
            raise TypeError(
                "`inputs` must be None, a scipy.optimize.LinearConstraint, a list of them, or a sparsact.Lift; "
                f"got {type(inputs).__name__}{remedy}."
            )
        sides = [nothing, *(side for constraint in constraints for side in _half_spaces(constraint, n))]
        normals, offsets = (np.concatenate(parts) for parts in zip(*sides, strict=True))
        words = f"any point of {{-1,1}}^{n} within the linear constraints given ({len(offsets)} half-spaces)"
        return cls(n, normals, offsets, None, words)

    @property
    def is_cube(self) -> bool:
        """Whether every point of the cube is allowed."""
        return self.lift is None and not len(self.offsets)

    def contains(self, X: NDArray[Any]) -> NDArray[np.bool_]:
        """Which rows of signs (m, n) meet every half-space, decided exactly for the numbers stored, (m,)."""
        if not len(self.offsets):
            return np.ones(len(X), dtype=bool)
        signs = exact_signs(X.astype(np.float64), self.normals, self.offsets)
        return np.asarray((signs >= 0).all(axis=1))


def _half_spaces(constraint: LinearConstraint, n: int) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """The finite sides of ``lb <= A x <= ub``, each as normals and offsets of ``normal @ x >= offset``."""
    given: Any = constraint.A
    A = np.atleast_2d(np.asarray(given.toarray() if hasattr(given, "toarray") else given, dtype=np.float64))
    if A.shape[1] != n:
        raise ValueError(f"a constraint on {n} inputs has {n} columns; got `A` of shape {A.shape}.")
    if not np.isfinite(A).all():
        raise ValueError("`A` of a constraint must be finite; it holds NaN or an infinity.")
    for name, sign in (("lb", 1.0), ("ub", -1.0)):
        bound = sign * np.broadcast_to(np.asarray(getattr(constraint, name), dtype=np.float64), len(A))
        if np.isnan(bound).any() or (bound == np.inf).any():
            raise ValueError(f"`{name}` of a constraint must be a number or leave its side open; it holds {bound}.")
        finite = np.isfinite(bound)
        yield sign * A[finite], bound[finite]
