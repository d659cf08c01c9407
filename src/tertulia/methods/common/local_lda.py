"""LDA at a party: one global iteration of local training (iFTM, Algorithms 1 and 2), in each privacy mode.

FTM trains in this way in every round, Consensus before its first round, and baselines once.

| mode | the sampler sees | the pushed counts are of | what leaves |
|---|---|---|---|
| `clear` | the words | the words | counts, normalised, in clear |
| `paper` | Laplace reports, through the plug-in exponent (8) | **the words** | as in `clear`: the claim does not hold |
| `sound` | reports alone | words inferred from the reports | nothing that is not computed from the reports |

In `sound` mode the samplers of both models are noise-aware: a report is a likelihood ratio, and weighed as such. They
push the mean over the last half of their sweeps: single draws of what a noisy token may have been scatter widely.

Alpha is learned from the topics of a party's tokens, or of its sentences, and goes on from round to round. Chains that
start from uniform topics learn it in the last half of their sweeps: before topics settle, all documents look alike.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tertulia._arrays import F64, I32, I64, Array
from tertulia.corpus import Corpus, Vocabulary
from tertulia.corpus.offsets import drop_empty
from tertulia.errors import ConfigError, FormatError
from tertulia.federation import fields
from tertulia.federation.types import Party, message, step
from tertulia.kernels import ftm_paper, lda, noise_aware
from tertulia.kernels.core.rng import derive
from tertulia.kernels.ftm_paper import sentence
from tertulia.kernels.lda.options import Learning
from tertulia.kernels.noise_aware import sentence as aware_sentence
from tertulia.kernels.reports import reports_of_documents
from tertulia.kernels.reports.channel import Channel
from tertulia.kernels.reports.preparation import ListedReports, listed_reports
from tertulia.methods.common import seeded_lda
from tertulia.methods.common.earlier_model import faded, new_topics, smooth
from tertulia.methods.common.lda_settings import Training, learning_of
from tertulia.methods.common.priors import symmetric
from tertulia.methods.common.seeds import Prior
from tertulia.methods.common.settings import MethodSettings, own_choices
from tertulia.methods.common.vocabulary import DOCUMENTS, check_has_words
from tertulia.privacy.assumptions import declare_public
from tertulia.privacy.mechanisms import Clear, Derived, Mechanism
from tertulia.privacy.mechanisms.things import thing
from tertulia.privacy.mechanisms.token_reports import TokenReports, ftm_claim

WHAT = thing("topic-word distributions", "words by topic (shares), of this party's own model")
SIZES = thing("topic sizes", "how many words each topic has")  # tokens in each topic: what normalising rows hides
REPORTS = thing("reports of tokens", "noisy reports of single words")


@message
class LocalTask:
    """The server's question in a global iteration."""

    words: fields.Words
    training: Training
    model: fields.OwnTopics | None  # [K_p, V] the composed local model; in the first round None, or an earlier run's
    with_sizes: bool  # whether topic sizes are wanted, too


@message
class LocalModel:
    """A party's pushed model, M^_p, and the number of documents behind it."""

    topic_word: fields.OwnTopics  # [K_p, V]
    documents: fields.DocumentCount

    def check_reply(self, ask: LocalTask) -> None:
        """Raise unless each row is a distribution over the words."""
        if not np.allclose(self.topic_word.sum(axis=1, dtype=np.float64), 1.0, atol=1e-3):
            raise FormatError("a row of 'topic_word' does not sum to 1")


@message
class SizedModel(LocalModel):
    """The same, and how many tokens stand behind each topic."""

    sizes: fields.OwnSizes  # [K_p]


@message
class Chain:
    """A party's state between rounds."""

    z: Array  # topics of tokens, or of sentences
    topic_word: Array  # [K_p, V] what it pushed
    alpha: Array  # [K_p] what it learned, which never leaves; a composed topic has that of the one that it replaces


class ReportedTokens(NamedTuple):
    """A party's tokens as their reports show them."""

    source: Any  # a function of (first, last): all entries of these tokens' reports
    channel: Channel
    parents: tuple[str, ...]  # the charges for them

    def listed(self, n_tokens: int) -> ListedReports:
        """Return what they say about words of the list, as noise-aware samplers need it; the last symbol is UNK."""
        return listed_reports(self.source, self.channel, n_tokens)


def in_clear(config: MethodSettings, sweeps: int) -> Training:
    """Return the training settings without noise."""
    return config.part(Training, sweeps=sweeps, mode="clear", epsilon=None)


