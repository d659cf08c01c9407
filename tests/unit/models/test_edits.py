"""Named, merged and hidden topics, in memory and on disk."""

import json
import re

import numpy as np
import polars as pl
import pytest

import tertulia as tt
from tertulia.errors import FormatError, InputError
from tertulia.runs.results import FederatedTopics

WORDS = ("rain", "rainy", "sun", "money", "bank", "day")
PHI = np.array([[0.3, 0.2, 0.1, 0.0, 0.0, 0.4], [0.0, 0.0, 0.1, 0.3, 0.2, 0.4], [0.1, 0.1, 0.5, 0.0, 0.0, 0.3]])


def model(**changes):
    given = {"alpha": [0.1, 0.2, 0.3], "weights": [0.5, 0.3, 0.2], "provenance": {"method": "lda"}}
    return tt.Topics(PHI, tt.Vocabulary(WORDS), **{**given, **changes})


def test_a_new_model_has_the_names_and_the_old_one_does_not():
    named = model().rename({1: "  bank\n business "})
    assert named.names == ["", "bank business", ""]
    assert named[1].name == "bank business"
    assert model().names == ["", "", ""]
    assert named.rename({0: "weather"}).names == ["weather", "bank business", ""]
    assert named.rename({1: ""}) == model()


def test_names_stand_in_tables_in_print_and_in_a_notebook():
    named = model().rename({0: "wet & <cold>"})
    assert named.topics_table(2).rows() == [
        (0, "wet & <cold>", 0.5, "day rain"), (1, "", 0.3, "day money"), (2, "", 0.2, "sun day"),
    ]  # fmt: skip
    assert "50.0%  wet & <cold>: day rain" in str(named)
    assert "<td><b>wet &amp; &lt;cold&gt;</b></td>" in named._repr_html_()
    assert model().topics_table(2).columns == ["topic", "weight", "words"]


def test_hidden_topics_are_left_out_of_tables_and_nothing_else():
    less = model().hide([0]).hide([2, 0])
    assert less.hidden == (0, 2)
    assert less.topics_table()["topic"].to_list() == [1]
    assert re.findall(r"^ +(\d) ", str(less), re.M) == ["1"]
    assert re.findall(r"<tr><td>(\d)</td>", less._repr_html_()) == ["1"]
    assert "3 topics (2 hidden)" in less._repr_html_()
    assert less.top_words() == model().top_words()
    assert len(less) == 3
    np.testing.assert_array_equal(less.transform(["rain and money"]), model().transform(["rain and money"]))
    assert less.unhide([2]).hidden == (0,)
    assert less.unhide() == model()


def test_merging_mixes_by_weight_and_adds_alpha():
    named = model().rename({0: "rain", 2: "sun"}).hide([1])
    merged = named.merge([[2, 0]])
    np.testing.assert_allclose(merged.topic_word, [(0.5 * PHI[0] + 0.2 * PHI[2]) / 0.7, PHI[1]])
    np.testing.assert_allclose(merged.alpha, [0.4, 0.2])
    np.testing.assert_allclose(merged.weights, [0.7, 0.3])
    assert merged.names == ["rain + sun", ""]
    assert merged.hidden == (1,)
    assert merged.provenance == {"method": "lda", "merged": [{"of": 3, "groups": [[0, 2]]}]}
    again = merged.merge([[0, 1]])
    assert again.provenance["merged"] == [{"of": 3, "groups": [[0, 2]]}, {"of": 2, "groups": [[0, 1]]}]
    np.testing.assert_allclose(again.topic_word, [np.array([0.5, 0.3, 0.2]) @ PHI])
    assert again.hidden == ()


def test_without_weights_topics_are_mixed_by_alpha():
    merged = model(weights=None).merge([[1, 2]])
    np.testing.assert_allclose(merged.topic_word[1], (0.2 * PHI[1] + 0.3 * PHI[2]) / 0.5)
    assert merged.weights is None


def test_shares_of_a_merged_topic_are_near_the_sum_of_its_parts():
    texts = ["rain rain sun sun sun day rain", "money bank money", "sun sun sun rain"]
    whole, merged = model().transform(texts), model().merge([[0, 2]]).transform(texts)
    np.testing.assert_allclose(merged[:, 0], whole[:, 0] + whole[:, 2], atol=0.1)


