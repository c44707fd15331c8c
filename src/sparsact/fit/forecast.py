"""Forecast of the seconds of a fit, once rows are counted."""

from __future__ import annotations

from typing import Final

from sparsact.fit.candidate import Facts

LONG: Final = 20.0  # seconds of a fit that a user should hear of before it begins
SAMPLED_ROWS: Final = 20_000  # beyond, networks and processes take a sample of the rows
# Seconds of 1,000 rows on one core, and the power of the rows by which they grow: least squares of logarithms, rounded,
# for (results/fit_seconds.jsonl, benchmark fit_seconds). Columns count for little: with many, fewer products are tried.
OF_NUMBERS: Final = (18.0, 0.8)
OF_SWITCHES: Final = (25.0, 0.35)  # columns of bits or of letters
SPREAD: Final = 3.0  # factor within which most fits are


def seconds(n_rows: int, *, of_numbers: bool) -> float:
    """Seconds of a default fit to rows of numbers, or of bits or letters, on one core."""
    of_thousand, power = OF_NUMBERS if of_numbers else OF_SWITCHES
    return float(of_thousand * (min(n_rows, SAMPLED_ROWS) / 1_000) ** power)


def forecast(facts: Facts) -> str:
    """A sentence on a default fit that takes long: between which times it ends, and what is quicker; else empty.

    Several targets and classes are left out: fewer kinds of model compete for them.
    """
    expected = seconds(facts.n_rows, of_numbers=bool(facts.table.encoding.real))
    if facts.options.model != "auto" or not facts.one_function or expected <= LONG:
        return ""
    least, most = (float(f"{limit:.1g}") for limit in (expected / SPREAD, expected * SPREAD / 60))
    longer = ", more with a table as large as this" if facts.n_rows > SAMPLED_ROWS else ""
    return (
        f"Comparing all kinds of model on {facts.n_rows:,} rows takes {least:g} seconds to {most:g} minutes{longer}; "
        "model low-degree alone takes seconds."
    )
