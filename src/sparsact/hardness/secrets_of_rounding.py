"""Secrets of learning with rounding: by brute force for tiny instances, by elimination where the labels are linear."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.constructions import rounded_products
from sparsact.constructions.residues import checked_residues
from sparsact.hardness.learning_with_rounding import RoundingReduction, all_residues, checked_labels
from sparsact.hardness.modular_elimination import ModularSolution, checked_prime, solve_modulo

MOST_SECRETS = 2**22


@dataclass(frozen=True, eq=False)
class SecretSearch:
    """What an attack on learning with rounding found.

    Attributes
    ----------
    secret : ndarray of shape (m,), int64, or None
        Residues modulo q that give every sample its label; None if the attack failed.
    operations : int
        Multiplications, additions or trials of entries that it took.
    """

    secret: NDArray[np.int64] | None
    operations: int


def consistent_secrets(
    Y: ArrayLike, labels: ArrayLike, p: int, q: int, *, rule: Literal["round", "modulo"] = "round"
) -> NDArray[np.int64]:
    """All secrets that give every sample its label, by trying every one.

    Parameters
    ----------
    Y : array-like of shape (rows, m)
        Residues modulo q.
    labels : array-like of shape (rows,)
        Labels in 0..p - 1.
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
    (by the rule "modulo", where p divides q, the (q / p)**m that are equal modulo p, and no sample tells them apart).
    More than 2**22 secrets are refused.

    Examples
    --------
    >>> consistent_secrets([[1, 0], [0, 1], [1, 1], [2, 1], [3, 2]], [1, 0, 0, 1, 1], p=2, q=4)
    array([[3, 1]])
    """
    vectors, wanted = checked_samples(Y, labels, p, q)
    m = vectors.shape[1]
    if q**m > MOST_SECRETS:
        raise ValueError(f"brute force tries q**m secrets, at most 2**22; {q}**{m} is more: take a smaller instance.")
    secrets = all_residues(m, q)
    for vector, label in zip(vectors, wanted, strict=True):
        secrets = secrets[rounded_products(vector, secrets, p, q, rule=rule) == label]  # the product is symmetric
    return secrets


def secret_modulo(Y: ArrayLike, labels: ArrayLike, p: int, q: int) -> ModularSolution:
    r"""The secret modulo p, from labels by the rule "modulo", where p is a prime that divides q.

    Then :math:`(\langle w, y \rangle \bmod q) \bmod p = \langle w \bmod p, y \rangle \bmod p`, a linear equation, and
    :math:`w \bmod p` predicts all labels. This is why Definition 15 of [A]_, as printed, is no hard problem for such
    moduli, and why its claim needs rounding.

    Parameters
    ----------
    Y : array-like of shape (rows, m)
        Residues modulo q.
    labels : array-like of shape (rows,)
        Labels in 0..p - 1.
    p, q : int
        Moduli; p is prime and divides q.

    Returns
    -------
    solution : ModularSolution
        ``residues`` is w mod p; m + O(1) uniform samples determine it.

    Raises
    ------
    InconsistentLabelsError
        If the labels are not linear modulo p, as rounded ones are not.
    ValueError
        If p is not prime, or does not divide q.

    References
    ----------
    .. [A] "Learning Neural Networks with Sparse Activations", 2024, Definition 15.

    Examples
    --------
    >>> secret_modulo([[1, 0], [5, 1], [2, 2]], [1, 1, 0], p=3, q=6).residues
    array([1, 2])
    """
    checked_prime(p)
    if q % p:
        raise ValueError(f"labels are linear modulo p only where p divides q; {p} does not divide {q}.")
    return solve_modulo(*checked_samples(Y, labels, p, q), p)


def products_of_labels(p: int, q: int) -> list[list[int]]:
    """Products modulo q that have each label, by the rule "round": floor(q / p) or ceil(q / p) of them."""
    return [[v for v in range(q) if p * v // q == label] for label in range(p)]


def search_result(
    candidates: Iterable[NDArray[np.int64]],
    Y: NDArray[np.int64],
    labels: NDArray[np.int64],
    p: int,
    q: int,
    operations: int,
) -> SecretSearch:
    """The first candidate that gives every sample its label, if there is one."""
    right = (secret for secret in candidates if np.array_equal(rounded_products(secret, Y, p, q), labels))
    return SecretSearch(next(right, None), operations)


def checked_samples(Y: ArrayLike, labels: ArrayLike, p: int, q: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Vectors and labels as int64, refused unless they are residues modulo q and labels 0..p - 1, one a vector."""
    vectors = np.asarray(Y)
    if vectors.ndim != 2 or not vectors.shape[1] or np.shape(labels) != vectors.shape[:1]:
        raise ValueError(
            f"`Y` (rows, m) and `labels` (rows,) must agree, with m at least 1; got {vectors.shape} and "
            f"{np.shape(labels)}."
        )
    RoundingReduction(vectors.shape[1], p, q)  # refuses strange moduli
    return checked_residues(vectors, vectors.shape[1], q), checked_labels(labels, p)
