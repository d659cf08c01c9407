"""PC-TD (Jiang et al., IEEE Intelligent Systems 2020): figures 2 to 4, and the claims of its text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.book.panels import Check, Entry, Found, Panel, Size

MEASURE = "benchmarks.book.measures.pctd:any_of"
SIGMAS = (0.0, 0.05, 0.1, 0.25, 0.3)
TAUS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
TOPICS = (10, 20, 30, 40, 50)
SEEDS = (0, 1, 2)
UNIGRAM = Entry("unigram", {"kind": "nothing"}, "control")
CORPORA = {
    "reuters": ("reuters21578.parquet", "Reuters-21578, 2-6 March 1987"),
    "newsgroups": ("newsgroups20.parquet", "20 Newsgroups, 26-30 April 1993"),
    "long postings": ("newsgroups20.parquet", "20 Newsgroups, the longest of 23-30 April 1993"),
}
VECTORS = "glove100_vocab.npz"


def _panel(
    name: str, number: str, title: str, claim: str, entries: Sequence[Entry], checks: Sequence[Check], **more: Any
) -> Panel:
    """Declare a panel on one corpus; unless said otherwise its quick size has five rounds and two seeds."""
    corpus = more.pop("corpus", "reuters")
    file, words = CORPORA[corpus]
    quick = more.pop("quick_lines", ())
    common = {"corpus": corpus}
    return Panel(
        name, "PC-TD", number, f"{title}, {words}", claim, MEASURE, tuple(entries),
        Size(SEEDS, common), Size(SEEDS[:2], {**common, "rounds": 5}, quick, more.pop("quick_xs", ())),
        checks=tuple(checks), corpora=(file, VECTORS), **more,
    )  # fmt: skip


def _noise(sigma: float, held: bool) -> dict[str, Any]:
    return {"sigma": sigma, **({"paper": {"noise_on": "held"}} if held else {})} if sigma else {}


def _curves(held: bool) -> list[Entry]:
    return [Entry(f"sigma {s:g}", _noise(s, held), score="round") for s in SIGMAS] + [UNIGRAM]


def _convergence(name: str, corpus: str, held: bool) -> Panel:
    reading = "noise on the words that a unit holds" if held else "noise on all words of a unit"
    return _panel(
        name, "figure 2", f"perplexity by round, {reading}",
        "perplexity gradually decreases with the number of iterations in all cases; with a larger deviation PC-TD "
        "needs more iterations; with sigma = 0.25 it converges within 35 iterations.",
        _curves(held),
        (
            Check("perplexity is lower after the last round than after the first, for every sigma",
                  lambda f: all(f(line) < f(line, "1") for line in f.lines if line != "unigram")),
            Check("with sigma 0.25 it changes by less than 1 % in the last five rounds",
                  lambda f: abs(f("sigma 0.25") / f("sigma 0.25", "30") - 1) < 0.01),
            Check("with sigma 0.25 the model ends below the unigram: it has learned something",
                  lambda f: f("sigma 0.25") < f("unigram")),
            Check("a larger sigma needs more rounds to come within 5 % of its own end (0 against 0.25)",
                  lambda f: rounds_to(f, "sigma 0.25") > rounds_to(f, "sigma 0")),
        ),
        corpus=corpus, control="the unigram, which has learned nothing", minutes=1.0, axes=("round", "perplexity"),
        quick_lines=("sigma 0", "sigma 0.25", "unigram"),
        remark="Real epsilon: see pctd-epsilon; none can be stated for noise on held words alone." if held else
        "This is the reading that the paper's theorem 1 needs. The scores of rounds are not smoothed.",
    )  # fmt: skip


def rounds_to(found: Found, line: str) -> int:
    """Return the first round within 5 % of the line's end."""
    return next(i for i, value in enumerate(found.curve(line), 1) if value <= 1.05 * found(line))


