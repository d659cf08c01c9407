"""FTM: Federated Topic Modeling (Jiang, Song, Tong et al., CIKM 2019) and iFTM (Jiang, Tong, Song et al., TIST 2021).

Each party trains LDA on its own documents and pushes the topic-wise normalised model; the server merges similar topics
into a global model and composes from it a new start for each party. Parties may have different numbers of topics.
Equation and algorithm numbers are iFTM's; what a party computes, in each privacy mode, is in `local`. Topic-wise
normalisation hides nothing but the row totals; the papers call it an encryption, which it is not. Topics are merged
one to one (`alignment`); in mode `paper`, or where `merge` says so, by the papers' union-find (`merging`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tertulia._arrays import F64, Array
from tertulia._kinds import check_array
from tertulia.corpus import Vocabulary
from tertulia.errors import FormatError, InputError
from tertulia.federation import fields
from tertulia.federation.types import Federation, Nothing, Party, PartyId, Planned, message, step
from tertulia.methods.common.evaluation import Evaluation, plan_evaluation, score
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.common.priors import by_size, check_topics, symmetric
from tertulia.methods.common.result import Trained
from tertulia.methods.common.rounds import Metrics, run_rounds
from tertulia.methods.common.start import pseudo_counts, smooth
from tertulia.methods.common.vocabulary import DOCUMENTS, agree, plan_vocabulary, propose_words
from tertulia.methods.common.weights import bound_weights
from tertulia.methods.ftm.alignment import XI, align, warn_of_merge
from tertulia.methods.ftm.local import SIZES, Start, own_training, plan_reports, report_tokens
from tertulia.methods.ftm.local import train as train_party
from tertulia.methods.ftm.merging import Merged, accept, compose, integrate, keep_supported
from tertulia.methods.ftm.settings import FTMSettings
from tertulia.models import Topics

TOP_WORDS = FTMSettings().top_words  # L of a party that has a xi of its own, but no L


@message
class LocalTask:
    """What the server asks of a party in a global iteration."""

    words: tuple[str, ...]
    training: Training
    model: fields.OwnTopics | None  # [K_p, V] the composed local model; in the first round None, or an earlier run's
    with_sizes: bool  # whether topic sizes are wanted, too


@message
class LocalModel:
    """What a party pushes: M^_p, and how many documents stand behind it."""

    topic_word: Array  # [K_p, V]
    documents: Array  # scalar

    def check_reply(self, ask: LocalTask) -> None:
        """Raise unless each row is a distribution over the words."""
        topics = len(self.topic_word) if np.ndim(self.topic_word) else 0
        check_array("topic_word", self.topic_word, (topics, len(ask.words)), least=0)
        check_array("documents", self.documents, ())
        if not topics or not np.allclose(self.topic_word.sum(axis=1, dtype=np.float64), 1.0, atol=1e-3):
            raise FormatError("a row of 'topic_word' does not sum to 1")


@message
class SizedModel(LocalModel):
    """The same, and how many tokens stand behind each topic."""

    sizes: Array  # [K_p]

    def check_reply(self, ask: LocalTask) -> None:
        """Raise unless each topic has a size."""
        super().check_reply(ask)
        check_array("sizes", self.sizes, (len(self.topic_word),), least=0)


@message
class Chain:
    """What a party keeps between rounds."""

    z: Array  # topics of tokens, or of sentences
    topic_word: Array  # [K_p, V] what it pushed
    alpha: Array  # [K_p] what it learned, which never leaves; a composed topic has that of the one that it replaces


@message
class ComposedModel:
    """A party's own result."""

    topic_word: fields.OwnTopics  # [K_p, V]


@message
class FTMState:
    """What the server keeps between rounds."""

    round: int
    words: tuple[str, ...]
    models: dict[PartyId, LocalModel]  # the last that each party pushed, in order of first arrival
    composed: dict[PartyId, Array]
    topic_word: Array  # [T, V] the global model M*; no topics before the first round
    sizes: Array | None  # [T] tokens behind each global topic, if parties send them


