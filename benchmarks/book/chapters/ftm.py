"""FTM (Jiang et al., CIKM 2019) and iFTM (TIST 2021): figures 4 to 6 (5 to 7), tables 2 and 3, and the text.

Scores are log likelihoods of a held-out token, higher is better. All models of a panel have the same fixed priors
(alpha 5 over the topics, beta 0.1), documents and words; single parties choose their number of topics among three by
validation documents of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.book.panels import Check, Entry, Found, Panel, Size

MEASURE = "benchmarks.book.measures.ftm:any_of"
SEEDS = (0, 1, 2)
FILE = "newsgroups20.parquet"
ROUNDS, SWEEPS, TOPICS, TRIED = 2, 10, 10, (10, 20, 40)
LONG = 10 * ROUNDS * SWEEPS  # sweeps until a pooled model has settled
SUBJECTS = ("groups", 0.1, "subjects", 1000)  # where: data, share or documents, parties, words
HALF, CUT = ("groups", 0.5, "subjects", 2000), ("groups", 0.5, "three", 2000)
IMDB = ("imdb", 15_000, "three", 2000)
MODELS = {"lda": "LDA", "sentence": "SentenceLDA"}
EPSILONS, TAUS = (8, 9, 10, 11), (0.2, 0.5, 0.8)
SMALLER = "a tenth of 20 Newsgroups (1,900 documents, the papers' 208,000), 1,000 words, 2 rounds of 10 sweeps"
SMALLER_HALF = "half of 20 Newsgroups (9,500 documents, the papers' 208,000), 2,000 words, 2 rounds of 10 sweeps"
QUICK_WHERE = ("groups", 0.04, "subjects", 500)


def _panel(
    name: str, number: str, title: str, claim: str, entries: Sequence[Entry], checks: Sequence[Check], **more: Any
) -> Panel:
    """Declare a panel; its quick size is a smaller corpus."""
    where, small = more.pop("where", SUBJECTS), more.pop("quick_where", QUICK_WHERE)
    quick = Size(SEEDS[:2], {"where": small}, more.pop("quick_lines", ()), more.pop("quick_xs", ()))
    full = Size(more.pop("seeds", SEEDS), {"where": where})
    paper = more.pop("paper", "FTM")
    given = {"corpora": (FILE,), "reduced": SMALLER, **more}
    return Panel(name, paper, number, title, claim, MEASURE, tuple(entries), full, quick, checks=tuple(checks), **given)


def _shared(model: str, **settings: Any) -> dict[str, Any]:
    given = {"kind": "federated", "model": model, "rounds": ROUNDS, "sweeps": SWEEPS, "topics": TOPICS}
    return {**given, **settings}


def _scarcity(model: str) -> list[Entry]:
    """Return the lines of figure 4 for one model."""
    single = {"kind": "alone", "model": model, "sweeps": ROUNDS * SWEEPS, "tried": TRIED}
    pooled = {"kind": "pooled", "model": model, "topics": 3 * TOPICS}
    settled = 0 if model == "lda" else LONG
    lines: dict[str, tuple[dict[str, Any], str]] = {
        **{f"{p} alone": (single, p) for p in ("P1", "P2", "P3")},
        "side by side": (single, "side by side"),
        "federated, no noise": (_shared(model), "ll"),
        "federated, paper, epsilon 11": (_shared(model, mode="paper", epsilon=11.0), "ll"),
        "federated, sound, epsilon 11": (_shared(model, mode="sound", epsilon=11.0), "ll"),
        "pooled, equal sweeps": ({**pooled, "sweeps": ROUNDS * SWEEPS}, "ll"),
        "pooled, settled": ({**pooled, "sweeps": settled}, "ll"),
        "unigram": ({"kind": "nothing"}, "ll"),
    }
    return [Entry(line, arguments, "per token", score) for line, (arguments, score) in lines.items()]


def _best(found: Found) -> float:
    return max(found(f"{p} alone") for p in ("P1", "P2", "P3"))


def _scarcity_panel(name: str, number: str, model: str, **more: Any) -> Panel:
    more = {"where": HALF, "reduced": SMALLER_HALF, **more}
    checks = (
        Check("federated without noise is above every party alone", lambda f: f("federated, no noise") > _best(f)),
        Check("federated at epsilon 11 in mode paper is above every party alone",
              lambda f: f("federated, paper, epsilon 11") > _best(f)),
        Check("federated without noise is above the parties' models side by side",
              lambda f: f("federated, no noise") > f("side by side"), counts=False),
        Check("federated at epsilon 11 in mode sound is above every party alone",
              lambda f: f("federated, sound, epsilon 11") > _best(f), counts=False),
    )  # fmt: skip
    return _panel(
        name, number, f"{MODELS[model]}: parties alone, federated, pooled{more.pop('of', '')}",
        "by collectively utilizing data from all parties, FTM achieves the highest likelihood (epsilon 11, tau 0.2: "
        "-2.74e7, the best single party -3.03e7).",
        _scarcity(model), checks, kind="bars", axes=("log likelihood of a token", ""),
        control="the parties' models side by side, and the unigram", **more,
    )  # fmt: skip


def _privacy(name: str, number: str, model: str) -> Panel:
    entries = [
        Entry(f"paper, tau {tau:g}", _shared(model, mode="paper", epsilon=float(e), tau=tau), str(e), "ll")
        for tau in TAUS for e in EPSILONS
    ]  # fmt: skip
    entries += [Entry("sound, k-RR", _shared(model, mode="sound", epsilon=float(e)), str(e), "ll") for e in EPSILONS]
    entries += [Entry("no noise", _shared(model), str(e), "ll") for e in EPSILONS]
    entries.append(Entry("unigram", {"kind": "nothing"}, "control", "ll"))
    checks = (
        *(_grows(f"paper, tau {tau:g}") for tau in TAUS),
        Check("at epsilon 11 tau 0.2 is at least as good as 0.5 and 0.8",
              lambda f: f("paper, tau 0.2", "11") >= max(f("paper, tau 0.5", "11"), f("paper, tau 0.8", "11"))),
        Check("at epsilon 11 and tau 0.2 the model is above the unigram",
              lambda f: f("paper, tau 0.2", "11") > f("unigram")),
        Check("in mode sound likelihood grows from epsilon 8 to 11, and stays above the unigram",
              lambda f: f("sound, k-RR", "11") > f("sound, k-RR", "8") > f("unigram"), counts=False),
    )  # fmt: skip
    return _panel(
        name, number, f"{MODELS[model]}: likelihood by epsilon and tau",
        "as epsilon increases, FTM usually achieves higher likelihood (8: -4.59e7, 11: -2.74e7); with moderate noise "
        "(11) a slightly higher tau of 0.2 is best.",
        entries, checks, control="no noise, and the unigram", minutes=3.0,
        axes=("epsilon", "log likelihood of a token"),
        quick_lines=("paper, tau 0.2", "sound, k-RR", "unigram"), quick_xs=("8", "control"),
        remark="Epsilon of mode `paper` is the one claimed, whose real value is infinite; that of `sound` holds.",
    )  # fmt: skip


def _grows(line: str) -> Check:
    return Check(f"likelihood grows from epsilon 8 to 11 with {line}", lambda f: f(line, "11") > f(line, "8"))


def _communication(name: str, number: str, model: str) -> Panel:
    rounds = {"rounds": 5, "sweeps": SWEEPS}
    entries = [
        Entry(f"paper, epsilon {e}", _shared(model, mode="paper", epsilon=float(e), **rounds), score="round")
        for e in EPSILONS
    ]
    entries.append(Entry("no noise", _shared(model, **rounds), score="round"))
    if model == "lda":
        conventional = {"kind": "conventional", "topics": 3 * TOPICS, "rounds": 300}
        entries.append(Entry("conventional", conventional, score="round"))
    else:
        pooled = {"kind": "pooled", "model": model, "topics": 3 * TOPICS}
        entries += [Entry("conventional", {**pooled, "sweeps": n}, str(n), "ll") for n in (5, 20, 50, 100, 300)]
    entries.append(Entry("unigram", {"kind": "nothing"}, "control", "ll"))
    return _panel(
        name, number, f"{MODELS[model]}: likelihood by rounds, with noise",
        "FTM converges within several rounds; conventional topic modelling usually needs more than 300 rounds for the "
        "likelihood that FTM has in less than 5; with epsilon above 8 FTM ends higher than conventional modelling on "
        "the original data.",
        entries,
        (
            Check("epsilon 11 reaches within 5 rounds what conventional modelling has after 300",
                  lambda f: max(f.curve("paper, epsilon 11")) >= f("conventional", "300")),
            Check("without noise FTM reaches within 5 rounds what conventional modelling has after 300",
                  lambda f: max(f.curve("no noise")) >= f("conventional", "300")),
            Check("epsilon 9, 10 and 11 all end above conventional modelling",
                  lambda f: all(f(f"paper, epsilon {e}") > f("conventional") for e in (9, 10, 11))),
            Check("the curve of epsilon 11 rises from its first round to its last",
                  lambda f: f("paper, epsilon 11") > f("paper, epsilon 11", "1")),
        ),
        control="no noise, and conventional modelling: a synchronisation after each of 300 sweeps", minutes=2.0,
        axes=("rounds, or synchronisations", "log likelihood of a token"), logs="x",
        quick_lines=("paper, epsilon 11", "unigram"),
        reduced=SMALLER.replace("2 rounds", "5 rounds"),
        remark="Conventional modelling has 30 topics and no noise."
        + ("" if model == "lda" else " It is the pooled SentenceLDA: a sweep stands for a synchronisation."),
        computed=(lambda f: _synchronisations(f, "no noise"), lambda f: _synchronisations(f, "paper, epsilon 11")),
    )  # fmt: skip


def _synchronisations(found: Found, line: str) -> str:
    """Say how many synchronisations conventional modelling needs for the best of a line's rounds."""
    best, rounds = max(found.curve(line)), found.xs("conventional")
    enough = [x for x in rounds if found("conventional", x) >= best]
    needs = f"at most {enough[0]}" if enough else f"more than {rounds[-1]}"
    return (
        f"The best of *{line}*, after round {1 + found.curve(line).index(best)}, takes conventional modelling {needs} "
        "synchronisations."
    )


