"""Private topics over secure sums: quality by epsilon of a document, against no noise, and against noise for words."""

from __future__ import annotations

import hashlib
import json
import logging
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import tertulia as tt
from benchmarks.common import OUT, say, time_cpu
from benchmarks.privacy.corpora import REAL, TUNED_ON, Subject, generated
from tertulia._arrays import F64
from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import TertuliaError
from tertulia.methods.private_topics.budget import verdict_or_none
from tertulia.methods.private_topics.settings import PrivateTopicsSettings
from tertulia.metrics import completion, npmi
from tertulia.metrics.perplexity import unigram
from tertulia.metrics.similarity import match

EPSILONS = (8.0, 3.0, 1.0)
DELTA, PARTIES, SMOOTHING = 1e-6, 3, 0.01
_WORD_EPSILONS = (8.0, 6.0)
_GENERATED = {"generated 10k": 10_000, "generated 50k": 50_000, "generated 200k": 200_000}
_CACHE = OUT / "privacy"
Cell = dict[str, Any]


def subjects(quick: bool) -> dict[str, Callable[[], Subject]]:
    """Return the corpora by name."""
    made = {name: lambda n=n: generated(n) for name, n in _GENERATED.items()}
    chosen = {"generated 10k": made["generated 10k"], "bbc": REAL["bbc"]}
    return chosen if quick else {**made, **REAL}


def doc(quick: bool) -> dict[str, Any]:
    """Measure private topics by corpus and epsilon: means and spreads over noise seeds."""
    seeds = 1 if quick else 3
    found: dict[str, dict[str, Any]] = {"doc": {}, "doc_all_topics": {}, "nonprivate": {}, "unigram": {}, "seconds": {}}
    for name, make in subjects(quick).items():
        subject = _Lazy(make)
        big = name == "generated 200k"
        cells = {
            str(epsilon): [_cell(name, subject, epsilon, seed) for seed in range(1 if big else seeds)]
            for epsilon in EPSILONS
        }
        found["doc"][name] = {epsilon: _summary(several) for epsilon, several in cells.items()}
        if name == "generated 10k":
            found["doc_all_topics"][name] = {
                str(epsilon): _summary([_all_topics(name, subject, epsilon, seed) for seed in range(seeds)])
                for epsilon in EPSILONS
            }
        found["nonprivate"][name] = {
            "the same without noise": _summary([_cell(name, subject, None, 0)]),
            **({} if big else {"LDA, pooled": _summary([_lda_cell(name, subject)])}),
        }
        found["unigram"][name] = _cached([name, "unigram"], lambda subject=subject: _unigram(subject()))["ppl"]  # type: ignore[misc]
        found["seconds"][name] = round(float(np.median([cell["seconds"] for cell in cells[str(EPSILONS[0])]])), 1)
        say(f"{name}: {json.dumps(found['doc'][name])}")
    return found


def token(quick: bool) -> dict[str, Any]:
    """Measure Consensus with noise for words, and the epsilon of a document that this is."""
    names = ("bbc",) if quick else ("bbc", "newsgroups")
    return {"token": {name: _token_cells(name) for name in names}}


def verdict(quick: bool) -> dict[str, Any]:
    """Compare the number of topics that is predicted before anything is spent with the number that shows."""
    found: dict[str, Any] = {}
    for name, make in subjects(quick).items():
        subject = _Lazy(make)
        for epsilon in EPSILONS:
            cell = _cell(name, subject, epsilon, 0)
            found[f"{name}, epsilon {epsilon:g}"] = [_predicted(subject(), epsilon), cell["topics"]]
    for source in () if quick else TUNED_ON:
        for documents in (2_000, 10_000):
            name = f"generated from {source.partition('_')[0].partition('.')[0]}, {documents}"
            subject = _Lazy(lambda source=source, documents=documents: generated(documents, source))  # type: ignore[misc]
            cell = _cell(name, subject, 3.0, 0)
            found[f"{name}, epsilon 3"] = [_predicted(subject(), 3.0), cell["topics"]]
    return {"verdict": found}


class _Lazy:
    """A corpus that is read when it is needed: all cells may be in the cache."""

    def __init__(self, make: Callable[[], Subject]) -> None:
        self._make = make
        self._made: Subject | None = None

    def __call__(self) -> Subject:
        if self._made is None:
            self._made = self._make()
        return self._made


def _cell(name: str, subject: _Lazy, epsilon: float | None, seed: int) -> Cell:
    return _cached([name, epsilon, seed], lambda: _private(subject(), epsilon, seed))


def _all_topics(name: str, subject: _Lazy, epsilon: float, seed: int) -> Cell:
    """Learn all topics, also those that do not show above the noise."""
    return _cached([name, epsilon, seed, "all"], lambda: _private(subject(), epsilon, seed, adapt=False))


