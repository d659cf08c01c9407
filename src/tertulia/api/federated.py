"""Federated methods as classes with `fit`, and the function `federate`.

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

from pydantic import Field

from tertulia.api.advice import warn_before_run
from tertulia.api.parties import parties_of
from tertulia.api.progress import round_observer, show_progress
from tertulia.corpus import Corpus, TextOptions
from tertulia.corpus.advice import warn_of_other_languages
from tertulia.corpus.inputs import Documents, as_corpus, with_column
from tertulia.errors import ConfigError
from tertulia.methods.baselines.settings import AloneSettings
from tertulia.methods.common.descriptions import other_name
from tertulia.methods.common.settings import Explained, MethodSettings
from tertulia.methods.consensus.settings import ConsensusSettings
from tertulia.methods.fedlda.settings import FedLDASettings
from tertulia.methods.ftm.settings import FTMSettings
from tertulia.methods.gfedntm.settings import GFedNTMSettings
from tertulia.methods.pctd.settings import PCTDSettings
from tertulia.methods.private_topics.settings import PrivateTopicsSettings
from tertulia.methods.registry import METHODS, CustomSettings
from tertulia.models import Topics
from tertulia.runs.driver import Observer
from tertulia.runs.one_machine import run_on_one_machine
from tertulia.runs.results import FederatedTopics
from tertulia.runs.settings import RunSettings


class RunOptions(TypedDict, total=False):
    """Settings of a run that are options of `federate` (docs/reference.md)."""

    seed: int
    engine: str
    address: str
    workers: int
    heldout: float
    validation: float
    federation: Mapping[str, Any]
    start_from: Topics | str | Path | None


class Options(RunOptions, total=False):
    """Options of `fit` and `federate`, besides the parties."""

    config: Mapping[str, Any] | None
    directory: str | Path | None
    party_settings: Mapping[str, Mapping[str, Any]] | None
    text: TextOptions | None
    observe: Observer | None
    progress: bool | None
    column: str | None
    party: str | None


RUN = frozenset(RunOptions.__annotations__)


class Federated(Explained, MethodSettings):
    """Base class of federated methods: their settings, and `fit`."""

    def fit(self, parties: Mapping[str, Documents] | Documents, **options: Unpack[Options]) -> FederatedTopics:
        """Train on the documents of all parties; `parties` and the options are those of `tertulia.federate`.

        This is a simulation: one person runs all parties on one machine, so nothing hides their documents from that
        person, also with `federation={"secure": True}`. Between organisations use `tertulia serve` and `attend`.

        One table of all parties is split by a column: `fit(table, party="agency")`.

        Frequent options: `seed=1`, `heldout=0.1` (share of documents for scoring only), `validation=0.1` (share by
        which each party selects the best model for its documents), `directory="runs/hospitals"`,
        `engine="processes"`, `party_settings={"south": {"topics": 30}}`.
        """
        result = federate(self.part(METHODS[self.name].settings), parties, **options)
        assert isinstance(result, FederatedTopics)
        return result


class FTM(FTMSettings, Federated):
    """Federated Topic Modelling: parties train alone, and similar topics are merged; numbers of topics may differ."""


class Consensus(ConsensusSettings, Federated):
    """Consensus rounds: one set of topics for all parties, about as good as pooled documents.

    `fit` simulates all parties on one machine. Sums are masked only with `federation={"secure": True}`.
    """


class PCTD(PCTDSettings, Federated):
    """Private and consistent topic discovery: EM over n-grams, sentences or paragraphs, with word relations."""


class PrivateTopics(PrivateTopicsSettings, Federated):
    """Topics from a few noisy sums, private for whole documents, or for all documents of a user."""


class FedLDA(FedLDASettings, Federated):
    """Topics from many users with one document each, who trust nobody; a party is a shard of users."""


class GFedNTM(GFedNTMSettings, Federated):
    """Federated neural topic models: ProdLDA, CombinedTM or ZeroShotTM, equal to pooled training."""


class Alone(AloneSettings, Federated):
    """The baseline in which each party trains by itself; `local` of the result has a model for each party."""

    name: Literal["alone"] = Field("alone", description="the method")


class Pooled(AloneSettings, Federated):
    """The baseline that trains on all documents in one place; for comparison only."""

    name: Literal["centralised"] = Field("centralised", description="the method")


NonCollaborative, Centralised = Alone, Pooled  # the names that papers use


def federate(
    method: MethodSettings | Callable[..., Any],
    parties: Mapping[str, Documents] | Documents,
    **options: Unpack[Options],
) -> Any:
    """Run a method over parties; docs/reference.md describes all settings of a run.

    Parameters
    ----------
    method : settings of a method, or callable
        Or the function `train(fed, config, state)` of your own method; its steps must be in the same module.
    parties : mapping from names to documents, or a table with `party`
        Texts, lists of tokens or dicts, a table (pandas, polars, `datasets`) with a column `text` and optional columns
        `id`, `label` and `date`, or a corpus from `tt.read`.
    config : mapping, optional
        Settings of your own method.
    directory : path, default a temporary one
        Directory of the run: it survives a crash (`tertulia resume`), and its disclosures can be read later.
    party_settings : mapping, optional
        Choices of single parties, such as `{"south": {"topics": 30, "policy": "south.toml"}}`.
    text : TextOptions, optional
        Tokenisation.
    observe : callable, optional
        Called as `observe("round", facts)` after each round.
    progress : bool, optional
        Show a bar. None: on a terminal, else lines of `logging`; False: show nothing.
    column : str, default "text"
        Column with the texts.
    party : str, optional
        Column that names the party of each row of one table.
    seed, workers : int
    engine : {"local", "processes", "grpc", "ray"}
        Documents never cross between parties, with any engine.
    address : str
        Cluster for "ray", such as "auto".
    heldout : float
        Share of documents for scoring only.
    validation : float
        Share of documents by which each party, which then also trains alone, selects the best model for its own
        documents: `result.best_for("north")`.
    federation : mapping
        Terms of the federation, such as `{"quorum": 0.8}`.
    start_from : Topics or path, optional
        Earlier model, or directory of a finished run: training continues from its topics and words in fewer rounds, and
        topics that stay the same keep their ids (docs/continuing.md).

    """
    _check(options)
    settings = _as_settings(method, options.get("config"))
    return _run(settings, parties_of(parties, options.get("party")), options)


def _run(settings: MethodSettings, parties: Mapping[str, Documents], options: Mapping[str, Any]) -> Any:
    run = {name: value for name, value in options.items() if name in RUN}
    column, directory = options.get("column"), options.get("directory")
    corpora = {
        name: as_corpus(name, with_column(documents, column), options.get("text"), settings.keeps_text, True)
        for name, documents in parties.items()
    }
    text = _common_text_options(corpora)
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
        warn_of_other_languages(corpora)
        warn_before_run(corpora, settings, whole.workers if whole.engine == "local" else len(corpora))
        total = settings.rounds_in_all(continues=whole.start_from is not None)
        with show_progress(options.get("progress"), settings.name, "round", "score", total) as tick:
            observe = options.get("observe") or (round_observer(tick) if tick else None)
            result = run_on_one_machine(whole, corpora, durable=directory is not None, observe=observe)
    if isinstance(result, FederatedTopics) and text.function is not None:
        result.keep_tokenizer(text.function)
    return result


def _check(options: Mapping[str, Any]) -> None:
    if strangers := sorted(options.keys() - Options.__annotations__.keys()):
        known = sorted(Options.__annotations__)
        hint = other_name(strangers[0], known) or f"the options of a run are {', '.join(known)}"
        raise ConfigError(f"unknown option '{strangers[0]}': {hint}")


def _common_text_options(corpora: Mapping[str, Corpus]) -> TextOptions:
    """Return the text options of all parties; raise an error if they differ."""
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
