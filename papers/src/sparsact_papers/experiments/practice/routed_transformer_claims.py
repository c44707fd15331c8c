"""What is claimed of routed feed-forward layers, and the rules by which rows decide it."""

from __future__ import annotations

from functools import partial

from sparsact_papers.experiments import Claim, Rows, Verdict, every, mean_of, needed, range_of, within

DENSE, NARROW, TREE, TOP_K = "dense", "dense, narrow", "tree", "top-k"
LSH, LSH_4 = "LSH, 1 table", "LSH, 4 tables"
TABLES = {LSH: 1, LSH_4: 4}
MODELS = (DENSE, NARROW, LSH, LSH_4, TREE, TOP_K)
ACTIVE = 8  # one unit in so many is on
NEAR = 0.05
CHEAP = 2 / ACTIVE  # routing costs no more than the active units
TOP_K_COSTS = 0.5  # every pre-activation, which is half of the operations


def differences(rows: Rows, one: str, other: str) -> list[float]:
    """Nats by which the last loss of a model exceeds another's, for each seed that has both."""
    beside = {row["seed"]: row["losses"][-1] for row in rows.where(model=other)}
    pairs = needed(Rows(row for row in rows.where(model=one) if row["seed"] in beside), f"a pair of {one} and {other}")
    return [row["losses"][-1] - beside[row["seed"]] for row in pairs]


def judge_losses(rows: Rows, models: tuple[str, ...], other: str, most: float) -> Verdict:
    """The last losses of models against another's."""
    return every(
        *(
            within(mean_of(differences(rows, model, other)), most=most, what=f"{model} minus {other}, nats:")
            for model in models
        )
    )


def share_of_dense(rows: Rows, model: str) -> list[float]:
    """Operations of a model's feed-forward layers, routing included, over those of the dense ones."""
    whole = needed(rows.where(model=DENSE), DENSE)[0]["flops"]
    return [row["flops"] / whole for row in needed(rows.where(model=model), model)]


def judge_flops(rows: Rows) -> Verdict:
    """Every routed model's operations; top-k's are to be many."""
    cheap = [
        within(range_of(share_of_dense(rows, model)), most=CHEAP, what=f"{model}:") for model in (LSH, LSH_4, TREE)
    ]
    return every(*cheap, within(range_of(share_of_dense(rows, TOP_K)), least=TOP_K_COSTS, what=f"{TOP_K}:"))


PAIRS = "by the 95 % interval of the mean over seeds, in pairs of one seed"
GAIN = f"holds if its validation loss is lower than that of the narrow dense layers, {PAIRS}"
LOSSES = (
    ("lsh-gains", "Layers routed by LSH are better than dense ones with as many units as are active.", (LSH, LSH_4)),
    ("tree-gains", "So are layers routed by a tree.", (TREE,)),
    ("top-k-gains", "So are layers that keep the largest pre-activations.", (TOP_K,)),
)
CLAIMS = (
    *(
        Claim(
            name=name,
            place="Paper B, future work",
            statement=statement,
            printed="",
            rule=GAIN,
            refuted_if="a routed model significantly has the higher loss",
            judge=partial(judge_losses, models=models, other=NARROW, most=0.0),
        )
        for name, statement, models in LOSSES
    ),
    Claim(
        name="as-good-as-dense",
        place="Paper B, future work",
        statement="Layers routed by LSH are as good as dense ones of the same total width.",
        printed="",
        rule=f"in one table and in four: validation loss at most {NEAR:g} nats above dense, {PAIRS}",
        refuted_if="a routed model's loss significantly exceeds dense's by more than the limit",
        judge=partial(judge_losses, models=(LSH, LSH_4), other=DENSE, most=NEAR),
    ),
    Claim(
        name="as-good-as-top-k",
        place="beyond the papers",
        statement="A hash that knows nothing of the units chooses as well as their pre-activations do.",
        printed="",
        rule=f"in one table and in four: validation loss at most {NEAR:g} nats above top-k, {PAIRS}",
        refuted_if="a hash's loss significantly exceeds top-k's by more than the limit",
        judge=partial(judge_losses, models=(LSH, LSH_4), other=TOP_K, most=NEAR),
    ),
    Claim(
        name="flops",
        place="beyond the papers",
        statement=f"With one unit in {ACTIVE} on, hash and tree save operations even when routing is counted; "
        "top-k, which computes every pre-activation, saves less than half.",
        printed="",
        rule=f"operations of the feed-forward layers for a token over dense, routing included: at most {CHEAP:g} for "
        f"LSH and the tree, at least {TOP_K_COSTS:g} for top-k, at every seed",
        refuted_if="some seed of LSH or of the tree costs more than its limit, or of top-k less",
        judge=judge_flops,
    ),
)
