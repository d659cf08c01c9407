"""iFTM's applications: table 2, speech recognition, and table 3, classification."""

from __future__ import annotations

from typing import Any

from benchmarks.book.measures.applications import QUICK
from benchmarks.book.panels import Check, Entry, Panel, Size

MEASURE = "benchmarks.book.measures.applications:"
DECODERS = ("pocketsphinx", "moonshine")
UNITS = {"lda": "LDA", "sentencelda": "SentenceLDA"}
PRINTED_3 = {
    "words alone": 75.67, "P1's LDA": 78.45, "P2's LDA": 79.34, "P3's LDA": 76.87, "federated LDA": 80.56,
    "P1's SentenceLDA": 79.65, "P2's SentenceLDA": 79.12, "P3's SentenceLDA": 77.34, "federated SentenceLDA": 81.03,
}  # fmt: skip
PRINTED_2 = {
    "without topics": 33.18, "P1's LDA": 31.40, "P2's LDA": 32.32, "P3's LDA": 33.04, "federated LDA": 30.06,
    "federated SentenceLDA": 30.01,
}  # fmt: skip
SMALL: dict[str, Any] = {"party": 1000, "test": 1000, "labels": (500,), "topics": 30, "rounds": 2, "sweeps": 10}
NOISY: dict[str, Any] = {"party": 300, "test": 500, "labels": (500,), "topics": 20, "rounds": 2, "sweeps": 5}


def _table_3() -> Panel:
    entries = [Entry("words alone", {"kind": "none"}, str(n), f"none@{n}") for n in (1000, 5000, 15000)]
    for model, words in UNITS.items():
        for n in (1000, 5000, 15000):
            single = {"kind": f"alone_{model}"}
            entries += [Entry(f"P{i}'s {words}", single, str(n), f"p{i}_{model}@{n}") for i in (1, 2, 3)]
            entries.append(Entry(f"{words} side by side", single, str(n), f"side_by_side_{model}@{n}"))
            entries.append(
                Entry(f"federated {words}", {"kind": f"federated_{model}"}, str(n), f"federated_{model}@{n}")
            )
            entries.append(Entry(f"pooled {words}", {"kind": f"pooled_{model}"}, str(n), f"pooled_{model}@{n}"))
    single_lines = [f"P{i}'s {words}" for words in UNITS.values() for i in (1, 2, 3)]
    return Panel(
        "ftm-table-3", "FTM", "iFTM's table 3", "classification with topic features",
        "topic features raise the precision from 75.67 % to 80.56 % (LDA) and 81.03 % (SentenceLDA), single parties to "
        "76.9 to 79.7 %; SentenceLDA typically performs better than LDA.",
        f"{MEASURE}classification", tuple(entries), Size((0, 1, 2, 3, 4), {"kept": True}),
        Size((0, 1), {**QUICK, "labels": (1000,), "party": 400}, ("words alone", "federated LDA"), ("1000",)),
        control="the parties' models side by side, and pooled models",
        checks=(
            Check("with 1,000 labels federated LDA is above words alone",
                  lambda f: f("federated LDA", "1000") > f("words alone", "1000")),
            Check("with 15,000 labels, as many as the paper has documents, it is, too, by 1 % or more",
                  lambda f: f("federated LDA", "15000") > f("words alone", "15000") + 0.01),
            Check("with 1,000 labels federated models are above every single party's",
                  lambda f: min(f(f"federated {w}", "1000") for w in UNITS.values())
                  > max(f(line, "1000") for line in single_lines)),
            Check("with 1,000 labels federated SentenceLDA is above federated LDA",
                  lambda f: f("federated SentenceLDA", "1000") > f("federated LDA", "1000")),
            Check("with 1,000 labels federated LDA is above the models side by side",
                  lambda f: f("federated LDA", "1000") > f("LDA side by side", "1000"), counts=False),
        ),
        minutes=0.2, axes=("labels", "accuracy"), corpora=("newsgroups20.parquet",), packages=("sklearn",),
        printed={line: {"15000": value / 100} for line, value in PRINTED_3.items()},
        remark="20 Newsgroups in four classes; accuracy is called precision in the paper. The full size reads "
        "the cells of `benchmarks.applications`, measured before; the small one measures.",
    )  # fmt: skip


def _noise() -> Panel:
    kinds = {
        "no noise": "federated",
        "mode paper, epsilon 11": "federated-paper",
        "mode sound, epsilon 11": "federated-sound",
    }
    entries = [Entry("words alone", {"kind": "none"}, "500", "none@500")]
    entries += [
        Entry(f"{words}, {how}", {"kind": f"{kind}_{model}"}, "500", f"{kind}_{model}@500")
        for model, words in UNITS.items() for how, kind in kinds.items()
    ]  # fmt: skip
    return Panel(
        "ftm-table-3-noise", "FTM", "iFTM's table 3", "classification with topics of noisy words",
        "the federated rows of the table are with epsilon 11 and the papers' merging.",
        f"{MEASURE}classification", tuple(entries), Size((0, 1, 2), NOISY),
        Size((0,), {**QUICK, "labels": (500,)}, ("words alone", "LDA, mode sound, epsilon 11")),
        control="words alone, and topics without noise",
        checks=(
            Check("LDA in mode paper is above words alone",
                  lambda f: f("LDA, mode paper, epsilon 11") > f("words alone")),
            Check("SentenceLDA in mode paper is above words alone",
                  lambda f: f("SentenceLDA, mode paper, epsilon 11") > f("words alone")),
            Check("LDA in mode sound is above words alone",
                  lambda f: f("LDA, mode sound, epsilon 11") > f("words alone"), counts=False),
        ),
        minutes=3.0, kind="bars", axes=("accuracy", ""), corpora=("newsgroups20.parquet",), packages=("sklearn",),
        reduced="3 parties of 300 documents (5,000), 20 topics (100), 2 rounds of 5 sweeps, 500 labels",
    )  # fmt: skip


