"""What federating is worth: alone, federated, pooled; own gains; the merge's constants on other corpora."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.book.panels import Check, Entry, Found, Panel, Size

MEASURE = "benchmarks.book.measures.federation:any_of"
SEEDS = (0, 1, 2)
EVERYONE = {
    "the best party alone, 60 sweeps": "ppl_single_best_short", "the best party alone, 250 sweeps": "ppl_single_best",
    "models side by side": "ppl_concatenation", "FTM": "ppl_federated", "Consensus, 60 sweeps": "ppl_consensus",
    "Consensus, 250 sweeps": "ppl_consensus_long", "pooled, 60 sweeps": "ppl_pooled_short",
    "pooled, 250 sweeps": "ppl_pooled_long", "pooled, as many topics as FTM, 250 sweeps": "ppl_pooled_same_topics",
    "pooled, settled": "ppl_pooled_converged", "topics of FTM": "topics",
}  # fmt: skip
GAINS = {
    "FTM, best for the party": "own_gain", "control: two models of its own": "own_twice", "FTM, shared": "global",
    "FTM, composed": "composed", "Consensus, best for the party": "consensus_best_for",
    "Consensus of 250 sweeps, best for the party": "consensus_long_best_for", "pooled, as many topics": "pooled",
}  # fmt: skip
MODES = {
    "Consensus, clear": "clear", "Consensus, secure sums": "secure", "Consensus, sound, epsilon 8": "sound",
    "PrivateTopics, doc, epsilon 8": "doc",
}  # fmt: skip
SHARE, SMALL = 0.25, 0.04  # of 20 Newsgroups
REDUCED = "a quarter of 20 Newsgroups"
SPLITS = {"natural": "parties of different subjects", "iid": "similar parties of 1 : 2 : ... : 6"}
QUESTION = "is a federation worth it, against a party alone and against pooling?"


def _panel(name: str, title: str, claim: str, entries: list[Entry], checks: list[Check], **more: Any) -> Panel:
    """Declare a panel on both splits; its quick size is a smaller share of the documents."""
    quick = Size(SEEDS[:1], {"share": SMALL}, (), more.pop("quick_xs", ()))
    return Panel(
        name, "worth", "", title, claim, MEASURE, tuple(entries), Size(SEEDS, {"share": SHARE}), quick,
        checks=tuple(checks), kind="bars", corpora=("newsgroups20.parquet",), reduced=REDUCED, **more,
    )  # fmt: skip


def _everyone() -> Panel:
    entries = [Entry(line, {"kind": "split", "parties": p}, p, key) for line, key in EVERYONE.items() for p in SPLITS]
    checks = []
    for p, words in SPLITS.items():
        checks += [
            Check(f"{words}: Consensus is below the best party alone",
                  _below("Consensus, 60 sweeps", "the best party alone, 60 sweeps", p)),
            Check(f"{words}: Consensus is within 2 % of pooled at equal sweeps",
                  _below("Consensus, 60 sweeps", "pooled, 60 sweeps", p, 1.02)),
            Check(f"{words}: Consensus is within 3 % of pooled until it has settled",
                  _below("Consensus, 60 sweeps", "pooled, settled", p, 1.03)),
            Check(f"{words}: FTM is below its parties' models side by side", _below("FTM", "models side by side", p)),
        ]  # fmt: skip
    return _panel(
        "worth-everyone", "perplexity of everybody's documents", QUESTION, entries, checks, minutes=3.0,
        axes=("perplexity", ""), control="the parties' models side by side, and pooled models",
        remark=f"`natural` are {SPLITS['natural']} (20 topics), `iid` {SPLITS['iid']} (40). FTM has its default of 250 "
        "sweeps, and as many topics as its merge leaves.",
    )  # fmt: skip


def _below(line: str, other: str, x: str, factor: float = 1.0) -> Callable[[Found], bool]:
    return lambda f: f(line, x) < factor * f(other, x)


def _own() -> Panel:
    means = {"mean": ("gain@{}", "gain"), "worst party": ("worst@{}", "worst")}
    entries = [
        Entry(line, {"kind": "split", "parties": p}, f"{p}, {x}", score.format(key))
        for line, key in GAINS.items() for p in SPLITS for x, (score, _) in means.items()
    ]  # fmt: skip
    entries += [
        Entry(f"{line}, shared", {"kind": "mode", "parties": p, "how": how}, f"{p}, {x}", score)
        for line, how in MODES.items() for p in SPLITS for x, (_, score) in means.items()
    ]  # fmt: skip
    control = "control: two models of its own"
    checks = [
        Check(f"{words}: {method} gains more on own documents than two models of a party's own",
              _below(control, f"{method}, best for the party", f"{p}, mean"))
        for p, words in SPLITS.items() for method in ("Consensus", "FTM")
    ]  # fmt: skip
    return _panel(
        "worth-own", "gain on a party's own documents", QUESTION, entries, checks, minutes=3.0,
        axes=("perplexity alone / perplexity", ""), control="two models of a party's own, side by side",
        remark="Perplexity of the party alone over that of the model, on the party's own documents, means over "
        "parties; *worst party* is the lowest gain of a seed. Alone has as many sweeps as the method (PrivateTopics: "
        "60). Rows called *shared* are of the shared model as it is, with a prior that is fitted to the party's "
        "documents; the last four are over the words of worth-modes.",
    )  # fmt: skip


def _merge() -> Panel:
    places = {"BBC": ("bbc", 2), "medical abstracts": ("medical", 2), "Enron": ("enron", 4)}
    scores = {
        "best party alone": "ppl_single_best", "side by side": "ppl_concatenation", "FTM, one to one": "ppl_one-to-one",
        "FTM, union-find (the papers')": "ppl_union-find", "Consensus": "ppl_consensus",
    }  # fmt: skip
    entries = tuple(
        Entry(line, {"kind": "merge", "corpus": name, "every": every, "parties": "thirds"}, x, score)
        for line, score in scores.items() for x, (name, every) in places.items()
    )  # fmt: skip
    return Panel(
        "worth-merge", "worth", "", "FTM's merge on corpora that its constants were not chosen on",
        "do the constants of the merge, chosen on a quarter of 20 Newsgroups, serve elsewhere?", MEASURE, entries,
        Size(SEEDS, {}), Size(SEEDS[:1], {}, (), ("BBC",)), control="the parties' models side by side",
        checks=tuple(
            Check(f"{x}: one to one is below the models side by side",
                  _below("FTM, one to one", "side by side", x))
            for x in places
        ),
        minutes=2.0, axes=("", "perplexity"),
        reduced="every second (Enron: fourth) document, random thirds, 20 topics, 2,000 words",
        corpora=("bbc_news.parquet", "medical_abstracts_2888.parquet", "enron_spam.parquet"),
    )  # fmt: skip


def _modes() -> Panel:
    entries = [
        Entry(line, {"kind": "mode", "parties": p, "how": how}, f"{words}, {p}", score)
        for line, how in MODES.items() for p in SPLITS
        for words, score in (("perplexity", "perplexity"), ("gain", "gain"), ("worst gain", "worst"))
    ]  # fmt: skip
    return _panel(
        "worth-modes", "what protection costs: clear, secure sums, noise on tokens, noise for documents",
        "how much of the gain is left with secure sums, with noise on tokens, and with noise for whole documents?",
        entries,
        [
            Check("secure sums change perplexity by less than 2 %, on both splits",
                  lambda f: all(_close(f, "Consensus, secure sums", f"perplexity, {p}", 0.02) for p in SPLITS)),
            Check("with noise on tokens similar parties still gain on their own documents",
                  lambda f: f("Consensus, sound, epsilon 8", "gain, iid") > 1),
            Check("with noise for documents similar parties still gain on their own documents",
                  lambda f: f("PrivateTopics, doc, epsilon 8", "gain, iid") > 1),
        ],
        control="Consensus in clear, over the same words", minutes=2.0, axes=("", ""), quick_xs=MODES_QUICKLY,
        remark="Gains are of the shared model as it is, with a prior that is fitted to the party's documents, over a "
        "model that the party trains alone with 60 sweeps. The words are those of three parties or more, which secure "
        "sums need, so perplexities are lower than in worth-everyone. `doc` has epsilon 8 for a document, `sound` for "
        "a token.",
    )  # fmt: skip


def _close(found: Found, line: str, x: str, share: float) -> bool:
    return abs(found(line, x) / found("Consensus, clear", x) - 1) < share


MODES_QUICKLY = ("perplexity, natural", "gain, natural")
PANELS = (_everyone(), _own(), _modes(), _merge())
