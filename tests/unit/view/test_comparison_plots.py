"""Figures of a comparison: each draws what it says, and returns axes."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.text import Text

from tertulia.applications import compare
from tertulia.errors import InputError

NAMES = ("a", "b", "c", "empty")


@pytest.fixture(autouse=True)
def _closed():
    plt.switch_backend("agg")
    yield
    plt.close("all")


def found(periods=("2024", "2025", "2026"), sigma=0.0, names=NAMES):
    rng = np.random.default_rng(0)
    released = rng.gamma(1.0, 5.0, size=(len(names), len(periods), 5))
    released[3] = 0  # a party that released nothing
    words = [[f"word{k}{i}" for i in range(5)] for k in range(5)]
    return compare.Comparison(names, {name: (name,) for name in names}, periods, released, words, sigma=sigma)


@pytest.mark.parametrize("sigma", [0.0, 3.0])
def test_prevalence_has_a_mark_for_each_party_and_topic(sigma):
    made = found(sigma=sigma)
    axes = made.plot.prevalence()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == list(NAMES)
    order = np.argsort(np.nanmax(made.prevalence, axis=0))
    first = axes.containers[0][0]  # the marks of party a
    np.testing.assert_allclose(first.get_xdata(), made.prevalence[0, order])
    assert [tick.get_text() for tick in axes.get_yticklabels()][-1].startswith(f"{order[-1]}: word{order[-1]}0")


def test_similarity_puts_similar_parties_side_by_side():
    made = found()
    axes = made.plot.similarity()
    assert [tick.get_text() for tick in axes.get_xticklabels()] == [NAMES[r] for r in made.order()]
    shown = axes.images[0].get_array()
    matrix = made.similarity().drop("party").to_numpy()[np.ix_(made.order(), made.order())]
    assert shown[0, 1] == pytest.approx(matrix[0, 1])
    assert np.isnan(np.asarray(shown.filled(np.nan))).diagonal().all()


def test_sharing_fills_every_bar():
    axes = found().plot.sharing()
    widths = np.array([[bar.get_width() for bar in bars] for bars in axes.containers])  # [R, K]
    np.testing.assert_allclose(widths.sum(axis=0), 1.0)
    assert (widths[3] == 0).all()


def test_over_time_draws_the_topics_that_are_asked_for():
    made = found()
    axes = made.plot.over_time([1, 3], party="b")
    assert [line.get_label()[:2] for line in axes.lines] == ["1:", "3:"]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), made.released[1, :, 1] / made.released[1].sum(axis=1))
    assert len(made.plot.over_time().lines) == 5
    with pytest.raises(InputError, match="there is no party 'z'"):
        made.plot.over_time(party="z")
    with pytest.raises(InputError, match="no periods"):
        found(("all",)).plot.over_time()


def test_figures_can_be_drawn_into_axes_of_ones_own():
    figure, axes = plt.subplots(2, 2)
    plot = found().plot
    for draw, ax in zip((plot.prevalence, plot.similarity, plot.sharing, plot.over_time), axes.flat, strict=True):
        assert draw(ax=ax) is ax
        assert ax.figure is figure


def test_names_of_others_are_only_letters():
    plot = found(names=("$\\frac{$", "a\x1b[31mred", "$x$", "b" * 1000)).plot
    for axes in (plot.prevalence(), plot.similarity(), plot.sharing(), plot.over_time(party="$\\frac{$")):
        axes.figure.canvas.draw()  # a formula that is none would be an error
        assert not any("\x1b" in text.get_text() or len(text.get_text()) > 90 for text in axes.findobj(Text))


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'tertulia\[plot\]'"):
        found().plot.sharing()


def test_tables_are_saved_as_csv(tmp_path):
    made = found()
    assert sorted(path.name for path in made.save(tmp_path / "out").iterdir()) == [
        "over_time.csv", "prevalence.csv", "similarity.csv",
    ]  # fmt: skip
    lines = (tmp_path / "out" / "over_time.csv").read_text().splitlines()
    assert lines[0] == "party,period,topic,share,documents"
    assert len(lines) == 1 + 4 * 3 * 5
