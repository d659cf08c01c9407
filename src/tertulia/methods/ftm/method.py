"""FTM: Federated Topic Modeling (Jiang, Song, Tong et al., CIKM 2019) and iFTM (Jiang, Tong, Song et al., TIST 2021).

Each party trains LDA on its own documents and pushes the model, with each topic normalised. The server merges similar
topics into a global model, and composes from it a new start for each party. Parties may have different numbers of
topics. Equation and algorithm numbers are iFTM's. `common/local_lda` implements a party's training in each privacy
mode. The papers call the normalisation an encryption, but it hides only the row totals. Topics are merged one to one
(`alignment`), or by the papers' union-find (`integration`) in mode `paper` and with `merge = "union-find"`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tertulia._arrays import F64, Array
from tertulia.corpus import Vocabulary
from tertulia.errors import InputError
from tertulia.federation import fields
from tertulia.federation.types import Federation, Nothing, Party, PartyId, Planned, message, step
from tertulia.methods.common import local_lda
from tertulia.methods.common.earlier_model import pseudo_counts, smooth
from tertulia.methods.common.evaluation import Evaluation, plan_evaluation, score
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.common.local_lda import SIZES, Chain, LocalModel, LocalTask, SizedModel, plan_reports
from tertulia.methods.common.priors import bound_weights, by_size, check_topics, symmetric
from tertulia.methods.common.rounds import Metrics, TopicsSoFar, Trained, run_rounds
from tertulia.methods.common.seeds import find_unknown, warn_of_unknown, with_seeds
from tertulia.methods.common.vocabulary import DOCUMENTS, WORD_STEPS, agree, plan_vocabulary
from tertulia.methods.ftm.alignment import NOBODY, XI, align, compare_parties, party_topics, warn_of_merge
from tertulia.methods.ftm.integration import Merged, accept, compose, integrate, keep_supported
from tertulia.methods.ftm.seeded import Models, merge_beside
from tertulia.methods.ftm.settings import FTMSettings
from tertulia.models import Topics

TOP_WORDS = FTMSettings().top_words  # default L for a party that sets its own xi, but no L


@message
class ComposedModel:
    """A party's own result."""

    topic_word: fields.OwnTopics  # [K_p, V]


@message
class FTMState:
    """The server's state between rounds."""

    round: int
    words: tuple[str, ...]
    models: dict[PartyId, LocalModel]  # the last model that each party pushed, in order of first arrival
    composed: dict[PartyId, Array]
    topic_word: Array  # [T, V] the global model M*; no topics before the first round
    sizes: Array | None  # [T] tokens behind each global topic, if parties send them
    alike: Array | None = None  # [parties, parties] whether two have the same subjects; decided when the later came


@step(doing="training")
def train_local(party: Party, state: Chain | None, ask: LocalTask) -> tuple[Chain, LocalModel]:
    """Sweep locally from the composed model, then push the normalised model (Algorithms 1 and 2)."""
    if state is not None and ask.model is not None:
        ask = replace(ask, model=_take_over(party, state, ask.model))
    return local_lda.train_local(party, state, ask)


@step(doing="keeping its model")
def keep_composed(party: Party, state: Chain | None, ask: ComposedModel) -> tuple[Chain | None, Nothing]:
    """Store the composed local model at its party."""
    if state is None:
        party.keep("composed", topic_word=ask.topic_word)
    else:
        party.keep("composed", topic_word=_take_over(party, state, ask.topic_word), alpha=state.alpha)
    return state, Nothing()


def _take_over(party: Party, own: Chain, composed: Array) -> Array:
    """Return the composed model, but keep the party's own topic where the two differ too much by its own xi and L."""
    xi, top = party.setting("min_similarity", 0.0), party.setting("top_words", TOP_WORDS)
    return accept(composed, own.topic_word, xi, top) if xi else composed


