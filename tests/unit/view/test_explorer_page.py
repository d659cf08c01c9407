"""The explorer in a real browser: what can be seen, done and saved in it, by mouse and keyboard."""

import csv
import io
import json
import warnings

import numpy as np
import pytest

from helpers.browser import DESKTOP, PHONE, WIDE
from helpers.explored import counted_model, texts_for
from helpers.marks import slow
from tertulia import Topics
from tertulia.corpus import TextOptions, Vocabulary
from tertulia.corpus.tokens import tokenize
from tertulia.models.edits import digest_of
from tertulia.runs.results import FederatedTopics
from tertulia.view.pages.explorer.facts import facts_of

SHARES = """texts => texts.map(text => {
  const {shares} = sharesOf(text);
  return Object.fromEntries(page.model.topics.map(({k}, place) => [k, shares[place]]));
})"""
WORDS = """([reader, words, texts]) => {
  const read = makeReader(reader, words);
  return texts.map(text => read(text).found.map(({word}) => word).filter(word => word >= 0));
}"""


@pytest.fixture(scope="module")
def model():
    return counted_model()


@pytest.fixture(scope="module")
def place(model, tmp_path_factory):
    return model.explore(tmp_path_factory.mktemp("explorer") / "topics.html")


@pytest.fixture(scope="module")
def texts_place(model, tmp_path_factory):
    """A page that has all that there can be: documents with labels and dates, and another model."""
    texts = [text for text in texts_for(model, 120) if text.strip()]
    labels = [("ward", "<b>lab</b>", None)[i % 3] for i in range(len(texts))]
    dates = [f"2026-{i % 9 + 1:02d}-01" for i in range(len(texts))]
    path = tmp_path_factory.mktemp("explorer") / "texts.html"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.explore(path, texts, labels=labels, dates=dates, other=counted_model(6, seed=3))


def opened_at(browser, place, **how):
    opened = browser.open(place, **how)
    opened.page.wait_for_selector("html[data-ready=yes]")
    return opened


def shares_of(opened, texts, K):
    return np.array([[row[str(k)] for k in range(K)] for row in opened.page.evaluate(SHARES, texts)])


def transformed(model, texts):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some texts have no known word
        return model.transform(texts)


@pytest.mark.parametrize(("width", "dark"), [(PHONE, False), (WIDE, True), slow(PHONE, True), slow(DESKTOP, False)])
def test_pages_are_sound_at_every_width_light_and_dark(browser, texts_place, width, dark):
    opened = opened_at(browser, texts_place, width=width, dark=dark)
    look = f"{width}-{'dark' if dark else 'light'}"
    for view in ("map", "alike", "compare", "trends", "documents", "text"):
        opened.page.click(f"#tab-{view}")
        if view == "text":
            opened.page.fill("#pasted", texts_for(counted_model(), 30)[20])
        opened.check(f"explorer-{view}-{look}", "html" if view == "map" else "#view")


def test_shares_of_pasted_texts_are_those_of_transform(browser, place, model):
    opened = opened_at(browser, place)
    texts = texts_for(model, 400)
    found, known = shares_of(opened, texts, 8), transformed(model, texts)
    assert np.abs(found - known).max() < 1e-5
    assert len(np.unique(known.argmax(axis=1))) == 8
    opened.page.click("#tab-text")
    opened.page.fill("#pasted", texts[-1])
    rows = opened.page.locator("#found-shares tr").evaluate_all(
        "rows => rows.map(r => [+r.dataset.topic, +r.dataset.share])"
    )
    assert [k for k, _ in rows] == np.argsort(-known[-1])[:6].tolist()
    assert [share for _, share in rows] == pytest.approx([known[-1, k] for k, _ in rows], abs=1e-3)


def test_each_word_shows_its_likeliest_topic(browser, place, model):
    opened = opened_at(browser, place)
    text = "été, unheard naïve mp3!"
    opened.page.click("#tab-text")
    opened.page.fill("#pasted", text)
    shown = opened.page.locator("#found-words .w").all_inner_texts()
    theta = transformed(model, [text])[0]
    numbers = model.vocabulary.lookup(["été", "naïve", "mp3"])
    best = (theta[:, None] * model.topic_word[:, numbers]).argmax(axis=0)
    assert shown == [f"{word}{k}" for word, k in zip(["été", "naïve", "mp3"], best, strict=True)]
    assert "3 of 4 words are known" in opened.page.inner_text("#found-shares")


