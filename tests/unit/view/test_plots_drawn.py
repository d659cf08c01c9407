"""Plots as pictures: really drawn, with any number of topics, any words, in axes of one's own; and what they need."""

import inspect
import subprocess
import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

import tertulia as tt
from helpers import drawn
from tertulia.errors import InputError, NotFitted
from tertulia.runs.directory import Run
from tertulia.runs.one_machine import hosts_of
from tertulia.view.plots.canvas import BLUE, GREY, VERMILION
from tertulia.view.plots.labels import shown
from tertulia.view.tables import thing_rows

NAMES = list(drawn.every_plot(drawn.result(2)))
HOSTILE = [
    "$\\frac{$", "$x^2$", "\\input{secret}", "a\x1b[31mred", "line\nbreak\ttab", "b" * 10_000, "\u202eturned",
    "_a^b%&#", "<b>", "水文学", "🦔", "\ud800", "", "é̂̂̂̂",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _closed():
    plt.switch_backend("agg")
    yield
    plt.close("all")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("K", [1, 2, 100])
def test_every_plot_is_drawn_and_no_labels_overlap(K, name):
    axes = drawn.every_plot(drawn.result(K))[name]()
    assert drawn.draw(axes).startswith(b"\x89PNG")
    assert drawn.overlapping(axes) == []
    assert axes.get_title()


@pytest.mark.parametrize("name", NAMES)
def test_words_and_names_of_others_are_only_letters(name):
    result = drawn.result(3, parties=HOSTILE[:4], words=[*HOSTILE, *(f"word{v}" for v in range(20))])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "some words have letters that no font here can draw")
        axes = drawn.every_plot(result)[name]()
        drawn.draw(axes)  # a formula that is none would be an error here, a missing letter a warning
    for text in drawn.texts(axes):
        assert len(text.get_text()) < 90
        assert not set(text.get_text()) & {"\x1b", "\n", "\t", "\u202e", "\ud800"}


def test_letters_that_no_font_has_become_boxes_with_one_warning():
    assert shown("plain") == "plain"
    assert shown("grüße") == "grüße"
    with pytest.warns(UserWarning, match="install a font of their script"):
        assert shown("a\U0010fffdb") == "a□b"
    assert shown("x" * 30) == "x" * 17 + "…"
    assert shown("\x1b" * 100) == "\\x1b" * 4 + "\\…"


@pytest.mark.parametrize("name", NAMES)
def test_plots_are_drawn_into_axes_of_ones_own(name):
    figure, (left, right) = plt.subplots(1, 2, figsize=(14, 5))
    axes = drawn.every_plot(drawn.result(12))[name](ax=left)
    assert axes is left
    assert left.figure is figure
    assert not right.has_data()
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize("name", NAMES)
def test_without_matplotlib_the_extra_is_named(name, monkeypatch):
    drawing = drawn.every_plot(drawn.result(3, words=[f"größe{v}" for v in range(20)]))[name]
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'tertulia\[plot\]'"):
        drawing()


def test_a_model_alone_loads_neither_plots_nor_matplotlib():
    code = (
        "import sys, tertulia; tertulia.Topics, tertulia.LDA; print({'matplotlib', 'tertulia.view'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_estimators_have_plots_once_they_are_fitted():
    lda = tt.LDA(topics=2, sweeps=3)
    with pytest.raises(NotFitted):
        _ = lda.plot
    lda.fit(["rain sun rain", "bank money bank"] * 10)
    assert len(lda.plot.weights().patches) == 2
    assert lda.plot.words.__doc__.startswith("Draw the n most probable words")
    assert list(inspect.signature(lda.plot.words).parameters) == ["topics", "n", "ax"]
    assert "words, weights, map, similarity" in repr(lda.plot)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with noise: reports that stay, counts that are derived from them, and what is public."""
    directory = tmp_path_factory.mktemp("runs") / "sound"
    parties = {name: ["rain sun rain river", "bank money bank coin"] * 8 for name in ("north", "south")}
    words = {"mode": "public", "words": ("bank", "coin", "money", "rain", "river", "sun")}
    method = tt.Consensus(topics=2, mode="sound", epsilon=4, beta=0.1, rounds=2, sweeps=2, vocabulary=words)
    return method.fit(parties, directory=directory, heldout=0.1)


def test_privacy_shows_what_the_ledgers_hold(run):
    rows = [row for host in hosts_of(Run.open(run.directory)) for row in thing_rows(host, 1e-6)]
    left = {}
    for row in rows:
        left[row["what"]] = left.get(row["what"], 0) + (0 if row["verb"] == "reports" else row["bytes"])
    axes = run.plot.privacy()
    assert dict(zip(drawn.labels(axes.yaxis), drawn.bars(axes)[0], strict=True)) == left
    notes = [text.get_text() for text in axes.texts]
    assert any(note.endswith("epsilon 4 at delta 1e-06 of a word") for note in notes)
    assert any(note.startswith("stays at the parties") for note in notes)
    drawn.draw(axes)
    assert drawn.overlapping(axes) == []
    epsilons = drawn.bars(run.plot.privacy(by="epsilon"))[0]
    assert max(epsilons) == pytest.approx(4.0)
    public = {row["what"] for row in rows if row["mechanism"] == "public"}
    colours = {
        what: to_hex(bar.get_facecolor()) for what, bar in zip(drawn.labels(axes.yaxis), axes.patches, strict=True)
    }
    assert {what for what, colour in colours.items() if colour == GREY} == public
    assert BLUE in colours.values()
    assert VERMILION not in colours.values()


def test_what_is_in_clear_has_a_bar_beyond_all_bounds(tmp_path):
    parties = {name: ["rain sun rain", "bank money bank"] * 6 for name in ("north", "south")}
    clear = tt.Consensus(topics=2, rounds=2, sweeps=2).fit(parties, directory=tmp_path / "clear")
    axes = tt.Topics.load(clear.directory / "model").plot.privacy(clear.directory, by="epsilon")
    assert VERMILION in {to_hex(bar.get_facecolor()) for bar in axes.patches}
    assert any("no bound" in text.get_text() for text in axes.texts)
    assert len(axes.get_xticks()) == 0
    with pytest.raises(InputError, match="use 'bytes' or 'epsilon'"):
        clear.plot.privacy(by="size")


def test_without_a_directory_there_are_no_ledgers():
    with pytest.raises(InputError, match="fit with directory="):
        drawn.result(2).plot.privacy()


def test_zero_weights_and_equal_topics_can_be_drawn():
    rows = np.tile([0.5, 0.3, 0.2], (4, 1))
    model = tt.Topics(rows, tt.Vocabulary(("rain", "sun", "bank")), weights=np.array([1.0, 0.0, 0.0, 0.0]))
    for axes in (model.plot.map(), model.plot.similarity(), model.plot.weights(), model.plot.words()):
        drawn.draw(axes)
    np.testing.assert_allclose(model.plot.map().collections[0].get_offsets(), 0.0, atol=1e-6)
