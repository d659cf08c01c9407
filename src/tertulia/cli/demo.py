"""The demo: Python, NumPy and SciPy hold their docstrings and train one topic model without showing them."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tertulia.api.federated import FTM, Centralised
from tertulia.corpus import Corpus
from tertulia.corpus.demo_corpus import demo_parties
from tertulia.metrics import completion, weighted_jaccard
from tertulia.metrics.similarity import top_words_sparse
from tertulia.models import Topics
from tertulia.runs.results import FederatedTopics
from tertulia.runs.scenarios import keep_rows
from tertulia.view import console

HELDOUT, VALIDATION = 0.1, 0.1
SMOOTHING = 0.01  # every model is scored with this share of the uniform: a single party has never seen some words
METHOD: dict[str, Any] = {"topics": 20, "vocabulary": {"min_documents": 5, "max_share": 0.3}}
ROUNDS, SWEEPS = 4, 40
SIMILAR = 0.3  # to say who holds a topic
MEANS = (
    "What it means: the shared model serves everybody's documents, which no party's own does (first column). On a "
    "party's own documents it may be better or worse than what the party has alone; `best_for` finds, on "
    "validation documents, what to use there. `pooled` would need everybody's documents in one place."
)


def run_demo(directory: Path, as_json: bool) -> None:
    """Collect documents, train, compare, and say what left each party."""
    started = time.monotonic()
    console.say("collecting the docstrings of Python, NumPy and SciPy ...")
    parties = demo_parties()
    shutil.rmtree(directory, ignore_errors=True)  # a demo may be repeated
    with console.RoundProgress(ROUNDS + 1, "federation") as progress:
        federated = FTM(rounds=ROUNDS, sweeps=SWEEPS, **METHOD).fit(
            parties, workers=2, heldout=HELDOUT, validation=VALIDATION, directory=directory, observe=progress
        )
    console.say("for comparison: all documents in one place ...")
    rivals = _rivals(parties, federated)
    chosen = {party: choice.best.provenance["chosen"] for party, choice in federated.choices.items()}
    facts: dict[str, Any] = {
        "documents": {party: corpus.n_documents for party, corpus in parties.items()},
        "topics": federated.n_topics,
        "perplexity": {name: _perplexities(models, parties) for name, models in rivals.items()},
        "chosen": chosen,
        "bytes": {"down": federated.communication.bytes_down, "up": federated.communication.bytes_up},
        "model": str(directory / "model"),
        "seconds": round(time.monotonic() - started, 1),
    }
    keep_rows(directory, [_scenario(name, scores) for name, scores in facts["perplexity"].items()])
    if as_json:
        print(json.dumps(facts))
    else:
        _print(federated, facts)


def _rivals(parties: Mapping[str, Corpus], federated: FederatedTopics) -> dict[str, dict[str, Topics]]:
    """All scenarios over the same words, with as many sweeps: for each, the model that each party would use.

    The parties' own models are those that they trained to choose by, with the priors that suit them.
    """
    words = {"mode": "public", "words": federated.vocabulary.words}
    pooled = Centralised(topics=federated.n_topics, sweeps=ROUNDS * SWEEPS, vocabulary=words).fit(
        parties, heldout=HELDOUT, validation=VALIDATION, party_settings={"pooled": {"threads": 2}}
    )
    own = {party: choice.alone for party, choice in federated.choices.items()}
    return {
        **{f"{party} alone": dict.fromkeys(parties, model) for party, model in own.items()},
        "each party's own": dict(own),
        "federated": dict.fromkeys(parties, federated),
        "federated, best_for": {party: federated.best_for(party) for party in parties},
        f"pooled, {federated.n_topics} topics": dict.fromkeys(parties, pooled),
    }


def _perplexities(models: Mapping[str, Topics], parties: Mapping[str, Corpus]) -> dict[str, float]:
    """Completion perplexity on everyone's held-out documents, and on each party's."""
    scores = {}
    for party, model in models.items():
        heldout = parties[party].split(HELDOUT)[1].encode(model.vocabulary)
        scores[party] = completion(model.topic_word, model.alpha, heldout, smoothing=SMOOTHING)
    likelihood = sum(score.log_likelihood for score in scores.values())
    everyone = float(np.exp(-likelihood / sum(score.tokens for score in scores.values())))
    return {"everyone": everyone, **{party: score.perplexity for party, score in scores.items()}}


def _scenario(name: str, scores: Mapping[str, float]) -> dict[str, Any]:
    """A row of the table as `tertulia report` reads it."""
    own = {party: score for party, score in scores.items() if party != "everyone"}
    return {"scenario": name, "perplexity": scores["everyone"], "parties": own}


def _holders(model: FederatedTopics, topic: int) -> str:
    """The parties whose own model has this topic, or one that is as similar."""
    mine = top_words_sparse(model.topic_word[topic : topic + 1], 50)
    return ", ".join(
        party
        for party, local in model.local.items()
        if weighted_jaccard(top_words_sparse(local.topic_word, 50), mine).max() >= SIMILAR
    )


def _print(model: FederatedTopics, facts: Mapping[str, Any]) -> None:
    by_holders: dict[str, list[int]] = {}
    for k in range(model.n_topics):
        by_holders.setdefault(_holders(model, k), []).append(k)
    tops = model.top_words(8)
    console.table(
        f"{model.n_topics} topics over {len(model.vocabulary)} words (up to 5 of each kind shown)",
        ["held by", "topics", "for example"],
        [
            (holders if first else "", len(topics) if first else "", " ".join(tops[k]))
            for holders, topics in sorted(by_holders.items(), key=lambda item: -item[0].count(","))
            for first, k in zip([True, *[False] * 4], topics, strict=False)
        ],
    )
    parties = list(facts["documents"])
    console.table(
        "Perplexity of held-out documents (lower is better)",
        ["model", "everyone's", *(f"{party}'s" for party in parties)],
        [(name, scores["everyone"], *(scores[p] for p in parties)) for name, scores in facts["perplexity"].items()],
    )
    console.show(MEANS + "\n")
    down, up = facts["bytes"]["down"], facts["bytes"]["up"]
    documents = ", ".join(f"{party} {n}" for party, n in facts["documents"].items())
    chosen = ", ".join(f"{party} {name}" for party, name in facts["chosen"].items())
    console.show(
        f"documents: {documents}; none of them left its party\n"
        f"chosen by best_for: {chosen}\n"
        f"bytes: {console.size(up)} from the parties, {console.size(down)} to them "
        f"(`tertulia disclosures {model.directory}` lists each release)\n"
        f"model: {facts['model']} (`tertulia topics {facts['model']}`)\n"
        f"a page of all this: `tertulia report {model.directory}`\n"
        f"{facts['seconds']} seconds"
    )
