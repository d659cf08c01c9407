"""Plots of a model: each draws what the numbers say, and returns its axes."""

import json
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

import tertulia as tt
from helpers import drawn
from tertulia.errors import InputError
from tertulia.models.compare import similarities
from tertulia.runs.results import FederatedTopics
from tertulia.view.plane import hellinger, to_plane
from tertulia.view.plots.canvas import BLUE, GREEN, GREY, ORANGE, PALETTE


@pytest.fixture(autouse=True)
def _closed():
    plt.switch_backend("agg")
    yield
    plt.close("all")


def test_words_have_bars_as_long_as_they_are_probable():
    model = drawn.model(8)
    axes = model.plot.words([5, 2], n=4)
    tops = model.top_words(4)
    for group, topic in zip(drawn.bars(axes), (5, 2), strict=True):
        np.testing.assert_allclose(group, np.sort(model.topic_word[topic])[:-5:-1])
    written = [text.get_text() for text in axes.texts]
    assert [text for text in written if text.startswith("word")] == [*tops[5], *tops[2]]
    assert f"topic 5, {model.weights[5]:.1%}" in written
    assert len(model.plot.words().containers) == 6  # the heaviest
    assert len(drawn.bars(model.plot.words(-1, n=500))[0]) == 60  # there are no more words
    heaviest = np.argsort(-model.weights)[0]
    assert model.plot.words().texts[0].get_text().startswith(f"topic {heaviest},")
    with pytest.raises(InputError, match="there is no topic 8: they are 0 to 7"):
        model.plot.words(8)


def test_weights_stand_heaviest_first_and_the_rest_is_added_up():
    model = drawn.model(30)
    axes = model.plot.weights(most=4)
    largest = np.sort(model.weights)[::-1]
    np.testing.assert_allclose(drawn.bars(axes)[0], largest[:4])
    assert f"26 more topics have {largest[4:].sum():.1%} together" in axes.get_xlabel()
    assert drawn.labels(axes.yaxis)[0].startswith(f"{model.weights.argmax()}: word")
    unknown = tt.Topics(model.topic_word, model.vocabulary)
    with pytest.raises(InputError, match="give documents"):
        unknown.plot.weights()
    shares = drawn.bars(unknown.plot.weights(["word1 word2", "word3 word3 word3"], most=30))[0]
    theta = unknown.transform(["word1 word2", "word3 word3 word3"])
    np.testing.assert_allclose(shares, np.sort(theta.T @ [0.4, 0.6])[::-1])


def test_percent_are_written_with_the_decimals_that_ticks_need():
    model = drawn.model(12)
    weights = np.full(12, 0.0823)
    axes = tt.Topics(model.topic_word, model.vocabulary, weights=weights).plot.weights()
    axes.set_xticks([0, 0.025, 0.05, 0.075, 0.1])
    drawn.draw(axes)
    assert drawn.labels(axes.xaxis) == ["0%", "2.5%", "5%", "7.5%", "10%"]


@pytest.mark.parametrize("n", [1, 2, 9, 11])
def test_rounds_have_ticks_at_whole_numbers(n):
    history = tuple({"round": i, "perplexity": 900.0 / i, "bytes": {"north": [1, 1]}} for i in range(1, n + 1))
    shown = drawn.result(2)
    result = FederatedTopics(shown.topic_word, shown.vocabulary, local=shown.local, history=history)
    for what in ("perplexity", "bytes"):
        axes = result.plot.rounds(what)
        drawn.draw(axes)
        low, high = axes.get_xlim()
        ticks = [tick for tick in axes.get_xticks() if low <= tick <= high]
        assert ticks
        assert all(tick == int(tick) for tick in ticks)


def test_names_are_shown_and_hidden_topics_are_not():
    model = drawn.result(6).rename({0: "weather"}).hide([1, 2])
    assert len(drawn.bars(model.plot.weights())[0]) == len(model.plot.map().collections[0].get_offsets()) == 4
    assert model.plot.similarity().images[0].get_array().shape == (4, 4)
    assert "0: weather" in drawn.labels(model.plot.parties().yaxis)
    assert any(text.get_text().startswith("topic 0: weather, ") for text in model.plot.words().texts)
    with pytest.raises(InputError, match="all topics are hidden"):
        model.hide(range(6)).plot.map()
    with pytest.raises(InputError, match="topic 1 is hidden"):
        model.plot.over_time(drawn.documents(), topics=[1])


