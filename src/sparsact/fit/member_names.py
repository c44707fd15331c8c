"""Names of the members of ensembles in words that a reader of tables knows."""

from __future__ import annotations

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
KERNELS: Final = {  # what has a variance, or a factor of the correlation, of its own
    "product": "a factor for each column",
    "sparse_product": "a factor for each column, most of them near 1",
    "degree": "a variance for each degree",
    "degree_site": "variances by degree and column",
    "degree_site_pair": "variances by degree, column and pair",
}


def in_words(member: str) -> str:
    """A member of an ensemble, as :attr:`.Choices.weights` names it, in words.

    Examples
    --------
    >>> in_words("degree_site + product")
    'Gaussian process (variances by degree and column, and a factor for each column)'
    >>> in_words("process of logit, isotonic"), in_words("product of logarithms"), in_words("trees of 8 leaves")
    ('Gaussian process of logits behind a curve', 'Gaussian process of logarithms', 'boosted trees of 8 leaves')
    """
    plain = member.removesuffix(", isotonic")
    curve = " behind a curve" if plain != member else ""
    if plain in MEMBERS:
        return MEMBERS[plain] + curve
    parts = plain.split(" + ")
    if all(part in KERNELS for part in parts):
        same = ["two factors for each column" for part in parts[:1] if parts[1:] == [part]]
        return f"Gaussian process ({', and '.join(same or [KERNELS[part] for part in parts])})"
    return plain.replace("product of", "Gaussian process of").replace("trees of", "boosted trees of")
