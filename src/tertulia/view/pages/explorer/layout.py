"""The HTML of the explorer, which its script fills; without scripts it has a table of the topics."""

from __future__ import annotations

from tertulia._plain import plain
from tertulia.models import Topics
from tertulia.models.display import origin_of
from tertulia.view.pages.html import Html, details, el, join, table, text

_WORDS = 12


def body_of(model: Topics, *, has_texts: bool) -> tuple[Html, Html, Html]:
    """Build header, content and footer."""
    banner = el("p", "Contains texts: do not pass on.", class_="banner", role="note") if has_texts else None
    title, _, rest = origin_of(model).partition("; ")
    head = el("header", banner, el("h1", text(title, 100)), el("p", text(rest, 300), class_="soft"), class_="broad")
    needs = el("noscript", el("p", "The tools of this page need scripts; the table below does not."))
    trouble = el("p", id="trouble", class_="bad", role="alert", hidden=True)
    tools = el("div", _topics(), _views(), _topic(), id="tools", hidden=True)
    everything = details("All topics as a table", _table(model), is_open=True)
    everything = Html(everything.replace("<details", '<details id="all"', 1))
    main = el("main", needs, trouble, tools, everything, id="content", class_="broad")
    keep = join(
        "Names, hidden and merged topics are saved in a file: ",
        el("code", 'model.edit("names.json")'),
        " or ",
        el("code", "tertulia explore MODEL --names names.json --save DIRECTORY"),
        " applies it to the model. ",
    )
    alone = "This page loads nothing, and sends nothing."
    return head, main, el("footer", el("p", keep, alone), class_="broad")  # fmt: skip


def _topics() -> Html:
    """Build the left pane: search, the list of topics, and buttons to save."""
    search = el(
        "div",
        el("label", "Search for a word or a name", for_="search"),
        el("input", id="search", type="search", autocomplete="off", spellcheck="false"),
        class_="field screen",
    )
    buttons = el(
        "div",
        el("button", "Save names", type="button", id="save-names"),
        el("label", el("span", "Read names"), el("input", type="file", id="read-names", accept=".json"), class_="file"),
        el("button", "Topics as CSV", type="button", id="save-topics"),
        el("button", "Print", type="button", id="print"),
        class_="row screen",
    )
    return el(
        "section",
        el("h2", "Topics", id="list-title"),
        search,
        el("div", id="found", class_="chips"),
        el("p", id="said", class_="soft", role="status"),
        el("ol", id="list", class_="topics", aria_labelledby="list-title"),
        el("details", el("summary", "Hidden topics", id="hidden-title"), el("ol", id="hidden-list", class_="topics"),
           id="hidden", hidden=True),
        buttons,
        el("p", id="unsaved", class_="soft", role="status"),
        id="topics", class_="pane", aria_labelledby="list-title",
    )  # fmt: skip


def _views() -> Html:
    """Build the middle pane: one of several views."""
    return el(
        "section",
        el("h2", "Views", class_="hidden"),
        el("div", id="tabs", class_="tabs screen", role="tablist", aria_label="Views"),
        el("div", id="view", role="tabpanel", tabindex="0"),
        id="views", class_="pane",
    )  # fmt: skip


def _topic() -> Html:
    """Build the right pane: the selected topic."""
    name = el(
        "div",
        el("label", "Name", for_="name"),
        el("input", id="name", maxlength=80, autocomplete="off"),
        class_="field screen",
    )
    merge = el(
        "div",
        el("label", "Merge with", for_="with"),
        el("div", el("select", id="with"), el("button", "Merge", type="button", id="merge"), class_="together"),
        class_="field",
    )
    slider = el(
        "div",
        el("label", "Relevance: ", el("output", "1", id="relevance-said", for_="relevance"), for_="relevance"),
        el("input", id="relevance", type="range", min=0, max=1, step=0.05, value=1),
        class_="field screen",
    )
    heads = [el("th", "word", scope="col", class_="word")]
    heads += [el("th", el("span", "bar", class_="hidden"), scope="col", class_="bars")]
    heads += [el("th", "in topic", scope="col", class_="r"), el("th", "of its uses", scope="col", class_="r")]
    return el(
        "section",
        el("h2", "Topic", id="topic-title", tabindex="-1"),
        el("p", id="topic-facts", class_="soft"),
        name,
        el("div", el("button", "Hide", type="button", id="hide"),
           el("button", "Undo merge", type="button", id="part", hidden=True), class_="row screen"),
        el("div", details("Merge with another topic", merge), class_="screen"),
        el("h3", "Words"),
        slider,
        el("table", el("thead", el("tr", heads)), el("tbody", id="words"), class_="words"),
        el("p", "A bar is the probability of a word in the topic; its dark part is this topic's share of all uses.",
           class_="soft"),
        el("h3", "Almost only in this topic"),
        el("p", id="own"),
        el("h3", "Most similar"),
        el("ul", id="near", class_="near"),
        el("div", id="shares"),
        id="topic", class_="pane", aria_labelledby="topic-title",
    )  # fmt: skip


def _table(model: Topics) -> Html:
    """Build the table of all topics, for readers without scripts and for print."""
    rows = model.topics_table(_WORDS)
    weighed, named = "weight" in rows.columns, "name" in rows.columns
    tops = model.top_words(_WORDS)
    body = [
        [
            str(row["topic"]),
            *([text(row["name"], 80)] if named else []),
            *([f"{row['weight']:.1%}"] if weighed else []),
            join(*(part for word in tops[row["topic"]] for part in (text(plain(word), 30), " "))),
        ]
        for row in rows.iter_rows(named=True)
    ]
    head = ["topic", *(["name"] if named else []), *(["weight"] if weighed else []), "words"]
    return table(head, body, numeric="r" + "-" * named + "r" * weighed)