@step
def train_local(party: Party, state: Chain | None, ask: LocalTask) -> tuple[Chain, LocalModel]:
    """Algorithms 1 and 2: local sweeps, then push the normalised model."""
    corpus = party.documents(Vocabulary.of(ask.words), unknown=ask.training.mode == "sound")
    if corpus.n_tokens == 0:
        if ask.training.mode != "clear":  # as any other question: what it costs may not show that there is nothing
            report_tokens(party, corpus, own_training(party, ask.training))
        raise InputError(
            f"no word of party '{party.id}' is in the agreed vocabulary: check its language, or use 'union'"
        )
    # A party without state is new, whatever the round: it begins alone, or with the topics of an earlier run.
    start = None
    if ask.model is not None:
        start = Start(ask.model, None) if state is None else Start(_take_over(party, state, ask.model), state.alpha)
    local = train_party(party, corpus, start, ask.training)
    pushed = local.topic_word.astype(np.float32)  # line 24 and topic-wise normalisation
    model = LocalModel(party.release(pushed, local.mechanism), party.release(np.array(corpus.n_documents), DOCUMENTS))
    if ask.with_sizes:
        sizes = party.release(local.sizes, replace(local.mechanism, what=SIZES))
        model = SizedModel(model.topic_word, model.documents, sizes)
    return Chain(local.z, pushed, local.alpha), model


@step
def keep_composed(party: Party, state: Chain | None, ask: ComposedModel) -> tuple[Chain | None, Nothing]:
    """Store the composed local model at its party."""
    if state is None:
        party.keep("composed", topic_word=ask.topic_word)
    else:
        party.keep("composed", topic_word=_take_over(party, state, ask.topic_word), alpha=state.alpha)
    return state, Nothing()


def _take_over(party: Party, own: Chain, composed: Array) -> Array:
    """The composed model, but for topics that the party's own xi and L, if it has any, do not find similar enough."""
    xi, top = party.setting("min_similarity", 0.0), party.setting("top_words", TOP_WORDS)
    return accept(composed, own.topic_word, xi, top) if xi else composed


STEPS = (propose_words, train_local, keep_composed, score)
KEEPING = (keep_composed,)  # nothing leaves by these


def train(fed: Federation, config: FTMSettings, state: FTMState | None = None) -> Trained:
    """Algorithm 5: the workflow of global iterations."""
    if state is None:
        vocabulary = agree(fed, config.vocabulary)
        check_topics(config.topics, len(vocabulary))
        state = fed.commit(FTMState(0, vocabulary.words, {}, {}, np.zeros((0, len(vocabulary)), np.float32), None))

    def iterate(state: FTMState) -> tuple[FTMState, Metrics]:
        pushed = fed.each(train_local, {party: _task(config, state, party) for party in fed.parties})
        models = {**state.models, **pushed}  # an absent party's last model takes part
        weighed = _bound(config, models)
        merged = _merge(config, weighed)
        composed, sizes = _compose(config, merged, models), _sizes(weighed, merged.part_of)
        kept = _supported(config, merged, models)
        sizes = None if sizes is None else sizes[kept]
        return FTMState(state.round + 1, state.words, models, composed, merged.topic_word[kept], sizes), {}

    def prior(state: FTMState) -> F64:
        return _prior(config, len(state.topic_word), state.sizes)

    evaluation = Evaluation[FTMState](config, lambda state: state.topic_word, prior)
    state = run_rounds(fed, config, state, iterate, [evaluation])
    if config.min_support == 1:
        warn_of_merge(len(state.topic_word), [len(model.topic_word) for model in state.models.values()])
    fed.each(keep_composed, {p: ComposedModel(state.composed[p]) for p in fed.parties if p in state.composed})
    return _result(config, state)


def continue_from(fed: Federation, config: FTMSettings, last: Topics) -> FTMState:
    """Begin with an earlier global model instead: of its topics each party takes those that its documents are about."""
    words = agree(fed, config.vocabulary, last.vocabulary.words).words
    topics = smooth(pseudo_counts(last, words), config.beta).astype(np.float32)
    return FTMState(0, words, {}, dict.fromkeys(fed.parties, topics), topics[:0], None)


def _chains(config: FTMSettings) -> bool:
    """Whether to merge as the papers do."""
    return (config.merge or ("union-find" if config.mode == "paper" else "one-to-one")) == "union-find"


def _merge(config: FTMSettings, models: dict[PartyId, LocalModel]) -> Merged:
    """The global model: topics one to one, or by Algorithm 3."""
    local = [(model.topic_word, int(model.documents)) for model in models.values()]
    if _chains(config):
        return integrate(local, config.min_similarity or XI, config.top_words)
    sizes = [model.sizes for model in models.values() if isinstance(model, SizedModel)]
    return align(local, config.min_similarity, config.top_words, sizes if config.learn_alpha and sizes else None)