def _four(name: str, of: str, data: str, size: float, reduced: str, corpus: str) -> Panel:
    places = {x: (data, size, x, 1000) for x in ("three", "four")}
    settings = _shared("lda", rounds=15, sweeps=5)
    entries = [Entry(f"{x} parties", {**settings, "where": place}, score="round") for x, place in places.items()]
    entries += [
        Entry(f"{x} parties, epsilon 11", {**settings, "where": place, "mode": "paper", "epsilon": 11.0}, score="round")
        for x, place in places.items()
    ]
    return _panel(
        name, "section 4.4", f"four parties instead of three{of}",
        "with four parties the framework needs about 15 rounds to generate a fairly good topic model.",
        entries,
        (
            Check("four parties need 10 rounds or more for 95 % of the gain from the first round to the best",
                  lambda f: _needed(f, "four parties, epsilon 11") >= 10),
            Check("without noise four parties need more rounds than three",
                  lambda f: _needed(f, "four parties") > _needed(f, "three parties")),
        ),
        control="three parties", minutes=5.0, axes=("round", "log likelihood of a token"), seeds=SEEDS,
        quick_lines=("four parties",), corpora=(corpus,), reduced=f"{reduced}, 1,000 words, 15 rounds of 5 sweeps",
    )  # fmt: skip


