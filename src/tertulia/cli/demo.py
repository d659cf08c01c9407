"""`tertulia demo`: eight similar teams train one topic model on docstrings that they do not share."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tertulia.api.federated import Alone, Consensus, Pooled
from tertulia.api.lda import LDA
from tertulia.corpus import Corpus
from tertulia.corpus.demo_corpus import demo_teams
from tertulia.metrics import completion
from tertulia.models import Topics
from tertulia.runs.results import FederatedTopics
from tertulia.runs.scenarios import keep_rows
from tertulia.view import console

TOPICS, HELDOUT = 40, 0.1
WORDS: dict[str, Any] = {"mode": "common", "min_documents": 5, "max_share": 0.3}
SMOOTHING = 0.01  # share of the uniform distribution in every score: a single team lacks some words
SHOWN = 12  # topics
WIDTH = 56  # letters of a topic's words
EVERYBODY, CONVERGED = "everybody", "pooled, converged"


def run_demo(directory: Path, as_json: bool) -> None:
    """Collect documents, train, compare, and print what left each team."""
    started = time.monotonic()
    console.say("collecting the docstrings of Python, NumPy and SciPy ...")
    teams = demo_teams()
    shutil.rmtree(directory, ignore_errors=True)  # a demo may be repeated
    together = train_demo(teams, directory)
    console.say("for comparison: each team alone, and all documents in one place ...")
    facts: dict[str, Any] = {
        "documents": {t: corpus.n_documents for t, corpus in teams.items()},
        "topics": together.n_topics,
        **compare_models(teams, together),
        "bytes": {"down": together.communication.bytes_down, "up": together.communication.bytes_up},
        "model": str(directory / "model"),
        "seconds": round(time.monotonic() - started, 1),
    }
    keep_rows(directory, [_scenario(name, scores) for name, scores in facts["perplexity"].items()])
    if as_json:
        console.print_json(facts)
    else:
        _print(together, facts)


def train_demo(
    teams: Mapping[str, Corpus], directory: Path | None = None, *, secure: bool = True, seed: int = 0
) -> FederatedTopics:
    """Train the shared model, as organisations do by default: with secure sums, over words that several teams have."""
    method = demo_method() if secure else demo_method().replace(vocabulary={**WORDS, "mode": "union"})
    rounds = method.rounds_in_all(continues=False)
    with _without_notices(), console.RoundProgress(rounds, "federated") as progress:
        found: FederatedTopics = method.fit(
            teams, workers=2, heldout=HELDOUT, directory=directory, observe=progress, seed=seed,
            federation={"secure": secure},
        )  # fmt: skip
    return found


def demo_method() -> Consensus:
    """Return Consensus with its default rounds and sweeps."""
    return Consensus(topics=TOPICS, vocabulary=WORDS)


@contextmanager
def _without_notices() -> Iterator[None]:
    """Silence the notices of the teams about what leaves; the demo prints one sentence for all at its end."""
    log = logging.getLogger("tertulia.party")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


def compare_models(teams: Mapping[str, Corpus], together: FederatedTopics, seed: int = 0) -> dict[str, Any]:
    """Return the perplexity of models on held-out documents, of all teams and of each, and their sweeps.

    All models have as many topics and the same words. Each team alone, and one model of all documents in one place
    (pooled), get as many sweeps as the federated model. A second pooled model trains until it has converged. On the
    documents of all teams, "alone" is the best of the teams' own models.
    """
    start, _, more = demo_method().sweeps_alone
    same: dict[str, Any] = {"topics": TOPICS, "vocabulary": {"mode": "public", "words": together.vocabulary.words}}
    equal = {**same, "sweeps": start + more}
    how: dict[str, Any] = {"heldout": HELDOUT, "progress": False, "seed": seed}
    own = Alone(**equal).fit(teams, workers=2, **how).local
    pooled = Pooled(**equal).fit(teams, **how, party_settings={"pooled": {"threads": 2}})
    training = Corpus.concatenate([corpus.split(HELDOUT)[0] for corpus in teams.values()])
    converged = LDA(**same, threads=2).fit(training, seed=seed, progress=False).topics_
    heldout = {team: corpus.split(HELDOUT)[1].encode(together.vocabulary) for team, corpus in teams.items()}
    everything = Corpus.concatenate(list(heldout.values())).encode(together.vocabulary)

    def scores(models: Mapping[str, Topics]) -> dict[str, float]:
        best = min(_score(model, everything) for model in {id(model): model for model in models.values()}.values())
        return {EVERYBODY: best, **{team: _score(models[team], heldout[team]) for team in teams}}

    sweeps = dict.fromkeys(("alone", "federated", "pooled"), start + more)
    return {
        "perplexity": {
            "alone": scores(own),
            "federated": scores(dict.fromkeys(teams, together)),
            "pooled": scores(dict.fromkeys(teams, pooled)),
            CONVERGED: scores(dict.fromkeys(teams, converged)),
        },
        "sweeps": {**sweeps, CONVERGED: converged.provenance["sweeps"]},
    }


def _scenario(name: str, scores: Mapping[str, float]) -> dict[str, Any]:
    """Return a row of the table as `tertulia report` reads it."""
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
    gains = {whose: 1 - together / scores["alone"][whose] for whose, together in scores["federated"].items()}
    rows = {EVERYBODY: sum(documents.values()), **documents}
    console.table(
        "Perplexity of held-out documents (lower is better)",
        ["whose documents", "documents", "alone", "federated", "pooled", "converged", "gain"],
        [(whose, n, *(scores[how][whose] for how in scores), f"{gains[whose]:.0%}") for whose, n in rows.items()],
    )
    pooled, converged = (scores["federated"][EVERYBODY] / scores[how][EVERYBODY] - 1 for how in ("pooled", CONVERGED))
    console.show(_meaning({team: gains[team] for team in documents}, pooled, converged, facts["sweeps"]))
    up, down = _bytes(facts)
    console.show(
        f"\nNo docstring left its team. {up} came from the teams and {down} went to them: masked sums, and words that "
        f"several teams have. The server learned totals over all teams, and no team's own numbers.\n"
    )
    for text in (
        f"every release:  tertulia disclosures {model.directory}",
        f"what it means:  tertulia privacy {model.directory}",
        f"all topics:     tertulia topics {facts['model']}",
        f"as a page:      tertulia report {model.directory}",
        f"{facts['seconds']} seconds",
    ):
        console.line(text)


def _meaning(gains: Mapping[str, float], pooled: float, converged: float, sweeps: Mapping[str, int]) -> str:
    """Explain the table; `pooled` and `converged` say by how much the shared model is worse than these two."""
    losers = [team for team, gain in gains.items() if gain <= 0]
    verdict = f"all {len(gains)} teams gain" if not losers else f"all teams but {', '.join(losers)} gain"
    return (
        f"What it means: {verdict} on their own documents, without showing them. On everybody's the shared model is "
        f"{_compared(pooled)} one trained where all documents are in one place (pooled), which nobody may do, with as "
        f"many sweeps ({sweeps['pooled']}); and {_compared(converged)} one that is trained there until it has settled "
        f"(converged, {sweeps[CONVERGED]} sweeps). Alone is each team's own model; for everybody, the best of these."
        "\n\nEach docstring fell to one of the teams at random: they are alike, as branches of one field are. "
        "Parties of different subjects gain less on their own documents (README: Is it worth it?)."
    )


def _compared(beyond: float) -> str:
    """Describe a perplexity that exceeds another by this share.

    >>> _compared(0.021), _compared(-0.03)
    ('2.1% worse than', '3.0% better than')
    """
    return f"{abs(beyond):.1%} {'worse' if beyond > 0 else 'better'} than"


def _bytes(facts: Mapping[str, Any]) -> tuple[str, str]:
    return console.size(facts["bytes"]["up"]), console.size(facts["bytes"]["down"])


def _shorten(words: str) -> str:
    """Keep as many whole words as fit into a line."""
    return words if len(words) <= WIDTH else words[: words.rindex(" ", 0, WIDTH + 1)]