def _by_subject() -> Panel:
    lines = {
        "words alone": ("none", "none"), "federated LDA": ("federated_lda", "federated_lda"),
        "pooled LDA": ("pooled_lda", "pooled_lda"), "LDA side by side": ("alone_lda", "side_by_side_lda"),
        **{f"P{i}'s LDA": ("alone_lda", f"p{i}_lda") for i in (1, 2, 3)},
    }  # fmt: skip
    entries = tuple(Entry(line, {"kind": kind}, "500", f"{name}@500") for line, (kind, name) in lines.items())
    return Panel(
        "ftm-table-3-subjects", "FTM", "iFTM's table 3", "classification, parties by subject",
        "more data usually results in better topic models and hence better classification.",
        f"{MEASURE}classification", entries, Size((0, 1, 2), {**SMALL, "split": "by subject"}),
        Size((0,), {**QUICK, "labels": (500,), "split": "by subject"}, ("words alone", "federated LDA")),
        control="the parties' models side by side, and pooled LDA",
        checks=(
            Check("federated LDA is above words alone", lambda f: f("federated LDA") > f("words alone")),
            Check("federated LDA is above every party alone",
                  lambda f: f("federated LDA") > max(f(f"P{i}'s LDA") for i in (1, 2, 3))),
            Check("federated LDA is above the models side by side",
                  lambda f: f("federated LDA") > f("LDA side by side"), counts=False),
        ),
        minutes=1.0, kind="bars", axes=("accuracy", ""), corpora=("newsgroups20.parquet",), packages=("sklearn",),
        reduced="3 parties of 1,000 documents (5,000), 30 topics (100), 2 rounds of 10 sweeps, 500 labels",
    )  # fmt: skip


def _table_2() -> Panel:
    lines = {
        "without topics": "none", "P1's LDA": "p1", "P2's LDA": "p2", "P3's LDA": "p3",
        "federated LDA": "federated_lda",
        "federated SentenceLDA": "federated_sentencelda", "pooled LDA": "pooled", "control: unigram": "unigram_control",
        "control: topics of another document": "wrong_topic_control",
    }  # fmt: skip
    entries = [
        Entry(line, {"decoder": decoder}, decoder, name)
        for line, name in lines.items() for decoder in DECODERS
    ]  # fmt: skip
    entries += [
        Entry(f"federated LDA minus without, 95 %, {end}", {"decoder": decoder}, decoder, f"gain {end} federated_lda")
        for end in ("low", "high") for decoder in DECODERS
    ]  # fmt: skip
    return Panel(
        "ftm-table-2", "FTM", "table 2 of both", "word error rates of speech, rescored by topics",
        "FTM lowers the word error rate from 33.18 % to 30.06 % (LDA) and 30.01 % (SentenceLDA); single parties reach "
        "31.4 to 33.0 %.",
        f"{MEASURE}speech", tuple(entries), Size((0,), {}), Size((0,), {"models": 1}),
        control="topics of another document, and the unigram in place of topics",
        checks=(
            Check("federated LDA lowers the word error rate with both decoders, by its 95 % interval",
                  lambda f: all(f("federated LDA minus without, 95 %, high", d) < 0 for d in DECODERS)),
            Check("federated LDA is below every single party with both decoders",
                  lambda f: all(f("federated LDA", d) < min(f(f"P{i}'s LDA", d) for i in (1, 2, 3))
                                for d in DECODERS)),
            Check("federated LDA is below topics of another document with both decoders",
                  lambda f: all(f("federated LDA", d) < f("control: topics of another document", d)
                                for d in DECODERS)),
            Check("federated SentenceLDA is below federated LDA with both decoders",
                  lambda f: all(f("federated SentenceLDA", d) < f("federated LDA", d) for d in DECODERS)),
        ),
        minutes=0.1, kind="bars", axes=("word error rate", ""), quick_packages=("pocketsphinx", "onnxruntime"),
        printed={line: {"pocketsphinx": value / 100} for line, value in PRINTED_2.items()},
        reduced="synthetic voices, not ten hours of recordings; no SentenceLDA of single parties; lambda tuned only",
        remark="Read from the committed run of `benchmarks.applications.speech`: means over three seeds of topics, "
        "with a paired bootstrap over documents. Its small size needs the extra `asr`, so it is not always checked.",
    )  # fmt: skip


PANELS = (_table_2(), _table_3(), _noise(), _by_subject())