def _needed(found: Found, line: str) -> int:
    """Return the first round with 95 % of the gain from round 1 to the best."""
    curve = found.curve(line)
    goal = curve[0] + 0.95 * (max(curve) - curve[0])
    return next(i for i, value in enumerate(curve, 1) if value >= goal)


def _mixed() -> Panel:
    same = {"kind": "federated", "model": "lda", "rounds": ROUNDS, "sweeps": SWEEPS}
    entries = [
        Entry("all parties K = 10", {**same, "topics": 10}, "federated", "ll"),
        Entry("all parties K = 20", {**same, "topics": 20}, "federated", "ll"),
        Entry("K = 10, 20, 40, the first by SentenceLDA",
              {"kind": "mixed", "rounds": ROUNDS, "sweeps": SWEEPS, "topics": (10, 20, 40)}, "federated", "ll"),
        Entry("best party alone", {"kind": "alone", "model": "lda", "sweeps": ROUNDS * SWEEPS, "tried": TRIED},
              "federated", "best"),
    ]  # fmt: skip
    return _panel(
        "ftm-mixed", "section 3.2", "parties with different numbers of topics and different models",
        "local topic models may be heterogeneous: parties have different numbers of topics and different models.",
        entries,
        (
            Check("mixed parties are above the best party alone",
                  lambda f: f("K = 10, 20, 40, the first by SentenceLDA") > f("best party alone")),
            Check("mixed parties are within 0.05 of the better of equal ones",
                  lambda f: f("K = 10, 20, 40, the first by SentenceLDA")
                  > max(f("all parties K = 10"), f("all parties K = 20")) - 0.05),
        ),
        control="parties with the same number of topics and model, and the best party alone", minutes=0.5, kind="bars",
        axes=("log likelihood of a token", ""),
    )  # fmt: skip