def plan_reports(training: Training, words: int) -> tuple[Mechanism | None, Mechanism]:
    """Plan training on a word list: the charge for reports, if any, and the mechanism by which results leave."""
    if training.mode == "clear" or training.epsilon is None:
        return None, Clear(WHAT)
    symbols = words + (training.mode == "sound")  # with UNK
    channel = _channel(training, training.epsilon, max(2, symbols))
    claim = ftm_claim(channel) if training.mode == "paper" else None
    charge = TokenReports(REPORTS, channel=channel, claimed=claim)
    return charge, Clear(WHAT, claimed=claim) if claim else _derived(training.model, ("reports",))


class Start(NamedTuple):
    """The topics that a party continues from."""

    topic_word: Array  # [K_p, V] composed topics; or all those [T, V] of an earlier run
    alpha: F64 | None  # [K_p] what the party learned for those that they replace; None: they are an earlier run's


class LocalResult(NamedTuple):
    """The result of training: topics of tokens or sentences, the normalised model, its row totals, its way out."""

    z: I32
    topic_word: F64  # [K_p, V]
    sizes: I64 | F64  # [K_p] tokens in each topic
    alpha: F64  # [K_p] it stays at the party
    mechanism: Mechanism  # by which the model leaves


class _Chain(NamedTuple):
    """The arguments that all samplers share."""

    corpus: Corpus
    start: Array | None  # [K_p, V] topics to go on from; None in a party's first round
    alpha: F64
    training: Training
    keys: tuple[int, int]  # of the start and of the sweeps
    threads: int
    prior: Prior | None  # of seed words


@step(doing="training")
def train_local(party: Party, state: Chain | None, ask: LocalTask) -> tuple[Chain, LocalModel]:
    """Train on a party's own documents, then push the normalised model."""
    corpus = party.documents(Vocabulary.of(ask.words), unknown=ask.training.mode == "sound")
    if corpus.n_tokens == 0:
        if (
            ask.training.mode != "clear"
        ):  # charge as for any other question: the cost must not show that there is nothing
            report_tokens(party, corpus, own_training(party, ask.training))
        check_has_words(party, corpus)
    # A party without state is new, in any round: it begins alone, or with the topics of an earlier run.
    start = None if ask.model is None else Start(ask.model, None if state is None else state.alpha)
    local = train(party, corpus, start, ask.training)
    pushed = local.topic_word.astype(np.float32)  # line 24 and topic-wise normalisation
    model = LocalModel(party.release(pushed, local.mechanism), party.release(np.array(corpus.n_documents), DOCUMENTS))
    if ask.with_sizes:
        sizes = party.release(local.sizes, replace(local.mechanism, what=SIZES))
        model = SizedModel(model.topic_word, model.documents, sizes)
    return Chain(local.z, pushed, local.alpha), model


def train(party: Party, corpus: Corpus, start: Start | None, training: Training) -> LocalResult:
    """Train for one global iteration at a party, which may have its own sampling settings."""
    return train_exactly(party, corpus, start, own_training(party, training))


def own_training(party: Party, training: Training) -> Training:
    """Return training as a party chooses it for itself; its own epsilon is applied when tokens are reported."""
    own = {name: party.setting(name, getattr(training, name)) for name in own_choices(Training) if name != "epsilon"}
    return training.replace(**own)


def train_exactly(party: Party, corpus: Corpus, start: Start | None, training: Training) -> LocalResult:
    """Train by these settings; the party's own choices do not count."""
    topics, alpha = start or (None, None)
    earlier = topics is not None and alpha is None
    if alpha is None or not training.learn_alpha:
        alpha = symmetric(training.alpha, training.topics)
    prior = Prior.of(training, corpus.vocabulary.words)
    chain = _Chain(corpus, topics, alpha, training, (party.seed, party.seed ^ 1), party.setting("threads", 1), prior)
    if earlier and training.mode != "sound":
        chain = chain._replace(start=_own_part(chain, None))
    if training.mode == "clear":
        state = _plain_lda(chain) if training.model == "lda" else _sentences(chain, None)
        phi = lda.topic_word(state) if prior is None else seeded_lda.topic_word(state, prior)
        return LocalResult(state.z, phi, lda.topic_sizes(state), state.alpha, Clear(WHAT))
    tokens = report_tokens(party, corpus, training)
    if training.mode == "paper":
        state = _literal_lda(chain, tokens.source) if training.model == "lda" else _sentences(chain, tokens.source)
        claimed = Clear(WHAT, claimed=ftm_claim(tokens.channel))
        return LocalResult(state.z, lda.topic_word(state), state.ck, state.alpha, claimed)
    reports = tokens.listed(corpus.n_tokens)
    aware = _noise_aware(chain._replace(start=_own_part(chain, reports)) if earlier else chain, reports)
    return LocalResult(*aware, _derived(training.model, tokens.parents))


