"""Learning with rounding: the problem, its reduction to one-sparse networks on a lift, and exhaustive search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from operator import index
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.constructions.rounding import ResidueLift, checked_moduli, checked_residues, rounded_products, rounding
from sparsact.hardness.distribution import LARGEST_ENUMERATION, Examples, LabelledDistribution, frozen
from sparsact.hardness.elimination import LinearSolution, checked_prime, solve_modulo
from sparsact.network import SparselyActivatedNetwork
from sparsact.validation.arrays import checked_per_row, checked_reals
from sparsact.validation.parameters import checked_generator

MAX_SECRETS: Final = 2**22
Predictor = Callable[[ArrayLike], NDArray[np.int64]]


class Residues(NamedTuple):
    """Vectors ``Y`` (rows, m) of residues modulo q, and their labels (rows,) in 0..p - 1."""

    Y: NDArray[np.int64]
    labels: NDArray[np.int64]


@dataclass(frozen=True)
class RoundingReduction:
    """Conversion of samples of learning with rounding to examples of a one-sparse network, and back.

    Parameters
    ----------
    m, p, q : int
        Entries of a vector, and the moduli, 2 <= p <= q.
    """

    m: int
    p: int
    q: int

    def __post_init__(self) -> None:
        checked_moduli(self.p, self.q)
        if max(index(self.m) * (self.q - 1) ** 2, self.p * self.q) >= 2**63:
            raise ValueError(f"products modulo q must fit int64; m = {self.m}, q = {self.q} do not: take a smaller q.")

    @property
    def lift(self) -> ResidueLift:
        """The map x of a vector to the quadratic lift of its binary digits."""
        return ResidueLift(self.m, self.q)

    def examples(self, samples: Residues) -> Examples:
        """Lifted points x(y), with the labels as they are."""
        X = self.lift(samples.Y)
        labels = checked_labels(checked_per_row(samples.labels, len(X), "the rule of the labels"), self.p)
        return Examples(X, labels.astype(np.float64))

    def predictor(self, hypothesis: Callable[[NDArray[Any]], Any]) -> Predictor:
        """Labels that a hypothesis on lifted points predicts: its value at x(y), rounded into 0..p - 1."""

        def predict(Y: ArrayLike) -> NDArray[np.int64]:
            X = self.lift(Y)
            values = checked_per_row(hypothesis(X), len(X), "the hypothesis")
            return np.clip(np.rint(values), 0, self.p - 1).astype(np.int64)

        return predict


class LearningWithRounding(LabelledDistribution):
    r"""An instance: uniform :math:`y \in \mathbb{Z}_q^m` with label :math:`f_w(y)`, for a secret w.

    .. math:: f_w(y) = \Bigl\lfloor \tfrac{p}{q} \bigl(\langle w, y \rangle \bmod q\bigr) \Bigr\rfloor

    Parameters
    ----------
    secret : array-like of shape (m,)
        Residues w modulo q.
    p, q : int
        Moduli, 2 <= p <= q.
    rule : {"round", "modulo"}
        "modulo" is Definition 15 as paper A prints it, :math:`(\langle w, y \rangle \bmod q) \bmod p`: where p divides
        q that is linear modulo p, and :func:`secret_modulo` finds w mod p. Claims of hardness rest on "round".

    Notes
    -----
    As a :class:`~sparsact.hardness.LabelledDistribution` it gives lifted points, signs on ((m L)^2) coordinates for
    L = ceil(log2 q), with the labels as numbers: divide by p - 1 in queries.

    What must grow with m is q / p; p may divide q, as powers of two do. For a prime q and a constant quotient
    :func:`linearised_secret` takes polynomial time. Where p and q are powers of one prime l, the lowest digit of the
    label to base l is a digit of :math:`N = \langle w, y \rangle`, namely :math:`\binom{N}{q/p} \bmod l` (Lucas). By
    Vandermonde's identity that is a polynomial of degree at most q / p over :math:`\mathbb{F}_l` in the digits of the
    :math:`y_i`, which :func:`solve_modulo` finds from its monomials. For a prime p and :math:`q = p^2` the digit is the
    whole label (:func:`carry_monomials`).

    Examples
    --------
    >>> instance = LearningWithRounding([3, 1], p=2, q=4)
    >>> instance.labels([[1, 0], [1, 1], [2, 3]])
    array([1, 0, 0])
    >>> samples = instance.residues(50, rng=np.random.default_rng(0))
    >>> X, y = instance.reduction.examples(samples)
    >>> bool((instance.network()(X) == y).all())
    True
    """

    def __init__(self, secret: ArrayLike, p: int, q: int, rule: Literal["round", "modulo"] = "round") -> None:
        given = np.asarray(secret)
        rounded_products(given, np.zeros((0, given.size)), p, q, rule=rule)  # validates the secret and the moduli
        self.secret = given.astype(np.int64)
        self.secret.setflags(write=False)
        self.p, self.q = int(p), int(q)
        self.rule: Literal["round", "modulo"] = rule
        self.reduction = RoundingReduction(len(self.secret), self.p, self.q)

    @property
    def m(self) -> int:
        """Entries of a vector."""
        return len(self.secret)

    @property
    def n(self) -> int:
        """Coordinates of a lifted point."""
        return self.reduction.lift.n

    def labels(self, Y: ArrayLike) -> NDArray[np.int64]:
        """Labels (rows,) of vectors ``Y`` (rows, m) of residues."""
        return rounded_products(self.secret, Y, self.p, self.q, rule=self.rule)

    def residues(self, n_samples: int, *, rng: np.random.Generator) -> Residues:
        """Samples of the problem itself: uniform vectors with their labels."""
        Y = checked_generator(rng).integers(self.q, size=(n_samples, self.m))
        return Residues(Y, self.labels(Y))

    def sample(self, n_samples: int, *, rng: np.random.Generator) -> Examples:
        """The same samples, lifted."""
        return self.reduction.examples(self.residues(n_samples, rng=rng))

    @cached_property
    def _tabulated(self) -> Examples:
        """All ``q**m`` vectors, lifted; at most 2**16."""
        if self.q**self.m > 2**LARGEST_ENUMERATION:
            raise ValueError(
                f"an exact expectation needs all q**m vectors, at most 2**{LARGEST_ENUMERATION}; here {self.q}**"
                f'{self.m}: take answers="sampling".'
            )
        Y = all_residues(self.m, self.q)
        return frozen(*self.reduction.examples(Residues(Y, self.labels(Y))))

    def network(self) -> SparselyActivatedNetwork:
        """The network that has these labels on lifted points, with at most one active unit there."""
        return rounding(self.secret, self.p, self.q, rule=self.rule)


def checked_labels(labels: ArrayLike, p: int) -> NDArray[np.int64]:
    """Labels as int64, refused unless each is one of 0..p - 1."""
    array = checked_reals(labels, "labels")
    strange = (array < 0) | (array >= p) | (array % 1 != 0)
    if strange.any():
        raise ValueError(
            f"labels are the integers 0 to p - 1 = {p - 1}; got {array[strange][0]}: pass the `p` of these labels."
        )
    return array.astype(np.int64)


def all_residues(m: int, q: int) -> NDArray[np.int64]:
    """All vectors of m residues modulo q, (q**m, m), the first entry slowest.

    >>> all_residues(2, 3)[:4].tolist()
    [[0, 0], [0, 1], [0, 2], [1, 0]]
    """
    return np.indices((q,) * m).reshape(m, -1).T.astype(np.int64)


@dataclass(frozen=True, eq=False)
class SecretSearch:
    """Result of an attack on learning with rounding.

    Attributes
    ----------
    secret : ndarray of shape (m,), int64, or None
        Residues modulo q that give every sample its label; None if the attack failed.
    operations : int
        Multiplications, additions or trials of entries.
    """

    secret: NDArray[np.int64] | None
    operations: int


def consistent_secrets(
    Y: ArrayLike, labels: ArrayLike, p: int, q: int, *, rule: Literal["round", "modulo"] = "round"
) -> NDArray[np.int64]:
    """All secrets that give every sample its label, by trying every one.

    Parameters
    ----------
    Y, labels : array-like of shape (rows, m) and (rows,)
        Residues modulo q, and labels in 0..p - 1.
    p, q : int
        Moduli.
    rule : {"round", "modulo"}
        As in :class:`~sparsact.hardness.LearningWithRounding`.

    Returns
    -------
    secrets : ndarray of shape (N, m), int64
        Lexicographically; empty if no secret has these labels.

    Notes
    -----
    ``q**m`` secrets at the first sample, about a p-th of them at each next: m log(q) / log(p) samples leave about one
    (by the rule "modulo", where p divides q, the (q / p)**m that are equal modulo p, which no sample distinguishes).
    More than 2**22 secrets are refused.

    Examples
    --------
    >>> consistent_secrets([[1, 0], [0, 1], [1, 1], [2, 1], [3, 2]], [1, 0, 0, 1, 1], p=2, q=4)
    array([[3, 1]])
    """
    vectors, wanted = checked_samples(Y, labels, p, q)
    m = vectors.shape[1]
    if q**m > MAX_SECRETS:
        raise ValueError(f"brute force tries q**m secrets, at most 2**22; {q}**{m} is more: take a smaller instance.")
    secrets = all_residues(m, q)
    for vector, label in zip(vectors, wanted, strict=True):
        secrets = secrets[rounded_products(vector, secrets, p, q, rule=rule) == label]  # the product is symmetric
    return secrets


def secret_modulo(Y: ArrayLike, labels: ArrayLike, p: int, q: int) -> LinearSolution:
    r"""The secret modulo p, from labels by the rule "modulo", where p is a prime that divides q.

    Then :math:`(\langle w, y \rangle \bmod q) \bmod p = \langle w \bmod p, y \rangle \bmod p`, a linear equation, and
    :math:`w \bmod p` predicts all labels: Definition 15 of paper A, as printed, is no hard problem for such moduli, and
    its claim needs rounding.

    Parameters
    ----------
    Y, labels : array-like of shape (rows, m) and (rows,)
        Residues modulo q, and labels in 0..p - 1.
    p, q : int
        Moduli; p is prime and divides q.

    Returns
    -------
    solution : LinearSolution
        ``values`` is w mod p; m + O(1) uniform samples determine it. :class:`InconsistentLabelsError` if the labels
        are not linear modulo p, as rounded ones are not.

    Examples
    --------
    >>> secret_modulo([[1, 0], [5, 1], [2, 2]], [1, 1, 0], p=3, q=6).values
    array([1, 2])
    """
    checked_prime(p)
    if q % p:
        raise ValueError(f"labels are linear modulo p only where p divides q; {p} does not divide {q}.")
    return solve_modulo(*checked_samples(Y, labels, p, q), p)


def checked_samples(Y: ArrayLike, labels: ArrayLike, p: int, q: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Vectors and labels as int64, refused unless they are residues modulo q and labels 0..p - 1, one a vector."""
    vectors = np.asarray(Y)
    if vectors.ndim != 2 or not vectors.shape[1] or np.shape(labels) != vectors.shape[:1]:
        raise ValueError(
            f"`Y` (rows, m) and `labels` (rows,) must agree, with m at least 1; got {vectors.shape} and "
            f"{np.shape(labels)}."
        )
    RoundingReduction(vectors.shape[1], p, q)  # validates the moduli
    return checked_residues(vectors, vectors.shape[1], q), checked_labels(labels, p)
