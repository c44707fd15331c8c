"""The classifier: labels of any kind, probabilities, classes that come late."""

import numpy as np
import pytest
from hashed_rows import rows
from sklearn.model_selection import cross_val_score

from sparsact import LSHClassifier

X, Y = rows(m=600)
QUERIES = rows(m=37, seed=4)[0]
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [1.0, 2.0])]


def classifier(**options):
    return LSHClassifier(**{"n_tables": 5, "random_state": 1, **options})


@pytest.mark.grid
@pytest.mark.parametrize("kind", [str, object, int, bool])
def test_labels_of_any_kind(kind):
    labels = {str: LABELS, object: LABELS.astype(object), int: (LABELS == "low") * 3 - 1, bool: LABELS == "low"}[kind]
    learner = classifier().fit(X, labels)
    predicted = learner.predict(QUERIES)
    assert predicted.dtype == learner.classes_.dtype
    assert set(predicted) <= set(labels)
    probabilities = learner.predict_proba(QUERIES)
    assert probabilities.shape == (37, len(learner.classes_))
    assert probabilities.min() >= 0
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(predicted, learner.classes_[probabilities.argmax(axis=1)])


def test_it_learns():
    """A guess of the largest class would be right in less than half of the rows."""
    assert np.unique(LABELS, return_counts=True)[1].max() < 300
    assert cross_val_score(classifier(), X, LABELS, cv=2).mean() > 0.85


def test_constants_in_buckets_are_shares_of_classes():
    learner = classifier(degree=0, n_tables=1, bucket_width=0.6, fallback="nan").fit(X, LABELS)
    numbers, queries = learner.apply(X)[:, 0], learner.apply(QUERIES)[:, 0]
    for query, probabilities in zip(queries, learner.predict_proba(QUERIES), strict=True):
        inside = LABELS[numbers == query]
        if query >= 0:
            np.testing.assert_allclose(
                probabilities, [(inside == label).mean() for label in learner.classes_], atol=1e-12
            )
        else:
            assert np.isnan(probabilities).all()
    assert (queries >= 0).any()


@pytest.mark.grid
def test_classes_may_come_late_if_they_are_listed():
    ordered = np.argsort(LABELS, kind="stable")
    late = classifier().partial_fit(X[ordered[:200]], LABELS[ordered[:200]], classes=["middle", "low", "high"])
    late.partial_fit(X[ordered[200:]], LABELS[ordered[200:]])
    assert late.classes_.tolist() == ["high", "low", "middle"]
    assert late.score(X, LABELS) > 0.8


def test_an_unseen_label_is_refused_and_changes_nothing():
    learner = classifier().fit(X[LABELS != "low"], LABELS[LABELS != "low"])
    before = learner.predict_proba(QUERIES)
    with pytest.raises(ValueError, match="'low'"):
        learner.partial_fit(X, LABELS)
    with pytest.raises(ValueError, match="'low'"):
        learner.remove(X, LABELS)
    np.testing.assert_array_equal(learner.predict_proba(QUERIES), before)
    with pytest.raises(ValueError, match="`classes` is empty"):
        classifier().partial_fit(X, LABELS, classes=[])
    with pytest.raises(ValueError, match="'high'"):
        classifier().partial_fit(X, LABELS, classes=["low", "middle"])


def test_rows_leave_with_their_label_alone():
    learner = classifier().fit(X, LABELS)
    other = np.where(LABELS == "low", "high", "low")
    with pytest.raises(ValueError, match="nothing was removed"):
        learner.remove(X[:3], other[:3])
    learner.remove(X[:300], LABELS[:300])
    np.testing.assert_allclose(
        learner.predict_proba(QUERIES),
        learner.blank().partial_fit(X[300:], LABELS[300:]).predict_proba(QUERIES),
        atol=1e-8,
    )


@pytest.mark.grid
def test_models_of_other_classes_do_not_merge():
    numbers = np.unique(LABELS, return_inverse=True)[1]
    with pytest.raises(ValueError, match="classes"):
        classifier().fit(X, numbers).merge(classifier().fit(X, numbers + 1))


def test_one_class_and_an_empty_bucket():
    learner = classifier().fit(X, np.full(len(X), "only"))
    assert (learner.predict_proba(QUERIES) == 1).all()
    learner = classifier(fallback="nan", bucket_width=0.3).fit(X, LABELS)
    assert np.isnan(learner.predict_proba([[99.0] * 5])).all()
    with pytest.raises(ValueError, match="row 1 falls into empty buckets"):
        learner.predict(np.vstack([X[:1], [[99.0] * 5]]))


def test_continuous_labels_are_refused():
    with pytest.raises(ValueError, match="continuous"):
        classifier().fit(X, Y)
