"""Figures of the kept rows: named values for the prose, the tables of what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from list_table import list_table
from memory_table import figures
from verdict_table import claims

from benchmarks.table import inference, networks, polynomials, routed
from benchmarks.table.cells import Line, Row, Rows
from benchmarks.table.kept import kept
from benchmarks.table.routed import OVER, grouped, held_out, regression, ties

FIT, TRAINED = "n=20 d=3 m=100,000", "4 layers of 512, 4096 units, 3.2% active"
GEMMA, OPT_ROWS = "Gemma 3n, 187M, a head of 8,000 words", "OPT shape, 12 x 768-3072, 5% active, threads: 2, 8 rows"
PARITY = "parity of 4 among 12, m = 1,000"
BRIGHTNESS = "brightness of eqFP611, five folds"
SOILING, LOADING = (
    f"{name}: window 40,000, 2,000 rows in and out" for name in ("photovoltaics, soiling", "robot arm, loading")
)
KEYS, SLOTS = "1,048,576 units, 32 active, d=256, 256 inputs", "1,048,576 slots, 4 for each of 4,096 tokens"
MIXTRAL, MIXTRAL_STEP = "Mixtral block of 8 experts of 2,048, d=1,024", "training, times as fast as transformers"
HELD = "robot arm: 300,000 rows held, 2 stages of 16 tables"
TREES_OVER = "LSHRegressor, base trees: RMSE over the best boosting's"
SPREAD = "{:.3f} [{least:.3f}, {most:.3f}]"

GROUPS = {  # heading: sections of the table of comparisons
    "Transforms and polynomials of bits": polynomials.SECTIONS,
    "Networks: exact and sampled analysis": networks.SECTIONS,
    "Hash tables, and exact top-k": routed.SECTIONS,
    "Trained networks": inference.SECTIONS,
}

# What a page writes between bars, to its row and how that is printed: ``{}`` is the median, ``{percent}``
# a hundred times that, ``{least}`` and ``{most}`` the ends of the samples. In README.md stands what is printed.
FIGURES: dict[str, tuple[str, str, str]] = {
    "kin40k ours": ("kin40k", "LSHRegressor: RMSE", "{:.3f}"),
    "kin40k network": ("kin40k", "MLP: RMSE", "{:.3f}"),
    "kin40k boosting": ("kin40k", "CatBoost: RMSE", "{:.3f}"),
    "terrain over": ("terrain, 2-d", OVER, "{:.2f}"),
    "roll over": ("swiss roll in 50-d", OVER, "{:.2f}"),
    "cones over": ("cones", OVER, "{:.2f}"),
    "kin40k over": ("kin40k", OVER, "{:.1f} times"),
    "smooth 12 over": ("smooth, 12-d", OVER, "{:.1f} times"),
    "kin40k speed": ("kin40k", "rows a second over RBFInterpolator's", "{:.0f}"),
    "pol ours": ("pol", "LSHRegressor: RMSE", "{:.3f}"),
    "pol boosting": ("pol", "CatBoost: RMSE", "{:.3f}"),
    "pol network": ("pol", "MLP: RMSE", "{:.3f}"),
    "noise ours": ("photovoltaics + 194", "LSHRegressor: RMSE", "{:.3f}"),
    "noise boosting": ("photovoltaics + 194", "CatBoost: RMSE", "{:.3f}"),
    "fit speed": (FIT, "fit, times as fast", "{:.0f}"),
    "fit memory": (FIT, "memory, share of theirs", "{percent:.0f} %"),
    "planted ours": ("Index_4, m = 800", "ours: share below 1 %", "{percent:.0f} %"),
    "planted dense": ("Index_4, m = 800", "dense, best of 4: share below 1 %", "{percent:.0f} %"),
    "planted low degree": ("Index_4, m = 800", "low degree, best of 7: share below 1 %", "{percent:.0f} %"),
    "parity ours": (PARITY, "ours: share below 1 %", "{percent:.0f} %"),
    "parity low degree": (PARITY, "low degree, best of 7: share below 1 %", "{percent:.0f} %"),
    "product keys speed": (KEYS, "product keys, times as fast as top-k", "{:.0f}"),
    "product keys times": (KEYS, "product keys, times as fast as top-k", "{:.0f} times"),
    "memory step 64": (f"{SLOTS}, d=64", "memory, times the bag's", "{:.2f}"),
    "memory step 256": (f"{SLOTS}, d=256", "memory, times the bag's", "{:.2f}"),
    "mixtral 1": (f"{MIXTRAL}, 1 tokens, AVX512, 1 thread", MIXTRAL_STEP, "{:.1f}"),
    "mixtral 64": (f"{MIXTRAL}, 64 tokens, AVX512, 1 thread", MIXTRAL_STEP, "{:.2f}"),
    "mixtral 4096": (f"{MIXTRAL}, 4,096 tokens, AVX512, 1 thread", MIXTRAL_STEP, "{:.2f}"),
    "screen speed": ("2048x8192 bfloat16 Gaussian", "block, times as fast", "{:.1f}"),
    "gemma speed": (GEMMA, "float32, times as fast", "{:.2f}"),
    "gemma int8 speed": (GEMMA, "int8, times as fast", "{:.2f}"),
    "int8 eight rows": (OPT_ROWS, "sparse int8, times as fast as the fastest dense side, own dense int4", "{:.2f}"),
    "whole speed": (TRAINED, "auto, times as fast", "{:.2f}"),
    "whole times": (TRAINED, "auto, times as fast", "{:.2f} times"),
    "process percent": (BRIGHTNESS, "all sizes, Gaussian process: R²", "{percent:.0f} %"),
    "fit times": (FIT, "fit, times as fast", "{:.0f} times [{least:.0f}, {most:.0f}]"),
    "first fit times": (FIT, "first fit, times as fast", "{:.0f} times [{least:.0f}, {most:.0f}]"),
    "brightness process": (BRIGHTNESS, "all sizes, Gaussian process: R²", SPREAD),
    "brightness network": (BRIGHTNESS, "network, one unit on at a time: R²", SPREAD),
    "brightness four": (BRIGHTNESS, "combinations of up to four: R²", SPREAD),
    "brightness linear": (BRIGHTNESS, "linear model: R²", SPREAD),
    "brightness trees": (BRIGHTNESS, "boosted trees, tuned: R²", SPREAD),
    "linear percent": (BRIGHTNESS, "linear model: R²", "{percent:.0f} %"),
    "pairs percent": (BRIGHTNESS, "with their pairs: R²", "{percent:.0f} %"),
    "four percent": (BRIGHTNESS, "combinations of up to four: R²", "{percent:.0f} %"),
    "airfoil trees": ("airfoil", TREES_OVER, "{:.2f}"),
    "elevators trees": ("elevators", TREES_OVER, "{:.2f}"),
    "pol trees": ("pol", TREES_OVER, "{:.2f}"),
    "bike trees": ("bike", TREES_OVER, "{:.2f}"),
    "new patients": ("parkinsons, new patients", "LSHRegressor: RMSE", "{:.1f}"),
    "new patients boosted": ("parkinsons, new patients", "LightGBM: RMSE", "{:.1f}"),
    "antitoxin left": ("ParD3: 5% of the rows", "LettersRegressor: variance left", "{percent:.0f} %"),
    "antitoxin boosting": ("ParD3: 5% of the rows", "LightGBM: variance left", "{percent:.0f} %"),
    "mixes auto": ("concrete, new mixes", "LSHRegressor, base auto: RMSE", "{:.2f}"),
    "mixes alone": ("concrete, new mixes", "LSHRegressor: RMSE", "{:.2f}"),
    "gas auto": ("gas", "LSHRegressor, base auto: RMSE", "{:.2f}"),
    "gas alone": ("gas", "LSHRegressor: RMSE", "{:.2f}"),
    "gas neighbours": ("gas", "k-NN: RMSE", "{:.2f}"),
    "gas forest": ("gas", "ExtraTrees: RMSE", "{:.2f}"),
    "sml seen": ("sml", "LSHRegressor: RMSE", "{:.2f}"),
    "sml new": ("sml, new days", "LSHRegressor: RMSE", "{:.2f}"),
    "kin40k fit": ("kin40k", "LSHRegressor: fit", "{:.0f} s"),
    "pol trees fit": ("pol", "LSHRegressor, base trees: fit", "{:.0f} s"),
    "few rows": ("all, 1%", "ours over the best peer, geometric mean", "{:.2f}"),
    "few rows CR6261": ("CR6261 h1, 1%", "ours over the best peer", "{:.1f}"),
    "process speed": ("peers: n=12, m=2,000", "seconds, scikit-learn / ours", "{:.1f} times"),
    "soiling speed": (SOILING, "faster than LightGBM", "{:.0f} times"),
    "soiling error": (SOILING, "RMSE over that of LightGBM, refitted", "{:.3f}"),
    "loading speed": (LOADING, "faster than LightGBM", "{:.0f} times"),
    "loading error": (LOADING, "RMSE over that of LightGBM, refitted", "{:.3f}"),
    "update time": (HELD, "2,000 in, 2,000 out, 10,000 predictions", "{:.0f} ms"),
    "large fit": ("robot arm: 2,000,000 x 6", "fit, two threads", "{:.0f} s"),
    **{
        f"{name} balance": ("8 experts trained 300 steps", f"{balanced}: Jain index, least of seeds", spelled)
        for name, balanced, spelled in (
            ("biases", "biases at rate 0.01", "{least:.2f}"),
            ("loss", "loss of weight 0.01", "{least:.2f} to {most:.2f}"),
            ("mixtral", "transformers, loss as of weight 0.01", "{least:.2f} to {most:.2f}"),
            ("stronger loss", "loss of weight 0.04", "{least:.2f}"),
            ("stronger mixtral", "transformers, loss as of weight 0.04", "{least:.2f}"),
        )
    },
    "two columns query": ("terrain, 2-d", "LSHRegressor: one query", "{:.1f} microseconds"),
    "two columns row": ("terrain, 2-d", "LSHRegressor: a row of a batch", "{:.2f} microseconds"),
    **{
        f"{name} us{suffix}": (work, f"{side}: {quantity}", "{:.1f}")
        for name, work, side in (
            ("terrain", "terrain, 2-d", "LSHRegressor"),
            ("kin40k", "kin40k", "LSHRegressor"),
            ("network", "kin40k", "MLP"),
            ("interpolation", "kin40k", "RBFInterpolator"),
            ("catboost", "kin40k", "CatBoost"),
            ("lightgbm", "kin40k", "LightGBM"),
        )
        for suffix, quantity in (
            *(("", "one query"), (" 99", "one query, 99th percentile")),
            (" row", "a row of a batch"),
        )
    },
    "kin40k query": ("kin40k", "LSHRegressor: one query", "{:.1f} microseconds"),
    "kin40k row": ("kin40k", "LSHRegressor: a row of a batch", "{:.2f} microseconds"),
    **{
        f"{name} {figure}": (f"{work} on digits", quantity, "{percent:.0f} %")
        for name, work in (
            *(("cnn", "CNN"), ("cnn l1", "CNN, L1")),
            *(("resnet", "ResNet-20"), ("resnet l1", "ResNet-20, L1")),
        )
        for figure, quantity in (
            *(("untrained", "density, untrained"), ("density", "density"), ("least", "density, least")),
            *(("bytes", "bytes behind inputs of at most 40%"), ("accuracy", "test accuracy")),
        )
    },
    "whole bound": (TRAINED, "Amdahl bound of the methods chosen", "{:.2f}"),
}  # fmt: skip


def text_of(name: str, rows: Rows) -> str:
    """A figure as it is printed."""
    work, quantity, form = FIGURES[name]
    row: Row = rows[work, quantity]
    samples = row["samples"] or [row["value"]]
    return form.format(row["value"], percent=100 * row["value"], least=min(samples), most=max(samples))


def substitutions() -> str:
    """What Sphinx puts in the place of each name: ``.. |name| replace:: value``."""
    rows = kept()
    texts = {name: text_of(name, rows) for name in FIGURES} | figures() | claims()
    return "\n".join(f".. |{name}| replace:: {text}" for name, text in texts.items())


def measured(path: Path) -> None:
    """Write a fold for each group of comparisons, to be included by ``benchmarks.rst``."""
    rows, page = kept(), []
    for group, sections in GROUPS.items():
        page += [f".. dropdown:: {group}", "   :class-container: claim", ""]
        for work, against, target, value in (line for section in sections for line in section(rows)):
            notes = [f"compared with {against}"] * (against not in {"-", "the same"})
            notes += [f"target {target}"] * (target != "-")
            page += [f"   {work}", f"      **{value}**", *([f"      ({'; '.join(notes)})"] if notes else []), ""]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(page), encoding="utf-8")


def regression_contest(path: Path) -> None:
    """Write the table of LSHRegressor beside its rivals, to be included by ``lsh_accuracy.rst``."""
    _write_contest(path, regression(kept()))


def held_out_contest(path: Path) -> None:
    """Write the table of LSHRegressor on tables held out from all choices, included by ``lsh_accuracy.rst``."""
    _write_contest(path, held_out(kept()))


def grouped_contest(path: Path) -> None:
    """Write the table of LSHRegressor where whole groups are left out, to be included by ``lsh_accuracy.rst``."""
    _write_contest(path, grouped(kept()))


def _write_contest(path: Path, contest: Iterable[Line]) -> None:
    """Write the ratio and the errors of each table below each other, so that a telephone shows all columns."""
    head = ("table", "ratio, goal", "errors")
    _write_table(path, [30, 30, 40], [head, *(_contestants(*line) for line in contest)])


def _contestants(work: str, rivals: str, goal: str, error: str) -> tuple[str, ...]:
    table = work.removesuffix(": RMSE").removeprefix("LSHRegressor, ")
    ours = "LSHRegressor, base auto" if table.startswith("base auto, ") else "LSHRegressor"
    own, ratio = error.split(": ")
    missed = ", missed" if ratio.endswith(", missed") else ""
    goals = [f"goal: {goal}{missed}"] if goal != "-" else []
    cells = ([ratio.removesuffix(", missed"), *goals], [f"{ours} {own}", *rivals.split("; ")])
    return (table.removeprefix("base auto, "), *("\n       ".join(f"| {one}" for one in cell) for cell in cells))


def tied_rows(path: Path) -> None:
    """Write the table of what ties test rows to those learned from, to be included by ``lsh_accuracy.rst``."""
    head = ("table", "inputs seen", "but for a column", "runs", "autocorrelation")
    _write_table(path, [32, 16, 18, 14, 20], [head, *ties(kept())])


def _write_table(path: Path, widths: list[int], cells: Iterable[Sequence[str]]) -> None:
    """Write a page that is nothing but a table."""
    page = list_table(cells, f":widths: {' '.join(map(str, widths))}\n   :class: compact")
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([*page, ""]), encoding="utf-8")
