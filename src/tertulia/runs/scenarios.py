"""A comparison of the federated model with pooled documents and with each party alone, each score beside its controls.

All models are over the federation's words and are scored alike, by document completion, on everybody's held-out
documents; models by party are averaged. Pooled and alone are the same method with one party, so that only the data
differ. FTM with one party is LDA; it settles on a number of topics of its own, so LDA is shown with the number that was
asked for, and with as many as the federation has.

Controls: the federation with another seed; the topics of single parties side by side, which needs no federation; pooled
LDA, for methods that are none; and the unigram, which has learned nothing. All but the federation is trained in one
place, here: no party's policy is asked, and no ledger of its own is charged.

`scenarios.json` keeps the rows, beside the runs, for `tertulia report`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tertulia._disk import atomic_write
from tertulia.corpus import Corpus
from tertulia.corpus.recipes import read_recipe
from tertulia.errors import ConfigError
from tertulia.metrics.diversity import topic_diversity
from tertulia.metrics.perplexity import completion, unigram
from tertulia.models import Topics
from tertulia.runs.documents import POOLED, sources_of
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin
from tertulia.runs.present_documents import present_documents
from tertulia.runs.settings import PartySettings, RunSettings

SMOOTHING = 0.01  # the uniform distribution's share: a party alone has never seen some words
FILE = "scenarios.json"
Row = dict[str, Any]


def compare(settings: RunSettings, notify: Callable[[str], None]) -> list[Row]:
    """Run a method, its baselines and its controls below one directory; a row of scores for each."""
    if not settings.method.federates:
        raise ConfigError(
            f"method.name = '{settings.method.name}': give the federated method to compare with its baselines"
        )
    if settings.start_from is not None:
        raise ConfigError("scenarios compare runs that begin from nothing: leave `start_from` out")
    sources = sources_of(settings).items()
    corpora = {party: present_documents(settings, party, read_recipe(source)) for party, source in sources}
    halves = [corpus.split(settings.heldout) for corpus in corpora.values()]
    train, heldout = (Corpus.concatenate(list(half)) for half in zip(*halves, strict=True))
    rows: list[Row] = []
    for row in _rows(_Comparison(settings, corpora, heldout, notify), train):
        rows.append(row)
        keep_rows(Path(settings.directory), rows)  # also if a later row fails
    return rows


def keep_rows(directory: Path, rows: Sequence[Row]) -> None:
    """Write the rows beside the runs."""
    atomic_write(directory / FILE, json.dumps({"scenarios": list(rows)}, indent=1).encode(), durable=False)


def kept_rows(directory: Path) -> list[Row]:
    """Read the rows of an earlier comparison; empty if there was none, or if its file is damaged."""
    try:
        rows = json.loads((directory / FILE).read_bytes())["scenarios"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    sound = isinstance(rows, list) and all(isinstance(row, dict) and "scenario" in row for row in rows)
    return rows if sound else []


def _rows(comparison: _Comparison, train: Corpus) -> Iterator[Row]:
    settings, method = comparison.settings, comparison.settings.method
    federated = comparison.train_federated()
    yield comparison.row("federated", method.name, [federated])
    yield comparison.row("federated, another seed", method.name, [comparison.train_with_another_seed()])
    vocabulary = {"mode": "public", "words": federated.vocabulary.words}
    yield from comparison.baseline_rows(own_method(settings, vocabulary))
    if federated.n_topics != (method.planned_topics or federated.n_topics):
        as_many = {**own_method(settings, vocabulary), "topics": federated.n_topics}
        yield from comparison.baseline_rows(as_many, f", {federated.n_topics} topics")
    if not method.samples_lda:
        pooled = comparison.train_pooled("pooled, lda", pooled_lda(settings, vocabulary))
        yield comparison.row("pooled", "lda", [pooled])
    frequencies = unigram(train.encode(federated.vocabulary))
    yield comparison.row("nothing learned", "unigram", [Topics(frequencies, federated.vocabulary)])


class _Comparison(NamedTuple):
    """The settings and documents that all runs of a comparison share."""

    settings: RunSettings
    corpora: Mapping[str, Corpus]
    heldout: Corpus
    notify: Callable[[str], None]  # called before each run

    def train_federated(self) -> Topics:
        """Train the federation, with each party's own policy and ledger."""
        parties = {name: own.model_dump() for name, own in self.settings.parties.items()}
        return self._train("federated", self.settings.method.model_dump(), self.corpora, parties)

    def train_with_another_seed(self) -> Topics:
        """Train the federation again with another seed."""
        method, seed = self.settings.method.model_dump(), self.settings.seed + 1
        method |= {"seed": seed} if "seed" in method else {}
        return self._train("federated, another seed", method, self.corpora, self._choices(), seed=seed)

    def baseline_rows(self, method: dict[str, Any], suffix: str = "") -> Iterator[Row]:
        """Train the method on all documents, and on each party's; `suffix` marks rows with a fixed number of topics."""
        label = _label(method)
        pooled = self.train_pooled(f"pooled{suffix}", _in_scenario(method, "centralised"))
        yield self.row(f"pooled{suffix}", label, [pooled])
        choices = self._choices(without=("topics",) if suffix else ())
        single = [
            self._train(f"alone{suffix}/{i}", _in_scenario(method, "alone"), {party: corpus}, {party: choices[party]})
            for i, (party, corpus) in enumerate(self.corpora.items(), 1)
        ]
        yield self.row(f"alone{suffix}", label, single)
        if not suffix:
            yield self.row("alone, side by side", label, [side_by_side(single)])

    def train_pooled(self, name: str, method: dict[str, Any]) -> Topics:
        """Train one party that holds all documents."""
        return self._train(name, method, {POOLED: Corpus.concatenate(list(self.corpora.values()))}, {})

    def row(self, scenario: str, method: str, models: Sequence[Topics]) -> Row:
        """Score a model, or several by their means."""
        scores = [
            completion(m.topic_word, m.alpha, self.heldout.encode(m.vocabulary), smoothing=SMOOTHING) for m in models
        ]
        return {
            "scenario": scenario,
            "method": method,
            "models": len(models),
            "topics": round(float(np.mean([m.n_topics for m in models]))),
            "perplexity": float(np.mean([score.perplexity for score in scores])),
            "diversity": float(np.mean([topic_diversity(m) for m in models])),
            "parties": self._on_own_documents(models),
        }

    def _on_own_documents(self, models: Sequence[Topics]) -> dict[str, float]:
        """Compute perplexity on each party's held-out documents, by its own model or the shared one."""
        own = models if len(models) == len(self.corpora) else [models[0]] * len(self.corpora)
        scores = {}
        for (party, corpus), m in zip(self.corpora.items(), own, strict=True):
            heldout = corpus.split(self.settings.heldout)[1].encode(m.vocabulary)
            if (heldout.lengths >= 2).any():  # else there is nothing to complete
                scores[party] = completion(m.topic_word, m.alpha, heldout, smoothing=SMOOTHING).perplexity
        return scores

    def _choices(self, without: tuple[str, ...] = ()) -> dict[str, dict[str, Any]]:
        """Return the parties' own choices, without their policies and homes."""
        chosen = {party: self.settings.parties.get(party, PartySettings()).choices() for party in self.corpora}
        return {party: {k: v for k, v in own.items() if k not in without} for party, own in chosen.items()}

    def _train(
        self, name: str, method: dict[str, Any], corpora: Mapping[str, Corpus], parties: dict[str, Any], **changes: Any
    ) -> Topics:
        self.notify(f"training: {name}")
        where = Path(self.settings.directory) / name.replace(", ", "-").replace(" ", "-")
        changes |= {"method": method, "directory": str(where), "parties": parties}
        model: Topics = finish(begin(self.settings.replace(**changes), dict(corpora)))
        return model


