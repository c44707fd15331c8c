"""Forecast of the seconds of a fit, once rows are counted."""

from __future__ import annotations

from typing import Final

from sparsact.fit.candidate import Facts
from sparsact.fit.candidates.latent import MANY_SITES
from sparsact.fit.candidates.letters import ROWS_OF_LOOK
from sparsact.fit.candidates.lsh import MAX_NUMBERS
from sparsact.learners.letters.perceptrons import UNITS, batch_size
from sparsact.learners.letters.process import ROWS as STEP_ROWS

LONG: Final = 20.0  # seconds of a fit that a user should hear of before it begins
SAMPLED_ROWS: Final = 20_000  # beyond, networks and processes take a sample of the rows
# Seconds of 1,000 rows on one core, and the power of the rows by which they grow: least squares of logarithms, rounded,
# for (results/fit_seconds.jsonl, benchmark fit_seconds). Columns count for little: with many, fewer products are tried.
OF_NUMBERS: Final = (18.0, 0.8)
OF_SWITCHES: Final = (25.0, 0.35)  # columns of bits or of letters
SPREAD: Final = 3.0  # factor within which most fits are
SPREAD_OF_LETTERS: Final = 2.0
# CPU seconds of sites with letters, of 3,340 to 504,373 rows of a screen of 55 sites of amino acids: for each row of a
# step of the networks and each input and unit of theirs, for each squared column of bits, for each row of a step of the
# processes, and for each row of all latents.
OF_NETWORKS: Final = 4.5e-4
OF_POLYNOMIALS: Final = 1.6e-5
OF_PROCESSES: Final = 0.02
OF_LATENTS: Final = 1.5e-4


def seconds(n_rows: int, *, of_numbers: bool) -> float:
    """Seconds of a default fit to rows of numbers, or of bits or letters, on one core."""
    of_thousand, power = OF_NUMBERS if of_numbers else OF_SWITCHES
    return float(of_thousand * (min(n_rows, SAMPLED_ROWS) / 1_000) ** power)


def seconds_of_letters(n_rows: int, n_sites: int, n_bits: int) -> float:
    """The same of sites with letters: of polynomials, networks and processes and, of many sites, of a latent."""
    many, sampled = n_sites > MANY_SITES, MAX_NUMBERS // n_bits
    rows = ROWS_OF_LOOK if many and n_rows > sampled else min(n_rows, sampled)
    networks = OF_NETWORKS * batch_size(rows) * (n_bits + UNITS)
    found = OF_POLYNOMIALS * n_bits**2 + networks + OF_PROCESSES * min(rows, STEP_ROWS) + OF_LATENTS * many * n_rows
    return max(found, seconds(rows, of_numbers=False))


def forecast(facts: Facts) -> str:
    """A sentence on a default fit that takes long: between which times it ends, and what is quicker; else empty.

    Several targets and classes are left out: fewer kinds of model compete for them.
    """
    encoding = facts.table.encoding
    expected = seconds(facts.n_rows, of_numbers=encoding.real)
    if facts.of_letters:
        expected = seconds_of_letters(facts.n_rows, len(encoding.sites), facts.n)
    if facts.options.model != "auto" or not facts.one_function or expected <= LONG:
        return ""
    spread = SPREAD_OF_LETTERS if facts.of_letters else SPREAD
    least, most = (float(f"{limit:.1g}") for limit in (expected / spread, expected * spread / 60))
    longer = ", more with a table as large as this" if facts.n_rows > SAMPLED_ROWS and not facts.of_letters else ""
    return (
        f"Comparing all kinds of model on {facts.n_rows:,} rows takes {least:g} seconds to {most:g} minute"
        f"{'' if most == 1 else 's'}{longer}; model low-degree alone takes seconds."
    )
