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
from typing import Any, Literal, TypedDict, Unpack

import numpy as np

from tertulia.api.advice import warn_before_run
from tertulia.api.progress import of_rounds, showing
from tertulia.corpus import Corpus, TextOptions, Vocabulary
from tertulia.corpus.inputs import Documents, as_corpus, with_column
from tertulia.corpus.vocabulary import propose
from tertulia.errors import ConfigError, InputError
from tertulia.methods import METHODS, CustomSettings
from tertulia.methods.baselines.settings import AloneSettings
from tertulia.methods.common.describe import other_name
from tertulia.methods.common.settings import Explained, MethodSettings, VocabularySettings
from tertulia.methods.consensus.settings import ConsensusSettings
from tertulia.methods.fedlda.settings import FedLDASettings
from tertulia.methods.ftm.settings import FTMSettings
from tertulia.methods.gfedntm.settings import GFedNTMSettings
from tertulia.methods.pctd.settings import PCTDSettings
from tertulia.models import Topics
from tertulia.runs.config import RunSettings
from tertulia.runs.driver import Observer
from tertulia.runs.rehearsal import rehearse
from tertulia.runs.results import FederatedTopics


class RunOptions(TypedDict, total=False):
    """Settings of a run that are options here (docs/reference.md)."""

    seed: int
    engine: str
    address: str
    workers: int
    heldout: float
    validation: float
    federation: Mapping[str, Any]
    start_from: Topics | str | Path | None


class Options(RunOptions, total=False):
    """What `fit` and `federate` take besides the parties."""

    config: Mapping[str, Any] | None
    directory: str | Path | None
    party_settings: Mapping[str, Mapping[str, Any]] | None
    text: TextOptions | None
    observe: Observer | None
    progress: bool | None
    column: str | None


RUN = frozenset(RunOptions.__annotations__)


class Federated(Explained, MethodSettings):
    """The settings of a method, and `fit`."""

    def fit(self, parties: Mapping[str, Documents], **options: Unpack[Options]) -> FederatedTopics:
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
    method: MethodSettings | Callable[..., Any], parties: Mapping[str, Documents], **options: Unpack[Options]
) -> Any:
    """Run a method over parties.

    `parties` maps a name to texts, lists of tokens or dicts, to a table (of pandas, polars, `datasets`) with a column
    `text` (or `column`; and `id`, `label`, `date` if there are), or to a corpus from `tt.read`. With a `directory` the
    run survives a crash (`tertulia resume`) and its disclosures can be read afterwards; without, it is a temporary
    one. `party_settings` are the parties' own choices, such as `{"south": {"topics": 30, "policy": "south.toml"}}`;
    `text` says how texts are cut into words. `observe("round", facts)` is called after each round; without,
    `progress` shows a bar (None: if there is a terminal, else lines of `logging`; False: nothing).

    The others are a run's settings: `seed=1`; `engine="processes"`, `"grpc"` or `"ray"` (else "local"; documents never
    cross between parties, whatever the engine); `address="auto"`, a cluster for "ray"; `workers=4`; `heldout=0.1`, the
    share of documents that is only scored on; `validation=0.1`, the share by which each party, which then trains alone,
    too, finds out which model serves its own documents best: `result.best_for("north")`; `federation={"quorum": 0.8}`.
    `start_from=model`, an earlier model or the directory of a finished run: training goes on from its topics and words,
    in fewer rounds, and topics that are the same keep their ids (docs/continuing.md). docs/reference.md has them all.

    `method` may be the function `train(fed, config, state)` of a method of your own, whose steps live in its module,
    and `config` its settings.
    """
    _check(parties, options)
    run = {name: value for name, value in options.items() if name in RUN}
    settings = _as_settings(method, options.get("config"))
    column, directory = options.get("column"), options.get("directory")
    corpora = {
        name: as_corpus(name, with_column(documents, column), options.get("text"), settings.keeps_text)
        for name, documents in parties.items()
    }
    text = _one_way_of_reading(corpora)
    with tempfile.TemporaryDirectory(prefix="tertulia-") as temporary:
        if (last := getattr(options.get("start_from"), "topics_", options.get("start_from"))) is not None:
            run["start_from"] = str(last.save(Path(temporary) / "last") if isinstance(last, Topics) else last)
        whole = RunSettings(
            directory=str(directory or Path(temporary) / "run"),
            method=settings,
            text=text.to_dict(),
            parties={party: dict(choices) for party, choices in (options.get("party_settings") or {}).items()},
            **run,
        )
        warn_before_run(corpora, settings, whole.workers if whole.engine == "local" else len(corpora))
        rounds = getattr(settings, "rounds", None)
        total = None if rounds is None else rounds + 1  # first they agree on words
        with showing(options.get("progress"), settings.name, "round", "score", total) as tick:
            observe = options.get("observe") or (of_rounds(tick) if tick else None)
            result = rehearse(whole, corpora, durable=directory is not None, observe=observe)
    if isinstance(result, FederatedTopics) and text.function is not None:
        result.keep_tokenizer(text.function)
    return result


def _check(parties: Mapping[str, Documents], options: Mapping[str, Any]) -> None:
    if not parties:
        raise InputError("there are no parties: give a mapping from a name to documents")
    if strangers := sorted(options.keys() - Options.__annotations__.keys()):
        known = sorted(Options.__annotations__)
        hint = other_name(strangers[0], known) or f"the options of a run are {', '.join(known)}"
        raise ConfigError(f"unknown option '{strangers[0]}': {hint}")


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
    return next(iter(corpora.values())).options


def _as_settings(method: Any, config: Mapping[str, Any] | None) -> MethodSettings:
    if isinstance(method, MethodSettings):
        return method
    if method.__module__ == "__main__":
        raise ConfigError("put your method's steps and `train` into a module of their own: parties find steps by name")
    return CustomSettings(module=method.__module__, train=method.__qualname__, config=dict(config or {}))
