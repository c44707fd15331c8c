"""Names of the members of ensembles in words that a reader of tables knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MEMBERS: Final = {  # besides processes by kernel and trees by leaves
    "low-degree": "low-degree polynomial",
    "sparse": "sparse polynomial",
    "lasso": "lasso polynomial",
    "latent": "measurement model",
    "network": "sparsely activated network",
    "process": "Gaussian process",
    "process of asinh": "Gaussian process of inverse hyperbolic sines",
    "process of logit": "Gaussian process of logits",
    "networks": "networks",
}
KERNELS: Final = ("product", "sparse_product", "degree", "degree_site", "degree_site_pair")  # of Gaussian processes
LEAST_WEIGHT: Final = 0.005  # that is shown


def in_words(member: str) -> str:
    """What a member of an ensemble is; :attr:`.Choices.weights` names it, with its kernel or its number of leaves.

    Examples
    --------
    >>> in_words("degree_site + product"), in_words("trees of 8 leaves")
    ('Gaussian process', 'boosted trees')
    >>> in_words("process of logit, isotonic"), in_words("product of logarithms")
    ('Gaussian process of logits behind a curve', 'Gaussian process of logarithms')
    """
    plain = member.removesuffix(", isotonic")
    curve = " behind a curve" if plain != member else ""
    if plain in MEMBERS:
        return MEMBERS[plain] + curve
    if all(part in KERNELS for part in plain.split(" + ")):
        return MEMBERS["process"]
    return "boosted trees" if plain.startswith("trees of ") else plain.replace("product of", "Gaussian process of")


def shares_in_words(weights: Mapping[str, float]) -> str:
    """The weights of an ensemble summed by kind of member, the largest first.

    Examples
    --------
    >>> shares_in_words({"degree": 0.25, "trees of 8 leaves": 0.4, "product": 0.35})
    '60 % Gaussian process, 40 % boosted trees'
    """
    shares: dict[str, float] = {}
    for member, weight in weights.items():
        shares[in_words(member)] = shares.get(in_words(member), 0.0) + weight
    ranked = sorted(shares.items(), key=lambda pair: -pair[1])
    return ", ".join(f"{100 * share:.0f} % {name}" for name, share in ranked if share >= LEAST_WEIGHT)
