"""Facts special to a kind of model, and how a result tells them: as lines, as JSON and on its page."""

from __future__ import annotations

from typing import Any, ClassVar

from sparsact.reports.chapter import Chapter


class Details:
    """Facts special to a kind of model; this class itself holds none.

    Attributes
    ----------
    has_effects : bool
        Whether a page lists the effects of columns.
    function : str
        The function whose effects letters have, in words.
    """

    has_effects: ClassVar[bool] = True
    function: ClassVar[str] = "fitted function"

    @property
    def by_posterior(self) -> bool:
        """Whether intervals of effects come from a posterior."""
        return False

    def lines(self) -> list[str]:
        """The facts as lines of text."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """The entries of :meth:`.FitResult.to_dict` that they fill."""
        return {}

    def chapter(self, n_rows: int) -> Chapter:
        """The facts on the page of a fit to ``n_rows`` rows."""
        return Chapter()
