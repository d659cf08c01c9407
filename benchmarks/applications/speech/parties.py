"""The documents of the three parties, and their topic models.

The parties are skewed: the first has mostly finance, the second mostly medicine, the third newsgroups and a little of
both. Only together do they cover everything that is spoken. As in the paper, the first has about twice as many
documents as each of the others. Documents that are spoken, or share a sentence with a spoken one, belong to no party.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.applications.speech import texts
from benchmarks.common import OUT, say
from tertulia import FTM, Alone, Corpus, FederatedTopics, Pooled, Topics
from tertulia.api.federated import Federated
from tertulia.corpus.tokens import segment
from tertulia.corpus.vocabulary import merge, propose

SHARES = {
    "p1": {"finance": 3800, "medicine": 200},
    "p2": {"finance": 200, "medicine": 1600},
    "p3": {"finance": 200, "medicine": 200, "newsgroups": 1600},
}
FULL = (240, 1000)  # utterances to tune and to test on; their documents belong to no party, also in a quick run
TOPICS = (40, 120)  # approximate totals that are tried for each model; held-out utterances choose
ROUNDS, SWEEPS = 5, 50
# Numbers say nothing about the subject, and would fill every fifth topic: only P_LM counts for them.
_SPELLED = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion point
"""
NUMBERS = frozenset(_SPELLED.split())
MIN_DOCUMENTS = 5
FOLDER = OUT / "applications" / "speech" / "topics"


def sizes(quick: bool) -> dict[str, Any]:
    """Return everything that the models depend on: numbers of documents, topics and sweeps."""
    part = 4 if quick else 1
    shares = {party: {domain: n // part for domain, n in share.items()} for party, share in SHARES.items()}
    return {"shares": shares, "topics": TOPICS, "rounds": ROUNDS, "sweeps": SWEEPS // (2 if quick else 1), "version": 2}


@cache
def said() -> frozenset[str]:
    """Return all sentences of a full run."""
    return frozenset(sentence.words for part in texts.utterances(*FULL) for sentence in part)


def spell(text: str) -> list[str]:
    """Return the sentences of a document, spelled as they are spoken."""
    pieces = (texts.speakable(sentence) for paragraph in segment(text) for sentence in paragraph)
    return [words for words in pieces if words]


def documents(quick: bool) -> dict[str, list[list[str]]]:
    """Read each party's documents, as sentences."""
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
    """Convert the documents to corpora, with separate sentences for SentenceLDA."""
    return {name: Corpus.from_texts(["\n\n".join(document) for document in held]) for name, held in parties.items()}


def train(parties: dict[str, Corpus], quick: bool, seed: int, folder: str) -> dict[str, list[Topics]]:
    """Train topics of the federation (LDA and SentenceLDA), of all documents in one place, and of each party alone.

    Each is trained with about 40 and about 120 topics, of which a party of the federation has a third. All have the
    same words and number of sweeps. Models are stored, so a killed run continues with the next one.
    """
    words = merge(
        {name: propose(corpus) for name, corpus in parties.items()}, min_documents=MIN_DOCUMENTS, max_share=0.5
    )
    public = {"mode": "public", "words": tuple(word for word in words.words if word not in NUMBERS)}
    found: dict[str, list[Topics]] = {}
    for topics in sizes(quick)["topics"]:
        place = FOLDER / folder / f"{topics}-{seed}"
        for name, maker in _makers(topics, public, quick).items():
            if not (place / name).is_dir():
                say(f"seed {seed}: {name}, {topics} topics")
                _save(maker.fit(parties, seed=seed), place, name)
        names = [*(name for name in _makers(topics, public, quick) if name != "alone"), *parties]
        for name in names:
            found.setdefault(name, []).append(Topics.load(place / name))
    return found


def _makers(topics: int, vocabulary: dict[str, Any], quick: bool) -> dict[str, Federated]:
    settings = sizes(quick)
    sweeps, rounds = settings["sweeps"], settings["rounds"]
    alone = {"topics": topics, "vocabulary": vocabulary, "sweeps": sweeps * rounds}
    shared = {"topics": round(topics / 3), "vocabulary": vocabulary, "sweeps": sweeps, "rounds": rounds}
    return {
        "federated_lda": FTM(**shared),
        "federated_sentencelda": FTM(model="sentence", **shared),
        "pooled": Pooled(**alone),
        "alone": Alone(**alone),
    }


def _save(model: FederatedTopics, place: Path, name: str) -> None:
    """Save a model, or those of all parties alone, and then a folder that marks them complete."""
    if name == "alone":
        for party, topics in model.local.items():
            topics.save(place / party)
        (place / name).mkdir()
    else:
        model.save(place / name)


def sentences_of(parties: dict[str, list[list[str]]]) -> Sequence[list[str]]:
    """Return all sentences of all parties as words, to train an n-gram model of the domains."""
    return [sentence.split() for held in parties.values() for document in held for sentence in document]
