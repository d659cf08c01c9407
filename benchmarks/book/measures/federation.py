"""Measures of what federating is worth, on a share of 20 Newsgroups, and of FTM's merge on other corpora."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from statistics import fmean
from typing import Any

from benchmarks.common import newsgroups
from benchmarks.federation.__main__ import GAINS, SHORT, TOPICS, scenario
from benchmarks.federation.judge import HELDOUT, Judge
from benchmarks.federation.parties import iid, natural
from benchmarks.ftm import merging
from benchmarks.ftm.likeness import collection
from benchmarks.ftm.parties import world
from tertulia import Alone, Consensus, Corpus, FederatedTopics, PrivateTopics
from tertulia.corpus.vocabulary import merge as merge_words
from tertulia.corpus.vocabulary import propose

Scores = dict[str, float]
CUTS = {"natural": natural, "iid": iid}
EPSILON = 8.0  # of a token in mode `sound`, of a document in mode `doc`


@cache
def _newsgroups(share: float) -> Corpus:
    return newsgroups(min_documents=1, max_share=1.0, label="party").split(share, seed=1)[1]


def split(seed: int, parties: str, share: float) -> Scores:
    """Score alone, federated and pooled models of one split: perplexity of everybody's documents, and own gains."""
    found = scenario(parties, CUTS[parties](_newsgroups(share), seed), seed, workers=1)
    numbers = {key: float(value) for key, value in found.items() if isinstance(value, (int, float))}
    means = {f"gain@{key}": fmean(found[key].values()) for key in GAINS}
    return {**numbers, **means, **{f"worst@{key}": min(found[key].values()) for key in GAINS}}


@cache
def _parties(parties: str, share: float, seed: int) -> tuple[Mapping[str, Corpus], dict[str, Any], Mapping[str, float]]:
    """Return one split's parties, the words that all agree on, and how each party's own model scores its documents.

    The words are those that secure sums would leave: at three parties or more, in five documents at each.
    """
    cut = CUTS[parties](_newsgroups(share), seed)
    proposals = {party: propose(corpus.split(HELDOUT)[0], 5) for party, corpus in cut.items()}
    words = {"mode": "public", "words": merge_words(proposals, "min_parties", 3, max_share=0.5, max_words=8000).words}
    own = Alone(topics=TOPICS[parties], vocabulary=words, sweeps=SHORT).fit(
        cut, heldout=HELDOUT, seed=seed, workers=1, progress=False
    )
    judge = Judge(cut, next(iter(own.local.values())))
    return cut, words, {party: judge.adapt(model, party) for party, model in own.local.items()}


def mode(seed: int, parties: str, share: float, how: str) -> Scores:
    """Score a shared model under each protection: perplexity of everybody's documents, gain on a party's own.

    The gain is of the shared model as it is, with a prior that is fitted to the party's documents, over a model that
    the party trains alone with 60 sweeps.
    """
    cut, words, alone = _parties(parties, share, seed)
    model = _protected(how, cut, {"topics": TOPICS[parties], "vocabulary": words}, seed)
    judge = Judge(cut, model)
    gains = [own / judge.adapt(model, party) for party, own in alone.items()]
    sent = model.communication
    return {
        "perplexity": judge.everyone(model), "gain": fmean(gains), "worst": min(gains),
        "topics": float(model.n_topics), "words": float(len(model.vocabulary)),
        "megabytes": (sent.bytes_up + sent.bytes_down) / 1e6,
    }  # fmt: skip


def _protected(how: str, cut: Mapping[str, Corpus], common: dict[str, Any], seed: int) -> FederatedTopics:
    """Train a shared model: in clear, with secure sums, with noise on tokens, or with noise for documents."""
    run: dict[str, Any] = {"heldout": HELDOUT, "seed": seed, "workers": 1, "progress": False}
    if how == "secure":
        run["federation"] = {"secure": True}
        common["vocabulary"] = {**common["vocabulary"], "mode": "listed"}
    if how == "doc":
        documents = sum(corpus.n_documents for corpus in cut.values())
        method: Any = PrivateTopics(**common, epsilon=EPSILON, declared_documents=documents, adapt=False)
        return method.fit(cut, **run, federation={"secure": True})  # type: ignore[no-any-return]
    noise: dict[str, Any] = {"mode": "sound", "epsilon": EPSILON, "beta": 0.1, "sweeps": 10}
    return Consensus(**common, evaluate=False, **(noise if how == "sound" else {})).fit(cut, **run)


def merge(seed: int, corpus: str, parties: str, every: int = 1) -> Scores:
    """Score FTM's ways of merging on one collection, beside side-by-side models, the best party and Consensus."""
    whole = collection(corpus)
    whole = whole.select(list(range(0, whole.n_documents, every)))
    return merging.case(world(merging.split(whole, parties, seed), 2000), 20, "lda", seed)


def any_of(seed: int, kind: str, **arguments: Any) -> Scores:
    """Score what is named."""
    kinds: dict[str, Callable[..., Scores]] = {"split": split, "mode": mode, "merge": merge}
    return kinds[kind](seed, **arguments)
