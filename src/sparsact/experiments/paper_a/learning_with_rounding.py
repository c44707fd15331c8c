r"""Learning with rounding, lifted to one-sparse networks: who predicts fresh labels, Definition 15 and Conjecture 16.

Samples are lifted by :class:`sparsact.hardness.RoundingReduction`; the learners know no secret. The rule that the paper
prints, (<w, y> mod q) mod p, is linear modulo p where p divides q; the rule that rounds is not.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.experiments import (
    Claim,
    Experiment,
    Rows,
    Scale,
    Verdict,
    every,
    mean_of,
    needed,
    only_if,
    range_of,
    within,
)
from sparsact.hardness import InconsistentLabelsError, LearningWithRounding, Residues, secret_modulo

P, Q = 3, 9
MOST_SKILL = 0.02  # share of the trivial predictor's error that counts as none
PLANTED, ELIMINATION = "planted network", "elimination modulo p"
LEARNERS = ("low degree", "sparsely activated", "sparse layer", "hash tables", "perceptron", "forest")
SIZES = {Scale.SMOKE: (2,), Scale.QUICK: (2, 6), Scale.FULL: (2, 4, 8)}  # entries of a vector: there are 9^m vectors
N_TRAIN = {Scale.SMOKE: 60, Scale.QUICK: 600, Scale.FULL: 2000}
N_TEST = {Scale.SMOKE: 200, Scale.QUICK: 2000, Scale.FULL: 4000}
SEEDS = {Scale.SMOKE: 2, Scale.QUICK: 3, Scale.FULL: 5}


def parameters(scale: Scale) -> Iterator[dict[str, str | int]]:
    """Every learner on the rounded labels; elimination and the planted network by both rules."""
    shared: dict[str, str | int] = {"n_train": N_TRAIN[scale], "n_test": N_TEST[scale]}
    for seed in range(SEEDS[scale]):
        for m in SIZES[scale]:
            for rule, learners in (("round", (PLANTED, ELIMINATION, *LEARNERS)), ("modulo", (PLANTED, ELIMINATION))):
                for learner in learners:
                    yield {"rule": rule, "learner": learner, "m": m, **shared, "seed": seed}


def measure(*, rule: Any, learner: str, m: int, n_train: int, n_test: int, seed: int) -> dict[str, Any]:
    """Error on fresh samples beside that of the trivial predictor, the mean of the training labels."""
    rng = np.random.default_rng([seed, 1])
    problem = LearningWithRounding(rng.integers(Q, size=m), P, Q, rule=rule)
    train, test = problem.residues(n_train, rng=rng), problem.residues(n_test, rng=rng)
    network = problem.network()
    X = problem.reduction.lift(test.Y)
    predicted = network(X) if learner == PLANTED else _predictions(learner, problem, train, test, seed)
    mse = float(np.mean((predicted - test.labels) ** 2))
    trivial = float(np.mean((train.labels.mean() - test.labels) ** 2))
    return {
        "mse": mse,
        "trivial_mse": trivial,
        "skill": 1 - mse / trivial,
        "most_active": int(network.n_active(X).max()),
        "coordinates": problem.n,
    }


def _predictions(
    learner: str, problem: LearningWithRounding, train: Residues, test: Residues, seed: int
) -> NDArray[np.float64]:
    if learner == ELIMINATION:
        try:
            secret = secret_modulo(train.Y, train.labels, P, Q).residues
        except InconsistentLabelsError:  # no linear function has these labels: nothing is left but their mean
            return np.full(len(test.Y), train.labels.mean())
        return np.asarray(test.Y @ secret % P, dtype=np.float64)
    X, y = problem.reduction.examples(train)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Stochastic Optimizer")  # 100 epochs are all that the perceptron is given
        model = estimators(seed)[learner]().fit(X, y)
    return np.asarray(model.predict(problem.reduction.lift(test.Y)), dtype=np.float64)


def estimators(seed: int) -> dict[str, Callable[[], Any]]:
    """How each learner is made."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.neural_network import MLPRegressor

    from sparsact.learners import DSMRegressor, LowDegreeRegressor, LSHRegressor, SparselyActivatedRegressor

    return {
        "low degree": lambda: LowDegreeRegressor(1, alpha=1.0),
        "sparsely activated": lambda: SparselyActivatedRegressor(8, n_restarts=1, max_iter=50, random_state=seed),
        "sparse layer": lambda: DSMRegressor(256, 64, alpha=1.0, random_state=seed),
        "hash tables": lambda: LSHRegressor(4, degree=0, directions="standard", random_state=seed),
        "perceptron": lambda: MLPRegressor(
            hidden_layer_sizes=(32,), early_stopping=True, max_iter=100, random_state=seed
        ),
        "forest": lambda: RandomForestRegressor(30, min_samples_leaf=20, max_features="sqrt", random_state=seed),
    }


