"""A sweep over numbers of topics: its measures, its rule, its plot."""

import numpy as np
import polars as pl
import pytest

import tertulia as tt
from helpers.planted import planted
from tertulia.applications.topic_numbers import TopicNumbers, _best, agreement, scores_of
from tertulia.errors import ConfigError, InputError
from tertulia.metrics import completion

QUICK = tt.LDA(sweeps=40)


@pytest.fixture(scope="module")
def counts():
    """Make documents of ten topics."""
    made = planted(1, 500, 50, 300, 10, 0.1)
    matrix = np.zeros((500, 300), np.int64)
    np.add.at(matrix, (np.repeat(np.arange(500), 50), made.words), 1)
    return matrix


@pytest.fixture(scope="module")
def found(counts):
    return tt.choose_topics(counts, (30, 5, 10), estimator=QUICK)


def test_as_many_topics_as_were_planted_are_chosen(found):
    assert found.table["topics"].to_list() == [5, 10, 30]
    assert found.best == found.model.n_topics == 10
    assert found.why == "10 topics: the highest score, 1.00, of perplexity and coherence and stability together."
    assert "10 topics: the highest score" in repr(found)


def test_measures_are_what_they_say(found, counts):
    corpus = tt.Topics(np.ones((1, 300)) / 300, tt.Vocabulary(tuple(f"x{v}" for v in range(300)))).encode(counts)
    train, rest = corpus.split(0.1)
    every = {"mode": "public", "words": corpus.vocabulary.words}
    runs = [tt.LDA(topics=5, sweeps=40, random_state=seed, vocabulary=every).fit(train) for seed in (0, 1)]
    scores = [completion(run.topic_word, run.alpha, rest).perplexity for run in runs]
    row = found.table.row(0, named=True)
    assert row["perplexity"] == pytest.approx(np.mean(scores))
    assert row["stability"] == pytest.approx(agreement(*(run.topics_ for run in runs)))
    assert found.models[5] == runs[0]
    assert found.model.transform(counts).shape == (500, 10)  # every column is a word


def test_agreement_is_the_mean_over_matched_topics():
    words = tt.Vocabulary(("a", "b", "c", "d"))
    one = tt.Topics([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]], words)
    assert agreement(one, one) == 1.0
    assert agreement(one, tt.Topics([[0, 0, 0.5, 0.5], [0.5, 0, 0.5, 0]], words)) == pytest.approx((1 + 1 / 3) / 2)


def test_the_rule():
    def scored(perplexity, coherence, stability):
        rows = {"topics": [5, 10, 20], "perplexity": perplexity, "coherence": coherence, "stability": stability}
        kinds = dict.fromkeys(("perplexity", "coherence", "stability"), float)
        table = pl.DataFrame(rows, schema={"topics": int, **kinds})
        scores = scores_of(table)
        return _best(table.with_columns(score=pl.Series(scores))), scores

    falling = [np.e**3, np.e**2, np.e]
    assert scored(falling, [0.3, 0.2, 0.1], [0.1, 0.9, 0.1]) == (10, pytest.approx([1 / 3, 2 / 3, 1 / 3]))
    assert scored(falling, [0.1, 0.1, 0.1], [0.6, 0.5, 0.4])[0] == 5  # among equals the smallest
    assert scored(falling, [0.1, 0.2, 0.3], [None] * 3)[0] == 20  # what is not known is left out
    assert scored([None] * 3, [0.1, 0.2, 0.2], [0.1, 0.2, 0.3])[0] == 20
    assert scored([None] * 3, [np.nan] * 3, [None] * 3) == (5, [1.0] * 3)


@pytest.mark.filterwarnings("ignore:29 of 56 documents hold no word")  # one of the two kinds of text is more common
def test_texts_are_read_as_fit_reads_them_and_progress_is_reported():
    rows = [{"body": "rain sun cloud rain"}, {"body": "money bank loan bank"}] * 30
    rows = [{"body": f"{row['body']} word{number}"} for number, row in enumerate(rows)]
    seen = []
    found = tt.choose_topics(
        rows, (2, 3), estimator=QUICK, runs=1, column="body", progress=lambda n, score: seen.append((n, score))
    )
    assert [n for n, _ in seen] == [1, 2]
    assert [score for _, score in seen] == found.table["perplexity"].to_list()
    assert found.table["stability"].to_list() == [None, None]
    assert "It is the smallest that was tried" in found.why


def test_what_cannot_be_swept_is_refused(counts):
    for given in ({"topics": ()}, {"topics": (0, 5)}, {"runs": 0}, {"heldout": 0.0}):
        with pytest.raises(ConfigError):
            tt.choose_topics(counts, **given)
    with pytest.raises(InputError, match="1 documents leave"):
        tt.choose_topics(["rain"])


def test_neural_models_are_chosen_by_stability(worded):
    pytest.importorskip("torch")
    found = tt.choose_topics(worded(0, 40), (2, 3), estimator=tt.ProdLDA(epochs=2))
    assert found.table["perplexity"].null_count() == 2
    assert found.best in (2, 3)
    assert "perplexity" not in found.why


def test_the_plot_has_three_lines_and_marks_the_best(found):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    axes = found.plot()
    (right,) = (other for other in axes.figure.axes if other is not axes)
    best, perplexity = axes.get_lines()
    assert list(best.get_xdata()) == [10, 10]
    assert list(perplexity.get_ydata()) == found.table["perplexity"].to_list()
    assert [line.get_label() for line in right.get_lines()] == ["coherence", "stability"]
    own = plt.subplots()[1]
    assert TopicNumbers(found.table, 10, {}).plot(ax=own) is own
    plt.close("all")