def _own_part(chain: _Chain, reports: ListedReports | None) -> Array:
    """Choose the K_p topics of an earlier run that this party's tokens are about; new ones replace faded ones."""
    corpus, topics, own, training, keys, threads, seeded = chain
    assert topics is not None
    prior, K = symmetric(training.alpha, len(topics)), len(own)
    if reports is None:
        V = len(corpus.vocabulary)
        counts = lda.train(
            corpus.words, corpus.documents, V, len(topics), prior, training.beta, 0, keys[0], start=topics,
            threads=threads,
        ).cwk.T  # fmt: skip
    else:
        documents = reports.offsets(corpus.documents)
        counts = noise_aware.init_from_topics(reports.source, documents, topics, prior, training.beta, keys[0]).cwk.T
    S = 0 if seeded is None else len(seeded.places)
    sizes = counts.sum(axis=1)
    sizes[:S] = sizes.max() + 1  # seeded topics stay, at their places
    chosen = np.sort(np.argsort(-sizes, kind="stable")[:K])
    topics, counts = topics[chosen], counts[chosen]
    stays = ~faded(counts)
    stays[:S] = True
    fresh = smooth(new_topics(topics, counts, K - int(stays.sum())), training.beta)
    return np.concatenate([topics[stays], fresh])


def report_tokens(party: Party, corpus: Corpus, training: Training) -> ReportedTokens:
    """Charge for the reports of a party's tokens, the first time, and give access to them."""
    if training.epsilon is None:
        raise ConfigError(f"mode '{training.mode}' needs an epsilon: set method.epsilon")
    # A party's own epsilon can only be stricter than what the server asks.
    epsilon = min(training.epsilon, party.setting("epsilon", training.epsilon))
    channel = _channel(training, epsilon, len(corpus.vocabulary))
    claim = ftm_claim(channel) if training.mode == "paper" else None
    randomness = party.randomise(corpus, TokenReports(REPORTS, channel=channel, claimed=claim))
    words, documents = randomness.drawn_from
    source = partial(reports_of_documents, words, documents, channel, randomness.documents)
    return ReportedTokens(source, channel, randomness.parents)


def _derived(model: str, reports: tuple[str, ...]) -> Derived:
    """Return the mechanism of a model that is computed from reports; one of sentences also sees where these end."""
    ends = (declare_public("where sentences end"),) if model == "sentence" else ()
    return Derived(WHAT, parents=reports, assumptions=ends)


def _channel(training: Training, epsilon: float, V: int) -> Channel:
    """Return the channel of reports: the paper's Laplace noise of scale 1/epsilon, or one of epsilon by substitution.

    Another word moves two entries of the one-hot vector, each under noise of its own, so Laplace gets half for each.
    """
    if training.mode == "paper":
        return Channel("laplace", epsilon, V, training.tau)
    kind = training.channel
    return Channel(kind, epsilon / 2 if kind == "laplace" else epsilon, V, training.tau)


def _plain_lda(chain: _Chain) -> lda.LDAState:
    """Train LDA without noise, by our fastest trainer.

    Where a party goes on from composed topics, it looks at the document too; the paper redraws each token from its
    word's topics alone (Algorithm 1, line 10), which takes longer for the same result.
    """
    corpus, start, alpha, training, keys, threads, prior = chain
    learning = learning_of(training.learn_alpha, training.sweeps)
    if prior is not None:
        documents = seeded_lda.Documents(corpus.words, corpus.documents, len(corpus.vocabulary))
        schedule = seeded_lda.Schedule(training.sweeps, learning, threads=threads)
        return seeded_lda.train(documents, prior, alpha, training.beta, keys[0], schedule, start)
    return lda.train(
        corpus.words, corpus.documents, len(corpus.vocabulary), len(alpha), alpha, training.beta, training.sweeps,
        keys[0], start="clusters" if start is None else start, sampler=training.sampler,
        learning=learning, threads=threads,
    )  # fmt: skip