def judge_planted(rows: Rows) -> Verdict:
    """Error and activity of the planted network in every row."""
    planted = needed(rows.where(learner=PLANTED), "the planted network")
    return every(
        within(range_of(planted.column("mse")), most=1e-9, what="error"),
        within(range_of(planted.column("most_active")), most=1, what="active units"),
    )


def judge_learners(rows: Rows) -> Verdict:
    """Skill of every learner on rounded labels, a mean over seeds: on the longest vectors and on the shortest."""
    rounded = needed(Rows(row for row in rows.where(rule="round") if row["learner"] in LEARNERS), "learners")
    sizes = rounded.distinct("m")
    largest = every(*_skills(rounded.where(m=sizes[-1])))
    if len(sizes) == 1:
        return largest
    condition = f"the instance is not tiny: with {Q}^{sizes[0]} vectors the samples hold all of them"
    return only_if(condition, largest, every(*_skills(rounded.where(m=sizes[0]))))


def _skills(rows: Rows) -> list[Verdict]:
    m = rows[0]["m"]
    skills = {name: needed(rows.where(learner=name), name).column("skill") for name in LEARNERS}
    return [within(mean_of(skill), most=MOST_SKILL, what=f"{name}, m = {m}:") for name, skill in skills.items()]


def judge_printed(rows: Rows) -> Verdict:
    """Elimination on labels by the printed rule, which it should not predict if they were hard."""
    skill = needed(rows.where(learner=ELIMINATION, rule="modulo"), "elimination").column("skill")
    return within(mean_of(skill), most=MOST_SKILL, what="skill of elimination, (mod q) mod p,")


def judge_rounding(rows: Rows) -> Verdict:
    """Elimination on rounded labels."""
    skill = needed(rows.where(learner=ELIMINATION, rule="round"), "elimination").column("skill")
    return within(mean_of(skill), most=MOST_SKILL, what="skill of elimination, rounded,")


_RULE = "holds if the 95 % interval over seeds of 1 - error / error of the mean lies at or below 0.02"

EXPERIMENT = Experiment(
    name="learning-with-rounding",
    paper="A",
    place="Section 4, Definition 15, Conjecture 16",
    title="Learning with rounding as one-sparse networks",
    summary=(
        "Labels of a secret modulo 9, rounded to 3 values, on the quadratic lift of the vectors' binary digits, where "
        "a one-sparse network has them. Learners see lifted samples and are judged on fresh ones. That none learns at "
        "these sizes is evidence, not proof: at small size trying all secrets succeeds."
    ),
    version=2,
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            "planted",
            "Section 4",
            "The labels are those of a network with one active unit on the support.",
            "one-sparse",
            "holds if its error is at most 1e-9 and at most one unit is active at every fresh point of every row",
            judge_planted,
            refuted_if="some row has an error above 1e-9, or two active units at a fresh point",
        ),
        Claim(
            "learners",
            "Conjecture 16",
            "No efficient learner beats the trivial predictor on rounded labels.",
            "",
            _RULE + " for every learner, on the longest vectors; only if, when one lies above on the shortest",
            judge_learners,
            refuted_if="on the longest vectors some learner significantly beats the trivial predictor, and on the "
            "shortest too",
        ),
        Claim(
            "printed-rule",
            "Definition 15",
            "Labels (<w, y> mod q) mod p, as printed, are hard to predict; here p divides q.",
            "",
            _RULE + " for elimination modulo p",
            judge_printed,
            refuted_if="elimination modulo p significantly beats the trivial predictor",
        ),
        Claim(
            "rounded-rule",
            "beyond the paper",
            "With rounding in place of the second modulus, elimination modulo p predicts nothing.",
            "",
            _RULE + " for elimination modulo p",
            judge_rounding,
            refuted_if="elimination modulo p significantly beats the trivial predictor on rounded labels",
        ),
    ),
    order=320,
)
