"""Mode `doc`: SyncOpt with differential privacy for documents (DP-SGD: Abadi et al. 2016).

In each step every document takes part with probability q, by a coin that its party keeps secret. A party sums the
clipped gradients of those that do, on a grid, and adds its share of the noise: all of it, unless sums are masked. The
server divides the total by q times the number of documents that parties declare. The number that took part would
itself be a secret. Nothing else leaves: no counts, no loss, no statistics of norms (LayerNorm needs none), no sizes of
topics. The number of steps is fixed beforehand, and with it the noise.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tertulia.errors import ConfigError, FormatError
from tertulia.federation import fields
from tertulia.federation.types import Federation, Party, Planned, message, step
from tertulia.methods.common.rounds import Metrics
from tertulia.methods.gfedntm.averaging import descend
from tertulia.methods.gfedntm.early_stopping import check_finite
from tertulia.methods.gfedntm.messages import NeuralState, NeuralTask, task_of
from tertulia.methods.gfedntm.settings import DocumentNoise, GFedNTMSettings
from tertulia.models.neural.bags import Noise
from tertulia.models.neural.clipped import Clipping, clipped_sum
from tertulia.models.neural.optimiser import Moments
from tertulia.privacy.calibration import noise_multiplier_for
from tertulia.privacy.mechanisms import Claim
from tertulia.privacy.mechanisms.sampled_gaussian import SampledGaussian
from tertulia.privacy.mechanisms.things import thing

BITS = 16  # of the grid: steps of clip 2^-16
WHAT = thing(
    "noisy sum of clipped gradients", "the direction in which a sample of documents moves the network, under noise"
)


@message
class PrivateTask:
    """The weights at which parties compute gradients, and how they clip, sample and add noise."""

    task: NeuralTask
    noise: DocumentNoise

    def check(self) -> None:
        """Refuse a network that mixes documents."""
        if self.task.architecture.normalisation != "layer" or self.task.architecture.kind != "prodlda":
            raise FormatError("mode 'doc' trains ProdLDA with LayerNorm")


@message
class NoisySum:
    """A party's sum of clipped gradients with its noise, in steps of the grid; only the total is revealed."""

    total: fields.NoisySum


@step(doing="training")
def send_noisy_sum(party: Party, state: Any, ask: PrivateTask) -> tuple[Any, NoisySum]:
    """Send the sum of the clipped gradients of sampled documents, with noise."""
    task, how = ask.task, ask.noise
    mechanism = mechanism_of(how, party.setting("epsilon", None), party.noise_shares)
    bags = task.agreement.bags(party)
    contents = (bags.keys, bags.offsets, bags.words, bags.counts)
    chosen = party.sample(how.sampling_rate, contents, bags.n_documents)
    clipping = Clipping(how.clip, BITS)
    total = clipped_sum(task.network, task.weights, bags, chosen, Noise(task.seed, task.step), clipping)
    return state, NoisySum(party.release(total, mechanism))


def mechanism_of(noise: DocumentNoise, own_epsilon: float | None = None, shares: int = 1) -> SampledGaussian:
    """Return the mechanism of each step: a party's own epsilon can only add noise. The clip norm is the unit."""
    wanted = noise.epsilon if own_epsilon is None else min(own_epsilon, noise.epsilon or own_epsilon)
    if wanted is None:
        raise FormatError("mode 'doc' needs an epsilon")
    sigma = noise_multiplier_for(wanted, noise.delta, noise.sampling_rate, noise.rounds)
    claim = Claim(wanted, noise.delta, f"all {noise.rounds} steps")
    return SampledGaussian(
        WHAT, sensitivity=1.0, sigma=sigma, bits=BITS, shares=shares, rate=noise.sampling_rate, claimed=claim
    )


def expected_documents(config: GFedNTMSettings) -> float:
    """Return the constant by which sums are divided: the documents that take part in a step, as declared."""
    return config.sampling_rate * (config.declared_documents or 1)


def plan_private(config: GFedNTMSettings) -> list[Planned]:
    """List what will leave a party; raise `ConfigError` if the noise would drown any gradient."""
    noise = config.part(DocumentNoise)
    mechanism, expected = mechanism_of(noise), expected_documents(config)
    if mechanism.sigma >= expected:
        raise ConfigError(
            f"epsilon = {config.epsilon:g} is too small for {config.declared_documents} documents and {noise.rounds} "
            f"steps: in each single weight the noise ({mechanism.sigma:.3g}) is as large as all that the "
            f"{expected:.3g} documents of a step can add up to. Nothing was spent; raise epsilon or sampling_rate, or "
            "lower rounds"
        )
    return [Planned(send_noisy_sum, "sum", mechanism, noise.rounds)]


def private_round(fed: Federation, config: GFedNTMSettings, state: NeuralState) -> tuple[NeuralState, Metrics]:
    """Take one step of the server's optimiser along the noisy sum, divided by a constant."""
    total = fed.sum(send_noisy_sum, PrivateTask(task_of(config, state), config.part(DocumentNoise))).total
    gradient = np.ldexp(total.astype(np.float64), -BITS) * (config.clip / expected_documents(config))
    moments = Moments(state.moments, state.step)
    weights, moved = descend(config, state.weights, gradient.astype(state.weights.dtype), moments)
    check_finite(weights)
    return dataclasses.replace(state, step=state.step + 1, weights=weights, moments=moved), {}
