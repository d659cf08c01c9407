"""The demo: Python, NumPy and SciPy hold their docstrings and train one topic model without showing them."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tertulia.api import FTM, Centralised, NonCollaborative
from tertulia.corpus import Corpus
from tertulia.corpus.docstrings import demo_parties
from tertulia.metrics import completion, weighted_jaccard
from tertulia.metrics.similarity import top_words_sparse
from tertulia.models import Topics
from tertulia.results import FederatedTopics
from tertulia.view import console

HELDOUT = 0.1
SMOOTHING = 0.01  # every model is scored with this share of the uniform: a single party has never seen some words
METHOD: dict[str, Any] = {"topics": 20, "vocabulary": {"min_documents": 5, "max_share": 0.3}}
ROUNDS, SWEEPS, SIMILAR = 4, 40, 0.2


def run_demo(directory: Path, as_json: bool) -> None:
    """Harvest, train, compare, and say what left each house."""
    started = time.monotonic()
    console.tell("harvesting the docstrings of Python, NumPy and SciPy ...")
    parties = demo_parties()
    shutil.rmtree(directory, ignore_errors=True)  # a demo may be repeated
    with console.RoundProgress(ROUNDS + 1, "federation") as progress:
        federated = FTM(rounds=ROUNDS, sweeps=SWEEPS, min_similarity=SIMILAR, **METHOD).fit(
            parties, workers=2, heldout=HELDOUT, directory=directory, observe=progress
        )
    console.tell("for comparison: each party alone, and all documents in one place ...")
    rivals = _rivals(parties, federated)
    heldout = {party: corpus.split(HELDOUT)[1] for party, corpus in parties.items()}
    facts = {
        "documents": {party: corpus.n_documents for party, corpus in parties.items()},
        "topics": federated.n_topics,
        "perplexity": {name: _perplexities(model, heldout) for name, model in rivals.items()},
        "bytes": {"down": federated.communication.bytes_down, "up": federated.communication.bytes_up},
        "model": str(directory / "model"),
        "seconds": round(time.monotonic() - started, 1),
    }
    if as_json:
        print(json.dumps(facts))
    else:
        _print(federated, facts)


def _rivals(parties: Mapping[str, Corpus], federated: FederatedTopics) -> dict[str, Topics]:
    """The other scenarios over the same words and with as many sweeps."""
    words = {"mode": "public", "words": federated.vocabulary.words}
    same = METHOD | {"sweeps": ROUNDS * SWEEPS, "vocabulary": words}
    alone = NonCollaborative(**same).fit(parties, workers=2, heldout=HELDOUT)
    pooled = Centralised(**same | {"topics": federated.n_topics}).fit(
        parties, heldout=HELDOUT, party_settings={"pooled": {"threads": 2}}
    )
    return {
        **{f"{party} alone": model for party, model in alone.local.items()},
        "federated": federated,
        "pooled (for comparison)": pooled,
    }


def _perplexities(model: Topics, heldout: Mapping[str, Corpus]) -> dict[str, float]:
    """Completion perplexity on everyone's held-out documents, and on each party's."""
    scores = {
        party: completion(model.topic_word, model.alpha, corpus.encode(model.vocabulary), smoothing=SMOOTHING)
        for party, corpus in heldout.items()
    }
    likelihood = sum(score.log_likelihood for score in scores.values())
    everyone = float(np.exp(-likelihood / sum(score.tokens for score in scores.values())))
    return {"everyone": everyone, **{party: score.perplexity for party, score in scores.items()}}


def _holders(model: FederatedTopics, topic: int) -> str:
    """The parties whose own model has this topic, by the similarity that merged it."""
    mine = top_words_sparse(model.topic_word[topic : topic + 1], 50)
    return ", ".join(
        party
        for party, local in model.local.items()
        if weighted_jaccard(top_words_sparse(local.topic_word, 50), mine).max() >= SIMILAR
    )


def _print(model: FederatedTopics, facts: Mapping[str, Any]) -> None:
    tops = model.top_words(9)
    shown = sorted(range(model.n_topics), key=lambda k: (-len(_holders(model, k)), k))[:15]
    console.table(
        f"{model.n_topics} topics over {len(model.vocabulary)} words (15 shown)",
        ["topic", "held by", "words"],
        [(str(k), _holders(model, k), " ".join(tops[k])) for k in shown],
    )
    parties = list(facts["documents"])
    console.table(
        "Perplexity of held-out documents (lower is better)",
        ["model", "everyone's", *(f"{party}'s" for party in parties)],
        [(name, scores["everyone"], *(scores[p] for p in parties)) for name, scores in facts["perplexity"].items()],
    )
    down, up = facts["bytes"]["down"], facts["bytes"]["up"]
    documents = ", ".join(f"{party} {n}" for party, n in facts["documents"].items())
    console.output.print(
        f"documents: {documents}; none of them left its party\n"
        f"bytes: {console.size(up)} from the parties, {console.size(down)} to them "
        f"(`tertulia disclosures {model.directory}` lists each release)\n"
        f"model: {facts['model']} (`tertulia topics {facts['model']}`)\n"
        f"{facts['seconds']} seconds",
        highlight=False,
    )
