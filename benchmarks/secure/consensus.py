"""Consensus from sums alone, beside its start from merged local topics: perplexity, rounds, diversity."""

from __future__ import annotations

import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.common import data, newsgroups, say, time_cpu
from benchmarks.federation.parties import iid, natural
from tertulia.corpus import Corpus, Vocabulary, read
from tertulia.corpus.vocabulary import propose
from tertulia.federation.party.context import StepContext
from tertulia.federation.types import Planned
from tertulia.kernels.lda import word_profiles
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.common.local_lda import LocalTask, plan_reports, train_local
from tertulia.methods.common.priors import symmetric
from tertulia.methods.common.vocabulary import DOCUMENTS
from tertulia.methods.consensus import method
from tertulia.methods.consensus.merged_start import StartTopics
from tertulia.methods.consensus.messages import ConsensusState
from tertulia.methods.consensus.settings import ConsensusSettings
from tertulia.methods.consensus.totals import first_state
from tertulia.metrics import completion
from tertulia.models import Topics
from tertulia.privacy.policy import RARE
from tertulia.runs.one_machine import run_on_one_machine
from tertulia.runs.settings import RunSettings

TOPICS, HELDOUT, SEEDS = 40, 0.15, (0, 1, 2)
STARTS = ("secure", "sums", "merged")  # sums under masks, with the rule of five; sums in plain; local topics, merged
SHARPER = 30.0  # _SHARP of a trial: on the tuning corpora topics are then as diverse as those of merged local models
COLUMNS = ["perplexity", "least", "most", "questions", "diversity", "least", "most"]
Parties = Mapping[str, Corpus]


def consensus(quick: bool) -> dict[str, Any]:
    """Train each split with each start; perplexity and diversity are means over seeds, with their range."""
    return {"consensus": _on_splits(quick, STARTS), "columns": COLUMNS}


def sharper(quick: bool) -> dict[str, Any]:
    """Train each split with first topics that share fewer words: a trial that raises diversity."""
    with mock.patch.object(word_profiles, "_SHARP", SHARPER):
        return {"sharper": _on_splits(quick, STARTS[:1]), "columns": COLUMNS}