STEPS = (*WORD_STEPS, train_local, keep_composed, score)
KEEPING = (keep_composed,)  # steps that release nothing


def train(fed: Federation, config: FTMSettings, state: FTMState | None = None) -> Trained:
    """Run the global iterations (Algorithm 5)."""
    if state is None:
        vocabulary = agree(fed, config.vocabulary)
        check_topics(config.topics, len(vocabulary))
        warn_of_unknown(find_unknown(config, vocabulary.words))
        state = fed.commit(FTMState(0, vocabulary.words, {}, {}, np.zeros((0, len(vocabulary)), np.float32), None))

    def iterate(state: FTMState) -> tuple[FTMState, Metrics]:
        pushed = fed.each(train_local, {party: _task(config, state, party) for party in fed.parties})
        models = {**state.models, **pushed}  # the last model of an absent party is merged, too
        weighed = _bound(config, models)
        alike = _compare(config, models, state.alike)
        merged = _merge(config, weighed, alike)
        composed, sizes = _compose(config, merged, models), _sizes(weighed, merged.part_of)
        kept = _supported(config, merged, models)
        sizes = None if sizes is None else sizes[kept]
        return FTMState(state.round + 1, state.words, models, composed, merged.topic_word[kept], sizes, alike), {}

    def prior(state: FTMState) -> F64:
        return _prior(config, len(state.topic_word), state.sizes)

    evaluation = Evaluation[FTMState](config, lambda state: state.topic_word, prior)
    state = run_rounds(fed, config, state, iterate, [evaluation])
    if config.min_support == 1:
        seeded = len(config.seeds)
        sizes = [len(model.topic_word) - seeded for model in state.models.values()]
        warn_of_merge(len(state.topic_word) - seeded, sizes)
    fed.each(keep_composed, {p: ComposedModel(state.composed[p]) for p in fed.parties if p in state.composed})
    return _result(config, state)


def continue_from(fed: Federation, config: FTMSettings, last: Topics) -> FTMState:
    """Begin with an earlier global model: each party takes the topics that its documents are about."""
    words = agree(fed, config.vocabulary, last.vocabulary.words).words
    warn_of_unknown(find_unknown(config, words))
    topics = smooth(pseudo_counts(last, words), config.beta).astype(np.float32)
    return FTMState(0, words, {}, dict.fromkeys(fed.parties, topics), topics[:0], None)


def _chains(config: FTMSettings) -> bool:
    """Tell whether to merge by the papers' union-find."""
    return (config.merge or ("union-find" if config.mode == "paper" else "one-to-one")) == "union-find"


def _compare(config: FTMSettings, models: dict[PartyId, LocalModel], known: Array | None) -> Array | None:
    """Find which parties are alike, if merging depends on it."""
    if _chains(config) or config.min_similarity is not None:
        return None
    weighed, own = config.learn_alpha, len(config.seeds)  # unweighed topics are about equally large
    sizes = [model.sizes[own:] if weighed and isinstance(model, SizedModel) else None for model in models.values()]
    topics = [model.topic_word[own:] for model in models.values()]
    return compare_parties(
        [party_topics(M_p, own) for M_p, own in zip(topics, sizes, strict=True)], NOBODY if known is None else known
    )


def _merge(config: FTMSettings, models: dict[PartyId, LocalModel], alike: Array | None) -> Merged:
    """Merge into the global model: topics one to one, or by Algorithm 3; seeded ones by their places."""
    local = [(model.topic_word, int(model.documents)) for model in models.values()]

    def merge(local: Models) -> Merged:
        if _chains(config):
            return integrate(local, config.min_similarity or XI, config.top_words)
        return align(local, config.min_similarity, config.top_words, alike)

    return merge_beside(local, len(config.seeds), merge)