def test_the_map_shows_topics_at_their_distances():
    rows = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.5, 0.0]])
    np.testing.assert_allclose(hellinger(rows)[0], [0, np.sqrt(0.5), 0])
    random = np.random.default_rng(1)
    places = random.normal(size=(9, 2))
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    found = to_plane(distances)  # what is a plane already, is found again, but for how it is turned
    np.testing.assert_allclose(np.linalg.norm(found[:, None] - found[None], axis=2), distances, atol=1e-6)
    np.testing.assert_allclose(np.ptp(to_plane(hellinger(rows[:2]))[:, 0]), np.sqrt(0.5))
    model = drawn.model(7)
    circles = model.plot.map().collections[0]
    assert len(circles.get_offsets()) == 7
    assert circles.get_sizes().argmax() == model.weights.argmax()


def test_similarity_of_one_model_leaves_the_diagonal_empty():
    model = drawn.model(9)
    axes = model.plot.similarity()
    order = [int(text) for text in drawn.labels(axes.xaxis)]
    image = axes.images[0].get_array()
    expected = similarities(model, model, 50)[np.ix_(order, order)]
    off = ~np.eye(9, dtype=bool)
    np.testing.assert_allclose(np.asarray(image)[off], expected[off])
    assert image.mask.diagonal().all()
    assert [text.split(":")[0] for text in drawn.labels(axes.yaxis)] == [str(k) for k in order]


def test_similarity_of_two_models_matches_them_one_to_one():
    model = drawn.model(6)
    turned = tt.Topics(model.topic_word[[3, 1, 5, 0]], model.vocabulary)
    axes = model.plot.similarity(turned)
    image = np.asarray(axes.images[0].get_array())
    assert image.shape == (6, 4)
    np.testing.assert_allclose(image.diagonal(), 1.0)
    rows = [int(text.split(":")[0]) for text in drawn.labels(axes.yaxis)]
    assert set(rows[:4]) == {0, 1, 3, 5}
    other = tt.LDA(topics=2, sweeps=3).fit(["word1 word2 word3", "word4 word5 word6"] * 10)
    assert model.plot.similarity(other).images[0].get_array().shape == (6, 2)


def test_parties_show_who_holds_what_as_far_as_it_was_released():
    shown = drawn.result(4)  # the first party lacks topic 0, the second topic 1
    axes = shown.plot.parties()
    held = dict(zip((text.split(":")[0] for text in drawn.labels(axes.yaxis)), axes.images[0].get_array(), strict=True))
    assert drawn.labels(axes.xaxis) == ["north", "south"]
    assert held["0"][0] < 0.9
    assert held["1"][1] < 0.9
    np.testing.assert_allclose([held["0"][1], held["1"][0], *held["2"], *held["3"]], 1.0)
    with pytest.raises(InputError, match="no party has released a model of its own"):
        drawn.model(4).plot.parties()


def test_rounds_are_those_of_the_history():
    shown = drawn.result(3)
    axes = shown.plot.rounds()
    assert axes.lines[0].get_xydata().tolist() == [[1, 900], [2, 450], [3, 300]]
    up, down = ([bar.get_height() for bar in group] for group in shown.plot.rounds("bytes").containers)
    assert up == [1.5, 1.5, 1.5]  # kB
    assert down == [6, 8, 10]
    assert shown.plot.rounds("seconds").get_ylabel() == "seconds"
    with pytest.raises(InputError, match="the rounds have no 'loss': they have bytes, perplexity, seconds"):
        shown.plot.rounds("loss")
    with pytest.raises(InputError, match="no rounds"):
        drawn.model(3).plot.rounds()


def test_scenarios_are_rows_json_or_a_file(tmp_path):
    shown, file = drawn.model(2), tmp_path / "scenarios.json"
    file.write_text(json.dumps({"scenarios": drawn.SCENARIOS}))
    for given in (drawn.SCENARIOS, {"scenarios": drawn.SCENARIOS}, file, str(file)):
        axes = shown.plot.scenarios(given)
        assert drawn.bars(axes) == [[713.0, 690.0, 990.0, 2390.0]]
    assert [to_hex(bar.get_facecolor()) for bar in axes.patches] == [BLUE, GREEN, ORANGE, GREY]
    assert drawn.labels(axes.yaxis)[2] == "alone, side by side (lda, 1 topic)"
    with pytest.raises(InputError, match="no row of scenarios with 'diversity'"):
        shown.plot.scenarios(drawn.SCENARIOS, measure="diversity")
    for nothing in ([], {}, [3]):
        with pytest.raises(InputError, match="no scenarios to draw"):
            shown.plot.scenarios(nothing)
    with pytest.raises(InputError, match="does not hold the JSON"):
        shown.plot.scenarios(tmp_path / "none.json")


