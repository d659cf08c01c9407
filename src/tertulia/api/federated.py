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
from typing import Any, Literal

import numpy as np

from tertulia.corpus import Corpus, TextOptions, Vocabulary
from tertulia.corpus.inputs import Documents, as_corpus
from tertulia.corpus.vocabulary import propose
from tertulia.errors import ConfigError, InputError
from tertulia.methods import METHODS, CustomSettings
from tertulia.methods.baselines.settings import AloneSettings
from tertulia.methods.common.settings import Explained, MethodSettings, VocabularySettings
from tertulia.methods.consensus.settings import ConsensusSettings
from tertulia.methods.fedlda.settings import FedLDASettings
from tertulia.methods.ftm.settings import FTMSettings
from tertulia.methods.gfedntm.settings import GFedNTMSettings
from tertulia.methods.pctd.settings import PCTDSettings
from tertulia.runs.config import RunSettings
from tertulia.runs.driver import Observer
from tertulia.runs.rehearsal import rehearse
from tertulia.runs.results import FederatedTopics

RUN = {"seed", "engine", "workers", "heldout", "validation", "federation"}  # settings of a run that are options here


class Federated(Explained, MethodSettings):
    """The settings of a method, and `fit`."""

    def fit(self, parties: Mapping[str, Documents], **options: Any) -> FederatedTopics:
        """Train over all parties' documents; `parties` and the options are those of `tertulia.federate`.

        The most used: `seed=1`, `heldout=0.1` (share of documents that is only scored on), `validation=0.1` (share by
        which each party finds the model that serves it best), `directory="runs/hospitals"`, `engine="processes"`,
        `party_settings={"south": {"topics": 30}}`.
        """
        result = federate(self.part(METHODS[self.name].settings), parties, **options)
        assert isinstance(result, FederatedTopics)
        return result


class FTM(FTMSettings, Federated):
    """Federated Topic Modelling: parties train alone, similar topics are merged; each may have its own number."""


class Consensus(ConsensusSettings, Federated):
    """Consensus rounds: as good as pooling the documents, with one set of topics for all."""


class PCTD(PCTDSettings, Federated):
    """Private and consistent topic discovery: EM over n-grams, sentences or paragraphs, with word relations."""


class FedLDA(FedLDASettings, Federated):
    """Topics from many users of one document each, who trust nobody; a party is a shard of them."""


class GFedNTM(GFedNTMSettings, Federated):
    """Federated neural topic models: ProdLDA, CombinedTM or ZeroShotTM, equal to training in one place."""


class NonCollaborative(AloneSettings, Federated):
    """The baseline in which each party trains alone: the result's `local` holds a model for each party."""

    name: Literal["alone"] = "alone"


class Centralised(AloneSettings, Federated):
    """The baseline that pools everybody's documents in one place: only for comparison, it federates nothing."""

    name: Literal["centralised"] = "centralised"


def federate(
    method: MethodSettings | Callable[..., Any],
    parties: Mapping[str, Documents],
    *,
    config: Mapping[str, Any] | None = None,
    directory: str | Path | None = None,
    party_settings: Mapping[str, Mapping[str, Any]] | None = None,
    text: TextOptions | None = None,
    observe: Observer | None = None,
    **run: Any,
) -> Any:
    """Run a method over parties.

    `parties` maps a name to a list of texts, to a data frame with a column `text` (and `id`, `label`, `date` if there
    are), or to a corpus from `tt.read`. With a `directory` the run survives a crash (`tertulia resume`) and its
    disclosures can be read afterwards; without, it lives in a temporary one. `party_settings` are the parties' own
    choices, such as `{"south": {"topics": 30, "policy": "south.toml"}}`; `text` says how texts are cut into words.
    `observe("round", facts)` is called after each round.

    `run` are a run's other settings: `seed=1`; `engine="processes"` or `"grpc"` (else "local"; documents never
    cross between parties, whatever the engine); `workers=4`; `heldout=0.1`, the share of documents that is only scored
    on; `validation=0.1`, the share by which each party, which then trains alone, too, finds out which model serves its
    own documents best: `result.best_for("north")`; `federation={"quorum": 0.8}`. docs/reference.md has them all.

    `method` may be the function `train(fed, config, state)` of a method of your own, whose steps live in its module.
    """
    if not parties:
        raise InputError("there are no parties: give a mapping from a name to documents")
    if strangers := sorted(run.keys() - RUN):
        raise ConfigError(f"unknown option '{strangers[0]}': the options of a run are {', '.join(sorted(RUN))}")
    settings = _as_settings(method, config)
    corpora = {name: as_corpus(name, documents, text, settings.keeps_text) for name, documents in parties.items()}
    with tempfile.TemporaryDirectory(prefix="tertulia-") as temporary:
        whole = RunSettings(
            directory=str(directory or Path(temporary) / "run"),
            method=settings,
            text=_one_way_of_reading(corpora).to_dict(),
            parties={party: dict(choices) for party, choices in (party_settings or {}).items()},
            **run,
        )
        return rehearse(whole, corpora, durable=directory is not None, observe=observe)


def choose_words(corpus: Corpus, terms: VocabularySettings) -> Vocabulary:
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


def _as_settings(method: Any, config: Mapping[str, Any] | None) -> MethodSettings:
    if isinstance(method, MethodSettings):
        return method
    if method.__module__ == "__main__":
        raise ConfigError("put your method's steps and `train` into a module of their own: parties find steps by name")
    return CustomSettings(module=method.__module__, train=method.__qualname__, config=dict(config or {}))