def _literal_lda(chain: _Chain, source: Any) -> lda.LDAState:
    """Run Algorithm 1: private Metropolis-Hastings (or private Gibbs) over reports, counts over raw words."""
    corpus, start, alpha, training, keys, threads, _ = chain
    words, documents, beta = corpus.words, corpus.documents, training.beta
    if start is None:  # lines 1-7
        state = lda.init(words, documents, len(corpus.vocabulary), len(alpha), alpha, beta, keys[0])
    else:  # lines 8-10
        state = lda.init_from_topics(words, documents, start, alpha, beta, keys[0])
    sampler: ftm_paper.Sampler = "gibbs" if training.sampler == "gibbs" else "mh"
    return ftm_paper.run(words, documents, state, training.sweeps, keys[1], sampler, source, threads=threads)[0]


def _sentences(chain: _Chain, source: Any) -> lda.LDAState:
    """Run Algorithm 2, with or without reports.

    Without reports, where nothing has to be reproduced, phi is its mean without the sentence, as in `_plain_lda`: draws
    of phi took far longer for the same result.
    """
    corpus, start, alpha, training, keys, threads, _ = chain
    V, beta, units = len(corpus.vocabulary), training.beta, (corpus.words, corpus.sentences, corpus.documents)
    if source is not None and start is None:
        state = sentence.init(*units, V, len(alpha), alpha, beta, keys[0])
    else:
        if start is None:
            start = lda.cluster_topics(corpus.words, corpus.documents, V, len(alpha), beta, keys[0], threads=threads)
        state = sentence.init_from_topics(*units, start, alpha, beta, keys[0])
    if source is not None:
        sampler: ftm_paper.Sampler = "gibbs" if training.sampler == "gibbs" else "mh"
        return sentence.run(*units, state, training.sweeps, keys[1], sampler, source, threads=threads)[0]
    how: dict[str, Any] = {"sampler": "gibbs", "phi": "mean", "threads": threads}
    last, averaged = training.sweeps - training.sweeps // 2, max(1, training.sweeps // 4)
    state, _ = sentence.run(*units, state, training.sweeps - last, keys[1], **how)
    how["learning"] = Learning(alpha=training.learn_alpha, every=1)
    state, _ = sentence.run(*units, state, last - averaged, int(derive(keys[1], last)), **how)
    mean = np.zeros(state.cwk.shape, dtype=np.float32)
    for s in range(averaged):
        state, _ = sentence.run(*units, state, 1, int(derive(keys[1], last, s)), **how)
        mean += state.cwk
    mean /= np.float32(averaged)
    return state._replace(mean=mean)


def _noise_aware(chain: _Chain, reports: ListedReports) -> tuple[I32, F64, F64, F64]:
    """Train either model from reports alone; phi is its mean, as in `_plain_lda`. Tokens without topic do not count."""
    corpus, start, alpha, training, keys, threads, prior = chain
    V, beta = len(corpus.vocabulary) - 1, training.beta  # UNK is in no topic
    ahead = np.zeros((V, len(alpha)), dtype=np.int32) if prior is None else prior.beside(len(alpha))[:V]
    sentences = training.model == "sentence"
    documents, ends = reports.offsets(corpus.documents), reports.offsets(corpus.sentences)
    units = (reports.source, drop_empty(ends), documents) if sentences else (reports.source, documents)
    sampler: Any = aware_sentence if sentences else noise_aware
    if start is None and prior is None:
        state = sampler.init(*units, V, len(alpha), alpha, beta, keys[0])
    else:
        start = smooth(prior.counts(len(alpha))[:, :V], prior.flat) if start is None and prior else start
        state = sampler.init_from_topics(*units, start, alpha, beta, keys[0])
    last = -(-training.sweeps // 2)
    how: dict[str, Any] = {"phi": "mean", "threads": threads}
    if not sentences and training.sampler in ("gibbs", "warp"):
        how["sampler"] = training.sampler
    if prior is not None:
        how["others"] = ahead
    state, _ = sampler.run(*units, state, training.sweeps - last, keys[1], **how)
    mean, sizes = np.zeros((len(alpha), V)), np.zeros(len(alpha))
    how["learning"] = Learning(alpha=training.learn_alpha, every=1)
    for s in range(last):
        state, _ = sampler.run(*units, state, 1, int(derive(keys[1], s, last)), **how)
        mean += (sampler.topic_word(state) if prior is None else smooth((state.cwk + ahead).T, beta)) / last
        sizes += state.ck / last
    return state.z if sentences else reports.put_back(state.z), mean, sizes, state.alpha
