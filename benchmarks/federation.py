"""What federating is worth, on 20 Newsgroups: the best party alone, the federation, and everything in one place.

Twice: `natural`, the six super-groups as parties, and `iid`, six random parties sized 1:2:3:4:5:6. Everybody gets the
same total of sweeps. All models are scored on everyone's held-out documents by document completion, mixed with the same
share of the uniform distribution (`SMOOTHING`), since a single party has never seen some words.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from benchmarks.common import arguments, finish, newsgroups, say
from tertulia import FTM, Centralised, Corpus, FederatedTopics, NonCollaborative, Topics
from tertulia.corpus.splits import Row, at_random
from tertulia.metrics import Completion, completion

HELDOUT = 0.15
SMOOTHING = 0.01
SWEEPS = 50  # in each round
WORDS = {"min_documents": 10, "max_share": 0.5, "max_words": 8000}
SPLITS: dict[str, dict[str, Any]] = {
    "natural": {"topics": 20, "rounds": 3, "min_similarity": 0.3},
    "iid": {"topics": 40, "rounds": 4, "min_similarity": 0.2},
}


def natural(corpus: Corpus) -> dict[str, Corpus]:
    """The super-groups as parties."""
    labels = corpus.table["label"].to_numpy()
    return {party: corpus.select(labels == party) for party in sorted(set(labels.tolist()))}


def iid(corpus: Corpus) -> dict[str, Corpus]:
    """Six random parties of sizes 1 to 6."""
    assign = at_random({f"p{i}": i for i in range(1, 7)})
    parties = [assign(Row(id_, "")) for id_ in corpus.table["id"]]
    return {f"p{i}": corpus.select([n for n, p in enumerate(parties) if p == f"p{i}"]) for i in range(1, 7)}


class Judge:
    """Scores models on everybody's documents, with one smoothing for all."""

    def __init__(self, parties: Mapping[str, Corpus], model: Topics) -> None:
        halves = {party: corpus.encode(model.vocabulary).split(HELDOUT) for party, corpus in parties.items()}
        self.train = {party: train for party, (train, _) in halves.items()}
        self.heldout = {party: heldout for party, (_, heldout) in halves.items()}

    def everyone(self, model: Topics) -> float:
        """Perplexity over everyone's held-out documents."""
        first, *rest = [self._score(model, corpus) for corpus in self.heldout.values()]
        return sum(rest, start=first).perplexity

    def own(self, model: Topics, party: str, part: str = "heldout") -> float:
        """Perplexity on one party's documents."""
        return self._score(model, getattr(self, part)[party]).perplexity

    @staticmethod
    def _score(model: Topics, corpus: Corpus) -> Completion:
        return completion(model.topic_word, model.alpha, corpus, smoothing=SMOOTHING, threads=2)


def own_gain(judge: Judge, federated: FederatedTopics, alone: FederatedTopics) -> dict[str, float]:
    """What each party wins on its own held-out documents: alone / the better of the global and its own composed model.

    Every model, the party's own too, gets a prior over its topics that is fitted to the party's training documents
    (`adapted`; it needs nobody else). Which model is better is decided on the training documents as well.
    """
    gains = {}
    for party, composed in federated.local.items():
        train = judge.train[party]
        rivals = [model.adapted(train, threads=2) for model in (federated, composed)]
        best = min(rivals, key=lambda model: judge.own(model, party, "train"))
        own = alone.local[party].adapted(train, threads=2)
        gains[party] = judge.own(own, party) / judge.own(best, party)
    return gains


def singles(parties: Mapping[str, Corpus], words: Mapping[str, Any], topics: int, sweeps: int) -> FederatedTopics:
    """Every party alone."""
    method = NonCollaborative(topics=topics, sweeps=sweeps, vocabulary=words)
    return method.fit(parties, workers=2, heldout=HELDOUT)


def scenario(name: str, parties: Mapping[str, Corpus], quick: bool) -> dict[str, Any]:
    """One split from beginning to end."""
    settings = SPLITS[name]
    started = time.perf_counter()
    federated = FTM(**settings, sweeps=SWEEPS, vocabulary=WORDS, evaluate=False).fit(
        parties, workers=2, heldout=HELDOUT
    )
    seconds = time.perf_counter() - started
    judge = Judge(parties, federated)
    words = {"mode": "public", "words": federated.vocabulary.words}
    sweeps = SWEEPS * settings["rounds"]

    alone = singles(parties, words, settings["topics"], sweeps)
    ppl_alone = {party: judge.everyone(model) for party, model in alone.local.items()}
    tuned = dict(ppl_alone)
    for K in (federated.n_topics,) if quick else (settings["topics"] * 2, federated.n_topics):
        for party, model in singles(parties, words, K, sweeps).local.items():
            tuned[party] = min(tuned[party], judge.everyone(model))
    pooled = Centralised(topics=federated.n_topics, sweeps=sweeps, vocabulary=words).fit(
        parties, heldout=HELDOUT, party_settings={"pooled": {"threads": 2}}
    )
    result = {
        "ppl_single_best": min(ppl_alone.values()),
        "ppl_single_best_tuned": min(tuned.values()),
        "ppl_federated": judge.everyone(federated),
        "ppl_pooled": judge.everyone(pooled),
        "own_gain": own_gain(judge, federated, alone),
        "topics": federated.n_topics,
        "rounds": settings["rounds"],
        "bytes_up": federated.communication.bytes_up,
        "bytes_down": federated.communication.bytes_down,
        "seconds": seconds,
    }
    report(name, result)
    return result


def report(name: str, result: Mapping[str, Any]) -> None:
    """Say how it went, and how it compares with what is expected."""
    federated, gains = result["ppl_federated"], result["own_gain"].values()
    say(
        f"{name}: single {result['ppl_single_best']:.0f} (tuned K {result['ppl_single_best_tuned']:.0f}), federated "
        f"{federated:.0f} with {result['topics']} topics, pooled {result['ppl_pooled']:.0f}; "
        f"federated / pooled {federated / result['ppl_pooled']:.3f}, "
        f"federated / single {federated / result['ppl_single_best']:.3f}; "
        f"own gain {min(gains):.3f} to {max(gains):.3f}, mean {sum(gains) / len(gains):.3f}"
    )


def main() -> None:
    """Run the benchmark."""
    quick = arguments("Federated, single and pooled LDA on 20 Newsgroups").quick
    corpus = newsgroups(min_documents=1, max_share=1.0, label="party")
    splits = {"natural": natural(corpus), "iid": iid(corpus)}
    finish(
        {
            "benchmark": "federation",
            "smoothing": SMOOTHING,
            **{name: scenario(name, parties, quick) for name, parties in splits.items()},
        }
    )


if __name__ == "__main__":
    main()
