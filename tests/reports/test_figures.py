import pytest
from summaries import classes, summary

from sparsact.reports.figures import confusion, degrees, influences, interactions, residuals, scores, weights
from sparsact.reports.frame import n_rows

FRAMES = [
    (scores, lambda: scores.frame(summary().targets[0], summary().choice)),
    (degrees, lambda: degrees.frame(summary().candidates)),
    (weights, lambda: weights.frame(summary().targets[0])),
    (interactions, lambda: interactions.frame(summary().targets[0])),
    (influences, lambda: influences.frame(summary().targets[0])),
    (residuals, lambda: residuals.frame(summary().targets[0])),
    (confusion, lambda: confusion.frame(classes().confusion)),
]


@pytest.mark.parametrize(("figure", "frame"), FRAMES, ids=lambda part: getattr(part, "__name__", ""))
def test_every_figure_labels_its_axes(figure, frame):
    columns = frame()
    assert len({len(values) for values in columns.values()}) == 1
    assert n_rows(columns) > 0
    for axes in figure.plot(columns).axes:
        lists_names = any(label.get_text().isidentifier() for label in axes.get_yticklabels())
        colour_bar = axes.get_label() == "<colorbar>"
        assert axes.get_xlabel() or colour_bar
        assert axes.get_ylabel() or lists_names or colour_bar


def test_interactions_go_from_the_largest_down_and_weights_add_up():
    target = summary().targets[0]
    sizes = [abs(c) for c in interactions.frame(target)["coefficient"]]
    assert sizes == sorted(sizes, reverse=True)
    columns = weights.frame(target)
    assert columns["cumulative share"][-1] == pytest.approx(sum(columns["weight"]) / target.variance)


def test_each_degree_has_one_best_penalty():
    columns = degrees.frame(summary().candidates)
    best = [degree for degree, is_best in zip(columns["degree"], columns["best"], strict=True) if is_best]
    assert best == [1, 2, 3]


def test_confusion_of_shares():
    columns = confusion.frame(classes().confusion)
    assert columns["predicted dog"] == [3, 61, 5]
    assert columns["share right"][0] == pytest.approx(50 / 54)