def _on_splits(quick: bool, starts: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, split in _splits(quick).items():
        rows: dict[str, list[tuple[float, float]]] = {start: [] for start in starts}
        rounds: dict[str, int] = {}
        for seed in SEEDS[:1] if quick else SEEDS:
            parties = split(seed)
            words = next(iter(parties.values())).vocabulary.words
            for start in starts:
                seconds = time.monotonic()
                model = _train(parties, words, seed, start)
                words = model.vocabulary.words  # those that several members have: the other starts get the same
                heldout = heldout_of(parties, model.vocabulary)
                scored = completion(model.topic_word, model.alpha, heldout, smoothing=model.beta).perplexity
                rows[start].append((scored, _diversity(model)))
                rounds[start] = _questions(start)
                say(f"{name}, {start}, seed {seed}: {scored:.1f}, {rows[start][-1][1]:.3f}, "
                    f"{time.monotonic() - seconds:.0f} s")  # fmt: skip
        found[name] = {start: [*_spread([ppl for ppl, _ in seen], 1), rounds[start],
                               *_spread([diversity for _, diversity in seen], 3)]
                       for start, seen in rows.items()}  # fmt: skip
    return found


def small_parties(quick: bool) -> dict[str, Any]:
    """Measure what the rule of five documents costs 23 unequal parties of medical abstracts, in plain sums."""
    corpus = read(data("medical_abstracts_2888.parquet"), id="id", label="label")
    corpus = corpus.encode(Vocabulary(tuple(propose(corpus, 5, 0.5).words)))
    found: dict[str, list[float]] = {"with_rule": [], "without_rule": []}
    for seed in SEEDS[:1] if quick else SEEDS:
        sizes = np.arange(1, 24)
        assigned = np.random.default_rng(seed).choice(23, size=corpus.n_documents, p=sizes / sizes.sum())
        parties = {f"p{i:02d}": corpus.select(assigned == i) for i in range(23)}
        heldout = heldout_of(parties, corpus.vocabulary)
        for name, least in (("with_rule", RARE), ("without_rule", 1)):
            with mock.patch.object(StepContext, "min_documents_per_topic", least):
                model = _train(parties, corpus.vocabulary.words, seed, "sums")
            found[name].append(completion(model.topic_word, model.alpha, heldout, smoothing=model.beta).perplexity)
            say(f"23 parties, {name}, seed {seed}: {found[name][-1]:.1f}")
    return {"small_parties": {name: _spread(scores, 1) for name, scores in found.items()}}


def cpu_over_pooled(quick: bool) -> dict[str, Any]:
    """Compare the CPU seconds of a federation with those of training in one place: the same sweeps, one process."""
    corpus = newsgroups()
    found: dict[int, list[float]] = {}
    for n in (23,) if quick else (5, 23):
        chosen = np.random.default_rng(0).permutation(corpus.n_documents)[: 300 * n]
        parties = {f"p{i:02d}": corpus.select(np.sort(chosen[i::n])) for i in range(n)}
        words, ratios = corpus.vocabulary.words, []
        _train(parties, words, 0, "sums")  # compiles
        _pooled(parties, words, 0)
        for seed in range(1 if quick else 3):
            alone = time_cpu(partial(_pooled, parties, words, seed))[0]
            together = time_cpu(partial(_train, parties, words, seed, "sums"))[0]
            ratios.append(together / alone)
            say(f"{n} parties, seed {seed}: {together:.2f} CPU seconds, pooled {alone:.2f}")
        found[n] = [round(one, 2) for one in (statistics.median(ratios), min(ratios), max(ratios))]
    return {"cpu_over_pooled": found, "columns": ["median", "least", "most"]}


def _pooled(parties: Parties, words: tuple[str, ...], seed: int) -> Topics:
    settings = ConsensusSettings(topics=TOPICS)
    sweeps = settings.start_sweeps + settings.rounds * settings.sweeps
    vocabulary = {"mode": "public", "words": words}
    return run(parties, seed, {"name": "centralised", "topics": TOPICS, "sweeps": sweeps, "vocabulary": vocabulary})


def _train(parties: Parties, words: tuple[str, ...], seed: int, start: str) -> Topics:
    settings = {
        "name": "consensus",
        "topics": TOPICS,
        "evaluate": False,
        "vocabulary": {"mode": "listed" if start == "secure" else "public", "words": words},
    }
    with merging() if start == "merged" else nullcontext():
        return run(parties, seed, settings, secure=start == "secure")


def run(parties: Parties, seed: int, method: dict[str, Any], *, secure: bool = False) -> Topics:
    """Train on one machine, without the files that make a run durable."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings = RunSettings(
            directory=f"{folder}/run", seed=seed, heldout=HELDOUT, federation={"secure": secure}, method=method
        )
        model: Topics = run_on_one_machine(settings, parties, durable=False)
    return model


@contextmanager
def merging() -> Iterator[None]:
    """Let Consensus start from topics that parties learned alone, merged at the server."""
    with mock.patch.object(method, "_start", _merged), mock.patch.object(method, "plan_start", _plan_merged):
        yield


def _merged(fed: Any, config: ConsensusSettings, words: tuple[str, ...]) -> ConsensusState:
    training = config.part(Training, sweeps=config.start_sweeps)
    models = fed.each(train_local, LocalTask(words, training, None, with_sizes=False))
    topics = StartTopics.of(models, np.inf).merge(config.topics)
    return first_state(words, topics, symmetric(config.alpha, len(topics)))


def _plan_merged(config: ConsensusSettings) -> list[Planned]:
    charge, pushed = plan_reports(config.part(Training), len(config.vocabulary.words))
    reports = [Planned(train_local, "reports", charge, 1)] if charge else []
    return [*reports, *(Planned(train_local, "each", mechanism, 1) for mechanism in (pushed, DOCUMENTS))]


def _questions(start: str) -> int:
    """Return the number of questions after words are agreed."""
    settings = ConsensusSettings(topics=TOPICS)
    return settings.rounds + (1 if start == "merged" else 2 + settings.start_rounds)


def _splits(quick: bool) -> dict[str, Callable[[int], Parties]]:
    groups, mails = newsgroups(label="party"), _enron()
    splits: dict[str, Callable[[int], Parties]] = {
        "20 Newsgroups by subject": lambda seed: natural(groups),
        "20 Newsgroups at random": lambda seed: iid(groups, seed),
        "Enron by mailbox": lambda seed: natural(mails),
        "Enron at random": lambda seed: iid(mails, seed),
    }
    return {name: splits[name] for name in list(splits)[: 1 if quick else None]}


def _enron() -> Corpus:
    corpus = read(data("enron_spam.parquet"), id="id", label="party")
    found = propose(corpus, 5, 0.5)
    most = np.argsort(-np.asarray(found.counts), kind="stable")[:10_000]
    return corpus.encode(Vocabulary(tuple(found.words[i] for i in most)))


def heldout_of(parties: Parties, words: Vocabulary) -> Corpus:
    """Return all parties' held-out documents."""
    return Corpus.concatenate([corpus.encode(words).split(HELDOUT)[1] for corpus in parties.values()])


def _diversity(model: Topics) -> float:
    """Return the share of distinct words among the first ten of all topics."""
    first = np.argsort(-model.topic_word, axis=1)[:, :10]
    return len(np.unique(first)) / first.size


def _spread(values: list[float], digits: int) -> list[float]:
    return [round(one, digits) for one in (statistics.mean(values), min(values), max(values))]
