from dataclasses import replace

import pytest
from summaries import classes, summary, tables

from sparsact.fit.scores import FoldScores, NoiseCeiling, Score
from sparsact.fourier import anova
from sparsact.reports.effect_figures import interactions_chart, pairs_chart
from sparsact.reports.figure import n_rows
from sparsact.reports.fit_figures import (
    confusion_chart,
    error_chart,
    gains_chart,
    influences_chart,
    residuals_chart,
    scores_chart,
    shares_chart,
    weights_chart,
)
from sparsact.reports.letters_figures import by_number_chart, by_site_chart, letters_chart, pairs_of_sites_chart
from sparsact.reports.lsh_figures import columns_chart, coverage_chart, layouts_chart, load_chart


def of_letters():
    """Components of two sites, and their names."""
    return anova([[0.0, 3.0], [0.0, 1.0]]), (("first", ("A", "C")), ("second", ("A", "D")))


CHARTS = [
    (scores_chart, lambda: ({"chosen": FoldScores((0.8, 0.9)), "linear": FoldScores((0.1, 0.2))}, None)),
    (error_chart, lambda: summary().choices.candidates),
    (weights_chart, lambda: summary().targets[0]),
    (shares_chart, lambda: replace(summary().targets[0], posterior_shares=((0.7, 0.6, 0.8), (0.3, 0.2, 0.4)))),
    (gains_chart, lambda: summary().choices.gains),
    (interactions_chart, lambda: summary().targets[0]),
    (influences_chart, lambda: summary().targets[0]),
    (pairs_chart, lambda: summary().targets[0]),
    (residuals_chart, lambda: summary().targets[0]),
    (confusion_chart, lambda: classes().confusion),
    (by_number_chart, of_letters),
    (pairs_of_sites_chart, of_letters),
    (
        letters_chart,
        lambda: replace(summary().targets[0], sites=of_letters()[1], letter_effects=((0.0, 3.0), (0.0, 1.0))),
    ),
    (by_site_chart, of_letters),
    (load_chart, tables),
    (layouts_chart, tables),
    (coverage_chart, tables),
    (columns_chart, tables),
]


@pytest.mark.parametrize(("chart", "source"), CHARTS, ids=lambda part: getattr(part, "name", ""))
def test_every_figure_labels_its_axes(chart, source):
    numbers = chart.frame(source())
    assert len({len(values) for values in numbers.values()}) == 1
    assert n_rows(numbers) > 0
    for axes in chart.plot(numbers).axes:
        lists_names = any(label.get_text().isidentifier() for label in axes.get_yticklabels())
        colour_bar = axes.get_label() == "<colorbar>"
        shares_axis = axes.get_xlabel() == "" and len(axes.get_shared_x_axes().get_siblings(axes)) > 1
        assert axes.get_xlabel() or colour_bar or shares_axis
        beside_a_list = len(axes.get_shared_y_axes().get_siblings(axes)) > 1
        assert axes.get_ylabel() or lists_names or colour_bar or beside_a_list


def test_interactions_go_from_the_largest_down_and_weights_add_up():
    target = summary().targets[0]
    sizes = [abs(c) for c in interactions_chart.frame(target)["coefficient"]]
    assert sizes == sorted(sizes, reverse=True)
    columns = weights_chart.frame(target)
    assert columns["cumulative share"][-1] == pytest.approx(sum(columns["weight"]) / target.variance)


def test_each_degree_has_one_best_penalty():
    columns = error_chart.frame(summary().choices.candidates)
    best = [degree for degree, is_best in zip(columns["degree"], columns["best"], strict=True) if is_best]
    assert best == [1, 2, 3]


def test_confusion_of_shares():
    columns = confusion_chart.frame(classes().confusion)
    assert columns["predicted dog"] == [3, 61, 5]
    assert columns["share right"][0] == pytest.approx(50 / 54)


def test_bucket_load_counts_every_bucket_and_row_in_classes_that_double():
    frame = load_chart.frame(tables())
    assert frame["rows from"] == [1, 2, 4, 8, 16, 32, 64]
    assert frame["buckets"] == [400, 0, 800, 0, 0, 200, 40]
    assert sum(frame["share of rows"]) == pytest.approx(1)
    assert frame["share of rows"][5] == pytest.approx(200 * 35 / (400 + 4000 + 7000 + 4960))


def test_half_of_the_rows_lie_in_buckets_of_no_more_than_the_median_load():
    assert tables().median_load == 35  # 400 + 4000 + 7000 of 16,360 rows


def test_each_layout_is_drawn_with_its_best_penalty_and_one_is_chosen():
    frame = layouts_chart.frame(tables())
    assert frame["ridge penalty"] == [0.01] * 4
    assert frame["chosen"].count(True) == 1
    lines = {line.get_label() for line in layouts_chart.plot(frame).axes[0].lines}
    assert {"gradients, 8,192 rows", "gradients, 4,096 rows", "principal, 4,096 rows", "chosen"} <= lines


def test_scores_draw_any_number_of_models():
    for n in (1, 2, 5):
        frame = scores_chart.frame(({f"model {i}": FoldScores((0.1 * i, 0.2)) for i in range(n)}, None))
        assert frame["model"][-1] == "mean of the target"
        scores_chart.plot(frame)


def test_errors_have_a_log_axis_with_lines_for_the_mean_and_for_noise():
    """Exact and hopeless folds stand at its ends, one without an R2 nowhere; the ceiling of .96 is a line at .04."""
    models = {"chosen: an exact one": FoldScores((1.0, 1.0)), "hopeless": FoldScores((-99.0, float("nan")))}
    ceiling = NoiseCeiling(Score(0.96, 0.9, 0.98), 20)
    axes = scores_chart.plot(scores_chart.frame((models, ceiling))).axes[0]
    assert axes.get_xscale() == "log"
    assert sorted(float(line.get_xdata()[0]) for line in axes.lines) == pytest.approx([0.04, 1.0])
    low, high = axes.get_xlim()
    assert 0 < low <= 1e-6
    assert high >= 10
    label = next(text for text in axes.texts if "chosen" in text.get_text())
    assert label.get_position()[0] == 0  # of the axes: in view wherever the marks are