def own_method(settings: RunSettings, vocabulary: dict[str, Any]) -> dict[str, Any]:
    """Return the method's settings for a single party."""
    return {**settings.method.for_one_party().model_dump(), "vocabulary": vocabulary}


def pooled_lda(settings: RunSettings, vocabulary: dict[str, Any]) -> dict[str, Any]:
    """Return settings of LDA for a method that is not LDA, with its topics and, if it has a number, its sweeps."""
    method = settings.method
    known = type(method).model_fields.keys()
    shared = {"topics", "alpha", "beta"} if "beta" in known else {"topics"} & known  # neural models mean other priors
    sweeps = {} if method.passes is None else {"sweeps": method.passes}
    return {**method.model_dump(include=shared), **sweeps, "name": "alone", "vocabulary": vocabulary}


def side_by_side(models: Sequence[Topics]) -> Topics:
    """Concatenate the topics of all models, with the mean of the priors' sums: sharing models without a federation."""
    topic_word = np.concatenate([model.topic_word for model in models])
    return Topics(topic_word, models[0].vocabulary, np.concatenate([m.alpha for m in models]) / len(models))


def _in_scenario(method: dict[str, Any], scenario: str) -> dict[str, Any]:
    return {**method, "scenario": scenario} if "scenario" in method else method


def _label(method: dict[str, Any]) -> str:
    if method["name"] != "alone":
        return str(method["name"])
    return "lda" if method["model"] == "lda" else "sentence lda"
