"""Who has which documents, and the topics that come of it.

Three parties, skewed as parties are: the first has mostly finance, the second mostly medicine, the third something else
(newsgroups) and a little of both. None has enough of everything that is spoken; together they have. As in the paper,
the first has about twice as much as each of the others. Documents that are spoken, or share a sentence with one that
is, belong to nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.applications.speech import texts
from benchmarks.common import OUT, say
from tertulia import FTM, Centralised, Corpus, NonCollaborative, Topics
from tertulia.api.federated import Federated
from tertulia.corpus.segment import segment
from tertulia.corpus.vocabulary import merge, propose

SHARES = {
    "p1": {"finance": 3800, "medicine": 200},
    "p2": {"finance": 200, "medicine": 1600},
    "p3": {"finance": 200, "medicine": 200, "newsgroups": 1600},
}
FULL = (240, 1000)  # utterances to tune and to test on: their documents are nobody's in a quick run, too
TOPICS, ROUNDS, SWEEPS = 40, 5, 50
MIN_DOCUMENTS = 5
FOLDER = OUT / "applications" / "speech" / "topics"


def sizes(quick: bool) -> dict[str, Any]:
    """All that the models depend on: how many documents, topics and sweeps."""
    part = 4 if quick else 1
    shares = {party: {domain: n // part for domain, n in share.items()} for party, share in SHARES.items()}
    return {"shares": shares, "topics": TOPICS, "rounds": ROUNDS, "sweeps": SWEEPS // (2 if quick else 1), "version": 1}


@cache
def said() -> frozenset[str]:
    """All sentences that a full run speaks."""
    return frozenset(sentence.words for part in texts.utterances(*FULL) for sentence in part)


def spell(text: str) -> list[str]:
    """The sentences of a document, spelled as they are spoken."""
    pieces = (texts.speakable(sentence) for paragraph in segment(text) for sentence in paragraph)
    return [words for words in pieces if words]


def documents(quick: bool) -> dict[str, list[list[str]]]:
    """Each party's documents, as sentences."""
    say("reading the parties' documents")
    supply = {domain: iter(texts.table(domain).values()) for domain in ("finance", "medicine", "newsgroups")}
    heard, found = said(), {}
    for party, share in sizes(quick)["shares"].items():
        found[party] = [sentences for domain, n in share.items() for sentences in _take(supply[domain], n, heard)]
    return found


def _take(supply: Any, n: int, heard: frozenset[str]) -> list[list[str]]:
    taken: list[list[str]] = []
    while len(taken) < n:
        text = next(supply)
        sentences = spell(text)
        if sentences and heard.isdisjoint(sentences) and heard.isdisjoint(texts.sentences(text)):
            taken.append(sentences)
    return taken


def corpora(parties: dict[str, list[list[str]]]) -> dict[str, Corpus]:
    """The documents as corpora; sentences stand apart, for SentenceLDA."""
    return {name: Corpus.from_texts(["\n\n".join(document) for document in held]) for name, held in parties.items()}


def train(parties: dict[str, Corpus], quick: bool, seed: int, folder: str) -> dict[str, Topics]:
    """Topics of each party alone, of the federation in both forms, and of all documents in one place.

    All have the same words and as many sweeps. Models are kept, so a run that was killed goes on with the next one.
    """
    settings = sizes(quick)
    words = merge(
        {name: propose(corpus) for name, corpus in parties.items()}, min_documents=MIN_DOCUMENTS, max_share=0.5
    )
    common = {"topics": settings["topics"], "vocabulary": {"mode": "public", "words": words.words}}
    alone = {**common, "sweeps": settings["sweeps"] * settings["rounds"]}
    shared = {**common, "sweeps": settings["sweeps"], "rounds": settings["rounds"]}
    place = FOLDER / folder / str(seed)
    if not all((place / party).is_dir() for party in parties):
        say(f"seed {seed}: each party alone")
        for party, topics in NonCollaborative(**alone).fit(parties, seed=seed).local.items():
            topics.save(place / party)
    makers: dict[str, Federated] = {
        "federated_lda": FTM(**shared),
        "federated_sentencelda": FTM(model="sentence", **shared),
        "pooled": Centralised(**alone),
    }
    for name, maker in makers.items():
        if not (place / name).is_dir():
            say(f"seed {seed}: {name}")
            maker.fit(parties, seed=seed).save(place / name)
    return {name: _load(place / name) for name in (*makers, *parties)}


def _load(path: Path) -> Topics:
    return Topics.load(path)


def sentences_of(parties: dict[str, list[list[str]]]) -> Sequence[list[str]]:
    """All sentences of all parties, as words: what an n-gram model of the domains is made of."""
    return [sentence.split() for held in parties.values() for document in held for sentence in document]