def _participants(name: str, corpus: str) -> Panel:
    own = [Entry(f"participant {i} alone", {"kind": "alone", "participant": f"t{i}"}, "held-out") for i in (1, 2, 3)]
    entries = [
        *own,
        Entry("federated", {}, "held-out"),
        Entry("all topics side by side", {"kind": "beside"}, "held-out"),
    ]
    entries.append(Entry("unigram", {"kind": "nothing"}, "held-out"))
    return _panel(
        name, "figure 3", "a participant alone and the federation",
        "PC-TD achieves the lowest perplexity by utilizing the documents from all participants.",
        entries,
        (
            Check("the federation is below every participant alone, with each seed",
                  lambda f: all(max(f.seeds("federated")) < min(f.seeds(f"participant {i} alone")) for i in (1, 2, 3))),
            Check("it is below the participants' topics side by side, which need no joint training",
                  lambda f: f("federated") < f("all topics side by side")),
        ),
        corpus=corpus, control="the topics of all participants side by side, and the unigram", minutes=0.6,
        kind="bars", axes=("perplexity", ""), quick_lines=("participant 3 alone", "federated", "unigram"),
    )  # fmt: skip


def _coherence(name: str, score: str, corpus: str) -> Panel:
    by_k: list[Entry] = []
    for K in TOPICS:
        kinds: dict[str, dict[str, Any]] = {
            "PC-TD": {"topics": K},
            "PC-TD, sigma 0.25": {"topics": K, "sigma": 0.25},
            "PC-TD, sigma 0.25 on held words": {"topics": K, **_noise(0.25, held=True)},
            "LDA, the paper's alpha": {"kind": "lda", "topics": K, "alpha": 50.0},
            "LDA, learned alpha": {"kind": "lda", "topics": K, "alpha": 5.0, "learn_alpha": True},
        }
        by_k += [Entry(line, arguments, str(K), score) for line, arguments in kinds.items()]
    lda = "LDA, the paper's alpha"
    return _panel(
        name, "figure 4", f"coherence by number of topics ({'UMass' if score == 'umass' else 'NPMI'})",
        "coherence of all three models gradually increases from 10 to 50 topics; PC-TD without perturbation performs "
        "best; as topics grow, the perturbed PC-TD performs gradually better than LDA.",
        by_k,
        (
            Check("coherence is higher with 50 topics than with 10, for all of the paper's three models",
                  lambda f: all(f(line, "50") > f(line, "10") for line in ("PC-TD", "PC-TD, sigma 0.25", lda))),
            Check("PC-TD without noise is above LDA with the paper's alpha for every number of topics",
                  lambda f: all(f("PC-TD", str(K)) > f(lda, str(K)) for K in TOPICS)),
            Check("with 50 topics PC-TD with noise on all words is above LDA",
                  lambda f: f("PC-TD, sigma 0.25", "50") > f(lda, "50")),
            Check("with 50 topics PC-TD with noise on held words is above LDA",
                  lambda f: f("PC-TD, sigma 0.25 on held words", "50") > f(lda, "50")),
        ),
        corpus=corpus, control="LDA with the paper's alpha (printed Z/50, read 50/Z), and with alpha learned",
        minutes=3.0, axes=("topics", score), quick_xs=("10",),
    )  # fmt: skip


def _by_tau() -> Panel:
    entries = [Entry(score, {"tau": tau}, f"{tau:g}", score) for score in ("perplexity", "npmi") for tau in TAUS]
    return _panel(
        "pctd-tau", "", "the weight of word relations",
        "when tau increases from 0.1 to 0.5, the likelihood of held-out data first increases and then falls; the best "
        "is tau = 0.3 (section *Experimental Setup*; without a figure).",
        entries,
        (
            Check("perplexity is lowest at 0.3 among 0.1 to 0.5",
                  lambda f: min(map(str, TAUS[1:]), key=lambda tau: f("perplexity", tau)) == "0.3"),
            Check("NPMI at 0.3 is above that without relations (tau 0)",
                  lambda f: f("npmi", "0.3") > f("npmi", "0")),
        ),
        control="tau = 0, no word relations", minutes=0.9, axes=("tau", ""), quick_xs=("0", "0.3"),
    )  # fmt: skip


def _units() -> Panel:
    units: dict[str, dict[str, Any]] = {
        "one word": {"unit_words": 1}, "three words": {}, "sentence": {"unit": "sentence"},
        "paragraph": {"unit": "paragraph"},
    }  # fmt: skip
    entries = [Entry(line, arguments, x, x) for line, arguments in units.items() for x in ("perplexity", "npmi")]
    return _panel(
        "pctd-units", "", "units of words, sentences and paragraphs",
        "a semantic unit may be an n-gram, a sentence or a paragraph; the paper takes consecutive triples of words "
        "and compares no other.",
        entries,
        (
            Check("triples of words predict better than single words",
                  lambda f: f("three words", "perplexity") < f("one word", "perplexity")),
            Check("triples of words predict better than sentences",
                  lambda f: f("three words", "perplexity") < f("sentence", "perplexity")),
        ),
        control="units of one word, which are PLSA's", minutes=0.6, kind="bars",
    )  # fmt: skip