OPTIONS = (
    {},
    {"language": "fr"},
    {"language": "tr"},
    {"language": "uk"},
    {"language": "el"},
    {"numbers": True},
    {"lowercase": False},
    {"lowercase": False, "stop_words": ("the", "barake"), "min_length": 1},
    {"stop_words": "none", "min_length": 4, "numbers": True},
)


def test_texts_are_cut_into_words_as_in_python_whatever_the_options(browser, place):
    opened = opened_at(browser, place)
    for given in OPTIONS:
        model = counted_model(2, options=TextOptions(**given))
        texts, words = texts_for(model, 120), model.vocabulary.words
        found = opened.page.evaluate(WORDS, [facts_of(model)["reader"], list(words), texts])
        index = model.vocabulary.index
        known = [[index[word] for word in tokenize(text, model.options) if word in index] for text in texts]
        assert found == known, given
        assert sum(map(len, known)) > 1000


def test_search_finds_where_a_word_is(browser, place, model):
    page = opened_at(browser, place).page
    word = model.vocabulary.words[60]
    page.fill("#search", word.upper())
    share = model.weights * model.topic_word[:, 60]
    assert page.locator("#list button .number").first.inner_text() == str(share.argmax())
    shown = page.locator("#list button .weight").first.inner_text()
    assert shown == f"{100 * share.max() / share.sum():.1f} %"
    assert page.inner_text("#said") == f"Topic {share.argmax()} has the most of “{word}”."
    strength = page.locator(".map circle").evaluate_all("dots => dots.map(dot => +dot.getAttribute('fill-opacity'))")
    assert np.argmax(strength) == np.argsort(-model.weights).tolist().index(share.argmax())  # on the map, too
    page.fill("#search", "nowhere to be found")
    assert page.inner_text("#said") == "No topic has such a word or name."
    page.fill("#search", "")
    assert page.locator("#list li").count() == 8


def test_the_slider_orders_words_by_relevance(browser, place, model):
    page = opened_at(browser, place).page
    heaviest = int(model.weights.argmax())
    assert page.inner_text("#topic-title") == f"Topic {heaviest}"
    words = page.locator("#words .word")
    assert words.all_inner_texts() == model.top_words(20)[heaviest]
    page.focus("#relevance")
    for _ in range(8):
        page.keyboard.press("ArrowLeft")
    assert page.input_value("#relevance") == "0.6"
    assert words.all_inner_texts() == model.distinctive_words(20)[heaviest]
    assert words.all_inner_texts() != model.top_words(20)[heaviest]


def test_names_hidden_and_merged_topics_are_saved_and_read_back(browser, place, model, tmp_path, tertulia):
    page = opened_at(browser, place).page
    order = np.argsort(-model.weights).tolist()
    a, b, c, d = order[:4]
    page.fill("#name", "  weather  <i>&\u2028 ")
    page.keyboard.press("Enter")
    assert "Not saved yet" in page.inner_text("#unsaved")
    page.click(f"#topic-{b}")
    page.click("#hide")
    page.click(f"#topic-{c}")
    page.click("#topic summary")
    page.select_option("#with", str(d))
    page.click("#merge")
    page.fill("#name", "both")
    page.keyboard.press("Enter")
    merged = sorted([c, d])
    assert page.inner_text("#topic-title") == f"Topic {merged[0]}"
    with page.expect_download() as saving:
        page.click("#save-names")
    saving.value.save_as(tmp_path / "names.json")
    said = json.loads((tmp_path / "names.json").read_text())
    assert (said["hidden"], said["merged"], page.inner_text("#unsaved")) == ([b], [merged], "")

    edited = model.edit(tmp_path / "names.json")
    assert edited == model.rename({a: "weather <i>&", merged[0]: "both"}).hide([b]).merge([merged])
    texts = texts_for(model, 40)
    by_page = page.evaluate(SHARES, texts)  # by the first of merged numbers
    kept = [k for k in range(8) if k != merged[1]]
    found = np.array([[row[str(k)] for k in kept] for row in by_page])
    assert np.abs(found - transformed(edited, texts)).max() < 1e-5

    again = opened_at(browser, place).page
    again.set_input_files("#read-names", tmp_path / "names.json")
    again.get_by_text("Names were read from names.json").wait_for()
    assert page.locator("#list").inner_text() == again.locator("#list").inner_text()
    saved = model.save(tmp_path / "model")
    code, *_ = tertulia("explore", saved, "--names", tmp_path / "names.json", "--save", tmp_path / "named")
    assert (code, Topics.load(tmp_path / "named")) == (0, edited)


