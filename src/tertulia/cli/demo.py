"""The demo: eight alike teams hold docstrings and train one topic model without showing them; nobody loses by it."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tertulia.api.federated import Centralised, Consensus, NonCollaborative
from tertulia.corpus import Corpus
from tertulia.corpus.demo_corpus import demo_teams
from tertulia.methods.common.vocabulary import words_of_one_document
from tertulia.metrics import completion
from tertulia.models import Topics
from tertulia.runs.results import FederatedTopics
from tertulia.runs.scenarios import keep_rows
from tertulia.view import console

TOPICS, HELDOUT = 40, 0.1
WORDS = {"min_documents": 5, "max_share": 0.3}
SMOOTHING = 0.01  # every model is scored with this share of the uniform: a single team has never seen some words
SHOWN = 12  # topics
WIDTH = 56  # letters of a topic's words
EVERYBODY = "everybody"


def run_demo(directory: Path, as_json: bool) -> None:
    """Collect documents, train, compare, and say what left each team."""
    started = time.monotonic()
    console.say("collecting the docstrings of Python, NumPy and SciPy ...")
    teams = demo_teams()
    shutil.rmtree(directory, ignore_errors=True)  # a demo may be repeated
    method = Consensus(topics=TOPICS, vocabulary=WORDS)
    with _without_notices(), console.RoundProgress(method.rounds + 1, "together") as progress:
        together = method.fit(teams, workers=2, heldout=HELDOUT, directory=directory, observe=progress)
    console.say("for comparison: each team alone, and all documents in one place ...")
    facts: dict[str, Any] = {
        "documents": {t: corpus.n_documents for t, corpus in teams.items()},
        "topics": together.n_topics,
        "perplexity": _perplexities(teams, together, method.sweeps_alone.per_round + method.sweeps_alone.more),
        "words_of_one_document": {t: words_of_one_document(c.split(HELDOUT)[0]) for t, c in teams.items()},
        "bytes": {"down": together.communication.bytes_down, "up": together.communication.bytes_up},
        "model": str(directory / "model"),
        "seconds": round(time.monotonic() - started, 1),
    }
    keep_rows(directory, [_scenario(name, scores) for name, scores in facts["perplexity"].items()])
    if as_json:
        console.print_json(facts)
    else:
        _print(together, facts)


@contextmanager
def _without_notices() -> Iterator[None]:
    """Each team's notice of what leaves goes to its own log; here one sentence at the end speaks for all."""
    log = logging.getLogger("tertulia.party")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


def _perplexities(teams: Mapping[str, Corpus], together: FederatedTopics, sweeps: int) -> dict[str, dict[str, float]]:
    """How surprised models are by held-out documents, everybody's and each team's own.

    All models have as many topics, the same words and as many sweeps. Of the teams' own models the one that serves
    everybody best stands for all.
    """
    same = {"topics": TOPICS, "sweeps": sweeps, "vocabulary": {"mode": "public", "words": together.vocabulary.words}}
    own = NonCollaborative(**same).fit(teams, workers=2, heldout=HELDOUT, progress=False).local
    pooled = Centralised(**same).fit(teams, heldout=HELDOUT, progress=False, party_settings={"pooled": {"threads": 2}})
    heldout = {team: corpus.split(HELDOUT)[1].encode(together.vocabulary) for team, corpus in teams.items()}
    everything = Corpus.concatenate(list(heldout.values())).encode(together.vocabulary)

    def scores(models: Mapping[str, Topics]) -> dict[str, float]:
        best = min(_score(model, everything) for model in {id(model): model for model in models.values()}.values())
        return {EVERYBODY: best, **{team: _score(models[team], heldout[team]) for team in teams}}

    return {
        "alone": scores(own),
        "together": scores(dict.fromkeys(teams, together)),
        "pooled": scores(dict.fromkeys(teams, pooled)),
    }


def _scenario(name: str, scores: Mapping[str, float]) -> dict[str, Any]:
    """A row of the table as `tertulia report` reads it."""
    own = {team: score for team, score in scores.items() if team != EVERYBODY}
    return {"scenario": name, "perplexity": scores[EVERYBODY], "parties": own}


def _score(model: Topics, documents: Corpus) -> float:
    return completion(model.topic_word, model.alpha, documents, smoothing=SMOOTHING).perplexity


def _print(model: FederatedTopics, facts: Mapping[str, Any]) -> None:
    table = model.topics_table(12).head(SHOWN)
    console.table(
        f"{model.n_topics} topics over {len(model.vocabulary):,} words, learned together; the {SHOWN} largest",
        ["topic", "share", "words"],
        [(k, f"{share:.1%}", _shorten(words)) for k, share, words in table.select("topic", "weight", "words").rows()],
    )
    documents, scores = facts["documents"], facts["perplexity"]
    gains = {whose: 1 - together / scores["alone"][whose] for whose, together in scores["together"].items()}
    rows = {EVERYBODY: sum(documents.values()), **documents}
    console.table(
        "Perplexity of held-out documents (lower is better)",
        ["whose documents", "documents", "alone", "together", "pooled", "gain"],
        [(whose, n, *(scores[how][whose] for how in scores), f"{gains[whose]:.0%}") for whose, n in rows.items()],
    )
    pooled = scores["together"][EVERYBODY] / scores["pooled"][EVERYBODY] - 1
    console.show(_meaning({team: gains[team] for team in documents}, pooled))
    single, up, down = (int(np.mean(list(facts["words_of_one_document"].values()))), *_bytes(facts))
    console.show(
        f"\nNo docstring left its team. {up} came from the teams and {down} went to them: words with the number of "
        f"docstrings that have them (about {single:,} words of each team are in only one), then topics and counts, all "
        f"without noise; README has the ways to leave less.\n"
    )
    for text in (
        f"every release:  tertulia disclosures {model.directory}",
        f"what it means:  tertulia privacy {model.directory}",
        f"all topics:     tertulia topics {facts['model']}",
        f"as a page:      tertulia report {model.directory}",
        f"{facts['seconds']} seconds",
    ):
        console.line(text)


def _meaning(gains: Mapping[str, float], beyond_pooled: float) -> str:
    """What the table says."""
    losers = [team for team, gain in gains.items() if gain <= 0]
    verdict = f"all {len(gains)} teams gain" if not losers else f"all teams but {', '.join(losers)} gain"
    return (
        f"What it means: {verdict} on their own documents, without showing them. On everybody's the shared model is "
        f"{abs(beyond_pooled):.0%} {'worse' if beyond_pooled > 0 else 'better'} than one trained where all documents "
        "are in one place (pooled), which nobody may do. Alone is each team's own model; for everybody, the best of "
        "these.\n\nEach docstring fell to one of the teams at random: they are alike, as branches of one field are. "
        "Parties of different subjects gain less on their own documents (README: Is it worth it?)."
    )


def _bytes(facts: Mapping[str, Any]) -> tuple[str, str]:
    return console.size(facts["bytes"]["up"]), console.size(facts["bytes"]["down"])


def _shorten(words: str) -> str:
    """As many whole words as fit into a line."""
    return words if len(words) <= WIDTH else words[: words.rindex(" ", 0, WIDTH + 1)]
