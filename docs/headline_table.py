"""The short table at the top of the benchmarks page: what users compare, and whether this library is ahead."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from list_table import list_table

from benchmarks.table.cells import Row, Rows
from benchmarks.table.kept import kept

FASTER, ERROR, SHARE = "times as fast", "times the error", "times the time"  # what a ratio says
OPT = "OPT shape, 12 x 768-3072, 5% active, threads: 1"
MIXTRAL, H100 = "Mixtral block of 8 experts of 2,048, d=1,024", "NVIDIA H100 80GB HBM3"
WINDOW = "window 40,000, 2,000 rows in and out"
BADGES = {"ahead": "bdg-success", "level": "bdg-secondary", "behind": "bdg-danger"}


@dataclass(frozen=True)
class Headline:
    """A comparison, the row that holds its ratio, and what the ratio says."""

    task: str
    against: str
    work: str
    quantity: str
    meaning: str = FASTER

    def row(self, rows: Rows) -> Row:
        """The kept row of the ratio."""
        return rows[self.work, self.quantity]

    def standing(self, rows: Rows) -> str:
        """Ahead or behind if all repeats are on one side of 1, else level."""
        row = self.row(rows)
        samples = [*row["samples"], row["value"]]
        if min(samples) <= 1.0 <= max(samples):
            return "level"
        return "ahead" if (row["value"] > 1.0) is (self.meaning == FASTER) else "behind"

    def cells(self, rows: Rows) -> tuple[str, str]:
        """The line of the table."""
        row, standing = self.row(rows), self.standing(rows)
        spread = f" [{min(row['samples']):.3g}, {max(row['samples']):.3g}]" if len(row["samples"]) > 1 else ""
        least, most = row.get("least"), row.get("most")
        limit = f"at least {least:.3g}" if least is not None else f"at most {most:.3g}" if most is not None else "none"
        missed = " (missed)" if row["met"] is False else ""
        result = f":{BADGES[standing]}:`{standing}` {row['value']:.3g} {self.meaning}{spread}"
        against = [] if self.against == "the same" else [f"*compared with {self.against}*"]
        return _lines(self.task, *against), _lines(result, f"target: {limit}{missed}")


def _lines(*texts: str) -> str:
    """A cell of several lines."""
    return "\n       ".join(f"| {text}" for text in texts)


OURS_OVER = "LSHRegressor: RMSE over the best rival's"
HEADLINES = {
    "Tables of yes/no features": (
        Headline(
            "polynomial of degree 3 fitted to 100,000 rows of 20 columns: first fit of a process",
            "scikit-learn: PolynomialFeatures, Ridge",
            "n=20 d=3 m=100,000",
            "first fit, times as fast",
        ),
        Headline("the same: later fits", "the same", "n=20 d=3 m=100,000", "fit, times as fast"),
        Headline(
            "choice of degree and penalty by cross-validation",
            "scikit-learn: GridSearchCV, 300 fits (time extrapolated from 6)",
            "n=20 m=100,000 3 degrees 20 alphas 5 folds",
            "times as fast",
        ),
        Headline(
            "Gaussian process with its hyperparameters, 2,000 rows of 12 columns",
            "scikit-learn: GaussianProcessRegressor",
            "peers: n=12, m=2,000",
            "seconds, scikit-learn / ours",
        ),
        Headline("Walsh-Hadamard transform, 2^20 float32", "fht-cpu", "n=20 float32", "times as fast"),
        Headline("the same, float64", "fht-cpu", "n=20 float64", "times as fast"),
        *(
            Headline(
                f"nine measured tables, fit to {share} % of the rows by default: unexplained variance",
                "best of six rivals",
                f"all, {share}%",
                "ours over the best peer, geometric mean",
                ERROR,
            )
            for share in (1, 20, 80)
        ),
    ),
    "Tables of numbers": (
        *(
            Headline(f"{table}, default LSHRegressor: error (RMSE)", "best of nine rivals", work, OURS_OVER, ERROR)
            for table, work in (
                ("robot arm, 6 columns", "robot arm"),
                ("kin40k, 8 columns", "kin40k"),
                ("smooth function of 12 columns", "smooth, 12-d"),
            )
        ),
        Headline(
            'gas, 128 sensors, LSHRegressor with base="auto": error (RMSE)',
            "best rival",
            "gas",
            "LSHRegressor, base auto: RMSE over the best rival's",
            ERROR,
        ),
        Headline(
            "sliding window of 40,000 rows: updates",
            "LightGBM, fitted again at each step",
            f"photovoltaics, soiling: {WINDOW}",
            "faster than LightGBM",
        ),
        Headline(
            "the same window: error (RMSE)",
            "the same",
            f"photovoltaics, soiling: {WINDOW}",
            "RMSE over that of LightGBM, refitted",
            ERROR,
        ),
    ),
    "Trained networks": (
        Headline(
            "certified block of 2,048 x 8,192, bfloat16, 3 % of the units active, one input",
            "PyTorch, dense",
            "2048x8192 bfloat16 Gaussian",
            "block, times as fast",
        ),
        Headline(
            "small transformer, 3.2 % of the units active, one token at a time",
            "PyTorch, dense",
            "4 layers of 512, 4096 units, 3.2% active",
            "auto, times as fast",
        ),
        *(
            Headline(
                f"decoder of OPT-125M's shape, int8 weights, 5 % of the units active, {what}",
                peer,
                work,
                f"sparse int8, times as fast as {name}",
            )
            for what, peer, work, name in (
                ("one token", "torch, dynamic int8", OPT, "torch int8"),
                ("one token", "ONNX Runtime, int8", OPT, "ONNX Runtime int8"),
                ("one token", "llama.cpp, q8_0", OPT, "llama.cpp q8_0"),
                (
                    "8 tokens",
                    "fastest dense program: our own, int4",
                    f"{OPT}, 8 rows",
                    "the fastest dense side, own dense int4",
                ),
            )
        ),
        Headline(
            "block of 4,096 x 16,384 on an H100 GPU, bfloat16, 3 % of the units active, 16 inputs",
            "PyTorch, dense",
            f"{H100} d=4096 s=16384 torch.bfloat16 3% batch=16",
            "block, down sparse, times dense",
        ),
        Headline(
            "sparse autoencoder of 24,576 features, top 32, one row",
            "PyTorch, dense",
            "autoencoder 768-24576, top 32, 1 row, 1 thread",
            "load_sae, times as fast",
        ),
    ),
    "Layers in training": (
        *(
            Headline(
                f"Mixtral block, training step with {tokens} token{'s' * (tokens != '1')}",
                "transformers",
                f"{MIXTRAL}, {tokens} tokens, AVX512, 1 thread",
                "training, times as fast as transformers",
            )
            for tokens in ("1", "4,096")
        ),
        Headline(
            "mixture of 8 experts, 4,096 tokens",
            "a loop over experts",
            "8 experts of 512, 2 active, d=256, 4,096 tokens, AVX512",
            "loop, times as fast",
        ),
        Headline(
            "larger mixture of 8 experts, 16,384 tokens, bfloat16, H100 GPU",
            "transformers",
            f"{H100} torch.bfloat16 8 experts of 2048, 2 active, d=1024, 16,384 tokens",
            "transformers, times as fast",
        ),
        Headline(
            "selection of 32 among 2^20 units by product keys",
            "top-k over all units",
            "1,048,576 units, 32 active, d=256, 256 inputs",
            "product keys, times as fast as top-k",
        ),
        Headline(
            "training step of a hash memory with 2^20 slots",
            "torch.nn.EmbeddingBag",
            "1,048,576 slots, 4 for each of 4,096 tokens, d=256",
            "memory, times the bag's",
            SHARE,
        ),
    ),
}


def headline_table(path: Path) -> None:
    """Write a table for each group, to be included by ``benchmarks.rst``."""
    rows, page = kept(), []
    for group, headlines in HEADLINES.items():
        lines = [("task", "result"), *(one.cells(rows) for one in headlines)]
        page += [*list_table(lines, ":class: paired", group), ""]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(page), encoding="utf-8")