def test_what_was_hidden_or_merged_comes_back(browser, place, model):
    page = opened_at(browser, place).page
    before = page.locator("#list").inner_text()
    page.click("#hide")
    assert page.inner_text("#hidden-title") == "Hidden topics (1)"
    assert page.locator("#list li").count() == 7
    page.click("#hide")
    page.click("#topic summary")
    page.click("#merge")
    assert page.locator("#list li").count() == 7
    page.click("#part")
    assert page.locator("#list").inner_text() == before


def test_names_of_another_model_are_refused(browser, place, model, tmp_path):
    page = opened_at(browser, place).page
    before = page.locator("#list").inner_text()
    good = {"format": "tertulia names", "model": digest_of(model), "names": {}, "hidden": [], "merged": []}
    for change, why in (
        ({"model": "other"}, "it is of another model"),
        ({"hidden": [99]}, "it is damaged"),
        ({"merged": [[1, 2], [2, 3]]}, "it is damaged"),
        ({"names": None}, "Cannot convert"),
        (None, "is not valid JSON"),
    ):
        (tmp_path / "names.json").write_text("no JSON" if change is None else json.dumps(good | change))
        page.evaluate("$('unsaved').textContent = ''")
        page.set_input_files("#read-names", tmp_path / "names.json")
        page.locator("#unsaved").get_by_text("names.json cannot be used").wait_for()
        assert why in page.inner_text("#unsaved")
    assert page.locator("#list").inner_text() == before


def test_topics_are_exported_as_csv(browser, place, model):
    page = opened_at(browser, place).page
    page.fill("#name", '=1+1 "quoted"')
    page.keyboard.press("Enter")
    with page.expect_download() as saving:
        page.click("#save-topics")
    rows = list(csv.DictReader(io.StringIO(saving.value.path().read_text())))
    order = np.argsort(-model.weights)
    assert [int(row["topic"]) for row in rows] == order.tolist()
    assert rows[0]["name"] == '\'=1+1 "quoted"'  # a spreadsheet computes nothing
    assert rows[1]["words"].split(" ") == model.top_words(20)[order[1]]
    assert float(rows[0]["weight"]) == pytest.approx(model.weights.max())


def tab_to(page, where, most=120):
    """Press Tab until the focus is there."""
    for _ in range(most):
        if page.evaluate("where => document.activeElement.matches(where)", where):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"no key leads to {where}")


def test_keys_alone_do_everything(browser, place, model):
    page = opened_at(browser, place).page
    tab_to(page, "#search")
    page.keyboard.type(model.vocabulary.words[60])
    assert page.get_attribute("#found button", "aria-pressed") == "true"
    tab_to(page, "#found button")
    page.keyboard.press("Enter")  # takes it back
    assert page.locator("#list li").count() == 8
    tab_to(page, "#list button")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    second = page.locator("#list button .number").nth(1).inner_text()
    assert page.inner_text("#topic-title") == f"Topic {second}"
    assert page.evaluate("document.activeElement.id") == f"topic-{second}"
    tab_to(page, "#tab-map")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.get_attribute("#tab-text", "aria-selected") == "true"
    tab_to(page, "#pasted")
    page.keyboard.type("naïve été")
    assert "2 of 2 words" in page.inner_text("#found-shares")