def _plugin() -> Panel:
    entries = [
        Entry(words, {**_noise(s, held), "kind": "plugin"}, f"{s:g}", score)
        for words, held, score in (
            ("plug-in, noise on all words", False, "plugin"), ("held-out, noise on all words", False, "perplexity"),
            ("plug-in, noise on held words", True, "plugin"), ("held-out, noise on held words", True, "perplexity"),
        )
        for s in SIGMAS
    ]  # fmt: skip
    return _panel(
        "pctd-2-plugin", "figure 2", "the paper's plug-in perplexity beside held-out",
        "the perplexity of figures 2 and 3 is of documents with their own fitted topic shares.",
        entries,
        (
            Check("without noise the plug-in figure is below the held-out one: it flatters",
                  lambda f: f("plug-in, noise on all words", "0") < f("held-out, noise on all words", "0")),
            Check("both order the sigmas alike, with noise on all words",
                  lambda f: _order(f, "plug-in, noise on all words") == _order(f, "held-out, noise on all words")),
        ),
        control="held-out perplexity by document completion", minutes=1.5, axes=("sigma", "perplexity"),
        quick_xs=("0", "0.25"),
    )  # fmt: skip


def _order(found: Found, line: str) -> list[str]:
    return sorted(found.xs(line), key=lambda x: found(line, x))


def _epsilons() -> Panel:
    kinds = {
        "claimed (theorem 1)": "claimed", "moments accountant, carried out": "moments", "real, a token": "token",
        "real, a word replaced": "replaced", "real, a document": "document",
    }  # fmt: skip
    entries = [
        Entry(line, {"kind": "epsilon", "sigma": s}, f"{s:g}", score)
        for line, score in kinds.items()
        for s in SIGMAS[1:]
    ]
    return _panel(
        "pctd-epsilon", "theorem 1", "what a sigma costs after 35 rounds",
        "PC-TD is (epsilon, delta)-differentially private if sigma >= c sqrt(T log(1/delta)) / epsilon.",
        entries,
        (
            Check("at sigma 0.25 the real epsilon of a token is at most the claimed one",
                  lambda f: f("real, a token", "0.25") <= f("claimed (theorem 1)", "0.25")),
            Check("at sigma 0.25 the real epsilon of a token is below 10",
                  lambda f: f("real, a token", "0.25") < 10),
        ),
        control="the exact Gaussian accountant", minutes=0.1, axes=("sigma", "epsilon"), logs="y",
        remark="Noise is on all words of a unit, delta is 1e-6. With noise on held words alone epsilon is infinite.",
    )  # fmt: skip


def _wide() -> Panel:
    wide = {"vocabulary": {"min_documents": 1, "max_share": 0.5, "max_words": 18_286}}
    entries = [Entry(f"sigma {s:g}", {**_noise(s, held=False), **wide}, score="round") for s in (0.0, 0.25)]
    entries.append(Entry("words", {**_noise(0.0, held=False), **wide}, "words", "words"))
    return _panel(
        "pctd-2-wide", "figure 2", "with all words of 502 articles",
        "the curves of figure 2 are of 500 articles with 18,286 words.",
        entries,
        (
            Check("with sigma 0.25 perplexity is lower after the last round than after the first",
                  lambda f: f("sigma 0.25") < f("sigma 0.25", "1")),
            Check("without noise it is lower after the last round than after the first",
                  lambda f: f("sigma 0") < f("sigma 0", "1")),
        ),
        corpus="long postings", control="no noise", minutes=1.5, axes=("round", "perplexity"), quick_lines=("sigma 0",),
    )  # fmt: skip


PANELS = (
    _convergence("pctd-2", "reuters", held=False),
    _convergence("pctd-2-held", "reuters", held=True),
    _convergence("pctd-2-newsgroups", "newsgroups", held=False),
    _plugin(),
    _wide(),
    _participants("pctd-3", "reuters"),
    _participants("pctd-3-newsgroups", "newsgroups"),
    _coherence("pctd-4", "umass", "reuters"),
    _coherence("pctd-4-npmi", "npmi", "reuters"),
    _by_tau(),
    _units(),
    _epsilons(),
)