def _private(subject: Subject, epsilon: float | None, seed: int, *, adapt: bool = True) -> Cell:
    """Train once over three parties at random; what stops is a cell, too."""
    settings: dict[str, Any] = {"mode": "clear"} if epsilon is None else {"epsilon": epsilon, "delta": DELTA}
    words = {"mode": "public", "words": subject.train.vocabulary.words}
    method = tt.PrivateTopics(**{"topics": subject.topics, "vocabulary": words, "adapt": adapt, **settings})
    options: dict[str, Any] = {} if epsilon is None else {"federation": {"secure": True}}
    try:
        seconds, model = _timed(lambda: method.fit(_parties(subject.train, seed), seed=seed, progress=False, **options))
    except TertuliaError as error:
        say(f"stopped: {error}")
        return {"ppl": None, "npmi": None, "match": 0.0, "topics": 0, "seconds": 0.0}
    return {**_scores(model, subject), "topics": len(model.topic_word), "seconds": seconds}


def _predicted(subject: Subject, epsilon: float) -> int:
    """Return the verdict's number of topics, for three parties that share the noise."""
    settings = PrivateTopicsSettings(topics=subject.topics, epsilon=epsilon, delta=DELTA)
    lengths = float(np.median(subject.train.lengths))
    found = verdict_or_none(settings, subject.train.n_documents, lengths, np.sqrt(PARTIES / 2))
    return 0 if found is None else found.topics


def _timed(train: Callable[[], Any]) -> tuple[float, Any]:
    logging.getLogger("tertulia.party").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # fewer topics: the cell says how many
        return time_cpu(train)


def _parties(corpus: Corpus, seed: int) -> dict[str, Corpus]:
    place = np.random.default_rng(seed).integers(0, PARTIES, corpus.n_documents)
    return {f"party{n}": corpus.select(place == n) for n in range(PARTIES)}


def _scores(model: Any, subject: Subject) -> Cell:
    topic_word = _over(model, subject.train.vocabulary)
    score = completion(topic_word, model.alpha, subject.heldout, smoothing=SMOOTHING).perplexity
    coherence = float(np.mean(npmi(model, subject.train).mean)) if subject.true is None else None
    matched = None if subject.true is None else match(subject.true, topic_word)
    return {"ppl": score, "npmi": coherence, "match": matched}


def _over(model: Any, vocabulary: Vocabulary) -> F64:
    """Return topics over all words of the list, [K, V]; those that a model has dropped have no mass."""
    place = {word: v for v, word in enumerate(vocabulary.words)}
    topics = np.zeros((len(model.topic_word), len(vocabulary)))
    topics[:, [place[word] for word in model.vocabulary.words]] = model.topic_word
    return topics


def _lda_cell(name: str, subject: _Lazy) -> Cell:
    def train() -> Cell:
        given = subject()
        seconds, model = _timed(lambda: tt.LDA(topics=given.topics, random_state=0).fit(given.train).topics_)
        return {**_scores(model, given), "topics": given.topics, "seconds": seconds}

    return _cached([name, "LDA"], train)


def _unigram(subject: Subject) -> Cell:
    return {"ppl": completion(unigram(subject.train), 1.0, subject.heldout, smoothing=SMOOTHING).perplexity}


def _token_cells(name: str) -> dict[str, Any]:
    subject, found = _Lazy(REAL[name]), {}
    for epsilon in _WORD_EPSILONS:
        cell = _cached([name, "words", epsilon], lambda epsilon=epsilon: _words(subject(), epsilon))  # type: ignore[misc]
        found[str(epsilon)] = cell
    return found


def _words(subject: Subject, epsilon: float) -> Cell:
    from tertulia.kernels.reports.channel import Channel
    from tertulia.privacy.accounting import guarantee_of
    from tertulia.privacy.mechanisms.token_reports import TokenReports

    words = {"mode": "public", "words": subject.train.vocabulary.words}
    method = tt.Consensus(topics=subject.topics, mode="sound", epsilon=epsilon, beta=0.1, vocabulary=words)
    seconds, model = _timed(lambda: method.fit(_parties(subject.train, 0), seed=0, progress=False))
    length = int(np.median(subject.train.lengths))
    reports = TokenReports("reports", channel=Channel("krr", epsilon, len(words["words"]) + 1))
    document = guarantee_of(reports, DELTA, copies=length).epsilon
    return {**_scores(model, subject), "seconds": seconds, "epsilon_of_a_median_document": document}


def _summary(cells: Iterable[Mapping[str, Any]]) -> Cell:
    """Return means, with the spread (standard deviation) of several."""
    several, out = list(cells), {}
    for name in ("ppl", "npmi", "match", "topics"):
        values = [cell[name] for cell in several if cell.get(name) is not None]
        if values:
            out[name] = round(float(np.mean(values)), 1 if name in ("ppl", "topics") else 3)
            if len(values) > 1:
                out[f"{name}_sd"] = round(float(np.std(values, ddof=1)), 1 if name in ("ppl", "topics") else 3)
    return {**out, "runs": len(several)}


def _cached(key: list[Any], make: Callable[[], Cell]) -> Cell:
    """Return a cell of an earlier run, or make it and store it."""
    path = _CACHE / f"{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:16]}.json"
    if path.exists():
        found: Cell = json.loads(path.read_text())["cell"]
        return found
    began = time.perf_counter()
    cell = {name: value.item() if isinstance(value, np.generic) else value for name, value in make().items()}
    say(f"{key}: {cell} ({time.perf_counter() - began:.0f} s)")
    _CACHE.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=_CACHE) as folder:
        (Path(folder) / "cell").write_text(json.dumps({"key": key, "cell": cell}))
        (Path(folder) / "cell").replace(path)
    return cell