def test_documents_are_found_by_topic_and_by_word(browser, texts_place, model):
    page = opened_at(browser, texts_place).page
    assert page.inner_text(".banner") == "Contains texts: do not pass on."
    page.click("#tab-documents")
    texts = [text for text in texts_for(model, 120) if text.strip()]
    heaviest = int(model.weights.argmax())
    shares = transformed(model, texts)[:, heaviest]
    assert page.locator("#documents-list li").first.inner_text().startswith(f"{100 * shares.max():.0f} %")
    page.fill("#documents-search", "O’CLOCK")
    assert page.locator("#documents-list li").count() == sum("o’clock" in text.lower() for text in texts) > 0
    with page.expect_download() as saving:
        page.click("#save-documents")
    rows = list(csv.DictReader(io.StringIO(saving.value.path().read_text(), newline="")))
    assert [float(row[f"topic{heaviest}"]) for row in rows] == pytest.approx(shares.tolist(), abs=6e-3)


def test_hostile_words_names_and_parties_are_text(browser, tmp_path):
    script = "<script>document.title = 'owned'</script>"
    words = (
        script,
        "\x1b[31mred\x07",
        "a" * 10_000,
        "</script><img src=x onerror=alert(1)>",
        "__proto__",
        "\u2028\u202ex",
        "'\"&",
    )
    phi = np.random.default_rng(0).dirichlet(np.ones(len(words)), 4)
    own = Topics(phi, Vocabulary(words))
    names = ["<img src=x onerror=alert(1)>", "\x1b[2Jgone", "__proto__", ""]
    model = FederatedTopics(
        phi, Vocabulary(words), weights=[4, 3, 2, 1], names=names, provenance={"method": script, "parties": [script]},
        local={script: own, "north" * 2_000: own},
    )  # fmt: skip
    texts = [f"{script} {word}" for word in words] + ["naught"]
    documents = [{"text": text, "label": text[:90], "date": "<b>", "id": f"<u>{i}"} for i, text in enumerate(texts)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        place = model.explore(tmp_path / "hostile.html", documents)
    for width in (PHONE, DESKTOP):
        opened = opened_at(browser, place, width=width)
        for view in opened.page.evaluate("page.views") if width == PHONE else ["map"]:
            opened.page.click(f"#tab-{view}")
            if view == "text":
                opened.page.fill("#pasted", script + "\x1b __proto__ constructor")
            opened.check(f"explorer-hostile-{view}-{width}", "html" if view == "map" else "#view")
        assert opened.page.title() != "owned"
        assert opened.page.locator("img, script:not([type]) + script").count() == 0
        shown = opened.page.locator("#words").inner_text()
        assert script in shown or script[:20] in shown
        assert "\\u001b[31mred\\u0007" in shown
        assert "\x1b" not in opened.page.locator("body").inner_text()
        assert "<img src=x onerror=alert(1)>" in opened.page.locator("#list").inner_text()


def test_without_scripts_there_is_a_table(browser, place, model):
    opened = browser.open(place, scripts=False)
    shown = opened.page.locator("#all tbody tr")
    assert shown.count() == 8
    assert shown.first.inner_text().split()[2:] == model.top_words(12)[model.weights.argmax()]
    assert not opened.page.locator("#tools").is_visible()
    opened.check("explorer-no-scripts")


def test_paper_shows_no_button(browser, place):
    opened = opened_at(browser, place)
    opened.page.emulate_media(media="print")
    opened.picture("explorer-print")
    assert not opened.page.locator("#save-names").is_visible()
    assert opened.page.locator("#words").is_visible()


@pytest.mark.parametrize("options", [TextOptions(language="zh"), None])
def test_what_a_page_cannot_read_is_said(browser, tmp_path, options):
    if options is None:
        pytest.importorskip("torch")
        import tertulia as tt

        model = tt.ProdLDA(topics=3, epochs=1, random_state=0).fit(
            ["rain falls down", "sun shines hot"] * 10, progress=False
        )
    else:
        model = counted_model(3, 50, options=options)
    page = opened_at(browser, model.explore(tmp_path / "topics.html")).page
    page.click("#tab-text")
    assert "which a page cannot run: use `tertulia transform`" in page.inner_text("#view")
