"""The user's API: parties in, topics out.

>>> import tertulia as tt
>>> model = tt.FTM(topics=50, rounds=5).fit({"north": texts, "south": more_texts})  # doctest: +SKIP
>>> model.topics_table()  # doctest: +SKIP
>>> model.transform(["a new note"])  # doctest: +SKIP
>>> model.save("shared-topics")  # doctest: +SKIP
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tertulia.corpus import Corpus, TextOptions, Vocabulary
from tertulia.corpus.inputs import Documents, as_corpus
from tertulia.corpus.vocabulary import propose
from tertulia.errors import ConfigError, InputError
from tertulia.methods import (
    AloneSettings,
    ConsensusSettings,
    CustomSettings,
    FedLDASettings,
    FTMSettings,
    GFedNTMSettings,
    MethodSettings,
    PCTDSettings,
)
from tertulia.methods.common.settings import Explained, VocabularySettings
from tertulia.runs.config import RunSettings
from tertulia.runs.driver import Observer
from tertulia.runs.rehearsal import rehearse
from tertulia.runs.results import FederatedTopics


class FTM(Explained, FTMSettings):
    """Federated Topic Modelling: the settings of the method, and `fit`."""

    def fit(self, parties: Mapping[str, Documents], **options: Any) -> FederatedTopics:
        """Train one model over all parties' documents; see `federate` for the options."""
        return _topics(federate(FTMSettings(**self.model_dump()), parties, **options))


class Consensus(Explained, ConsensusSettings):
    """Consensus rounds: as good as pooling the documents, with one set of topics for all."""

    def fit(self, parties: Mapping[str, Documents], **options: Any) -> FederatedTopics:
        """Train one model over all parties' documents; see `federate` for the options."""
        return _topics(federate(ConsensusSettings(**self.model_dump()), parties, **options))


class PCTD(Explained, PCTDSettings):
    """Private and consistent topic discovery: EM over n-grams, sentences or paragraphs, with word relations."""

    def fit(self, parties: Mapping[str, Documents], **options: Any) -> FederatedTopics:
        """Train one model over all parties' documents; see `federate` for the options."""
        return _topics(federate(PCTDSettings(**self.model_dump()), parties, **options))


class FedLDA(Explained, FedLDASettings):
    """Topics from many users of one document each, who trust nobody; a party is a shard of them."""

    def fit(self, parties: Mapping[str, Documents], **options: Any) -> FederatedTopics:
        """Train one model over all users' documents; see `federate` for the options."""
        return _topics(federate(FedLDASettings(**self.model_dump()), parties, **options))


class GFedNTM(Explained, GFedNTMSettings):
    """Federated neural topic models: ProdLDA, CombinedTM or ZeroShotTM, equal to training in one place."""

    def fit(self, parties: Mapping[str, Documents], **options: Any) -> FederatedTopics:
        """Train one model over all parties' documents (or as `scenario` says); see `federate` for the options."""
        return _topics(federate(GFedNTMSettings(**self.model_dump()), parties, **options))


class NonCollaborative(Explained, AloneSettings):
    """The baseline in which each party trains alone: the result's `local` holds a model a party."""

    def fit(self, parties: Mapping[str, Documents], **options: Any) -> FederatedTopics:
        """Train a model for each party; see `federate` for the options."""
        return _topics(federate(AloneSettings(**self.model_dump() | {"name": "alone"}), parties, **options))


class Centralised(Explained, AloneSettings):
    """The baseline that pools everybody's documents in one place: only for comparison, it federates nothing."""

    def fit(self, parties: Mapping[str, Documents], **options: Any) -> FederatedTopics:
        """Train one model over the pooled documents; see `federate` for the options."""
        return _topics(federate(AloneSettings(**self.model_dump() | {"name": "centralised"}), parties, **options))


def federate(
    method: MethodSettings | Callable[..., Any],
    parties: Mapping[str, Documents],
    *,
    config: Mapping[str, Any] | None = None,
    engine: str = "local",
    workers: int = 1,
    seed: int = 0,
    heldout: float = 0.1,
    validation: float = 0.0,
    directory: str | Path | None = None,
    party_settings: Mapping[str, Mapping[str, Any]] | None = None,
    text: TextOptions | None = None,
    federation: Mapping[str, Any] | None = None,
    observe: Observer | None = None,
) -> Any:
    """Run a method over parties.

    `parties` maps a name to a list of texts, to a data frame with a column `text` (and `id`, `label`, `date` if there
    are), or to a corpus from `tt.read`. `engine` is "local" or "processes"; documents never cross between parties,
    whatever the engine. With a `directory` the run survives a crash (`tertulia resume`) and its disclosures can be read
    afterwards; without, it lives in a temporary one. `party_settings` are the parties' own choices, such as
    `{"south": {"topics": 30, "policy": "south.toml"}}`. `federation` holds quorum, timeout and dropouts.

    A share `heldout` of the documents is only scored on. With a share `validation`, each party trains alone, too, and
    finds out on these documents which model serves its own best: `result.best_for("north")`.

    `method` may be the function `train(fed, config, state)` of a method of your own, whose steps live in its module.
    """
    if not parties:
        raise InputError("there are no parties: give a mapping from a name to documents")
    sentences = isinstance(method, GFedNTMSettings) and method.reads_sentences
    corpora = {party: as_corpus(party, documents, text, sentences) for party, documents in parties.items()}
    with tempfile.TemporaryDirectory(prefix="tertulia-") as temporary:
        settings = RunSettings(
            seed=seed,
            directory=str(directory or Path(temporary) / "run"),
            engine=engine,
            workers=workers,
            heldout=heldout,
            validation=validation,
            method=_as_settings(method, config),
            text=_one_way_of_reading(corpora).to_dict(),
            parties={party: dict(choices) for party, choices in (party_settings or {}).items()},
            federation=dict(federation or {}),
        )
        return rehearse(settings, corpora, durable=directory is not None, observe=observe)


def chosen_words(corpus: Corpus, terms: VocabularySettings) -> Vocabulary:
    """The words to model, in the corpus's own order: without any to prune, its arrays stay as they are."""
    if terms.mode == "public":
        return Vocabulary(terms.words)
    words, counts, _ = propose(corpus, terms.min_documents, terms.max_share)
    frequent = np.argsort(-np.asarray(counts), kind="stable")[: terms.max_words]
    kept = {words[v] for v in frequent}
    return Vocabulary(tuple(word for word in corpus.vocabulary.words if word in kept))


def _one_way_of_reading(corpora: Mapping[str, Corpus]) -> TextOptions:
    """All parties must have cut their texts in the same way, or their words would not meet."""
    ways = {corpus.options for corpus in corpora.values()}
    if len(ways) > 1:
        raise ConfigError(f"parties were read with different text options: {sorted(map(str, ways))}; use the same")
    return ways.pop()


def _as_settings(method: Any, config: Mapping[str, Any] | None) -> Any:
    if isinstance(method, MethodSettings):
        return method
    if method.__module__ == "__main__":
        raise ConfigError("put your method's steps and `train` into a module of their own: parties find steps by name")
    return CustomSettings(module=method.__module__, train=method.__qualname__, config=dict(config or {}))


def _topics(result: Any) -> FederatedTopics:
    assert isinstance(result, FederatedTopics)
    return result
