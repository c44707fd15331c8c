"""Learning with rounding, lifted to one-sparse networks: who predicts fresh labels, Definition 15 and Conjecture 16.

Learners see samples lifted by :class:`sparsact.hardness.RoundingReduction`, attacks see the samples themselves; neither
knows the secret. The modulus q grows with the length of the secret: for fixed p and q linearisation is polynomial.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, product
from math import isqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.hardness import (
    LearningWithRounding,
    Residues,
    SecretSearch,
    carry_monomials,
    consistent_secrets,
    lattice_secret,
    linearisation_samples,
    linearisation_unknowns,
    linearised_secret,
    secret_modulo,
    solve_modulo,
)
from sparsact_papers.charts import Chart, Frame, curve_plot, curves
from sparsact_papers.claims import Claim, Outcome, Verdict, every, needed, within
from sparsact_papers.experiment import Experiment, Rows, Scale
from sparsact_papers.intervals import mean_of, median_of, range_of

P = 2
SQUARE: Final = (3, 9)  # moduli p, q with q = p^2
MOST_SKILL: Final = 0.02  # share of the trivial predictor's error that counts as none
PLANTED, ELIMINATION, CARRIES = "planted network", "elimination modulo p", "elimination on carries"
TRIALS, LINEARISATION, LATTICE = "all secrets", "linearisation", "lattice reduction"
ATTACKS: Final = (TRIALS, LINEARISATION, LATTICE)
LEARNERS: Final = ("low degree", "sparsely activated", "sparse layer", "hash tables", "perceptron", "forest")
SIZES: Final = {Scale.SMOKE: (2,), Scale.QUICK: (2, 4, 8), Scale.FULL: (2, 4, 6, 8, 10)}  # entries of a vector
MOST_TRIALS, MOST_UNKNOWNS, LATTICE_SAMPLES = 2**20, 1000, 400  # budgets of the attacks
OF_THE_CLASS: Final = "sparsely activated"  # takes minutes beyond these lengths and samples
MOST_OF_THE_CLASS: Final = {"m": 6, "n_train": 500}
N_TRAIN: Final = {Scale.SMOKE: 60, Scale.QUICK: 600, Scale.FULL: 2000}
N_TEST: Final = {Scale.SMOKE: 200, Scale.QUICK: 2000, Scale.FULL: 4000}
SEEDS: Final = {Scale.SMOKE: 2, Scale.QUICK: 3, Scale.FULL: 3}


def modulus(m: int) -> int:
    """The smallest prime of at least p m + 1, so that each label leaves m products or more."""
    return next(q for q in count(P * m + 1) if all(q % d for d in range(2, isqrt(q) + 1)))


def parameters(scale: Scale) -> Iterator[dict[str, str | int]]:
    """Every learner and attack on rounded labels modulo a prime; elimination by both rules modulo p^2."""
    for seed, m in product(range(SEEDS[scale]), SIZES[scale]):
        cases = [("round", P, modulus(m), learner) for learner in (PLANTED, *ATTACKS, *LEARNERS)]
        cases += [("modulo", *SQUARE, PLANTED), ("modulo", *SQUARE, ELIMINATION), ("round", *SQUARE, CARRIES)]
        for rule, p, q, learner in cases:
            shared: dict[str, str | int] = {"n_train": N_TRAIN[scale], "n_test": N_TEST[scale], "seed": seed}
            if learner == OF_THE_CLASS:
                shared["n_train"] = min(N_TRAIN[scale], MOST_OF_THE_CLASS["n_train"])
            if learner != OF_THE_CLASS or m <= MOST_OF_THE_CLASS["m"]:
                yield {"rule": rule, "learner": learner, "m": m, "p": p, "q": q, **shared}


def measure(*, rule: Any, learner: str, m: int, p: int, q: int, n_train: int, n_test: int, seed: int) -> dict[str, Any]:
    """Error on fresh samples beside that of the trivial predictor, the mean of the training labels."""
    rng = np.random.default_rng([seed, 1])
    problem = LearningWithRounding(rng.integers(q, size=m), p, q, rule=rule)
    test, train = problem.residues(n_test, rng=rng), problem.residues(n_train, rng=rng)
    values: dict[str, Any] = {}
    if learner == PLANTED:
        X, network = problem.reduction.lift(test.Y), problem.network()
        predicted = network(X)
        values = {"most_active": int(network.n_active(X).max()), "coordinates": problem.n}
    elif learner in ATTACKS:
        search, operations_needed = _attacked(learner, problem, rng)
        predicted = np.full(n_test, train.labels.mean())
        if search is not None and search.secret is not None:
            predicted = LearningWithRounding(search.secret, p, q).labels(test.Y).astype(np.float64)
        values = {"tried": search is not None, "operations": operations_needed}
    else:
        predicted = _predictions(learner, problem, train, test, seed)
    mse = float(np.mean((predicted - test.labels) ** 2))
    trivial = float(np.mean((train.labels.mean() - test.labels) ** 2))
    return {"mse": mse, "trivial_mse": trivial, "skill": 1 - mse / trivial, **values}


def _attacked(attack: str, problem: LearningWithRounding, rng: np.random.Generator) -> tuple[SecretSearch | None, int]:
    """What an attack finds in as many samples as it needs, or None beyond its budget; and its operations."""
    m, p, q = problem.m, problem.p, problem.q
    if attack == LATTICE:
        search = lattice_secret(*problem.residues(LATTICE_SAMPLES, rng=rng), p, q)
        return search, search.operations
    if attack == LINEARISATION:
        unknowns = linearisation_unknowns(m, p, q)
        if unknowns > MOST_UNKNOWNS:
            return None, unknowns**3
        search = linearised_secret(*problem.residues(linearisation_samples(m, p, q), rng=rng), p, q)
        return search, search.operations
    operations = m * q**m
    if q**m > MOST_TRIALS:
        return None, operations
    secrets = consistent_secrets(*problem.residues(20 * m, rng=rng), p, q)
    return SecretSearch(secrets[0], operations), operations


def _predictions(
    learner: str, problem: LearningWithRounding, train: Residues, test: Residues, seed: int
) -> NDArray[np.float64]:
    p = problem.p
    if learner == ELIMINATION:
        return np.asarray(test.Y @ secret_modulo(train.Y, train.labels, p, problem.q).values % p, dtype=np.float64)
    if learner == CARRIES:
        combination = solve_modulo(carry_monomials(train.Y, p), train.labels, p).values
        return np.asarray(carry_monomials(test.Y, p) @ combination % p, dtype=np.float64)
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
        "sparsely activated": lambda: SparselyActivatedRegressor(8, n_restarts=1, max_iter=10, random_state=seed),
        "sparse layer": lambda: DSMRegressor(256, 64, alpha=1.0, random_state=seed),
        "hash tables": lambda: LSHRegressor(4, degree=0, directions="standard", random_state=seed),
        "perceptron": lambda: MLPRegressor(
            hidden_layer_sizes=(32,), early_stopping=True, max_iter=100, random_state=seed
        ),
        "forest": lambda: RandomForestRegressor(30, min_samples_leaf=20, max_features="sqrt", random_state=seed),
    }


def _judge_planted(rows: Rows) -> Verdict:
    planted = needed(rows.where(learner=PLANTED), "the planted network")
    return every(
        within(range_of(planted.column("mse")), most=1e-9, what="error"),
        within(range_of(planted.column("most_active")), most=1, what="active units"),
    )


def _judge_learners(rows: Rows) -> Verdict:
    prime = rows.where(rule="round", p=P)
    verdict = every(*(_skill(prime.where(learner=name), name) for name in LEARNERS + ATTACKS))
    outcome = Outcome.CONSISTENT if verdict.outcome is Outcome.HOLDS else verdict.outcome
    attacks = "; ".join(_reach(prime.where(learner=name)) for name in ATTACKS)
    return replace(verdict, outcome=outcome, measured=f"{attacks}. Skills: {verdict.measured}")


def _skill(rows: Rows, name: str) -> Verdict:
    m = needed(rows, name).distinct("m")[-1]
    return within(mean_of(rows.where(m=m).column("skill")), most=MOST_SKILL, what=f"{name}, m = {m}:")


def _reach(rows: Rows) -> str:
    """How often an attack solved each length, its median operations there, and what was beyond its budget."""
    tried, beyond = [], []
    for (m,), group in rows.groups("m").items():
        cost = f"{np.median(group.array('operations')):.2g} operations"
        solved = sum(skill > 1 - MOST_SKILL for skill in group.column("skill"))
        if all(group.column("tried")):
            tried.append(f"{solved} of {len(group)} at m = {m} ({cost})")
        else:
            beyond.append(f"m = {m} ({cost})")
    over = f"; beyond its budget: {', '.join(beyond)}" if beyond else ""
    return f"{rows[0]['learner']} solved {', '.join(tried)}{over}"


_RULE: Final = "95 % interval over seeds of 1 - error / error of the mean lies at or below 0.02"


def operations(rows: Rows) -> Frame:
    """Median operations of every attack, for each length of the vectors."""
    attacks = Rows(row for row in rows if "operations" in row.values)
    return curves(attacks, "{learner}", "m", "operations", interval=median_of)


EXPERIMENT: Final = Experiment(
    name="learning-with-rounding",
    paper="A",
    place="Section 4, Definition 15, Conjecture 16",
    title="Learning with rounding as one-sparse networks",
    summary="Labels of a secret of m residues modulo a prime q of at least 2 m + 1, rounded to 2 values. Learners see "
    "the quadratic lift of the vectors' binary digits, where a one-sparse network has these labels; three attacks see "
    "the vectors: all secrets (at most 2^20), linearisation (at most 1,000 unknowns) and lattice reduction (LLL, 400 "
    "samples). All are judged on fresh samples. Block reduction (BKZ) and combinatorial attacks (BKW) were not tried. "
    "For fixed p and q linearisation takes polynomial time in m, so q grows with m.",
    version=3,
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            "planted",
            place="Section 4",
            statement="On the support a network with one active unit gives the labels.",
            printed="one-sparse",
            rule="holds if its error is at most 1e-9 and at most one unit is active at every fresh point of every row",
            judge=_judge_planted,
            refuted_if="some row has an error above 1e-9, or two active units at a fresh point",
        ),
        Claim(
            "learners",
            place="Conjecture 16",
            statement="No learner or attack that was tried beats the trivial predictor on its longest vectors within "
            "its budget. Short vectors are solved; the conjecture is about all lengths and cannot be confirmed by any.",
            rule=f"consistent if the {_RULE} for every learner and attack, on the longest vectors (m = 6 and 500 "
            "samples for the learner of sparsely activated networks, m = 10 and 2,000 for the others); an attack "
            "beyond its budget predicts the mean",
            judge=_judge_learners,
            refuted_if="some learner or attack significantly beats the trivial predictor on its longest vectors",
        ),
        Claim(
            "printed-rule",
            place="Definition 15",
            statement="Labels (<w, y> mod q) mod p, as printed, are hard to predict; here p = 3 divides q = 9.",
            rule=f"holds if the {_RULE} for elimination modulo p",
            judge=lambda rows: within(
                mean_of(needed(rows.where(learner=ELIMINATION, rule="modulo"), "elimination").column("skill")),
                most=MOST_SKILL,
                what="skill of elimination, (mod q) mod p,",
            ),
            refuted_if="elimination modulo p significantly beats the trivial predictor",
        ),
        Claim(
            "square-modulus",
            statement="Rounded labels are hard to predict for any moduli; here p = 3 and q = 9.",
            rule=f"holds if the {_RULE} for elimination modulo p on monomials of the digits, of degree p",
            judge=lambda rows: within(
                mean_of(needed(rows.where(learner=CARRIES, rule="round"), "elimination on carries").column("skill")),
                most=MOST_SKILL,
                what="skill of elimination on carries, rounded,",
            ),
            refuted_if="that elimination significantly beats the trivial predictor",
        ),
    ),
    charts=(
        Chart(
            "skill",
            "Who predicts fresh labels of learning with rounding",
            "Points: mean over seeds; bars: its 95 % interval. 1 is perfect, 0 no better than the mean of the labels. "
            "An attack beyond its budget predicts the mean.",
            lambda rows: curves(rows.where(p=2), "{learner}", "m", "skill", interval=mean_of),
            curve_plot(
                "entries of a vector, m",
                "1 - squared error / that of the trivial predictor",
                log=(2, 0),
                levels={"the mean of the labels (trivial)": 0.0},
                size=(6.4, 5.2),
            ),
        ),
        Chart(
            "operations",
            "Operations of each attack",
            "Points: median over seeds, modulo the smallest prime q of at least 2 m + 1. Beyond their budget all "
            "secrets would take m q^m, and linearisation N^3 for N unknowns. Lattice reduction: also where it failed.",
            operations,
            curve_plot("entries of a vector, m", "operations", log=(0, 10)),
        ),
    ),
    order=320,
)