def test_all_of_it_is_saved(tmp_path):
    edited = model().rename({0: "weather", 1: "Geld ☂"}).hide([1])
    edited.save(tmp_path / "model")
    assert tt.Topics.load(tmp_path / "model") == edited
    model().save(tmp_path / "plain")
    assert not {"names", "hidden"} & json.loads((tmp_path / "plain" / "model.json").read_text()).keys()


@pytest.mark.parametrize(
    ("key", "value"), [("names", ["a"]), ("names", [1, 2, 3]), ("names", "abc"), ("hidden", [7]), ("hidden", ["a"])]
)
def test_damaged_names_are_refused(tmp_path, key, value):
    model().save(tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(FormatError):
        tt.Topics.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (lambda m: m.rename({3: "x"}), "no topic 3: topics are numbered 0 to 2"),
        (lambda m: m.rename({0: 7}), "give a text for each of 3 topics"),
        (lambda m: m.rename({0: "x" * 81}), "topic 0 is longer than 80 letters"),
        (lambda m: m.rename({0: "\ud800"}), "no text"),
        (lambda m: m.hide([-1]), "no topic -1"),
        (lambda m: m.hide(1), r"write \[1\]"),
        (lambda m: m.merge([[0, 1], [1, 2]]), "topic 1 is in two groups"),
        (lambda m: m.merge([[0, 0]]), "nothing to merge"),
        (lambda m: m.merge([]), "no groups"),
        (lambda m: m.distinctive_words(relevance=2), "share from 0 to 1"),
        (lambda m: m.suggest_names(by=lambda words: None), "gave NoneType for topic 0"),
    ],
)
def test_what_cannot_be_is_refused(edit, why):
    with pytest.raises(InputError, match=why):
        edit(model())


def test_distinctive_words_tell_topics_apart():
    # "day" is likely in all topics: it is the first of the likeliest words, but not of the distinctive ones.
    assert [words[0] for words in model().top_words(1)] == ["day", "day", "sun"]
    assert [words[0] for words in model().distinctive_words(1)] == ["rain", "money", "sun"]
    assert model().distinctive_words(3, relevance=1) == model().top_words(3)


def test_names_are_suggested_where_there_is_none():
    some = model().rename({0: "weather"}).hide([2])
    assert some.suggest_names() == {1: "money, bank, day"}
    assert model().suggest_names()[0] == "rain, day, sun"  # and not rainy beside rain
    assert some.rename(some.suggest_names()).names == ["weather", "money, bank, day", ""]


def test_a_function_that_names_sees_words_alone():
    seen = []

    def ask(*given):
        seen.append(given)
        return "\n  Weather report \nas I would call it"

    assert model().suggest_names(by=ask, n=2) == dict.fromkeys(range(3), "Weather report")
    assert seen == [(words,) for words in model().distinctive_words(2)]


def test_a_fitted_estimator_and_a_federated_model_can_be_edited():
    texts = ["rain rain sun rain", "money money bank money"] * 20
    fitted = tt.LDA(topics=2, sweeps=3).fit(texts)
    assert fitted.rename({1: "one"})[1].name == "one"
    assert fitted.names == ["", ""]
    edited = FederatedTopics(PHI, tt.Vocabulary(WORDS), history=({"perplexity": 3.0},)).rename({0: "a"}).merge([[0, 1]])
    assert isinstance(edited, FederatedTopics)
    assert edited.history == ({"perplexity": 3.0},)
    assert edited.names == ["a", ""]


def test_going_on_from_a_model_keeps_its_names():
    texts = ["rain rain sun rain", "money money bank money"] * 20
    first = tt.LDA(topics=2, sweeps=3).fit(texts).rename({1: "one"}).hide([0])
    more = tt.LDA(sweeps=2).fit([*texts, "snow snow rain"] * 3, start=first)
    assert (more.names, more.hidden) == (["", "one"], (0,))


def test_a_table_gets_names_row_by_row():
    table = pl.DataFrame({"topic": [0, 1, 2]})
    assert model().hide([1]).rename({2: "c"}).with_names(table).rows() == [(0, ""), (2, "c")]
