"""Early stopping by validation documents (gFedNTM, sec. 4.1: a 75:25 split), of which only the mean loss leaves.

The loss is that of training, see `models.neural.validation`. Where norms share their statistics in training, they do
here: two more sums. Parties that train with statistics of their own validate with them.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tertulia._arrays import Array
from tertulia.federation import fields
from tertulia.federation.types import Federation, Party, Planned, message, step
from tertulia.methods.common.rounds import Metrics
from tertulia.methods.common.vocabulary import DOCUMENTS
from tertulia.methods.gfedntm.disclosures import VALIDATION, VALIDATION_STATISTICS
from tertulia.methods.gfedntm.limits import check_finite, ends_epoch
from tertulia.methods.gfedntm.messages import (
    BestModel,
    MomentSums,
    NeuralState,
    NeuralTask,
    check_known,
    check_norms,
    task_of,
)
from tertulia.methods.gfedntm.settings import GFedNTMSettings
from tertulia.models.neural.synchronised import statistics_of
from tertulia.models.neural.validation import loss_under, validation_loss, validation_moments

_NOBODY = 1e-12  # the weight of a party that has no validation document


@message
class ValidationTask:
    """The weights to validate, and the statistics of all parties' validation documents, as far as they are known."""

    task: NeuralTask
    statistics: tuple[fields.Pairs, ...]

    def check(self) -> None:
        """Refuse statistics of another network."""
        check_norms(self.task.network, self.statistics)


@message
class ValidationLoss:
    """A party's part of the mean validation loss."""

    loss: Array  # scalar
    weight: Array  # scalar: documents


@step
def sum_validation(party: Party, state: Any, ask: ValidationTask) -> tuple[Any, MomentSums]:
    """Sums that make the next norm's statistics over validation documents."""
    task, (_, bags) = ask.task, ask.task.agreement.split(party)
    check_known(ask.statistics, 0, 1)
    values = validation_moments(task.network, task.weights, bags, task.seed, ask.statistics)
    return state, MomentSums(
        party.release(values, VALIDATION_STATISTICS), party.release(np.array(bags.n_documents), DOCUMENTS)
    )


@step
def validate(party: Party, state: Any, ask: ValidationTask) -> tuple[Any, ValidationLoss]:
    """How well the shared weights explain documents that took no part in training."""
    task, (_, bags) = ask.task, ask.task.agreement.split(party)
    check_known(ask.statistics, 0, 2)
    if ask.statistics:
        loss = loss_under(task.network, task.weights, bags, task.seed, ask.statistics)
    else:
        loss = validation_loss(task.network, task.weights, bags, task.seed)
    weight = float(bags.n_documents) or _NOBODY
    return state, ValidationLoss(party.release(np.array(loss), VALIDATION), party.release(np.array(weight), DOCUMENTS))


def validate_epoch(config: GFedNTMSettings, fed: Federation, state: NeuralState) -> tuple[NeuralState, Metrics]:
    """After each epoch, ask for the validation loss, note it, and remember the weights if it is the least so far."""
    if not (config.validation and ends_epoch(config, state)):
        return state, {}
    task, known = task_of(config, state), tuple[Array, ...]()
    if config.norm == "sync":
        for _ in task.network.features:
            sums = fed.sum(sum_validation, ValidationTask(task, known))
            found = statistics_of(sums.values, float(sums.documents))
            check_finite(found)
            known = (*known, found)
    loss = float(fed.mean(validate, ValidationTask(task, known)).loss)
    best = state.best
    if best is None or loss < best.loss:
        best = BestModel(loss, state.weights, state.statistics)
    return dataclasses.replace(state, best=best, losses=(*state.losses, loss)), {"validation": loss}


def plan_validation(config: GFedNTMSettings, times: int) -> list[Planned]:
    """What will leave a party by so many validations."""
    if not config.validation:
        return []
    losses = [Planned(validate, "mean", how, times) for how in (VALIDATION, DOCUMENTS)]
    if config.norm != "sync":
        return losses
    return losses + [Planned(sum_validation, "sum", how, 2 * times) for how in (VALIDATION_STATISTICS, DOCUMENTS)]