def _bound(config: FTMSettings, models: dict[PartyId, LocalModel]) -> dict[PartyId, LocalModel]:
    """Limit the documents and tokens by which each model is weighted to `max_weight`."""
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
    """Find the global topics that at least `min_support` parties share."""
    kept = keep_supported(merged, [len(model.topic_word) for model in models.values()], config.min_support)
    kept[: len(config.seeds)] = True
    if not kept.any():
        raise InputError(
            f"no topic is shared by {config.min_support} parties: lower `min_support`, which suits parties of the same "
            "subjects, or lower `min_similarity`"
        )
    return kept


def _compose(config: FTMSettings, merged: Merged, models: dict[PartyId, LocalModel]) -> dict[PartyId, Array]:
    """Return each party's next start: the global topics into which its own were merged, or those of Algorithm 4."""
    M, _, part_of = merged
    if _chains(config):
        xi, top, literal, own = config.min_similarity or XI, config.top_words, _literal(config), len(config.seeds)
        others = {p: compose(M[own:], m.topic_word[own:], xi, top, literal=literal) for p, m in models.items()}
        return {party: np.concatenate([M[:own], rest]) if own else rest for party, rest in others.items()}
    ends = np.cumsum([len(model.topic_word) for model in models.values()])
    return {party: M[place] for party, place in zip(models, np.split(part_of, ends[:-1]), strict=True)}


def plan(config: FTMSettings) -> list[Planned]:
    """List everything that will leave a party, for `tertulia check`."""
    charge, pushed = plan_reports(config.part(Training), len(config.vocabulary.words))
    reports = [Planned(train_local, "reports", charge, 1)] if charge else []
    sizes = [replace(pushed, what=SIZES)] if _sends_sizes(config) else []
    models = [Planned(train_local, "each", mechanism, config.rounds) for mechanism in (pushed, DOCUMENTS, *sizes)]
    return [*plan_vocabulary(config.vocabulary), *reports, *models, *plan_evaluation(config)]


def _task(config: FTMSettings, state: FTMState, party: PartyId) -> LocalTask:
    return LocalTask(state.words, config.part(Training), state.composed.get(party), _sends_sizes(config))


def _literal(config: FTMSettings) -> bool:
    return config.mode == "paper" if config.paper.literal_compose is None else config.paper.literal_compose


def _sends_sizes(config: FTMSettings) -> bool:
    """Tell whether parties send row totals. In mode `paper` they do not: the papers hide these totals only."""
    return config.mode != "paper"


def _sizes(models: dict[PartyId, LocalModel], part_of: Array) -> F64 | None:
    """Sum, for each global topic, the sizes of the local topics that were merged into it."""
    sizes = [model.sizes for model in models.values() if isinstance(model, SizedModel)]
    return np.bincount(part_of, np.concatenate(sizes)).astype(np.float64) if sizes else None


def _prior(config: FTMSettings, topics: int, sizes: Array | None) -> F64:
    """Estimate the prior from the sizes of topics, which parties send; they do not send the priors that they learn."""
    if sizes is None or not config.learn_alpha:
        return symmetric(config.alpha, topics)
    return by_size(config.alpha, sizes)


def _result(config: FTMSettings, state: FTMState) -> Trained:
    vocabulary = Vocabulary(state.words)

    def topics(topic_word: Array, sizes: Array | None) -> Topics:
        known = None if sizes is None or not sizes.any() else sizes  # noisy reports may contain no token at all
        found = Topics(topic_word, vocabulary, _prior(config, len(topic_word), sizes), config.beta, known)
        return with_seeds(found, config)

    own_sizes = {party: getattr(model, "sizes", None) for party, model in state.models.items()}
    local = {party: topics(model, own_sizes[party]) for party, model in state.composed.items()}
    return Trained(topics(state.topic_word, state.sizes), local)


def topics_so_far(config: FTMSettings, state: FTMState) -> TopicsSoFar:
    """Return the global model, and the models that were composed for single parties."""
    return TopicsSoFar(state.words, state.topic_word, state.sizes, state.composed)
