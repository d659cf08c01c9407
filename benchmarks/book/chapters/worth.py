"""What federating is worth: alone, federated, pooled; own gains; the merge's constants on other corpora."""

from __future__ import annotations

from typing import Any

from benchmarks.book.panels import Check, Entry, Found, Panel, Size

MEASURE = "benchmarks.book.measures.federation:any_of"
SEEDS = (0, 1, 2)
EVERYONE = {
    "the best party alone, 60 sweeps": "ppl_single_best_short", "the best party alone, 250 sweeps": "ppl_single_best",
    "models side by side": "ppl_concatenation", "FTM": "ppl_federated", "Consensus, 60 sweeps": "ppl_consensus",
    "Consensus, 250 sweeps": "ppl_consensus_long", "pooled, 60 sweeps": "ppl_pooled_short",
    "pooled, 250 sweeps": "ppl_pooled_long", "pooled, settled": "ppl_pooled_converged",
}  # fmt: skip
GAINS = {
    "FTM, best for the party": "own_gain", "control: two models of its own": "own_twice", "FTM, shared": "global",
    "FTM, composed": "composed", "Consensus, best for the party": "consensus_best_for",
    "Consensus of 250 sweeps, best for the party": "consensus_long_best_for", "pooled, as many topics": "pooled",
}  # fmt: skip
SHARE, SMALL = 0.1, 0.04  # of 20 Newsgroups
REDUCED = "a tenth of 20 Newsgroups; a quarter is part of `benchmarks.federation`"
SPLITS = {"natural": "parties of different subjects", "iid": "similar parties of 1 : 2 : ... : 6"}


def _split(parties: str, own: bool) -> Panel:
    lines, score = (GAINS, "gain@") if own else (EVERYONE, "")
    entries = tuple(
        Entry(line, {"kind": "split", "parties": parties}, "gain" if own else "perplexity", score + key)
        for line, key in lines.items()
    )
    checks: tuple[Check, ...]
    if own:
        checks = (
            Check("Consensus gains more on own documents than two models of a party's own",
                  lambda f: f("Consensus, best for the party") > f("control: two models of its own")),
            Check("FTM gains more on own documents than two models of a party's own",
                  lambda f: f("FTM, best for the party") > f("control: two models of its own")),
        )  # fmt: skip
    else:
        checks = (
            Check("Consensus is below the best party alone",
                  lambda f: f("Consensus, 60 sweeps") < f("the best party alone, 60 sweeps")),
            Check("Consensus is within 2 % of pooled at equal sweeps",
                  lambda f: f("Consensus, 60 sweeps") < 1.02 * f("pooled, 60 sweeps")),
            Check("Consensus is within 3 % of pooled until it has settled",
                  lambda f: f("Consensus, 60 sweeps") < 1.03 * f("pooled, settled")),
            Check("FTM is below its parties' models side by side",
                  lambda f: f("FTM") < f("models side by side")),
        )  # fmt: skip
    size: dict[str, Any] = {"share": SHARE}
    return Panel(
        f"worth-{parties}{'-own' if own else ''}", "worth", "",
        f"{'gain on own documents' if own else 'documents of all'}, {SPLITS[parties]}",
        "is a federation worth it, against a party alone and against pooling?", MEASURE, entries, Size(SEEDS, size),
        Size(SEEDS[:1], {"share": SMALL}),
        control="two models of a party's own" if own else "the parties' models side by side, and pooled models",
        checks=checks, minutes=5.0, kind="bars", corpora=("newsgroups20.parquet",),
        axes=("perplexity alone / perplexity" if own else "perplexity", ""),
        reduced=REDUCED,
        remark="Gains are perplexity of the party alone over that of the model, on its own documents." if own else
        "FTM has its default of 250 sweeps.",
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
                  lambda f, x=x: f("FTM, one to one", x) < f("side by side", x))  # type: ignore[misc]
            for x in places
        ),
        minutes=2.0, axes=("", "perplexity"),
        reduced="every second (Enron: fourth) document, random thirds, 20 topics, 2,000 words",
        corpora=("bbc_news.parquet", "medical_abstracts_2888.parquet", "enron_spam.parquet"),
    )  # fmt: skip


def _modes() -> Panel:
    """Set every method and protection side by side, on both splits."""
    kinds = {"Consensus, clear": "clear", "Consensus, secure sums": "secure", "Consensus, sound, epsilon 8": "sound",
             "PrivateTopics, doc, epsilon 8": "doc"}  # fmt: skip
    entries = tuple(
        Entry(line, {"kind": "mode", "parties": parties, "how": how}, f"{words}, {parties}", score)
        for line, how in kinds.items() for parties in SPLITS
        for words, score in (("perplexity", "perplexity"), ("gain", "gain"), ("worst gain", "worst"))
    )  # fmt: skip
    return Panel(
        "worth-modes", "worth", "", "what protection costs: clear, secure sums, noise on tokens, noise for documents",
        "how much of the gain is left with secure sums, with noise on tokens, and with noise for whole documents?",
        MEASURE, entries, Size(SEEDS, {"share": SHARE}), Size(SEEDS[:1], {"share": SMALL}, (), MODES_QUICKLY),
        control="Consensus in clear, over the same words",
        checks=(
            Check("secure sums change perplexity by less than 2 %, on both splits",
                  lambda f: all(_close(f, "Consensus, secure sums", f"perplexity, {p}", 0.02) for p in SPLITS)),
            Check("with noise on tokens similar parties still gain on their own documents",
                  lambda f: f("Consensus, sound, epsilon 8", "gain, iid") > 1),
            Check("with noise for documents similar parties still gain on their own documents",
                  lambda f: f("PrivateTopics, doc, epsilon 8", "gain, iid") > 1),
        ),
        minutes=2.0, kind="bars", corpora=("newsgroups20.parquet",), reduced=REDUCED,
        remark="Gains are of the shared model as it is, with a prior that is fitted to the party's documents, over a "
        "model that the party trains alone with 60 sweeps. The words are those of three parties or more, which secure "
        "sums need, so perplexities are lower than in the panels above. `doc` has epsilon 8 for a document, `sound` "
        "for a token.",
    )  # fmt: skip


def _close(found: Found, line: str, x: str, share: float) -> bool:
    return abs(found(line, x) / found("Consensus, clear", x) - 1) < share


MODES_QUICKLY = ("perplexity, natural", "gain, natural")
PANELS = (
    *(_split(parties, own) for own in (False, True) for parties in SPLITS),
    _modes(),
    _merge(),
)
