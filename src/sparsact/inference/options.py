"""Which options each method of :func:`~sparsact.inference.sparsify` takes."""

from __future__ import annotations

from collections.abc import Iterable

EXACT = ("auto", "exact", "certified")


def check_options(method: str, options: Iterable[str]) -> None:
    """Refuse an option that the method would not look at.

    Raises
    ------
    ValueError
        If there is one.
    """
    if method in EXACT:
        wrong = sorted(options)
        remedy = 'it computes what the model computes; to approximate, pass method="predictor", "threshold" or "top_k"'
    elif method == "predictor":
        wrong = sorted({"error"} & set(options))
        remedy = "pass a recall or a density"
    else:
        wrong = sorted({"recall", "predictor"} & set(options))
        remedy = 'pass a density or an error, or method="predictor"'
    if wrong:
        raise ValueError(f'method="{method}" takes no {", ".join(wrong)}: {remedy}.')
