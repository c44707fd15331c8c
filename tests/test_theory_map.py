"""The map from both papers to names, tests and experiments: nothing of the papers is missing, nothing leads nowhere."""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from sparsact.bounds import BOUNDS
from sparsact_papers.experiments import experiments

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

# Every numbered statement, figure and table of the papers' text, in its order; then what is defined without a number.
NUMBERED = {
    "a": """Definition 1, Definition 2, Theorem 3, Theorem 4, Theorem 5, Claim 2.1, Lemma 6, Lemma 7, Theorem 8,
        Lemma 9, Lemma 10, Remark 11, Conjecture 12, Theorem 13, Theorem 14, Definition 15, Conjecture 16, Theorem 17,
        Lemma 18, Theorem 19, Equations (2) to (14), Equation (15), Conjecture 20, Appendix A, Appendix B""",
    "b": """Theorem 4.1, Theorem 4.2, Figure 1, Figure 2, Figure 3, Figure 4, Table 1, Figure 5, Table 2, Lemma B.1,
        Equation (1), Theorem C.1, Lemma C.2, Lemma C.3, Theorem D.1, Equations (3) to (10)""",
}
UNNUMBERED = {
    "a": """dead sparsity; 3 % of the units; juntas; Index_b; Gaussian inputs; parity by dense units; agnostic learning;
        related work; loss and PAC learning;
        Fourier representation; degree; norm; sensitivity; average sensitivity; noise sensitivity; parity as units;
        the lift x(y); statistical queries; rounding as units; Rademacher complexity; dense complexity; footnote 1;
        future directions""",
    "b": """the one-dimensional example; related work; uniform error and Lipschitz functions; DSM(d, s, t);
        two sparse layers;
        LSH(d, s, m, Delta); Euclidean LSH; interpolation; k-NN; Switch Transformers; Scaling Transformers;
        the LSH model as a DSM; cost of the buckets; sparse against dense; sample complexity; random polynomial;
        random hypercube function; training; random hash; low intrinsic dimension; limitations; future work;
        DSM(d, t, t)""",
}


@pytest.fixture(scope="module")
def theory_map():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS)
        yield import_module("theory_map")


@pytest.fixture(scope="module", params=["a", "b"])
def paper(request):
    return request.param


@pytest.fixture(scope="module")
def statements(theory_map, paper):
    return theory_map.statements(paper)


@cache
def functions(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def words(text, mark):
    return [" ".join(part.split()) for part in text.split(mark)]


def test_no_statement_of_a_paper_is_missing(statements, paper):
    labels = [one.label for one in statements]
    assert [label for label in labels if ", " not in label] == words(NUMBERED[paper], ",")
    placed = [label.partition(", ")[2] for label in labels if ", " in label]
    assert placed == words(UNNUMBERED[paper], ";")


def test_every_statement_has_a_name_and_a_test_or_says_why_not(statements):
    for one in statements:
        assert one.says, one.label
        assert one.says.endswith("."), one.label
        assert bool(one.names and one.tests) != bool(one.absent), one.label


def test_every_name_is_public(statements, theory_map):
    pages = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("api_*.rst"))
    public_names = import_module("public_names")
    derived = [name for package in public_names.PACKAGES for name in public_names.listed(package)]
    listed = {*re.findall(r"^   (\w+)$", pages, re.MULTILINE), *derived}
    for one in statements:
        for name in one.names:
            assert theory_map.named(name) is not None
            assert name.rpartition(".")[2] in listed, f"{one.label}: {name} is not in the API pages"


def test_every_test_exists(statements):
    for one in statements:
        for test in one.tests:
            file, _, function = test.partition("::")
            assert function.startswith("test_"), test
            assert function in functions(ROOT / file), f"{one.label}: {test}"


def test_every_experiment_is_registered(statements):
    assert {name for one in statements for name in one.experiments} <= set(experiments())


def test_every_experiment_of_a_paper_is_on_the_map(theory_map):
    known = {name for paper in ("a", "b") for one in theory_map.statements(paper) for name in one.experiments}
    assert {name for name, one in experiments().items() if one.paper != "practice"} <= known


def test_every_bound_of_a_paper_is_on_the_map(theory_map):
    for paper in ("a", "b"):
        known = {name for one in theory_map.statements(paper) for name in one.names}
        numbered = {entry.name for entry in BOUNDS if entry.paper == paper.upper()}
        assert {f"bounds.{name}" for name in numbered} - known == set()


def test_the_lists_are_written(theory_map, paper, tmp_path):
    theory_map.theory_map(tmp_path)
    text = (tmp_path / f"theory_map_{paper}.inc").read_text(encoding="utf-8")
    assert len(re.findall(r"^[^\s.]", text, re.MULTILINE)) == len(theory_map.statements(paper))
    for one in theory_map.statements(paper):
        assert f":obj:`~{theory_map.whole(one.names[0])}`" in text if one.names else one.absent[:20] in text
