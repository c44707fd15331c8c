"""Figure of juntas and Index_b: how often coefficients are recovered exactly, against samples."""

from __future__ import annotations

from matplotlib.figure import Figure

from sparsact.reports.figure import Chart, Frame, figure, scale, styled
from sparsact_papers.experiments import Rows
from sparsact_papers.experiments.paper_a.juntas_and_index import INDEX, SOLVERS
from sparsact_papers.experiments.paper_a.learning_targets import share_of
from sparsact_papers.reports.curves import curves, draw_curves, joined


def frame(rows: Rows) -> Frame:
    """Share of seeds with exact recovery, a row a target, learner and number of samples."""
    groups = rows.groups("kind", "size", "n_monomials")
    return joined(_of(Rows([]), "", 0), *(_of(group, _named(*key), key[2]) for key, group in groups.items()))


def _of(rows: Rows, name: str, N: int) -> Frame:
    one = curves(rows, series="learner", x="m", y="exact", y_name="recovered", interval=share_of)
    named: Frame = {"target": [name] * len(one["m"]), "N": [N] * len(one["m"])}
    return named | one


def _named(kind: str, size: int, N: int) -> str:
    return f"Index_{size}, N = {N}" if kind == INDEX else f"juntas of {size}, N = {N}"


@styled
def plot(frame: Frame) -> Figure:
    """A panel a target, with the number of monomials as a line."""
    names = list(dict.fromkeys(frame["target"]))
    across = min(3, len(names))
    down = -(-len(names) // across)
    drawing = figure(3.1 * across + 0.6, 2.5 * down + 0.9)
    panels = drawing.subplots(down, across, sharey=True, squeeze=False)
    for axes in panels.flat[len(names) :]:
        axes.set_visible(False)
    for axes, name in zip(panels.flat, names, strict=False):
        own = [i for i, target in enumerate(frame["target"]) if target == name]
        part: Frame = {
            column: [values[i] for i in own] for column, values in frame.items() if column not in ("target", "N")
        }
        draw_curves(axes, part, levels={})
        axes.axvline(frame["N"][own[0]], color="black", lw=0.9, ls=(0, (1, 1.5)), label="N monomials")
        scale(axes, log_x=10, log_y=0)
        axes.set_title(name)
        axes.set_xlabel("samples m")
    for row in panels:
        row[0].set_ylabel("share of seeds recovered")
    drawing.legend(
        *panels.flat[0].get_legend_handles_labels(), fontsize=8.5, loc="outside upper center", ncols=len(SOLVERS) + 1
    )
    return drawing


CHARTS = (
    Chart(
        "recovery",
        "Exact recovery against samples",
        "Share of seeds on which all coefficients, rounded, are the function's; bars: 95 % interval of a share.",
        frame,
        plot,
    ),
)