def _bound(config: FTMSettings, models: dict[PartyId, LocalModel]) -> dict[PartyId, LocalModel]:
    """The same models, with no more documents and tokens behind each than the settings let it have."""
    if config.max_weight is None:
        return models
    documents = bound_weights(np.array([float(model.documents) for model in models.values()]), config.max_weight)
    bounded = {
        p: replace(model, documents=np.array(int(d))) for (p, model), d in zip(models.items(), documents, strict=True)
    }
    sized = {p: model for p, model in bounded.items() if isinstance(model, SizedModel)}
    tokens = np.array([float(model.sizes.sum()) for model in sized.values()])
    shares = bound_weights(tokens, config.max_weight) / np.maximum(tokens, 1.0) if sized else tokens
    return bounded | {p: replace(m, sizes=m.sizes * share) for (p, m), share in zip(sized.items(), shares, strict=True)}


def _supported(config: FTMSettings, merged: Merged, models: dict[PartyId, LocalModel]) -> Array:
    """Which global topics enough parties have."""
    kept = keep_supported(merged, [len(model.topic_word) for model in models.values()], config.min_support)
    if not kept.any():
        raise InputError(
            f"no topic is shared by {config.min_support} parties: lower `min_support`, which suits parties of the same "
            "subjects, or lower `min_similarity`"
        )
    return kept


def _compose(config: FTMSettings, merged: Merged, models: dict[PartyId, LocalModel]) -> dict[PartyId, Array]:
    """Each party's next start: the global topics that its own went into, or those of Algorithm 4."""
    M, _, part_of = merged
    if _chains(config):
        xi, top, literal = config.min_similarity or XI, config.top_words, _literal(config)
        return {party: compose(M, model.topic_word, xi, top, literal=literal) for party, model in models.items()}
    ends = np.cumsum([len(model.topic_word) for model in models.values()])
    return {party: M[place] for party, place in zip(models, np.split(part_of, ends[:-1]), strict=True)}


def plan(config: FTMSettings) -> list[Planned]:
    """Everything that will leave a party, for `tertulia check`."""
    charge, pushed = plan_reports(config)
    reports = [Planned(train_local, "reports", charge, 1)] if charge else []
    sizes = [replace(pushed, what=SIZES)] if _sends_sizes(config) else []
    models = [Planned(train_local, "each", mechanism, config.rounds) for mechanism in (pushed, DOCUMENTS, *sizes)]
    return [*plan_vocabulary(config.vocabulary), *reports, *models, *plan_evaluation(config)]


def _task(config: FTMSettings, state: FTMState, party: PartyId) -> LocalTask:
    return LocalTask(state.words, config.part(Training), state.composed.get(party), _sends_sizes(config))


def _literal(config: FTMSettings) -> bool:
    return config.mode == "paper" if config.paper.literal_compose is None else config.paper.literal_compose


def _sends_sizes(config: FTMSettings) -> bool:
    """The papers hide row totals, and nothing else: in their mode nobody learns them, and topics have no weights."""
    return config.mode != "paper"


def _sizes(models: dict[PartyId, LocalModel], part_of: Array) -> F64 | None:
    """A global topic is as large as all local ones that went into it."""
    sizes = [model.sizes for model in models.values() if isinstance(model, SizedModel)]
    return np.bincount(part_of, np.concatenate(sizes)).astype(np.float64) if sizes else None


def _prior(config: FTMSettings, topics: int, sizes: Array | None) -> F64:
    """The prior as far as the server knows: what parties learn is their own, but the sizes of their topics it gets."""
    if sizes is None or not config.learn_alpha:
        return symmetric(config.alpha, topics)
    return by_size(config.alpha, sizes)


def _result(config: FTMSettings, state: FTMState) -> Trained:
    vocabulary = Vocabulary(state.words)

    def topics(topic_word: Array, sizes: Array | None) -> Topics:
        known = None if sizes is None or not sizes.any() else sizes  # reports may hold no token at all
        return Topics(topic_word, vocabulary, _prior(config, len(topic_word), sizes), config.beta, known)

    own_sizes = {party: getattr(model, "sizes", None) for party, model in state.models.items()}
    local = {party: topics(model, own_sizes[party]) for party, model in state.composed.items()}
    return Trained(topics(state.topic_word, state.sizes), local)