def _budgets() -> Panel:
    entries = []
    for rounds in (1, 2, 5):
        ftm = _shared("lda", rounds=rounds, topics=20)
        together = {"kind": "consensus", "rounds": rounds, "sweeps": SWEEPS, "topics": 20}
        for score, words in (("ll", "log likelihood"), ("megabytes", "megabytes")):
            entries += [Entry(f"FTM, {words}", ftm, str(rounds), score)]
            entries += [Entry(f"Consensus, {words}", together, str(rounds), score)]
    return _panel(
        "worth-equal-rounds", "", "FTM and Consensus at equal rounds, and their bytes",
        "is FTM or Consensus better at equal rounds and bytes? (Not in a paper: Consensus is ours.)",
        entries,
        (
            Check("Consensus is above FTM at 5 rounds",
                  lambda f: f("Consensus, log likelihood", "5") > f("FTM, log likelihood", "5")),
            Check("Consensus sends fewer bytes than FTM in 5 rounds",
                  lambda f: f("Consensus, megabytes", "5") < f("FTM, megabytes", "5")),
        ),
        control="each other", minutes=0.7, paper="worth", axes=("rounds", ""), quick_xs=("1",),
        reduced="a tenth of 20 Newsgroups, 1,000 words, rounds of 10 sweeps",
    )  # fmt: skip


PANELS = (
    _scarcity_panel("ftm-4", "figures 4 and 5a", "lda", minutes=4.0),
    _scarcity_panel("ftm-5b", "iFTM's figure 5b", "sentence", minutes=5.0),
    _scarcity_panel("ftm-4-cut", "figures 4 and 5a", "lda", where=CUT, quick_where=("groups", 0.04, "three", 500),
                    of=", the papers' proportions", minutes=4.0),
    _scarcity_panel("ftm-4-imdb", "figures 4 and 5a", "lda", where=IMDB, quick_where=("imdb", 600, "three", 500),
                    of=", IMDB in the papers' proportions",
                    corpora=("imdb50k.parquet",), minutes=6.0,
                    reduced="15,000 reviews of IMDB's 50,000, 2,000 words, 2 rounds of 10 sweeps"),
    _privacy("ftm-5", "figures 5 and 6a", "lda"),
    _privacy("ftm-6b", "iFTM's figure 6b", "sentence"),
    _communication("ftm-6", "figures 6 and 7a", "lda"),
    _communication("ftm-7b", "iFTM's figure 7b", "sentence"),
    _four("ftm-four", "", "groups", 0.5, "half of 20 Newsgroups in the papers' proportions", FILE),
    _four("ftm-four-imdb", ", IMDB", "imdb", 8000, "8,000 reviews in the papers' proportions", "imdb50k.parquet"),
    _mixed(),
    _budgets(),
)  # fmt: skip
