"""Mode `sound`: Consensus' start from merged local topics, beside a trial of one from sums of noisy reports.

The trial does at one place what parties could do by sums, from the very reports that the run counts with: the profiles
of reported words are grouped into topics, and rounds of EM follow. Under randomised response a report names a word that
is the token's own or any other. So it is evidence for a topic, or background: p(report | k) ∝ phi_k + c.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from scipy import sparse

from benchmarks.common import newsgroups, say
from benchmarks.federation.parties import iid, natural
from benchmarks.secure.consensus import SEEDS, Parties, heldout_of, run
from tertulia._arrays import F64, I32, I64
from tertulia.corpus import Corpus, Vocabulary
from tertulia.kernels.lda import word_profiles
from tertulia.kernels.reports import Reports
from tertulia.methods.common import local_lda
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.common.local_lda import LocalTask, ReportedTokens, train_local
from tertulia.methods.common.priors import symmetric
from tertulia.methods.consensus import method
from tertulia.methods.consensus.totals import first_state
from tertulia.metrics import completion

TOPICS, WORDS, EPSILONS = 20, 3_000, (8.0, 16.0)
ROUNDS, STEPS, SMOOTHING = 6, 15, 0.01  # of EM; for a document's shares within a round; tokens of each word beforehand


class Reported(NamedTuple):
    """The reported words of documents."""

    words: I32  # [N]
    documents: I64  # [D+1] offsets
    background: float  # c


def sound_start(quick: bool) -> dict[str, Any]:
    """Measure both starts by perplexity: the mean of the seeds, the least, the most."""
    corpus = _frequent(newsgroups(label="party").split(0.25, seed=1)[1])
    splits: dict[str, Callable[[int], Parties]] = {
        "by subject": lambda seed: natural(corpus),
        "at random": lambda seed: iid(corpus, seed),
    }
    found: dict[str, Any] = {}
    for name, split in list(splits.items())[: 1 if quick else None]:
        for epsilon in EPSILONS:
            scores: dict[str, list[float]] = {"merged": [], "sums": []}
            for seed in SEEDS[:1] if quick else SEEDS:
                parties = split(seed)
                for start, seen in scores.items():
                    seen.append(_perplexity(parties, seed, epsilon, start))
                    say(f"{name}, epsilon {epsilon:g}, {start}, seed {seed}: {seen[-1]:.1f}")
            found[f"{name}, {epsilon:g}"] = {
                start: [round(x, 1) for x in (statistics.mean(seen), min(seen), max(seen))]
                for start, seen in scores.items()
            }
    return {"sound_start": found}


def _frequent(corpus: Corpus) -> Corpus:
    most = np.argsort(-np.bincount(corpus.words, minlength=len(corpus.vocabulary)), kind="stable")[:WORDS]
    return corpus.encode(Vocabulary(tuple(corpus.vocabulary.words[i] for i in most)))


def _perplexity(parties: Parties, seed: int, epsilon: float, start: str) -> float:
    words = next(iter(parties.values())).vocabulary.words
    settings = {
        "name": "consensus", "topics": TOPICS, "beta": 0.1, "evaluate": False, "mode": "sound", "epsilon": epsilon,
        "start_sweeps": 80 if start == "merged" else 1, "sweeps": 10, "vocabulary": {"mode": "public", "words": words},
    }  # fmt: skip
    if start == "merged":
        model = run(parties, seed, settings)
    else:
        with mock.patch.object(method, "_start", _from_reports):
            model = run(parties, seed, settings)
    heldout = heldout_of(parties, model.vocabulary)
    return completion(model.topic_word, model.alpha, heldout, smoothing=model.beta).perplexity


def _from_reports(fed: Any, config: Any, words: tuple[str, ...]) -> Any:
    """Find first topics as sums of reports would; the models of the one sweep are not used."""
    task = LocalTask(words, config.part(Training, sweeps=config.start_sweeps), None, with_sizes=False)
    with _seen_reports() as seen:
        fed.each(train_local, task)
    reported = _pooled(seen)
    first = _first_topics(reported, len(words), config.topics, config.seed or 0)
    alpha = symmetric(config.alpha, config.topics)
    return first_state(words, np.rint(_em(reported, first, alpha)).astype(np.int64), alpha)


@contextmanager
def _seen_reports() -> Iterator[dict[str, Reported]]:
    """Note the reports of all parties, which are in this process."""
    seen: dict[str, Reported] = {}
    report_tokens = local_lda.report_tokens

    def note(party: Any, corpus: Corpus, training: Training) -> ReportedTokens:
        tokens = report_tokens(party, corpus, training)
        listed = tokens.listed(corpus.n_tokens)
        if isinstance(listed.source, Reports) and len(listed.source.a):
            reports = listed.source  # of one word each: randomised response
            background = float(reports.r0) / float(reports.a[0])
            seen[party.id] = Reported(reports.idx, listed.offsets(corpus.documents), background)
        return tokens

    with mock.patch.object(local_lda, "report_tokens", note):
        yield seen


def _pooled(seen: dict[str, Reported]) -> Reported:
    ends = np.cumsum([0, *(len(one.words) for one in seen.values())])
    offsets = [one.documents[1:] + end for one, end in zip(seen.values(), ends, strict=False)]
    words = np.concatenate([one.words for one in seen.values()]).astype(np.int32)
    background = statistics.mean(one.background for one in seen.values())
    return Reported(words, np.concatenate([[0], *offsets]).astype(np.int64), background)


def _first_topics(reported: Reported, V: int, K: int, seed: int) -> F64:
    df, tokens = word_profiles.counts_of_words(reported.words, reported.documents, V, 1)
    chosen = word_profiles.most_frequent(df)
    sums, _ = word_profiles.profiles(reported.words, reported.documents, V, chosen, 1)
    return word_profiles.topics_of_profiles(sums, df[chosen], chosen, tokens, K, np.uint64(seed))


def _em(reported: Reported, counts: F64, alpha: F64) -> F64:
    """Return the expected tokens [K, V] of each word, as far as reports are no background."""
    D = len(reported.documents) - 1
    ones = np.ones(len(reported.words))
    table = sparse.csr_matrix((ones, reported.words, reported.documents), shape=(D, counts.shape[1]))
    document = np.repeat(np.arange(D), np.diff(reported.documents))
    for _ in range(ROUNDS):
        phi = (counts + SMOOTHING) / (counts + SMOOTHING).sum(axis=1, keepdims=True)
        of_words = np.ascontiguousarray(phi.T)[reported.words]
        shares = np.full((D, len(alpha)), 1 / len(alpha))
        for step in range(STEPS + 1):
            mass = np.einsum("nk,nk->n", shares[document], of_words) + reported.background
            table.data = 1 / mass
            if step < STEPS:
                shares = shares * (table @ phi.T) + alpha
                shares /= shares.sum(axis=1, keepdims=True)
        counts = phi * (shares.T @ table)
    return counts
