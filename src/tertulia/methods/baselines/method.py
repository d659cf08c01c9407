"""The two scenarios that every paper compares with: each party alone, and all documents in one place.

*Non-collaborative*: parties agree on a vocabulary, so that their models can be compared, and then train alone.
*Pooled* is the same method in a federation whose one party holds all documents.

Both are there to be compared with, so the alpha that a model has learned is shown beside it. It leaves by a step that
only the baselines have: in FTM it stays at the party.
"""

from __future__ import annotations

from tertulia.corpus import Vocabulary
from tertulia.errors import FormatError
from tertulia.federation import fields
from tertulia.federation.types import Federation, Party, PartyId, Planned, Step, message, step
from tertulia.methods.baselines.settings import AloneSettings
from tertulia.methods.common.local_lda import SIZES, WHAT, Chain, LocalTask, SizedModel, in_clear, train_local
from tertulia.methods.common.priors import symmetric
from tertulia.methods.common.rounds import Trained
from tertulia.methods.common.seeds import find_unknown, warn_of_unknown, with_seeds
from tertulia.methods.common.vocabulary import DOCUMENTS, WORD_STEPS, agree, plan_vocabulary
from tertulia.models import Topics
from tertulia.privacy.mechanisms import Clear
from tertulia.privacy.mechanisms.things import thing

ALPHA = thing("alpha of topics", "how common each topic is")


@message
class WholeModel(SizedModel):
    """A party's model with what it learned of theta's prior."""

    alpha: fields.OwnSizes  # [K_p]


@message
class AloneState:
    """The server's state: the vocabulary, then also the models."""

    words: tuple[str, ...]
    models: dict[PartyId, SizedModel]


def plan(config: AloneSettings) -> list[Planned]:
    """List everything that will leave a party, for `tertulia check`."""
    parts = (Clear(WHAT), DOCUMENTS, Clear(SIZES), *((Clear(ALPHA),) if config.learn_alpha else ()))
    return [*plan_vocabulary(config.vocabulary), *(Planned(_step(config), "each", part, 1) for part in parts)]


@step(doing="training")
def train_whole(party: Party, state: Chain | None, ask: LocalTask) -> tuple[Chain, WholeModel]:
    """Train as in FTM's first round, and give alpha, too."""
    chain, model = train_local(party, state, ask)
    if not isinstance(model, SizedModel):
        raise FormatError("a whole model comes with its topics' sizes: 'with_sizes' must be set")
    alpha = party.release(chain.alpha, Clear(ALPHA))
    return chain, WholeModel(model.topic_word, model.documents, model.sizes, alpha)


def _step(config: AloneSettings) -> Step:
    return train_whole if config.learn_alpha else train_local


STEPS = (*WORD_STEPS, train_local, train_whole)


def train(fed: Federation, config: AloneSettings, state: AloneState | None = None) -> Trained:
    """Train every party alone, with as many sweeps as all rounds of a federation together."""
    if state is None:
        words = agree(fed, config.vocabulary).words
        warn_of_unknown(find_unknown(config, words))
        state = fed.commit(AloneState(words, {}))
    if not state.models:
        task = LocalTask(state.words, in_clear(config, config.sweeps), None, with_sizes=True)
        state = fed.commit(AloneState(state.words, fed.each(_step(config), task)))
    local = {party: _topics(config, state.words, model) for party, model in state.models.items()}
    return Trained(next(iter(local.values())), local)


def _topics(config: AloneSettings, words: tuple[str, ...], model: SizedModel) -> Topics:
    alpha = model.alpha if isinstance(model, WholeModel) else symmetric(config.alpha, len(model.topic_word))
    return with_seeds(Topics(model.topic_word, Vocabulary(words), alpha, config.beta, model.sizes), config)
