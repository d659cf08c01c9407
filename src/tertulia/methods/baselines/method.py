"""The two scenarios that every paper compares with: each party alone, and all documents in one place.

*Non-collaborative*: parties agree on a vocabulary, so that their models can be compared, and then train alone.
*Centralised* is the same method in a federation whose one party holds everybody's documents.
"""

from __future__ import annotations

from tertulia.corpus import Vocabulary
from tertulia.federation.types import Federation, PartyId, Planned, message
from tertulia.methods.baselines.settings import AloneSettings
from tertulia.methods.common.priors import symmetric
from tertulia.methods.common.result import Trained
from tertulia.methods.common.vocabulary import DOCUMENTS, agree, plan_vocabulary, propose_words
from tertulia.methods.ftm.local import SIZES, WHAT, in_clear
from tertulia.methods.ftm.method import LocalTask, SizedModel, train_local
from tertulia.models import Topics
from tertulia.privacy.mechanisms import Clear


@message
class AloneState:
    """What the server keeps: the vocabulary, then also the models."""

    words: tuple[str, ...]
    models: dict[PartyId, SizedModel]


def plan(config: AloneSettings) -> list[Planned]:
    """Everything that will leave a party, for `tertulia check`."""
    pushed = [Planned(train_local, "each", mechanism, 1) for mechanism in (Clear(WHAT), DOCUMENTS, Clear(SIZES))]
    return [*plan_vocabulary(config.vocabulary), *pushed]


STEPS = (propose_words, train_local)


def train(fed: Federation, config: AloneSettings, state: AloneState | None = None) -> Trained:
    """Train every party alone, with as many sweeps as all rounds of a federation together."""
    if state is None:
        state = fed.commit(AloneState(agree(fed, config.vocabulary).words, {}))
    if not state.models:
        task = LocalTask(state.words, in_clear(config, config.sweeps), None, with_sizes=True)
        state = fed.commit(AloneState(state.words, fed.each(train_local, task)))
    local = {
        party: Topics(
            model.topic_word,
            Vocabulary(state.words),
            symmetric(config.alpha, len(model.topic_word)),
            config.beta,
            model.sizes,
        )
        for party, model in state.models.items()
    }
    return Trained(next(iter(local.values())), local)