def test_tradeoff_joins_seeds_and_puts_no_noise_last():
    points = [(1, 30.0), (1, 10.0), (4, 8.0), (None, 5.0), (float("inf"), 7.0)]
    axes = drawn.model(2).plot.tradeoff(points, references={"pooled": 4.0})
    (line, _, (spread,)) = axes.containers[0]
    assert line.get_ydata().tolist() == [20, 8, 6]
    assert [segment[:, 1].tolist() for segment in spread.get_segments()] == [[10, 30], [8, 8], [5, 7]]
    assert drawn.labels(axes.xaxis) == ["1", "4", "no noise"]
    assert axes.lines[-1].get_ydata() == [4.0, 4.0]
    assert axes.get_legend() is None  # nothing has a name
    rows = [{"epsilon": 2, "npmi": 0.1, "name": name} for name in ("FTM", "Consensus")]
    axes = drawn.model(2).plot.tradeoff(rows, quality="npmi", better="higher")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["FTM", "Consensus"]
    assert axes.get_ylabel() == "npmi (higher is better)"
    for wrong in ([(0, 1.0)], [(1, float("nan"))], [{"epsilon": 1}], [3], []):
        with pytest.raises(InputError):
            drawn.model(2).plot.tradeoff(wrong)


def test_over_time_says_that_it_shows_some_of_the_topics():
    titles = [drawn.model(K).plot.over_time(drawn.documents()).get_title() for K in (6, 15)]
    assert titles == ["How topics move over time", "How topics move over time (6 largest of 15 topics)"]
    some = drawn.model(15).plot.over_time(drawn.documents(), topics=[1, 2])
    assert some.get_title().endswith("(2 of 15 topics)")


def test_over_time_draws_the_models_own_table():
    model = drawn.model(8)
    rows = drawn.documents()
    axes = model.plot.over_time(rows, "quarter", topics=[3, 1])
    table = model.over_time(rows, "quarter")
    for line, k in zip(axes.lines, (3, 1), strict=True):
        np.testing.assert_allclose(line.get_ydata(), table.filter(table["topic"] == k)["share"].to_numpy())
        assert line.get_label().startswith(f"{k}: word")
    assert drawn.labels(axes.xaxis) == table["period"].unique(maintain_order=True).to_list()
    assert len(model.plot.over_time(rows).lines) == 6
    with pytest.warns(UserWarning, match="2 documents are left out"):
        model.plot.over_time([*rows, {"text": "word1"}, {"text": "word2", "date": "soon"}])
    with pytest.raises(InputError, match="nothing to draw"):
        model.plot.over_time([{"text": "unheard", "date": "2026-01-01"}])


def test_a_document_shows_shares_and_the_topic_of_each_word():
    model = tt.Topics(
        np.array([[0.5, 0.4, 0.05, 0.05], [0.05, 0.05, 0.4, 0.5]]), tt.Vocabulary(("rain", "sun", "bank", "money"))
    )
    axes = model.plot.document("Rain and sun, rain and money unheard")
    np.testing.assert_allclose(drawn.bars(axes)[0], np.sort(model.transform(["rain sun rain money unheard"])[0])[::-1])
    drawn.draw(axes)
    behind = {
        text.get_text(): to_hex(text.get_bbox_patch().get_facecolor())
        for text in drawn.texts(axes)
        if text.get_bbox_patch()
    }
    assert behind == {"rain": PALETTE[0], "sun": PALETTE[0], "money": PALETTE[1], "unheard": GREY}
    assert [round(sum(group), 9) for group in drawn.bars(drawn.model(40).plot.document(["word1", "word2"]))] == [1.0]
    for nothing in ("", "!!", []):
        with pytest.raises(InputError, match="no words"):
            model.plot.document(nothing)
    with pytest.raises(InputError, match="give one document"):
        model.plot.document([["rain"], ["sun"]])


def test_every_plot_stands_on_the_page_of_plots():
    page = (Path(__file__).parents[3] / "docs" / "plots.md").read_text()
    plots = {name for name in dir(drawn.model(3).plot) if not name.startswith("_")} - {"model"}
    assert set(re.findall(r"model\.plot\.(\w+)", page)) == plots
