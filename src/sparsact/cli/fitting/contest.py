"""Low-degree polynomial or LSH model: which are tried on a table, which is taken, and why, in words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sparsact.cli.fitting.choice import Chosen, FitOptions
from sparsact.datasets import Table
from sparsact.reports import Contender

if TYPE_CHECKING:
    from sparsact.cli.fitting.held_out import HeldOut


@dataclass(frozen=True)
class Contest:
    """Whether an LSH model is tried, then whether it is taken; ``why`` says so, ``contenders`` hold the scores."""

    lsh: bool
    why: str
    open: bool = False  # the better one is taken
    contenders: tuple[Contender, ...] = ()


def contest(table: Table, wish: FitOptions) -> Contest:
    """Which models are tried, by what was asked for and by the columns."""
    if wish.model != "auto":
        return Contest(wish.model == "lsh", f"--model {wish.model} asks for it")
    asked = [f"--{name}" for name in ("degree", "alpha") if name not in wish.automatic]
    if asked:
        return Contest(False, f"{' and '.join(asked)} ask{'s' * (len(asked) == 1)} for it")
    if not table.encoding.real:
        return Contest(
            False, "every column is bits, of which low-degree polynomials are made; --model lsh tries hash tables"
        )
    return Contest(True, "", open=True)


def decided(entered: Contest, chosen: Chosen, held_out: HeldOut | None) -> Contest:
    """The outcome: of an open contest the better held-out R2 wins, and of equals the polynomial."""
    best, linear = chosen.of_degree(chosen.degree), chosen.of_degree(1)
    polynomial = Contender(f"degree {best.degree}", best.r2, best.rmse)
    others = [] if best.degree == 1 else [Contender("degree 1 (linear)", linear.r2, linear.rmse)]
    if best.degree == 1:
        polynomial = replace(polynomial, name="degree 1 (linear)")
    if held_out is None:
        return replace(entered, contenders=(replace(polynomial, chosen=True), *others))
    rmse = held_out.rmse[0] if len(held_out.rmse) == 1 else None
    tables = Contender("hash tables (LSH)", held_out.mean_r2, rmse)
    wins = tables.r2.mean > polynomial.r2.mean if entered.open else True
    why = entered.why
    if entered.open:
        winner, loser = (tables, polynomial) if wins else (polynomial, tables)
        why = (
            f"held-out R² {winner.r2.mean:.3f} against {loser.r2.mean:.3f} of {loser.name}, "
            f"on the same {len(best.r2.folds)} folds"
        )
    first, second = replace(tables, chosen=wins), replace(polynomial, chosen=not wins)
    return Contest(wins, why, contenders=(first, second, *others) if wins else (second, first, *others))
