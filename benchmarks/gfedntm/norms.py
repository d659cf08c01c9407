"""Norms of a neural topic model between parties: what FedAvg loses by each, and if SyncOpt can ask once per step.

20 Newsgroups (six natural parties), BBC news (a party is a section) and generated corpora (nodes with topics of their
own). BatchNorm with everybody's statistics, which SyncOpt sums in four questions per step, is the reference; it is
trained in one place, which it equals.

| norm | encoder and decoder are normalised by |
|---|---|
| batch | mean and variance of the batch (in FedAvg: of the party's own) |
| layer | each document's own |
| group | each document's own; the Gaussian's means and log variances apart |
| background | as `layer`; the decoder adds the logarithm of each word's frequency, which topics then need not hold |
| frozen | the shared running statistics, constant: no slope goes through them |
| renormed | the same values; slopes as if the batch's own statistics were used (Ioffe 2017) |
| mixed | the batch's own in the party's share of all documents, the shared ones for the rest |

Shared statistics are the mean over parties of what their batches showed; in one place they follow each step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.common import finish, parser, say
from benchmarks.gfedntm.tasks import Task, generated, real
from benchmarks.neural import autograd
from tertulia._arrays import F64, Array
from tertulia.methods.gfedntm.averaging import fedadam
from tertulia.metrics import dss, npmi, topic_diversity, tss
from tertulia.models.neural.architecture import Sizes
from tertulia.models.neural.backprop import EPS
from tertulia.models.neural.bags import Bags, Noise, Schedule
from tertulia.models.neural.network import Network
from tertulia.models.neural.optimiser import Adam, Moments
from tertulia.models.neural.prodlda import Inputs, Weights
from tertulia.models.neural.sparse import SlopesByName

NORMS = ("batch", "layer", "group", "background", "frozen", "renormed", "mixed")
MOMENTUM = 0.1


class Norm:
    """Both norms of one kind, and the statistics that they last saw."""

    def __init__(self, kind: str, statistics: Array, log_frequency: Tensor, share: float, features: int) -> None:
        self.kind, self.log_frequency, self.share = kind, log_frequency, share
        self.given = [torch.from_numpy(part) for part in np.split(statistics, [features], axis=1)]
        self.seen = list(self.given)

    def __call__(self, layer: int, raw: Tensor) -> Tensor:
        """Normalise what enters a norm."""
        mean, variance = raw.mean(dim=0), raw.var(dim=0, unbiased=False)
        self.seen[layer] = torch.stack((mean, variance)).detach()
        known_mean, known_variance = self.given[layer]
        if self.kind == "batch":
            return _scaled(raw, mean, variance)
        if self.kind == "frozen":
            return _scaled(raw, known_mean, known_variance)
        if self.kind == "renormed":
            scale = torch.sqrt((variance + EPS) / (known_variance + EPS)).detach()
            shift = ((mean - known_mean) * torch.rsqrt(known_variance + EPS)).detach()
            return torch.addcmul(shift, _scaled(raw, mean, variance), scale)
        if self.kind == "mixed":
            middle = self.share * mean + (1 - self.share) * known_mean
            spread = self.share * (variance + (mean - middle) ** 2)
            spread = spread + (1 - self.share) * (known_variance + (known_mean - middle) ** 2)
            return _scaled(raw, middle, spread)
        if self.kind == "group" and layer == 0:
            return torch.cat([_layer_norm(half) for half in raw.chunk(2, dim=1)], dim=1)
        return _layer_norm(raw) + (self.log_frequency if self.kind == "background" and layer == 1 else 0.0)

    def for_inference(self) -> Norm:
        """Return the norm for inference and for topics: where a batch's statistics were used, the shared ones."""
        statistics = np.concatenate([part.numpy() for part in self.given], axis=1)
        kinds = {"batch": "frozen", "renormed": "frozen", "mixed": "frozen"}
        kind = kinds.get(self.kind, self.kind)
        return Norm(kind, statistics, self.log_frequency, self.share, self.given[0].shape[1])


def _scaled(raw: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    normalised: Tensor = (raw - mean) * torch.rsqrt(variance + EPS)
    return normalised


def _layer_norm(raw: Tensor) -> Tensor:
    return functional.layer_norm(raw, raw.shape[1:], eps=EPS)


class Model(NamedTuple):
    """Weights, shared statistics, Adam's moments and the mean loss of a document."""

    flat: Array
    statistics: Array
    moments: Moments | None
    loss: float


class Trainer:
    """Trains one kind of norm on one task."""

    def __init__(self, task: Task, kind: str, seed: int, learning_rate: float, batch_size: int) -> None:
        self.task, self.kind, self.seed = task, kind, seed
        self.learning_rate, self.batch_size = learning_rate, batch_size
        shifts = kind in ("layer", "group", "background", "frozen")  # where a mean survives the norm
        sizes = Sizes(len(task.whole.vocabulary), task.topics, shifts=shifts)
        self.network = Network("prodlda", sizes, "layer" if shifts else "batch")
        counts = np.log(np.bincount(task.whole.words, minlength=sizes.words) + 1.0)
        self.log_frequency = torch.from_numpy((counts - counts.mean()).astype(np.float32))

    def start(self) -> Model:
        """Return the state before the first step."""
        return Model(self.network.initial_weights(self.seed), self.network.initial_statistics(), None, 0.0)

    def norm(self, statistics: Array, share: float = 1.0) -> Norm:
        """Return the norms at these statistics."""
        return Norm(self.kind, statistics, self.log_frequency, share, self.network.features[0])

    def steps(self, model: Model, bags: Bags, turns: range, share: float, follow: bool) -> Model:
        """Take some steps of Adam. With `follow` the shared statistics follow each step; else they wait for the end."""
        flat, running = model.flat.copy(), model.statistics.copy()
        optimiser = Adam(self.network, flat, self.learning_rate, (0.99, 0.99), model.moments)
        schedule = Schedule.over(bags.n_documents, self.batch_size, self.seed)
        total, documents, norm = 0.0, 0, self.norm(model.statistics, share)
        for turn in turns:
            batch = schedule.batch(bags, turn)
            if batch.size < 2:
                continue
            inputs = self.network.inputs(batch, Noise(self.seed, turn))
            optimiser.catch_up(inputs.bow.by_word.words)
            if follow:
                norm = self.norm(running, share)
            loss, seen, slopes = self.step(flat, inputs, norm)
            optimiser.step(slopes, 1.0 / batch.size)
            running += MOMENTUM * (seen - running)
            total, documents = total + loss, documents + batch.size
        optimiser.finish()
        return Model(flat, running, optimiser.moments, total / max(1, documents))

    def step(self, flat: Array, inputs: Inputs, norm: Norm) -> tuple[float, Array, SlopesByName]:
        """Return the summed loss of a batch, its statistics, and the gradient."""
        weights = self.network.tensors(flat)
        if self.kind == "batch":  # by hand, which is faster
            found = self.network.value(weights, inputs)
            assert found.statistics is not None
            return found.loss, found.statistics, found.slopes
        for weight in weights.values():
            weight.requires_grad_()
        loss = self.losses(weights, inputs, norm)
        slopes = torch.autograd.grad(loss, list(weights.values()))
        named: SlopesByName = {name: g.numpy() for name, g in zip(weights, slopes, strict=True)}
        return loss.item(), torch.cat(norm.seen, dim=1).numpy(), named

    def losses(self, weights: Weights, inputs: Inputs, norm: Norm) -> Tensor:
        """Return the summed loss of a batch."""
        return autograd.losses(self.network, weights, inputs, norm).sum()

    def scores(self, model: Model) -> dict[str, float]:
        """Score the topics."""
        norm = self.norm(model.statistics).for_inference()
        weights = {name: torch.from_numpy(part) for name, part in self.network.named(model.flat).items()}
        with torch.no_grad():
            topic_word = torch.softmax(norm(1, weights["beta"]).double(), dim=1).numpy()
        words = self.task.whole.vocabulary.words
        tops = [[words[v] for v in np.argsort(-row)[:10]] for row in topic_word]
        found = {"diversity": topic_diversity(topic_word), "loss": model.loss}
        if self.task.truth is None:
            return {"npmi": npmi(tops, self.task.whole).mean, **found}
        beta, theta, documents = self.task.truth
        bags = Bags.of(documents, wordless=True)
        with torch.no_grad():
            inputs = self.network.inputs(bags.select(np.arange(bags.n_documents)), None)
            mean, _ = norm(0, autograd.encode(weights, inputs)).chunk(2, dim=1)
            shares = torch.softmax(mean, dim=1).numpy()
        return {"tss": tss(beta, topic_word), "dss": dss(theta, shares), **found}


def in_one_place(trainer: Trainer, steps: int) -> dict[str, float]:
    """Take SyncOpt's steps on the union of all parties' batches."""
    parties = trainer.task.parties.values()
    fields = zip(*((b.words, b.counts, np.diff(b.offsets), b.keys) for b in parties), strict=True)
    words, counts, lengths, keys = (np.concatenate(field) for field in fields)
    union = Bags(words, counts, np.concatenate(([0], np.cumsum(lengths))), keys, None)
    return trainer.scores(trainer.steps(trainer.start(), union, range(steps), 1.0, True))


def asked_once(trainer: Trainer, steps: int) -> dict[str, float]:
    """Take SyncOpt's steps with one question: parties use given statistics, and send their batch's along."""
    parties = list(trainer.task.parties.values())
    documents = sum(bags.n_documents for bags in parties)
    schedule = Schedule.over(documents, trainer.batch_size, trainer.seed)
    flat, running, _, _ = trainer.start()
    optimiser = Adam(trainer.network, flat, trainer.learning_rate, (0.99, 0.99))
    for turn in range(steps):
        norm, total, found = trainer.norm(running), 0, []
        for batch in (schedule.batch(bags, turn) for bags in parties):
            if batch.size >= 2:
                found.append((batch.size, trainer.step(flat, trainer.network.inputs(batch, Noise(0, turn)), norm)))
                total += batch.size
        summed: SlopesByName = {n: np.sum([s[n] for _, (_, _, s) in found], axis=0) for n in trainer.network.shapes}
        optimiser.step(summed, 1.0 / total)
        centre = sum(n * seen[0] for n, (_, seen, _) in found) / total
        square = sum(n * (seen[1] + seen[0] ** 2) for n, (_, seen, _) in found) / total
        running += MOMENTUM * (np.stack((centre, square - centre**2)) - running)
    return trainer.scores(Model(flat, running.astype(np.float32), None, 0.0))


class Server(NamedTuple):
    """FedAdam's settings."""

    rate: float
    tau: float
    momentum: float


def average(trainer: Trainer, rounds: int, local_steps: int, server: Server | None) -> dict[str, float]:
    """Run FedAvg with averaged moments; with a server's settings, FedAdam."""
    parties = trainer.task.parties
    shares = np.array([bags.n_documents for bags in parties.values()], np.float64)
    shares /= shares.sum()
    model, outer = trainer.start(), None
    for turn in range(rounds):
        turns = range(turn * local_steps, (turn + 1) * local_steps)
        ends = [trainer.steps(model, b, turns, s, False) for b, s in zip(parties.values(), shares, strict=True)]
        model, outer = _combine(model, ends, shares, server, outer)
    return trainer.scores(model)


def _combine(
    model: Model, ends: list[Model], shares: F64, server: Server | None, outer: Array | None
) -> tuple[Model, Array | None]:
    def mean(parts: list[Array]) -> Array:
        return np.average(parts, axis=0, weights=shares).astype(np.float32)

    flat = mean([end.flat for end in ends])
    if server is not None:
        flat, outer = fedadam(model.flat, flat - model.flat, outer, *server)
    centre = mean([end.statistics[0] for end in ends])
    square = mean([end.statistics[1] + end.statistics[0] ** 2 for end in ends])
    known = [end.moments for end in ends if end.moments is not None]
    moments = Moments(mean([m.values for m in known]), known[0].steps)
    loss = float(shares @ [end.loss for end in ends])
    return Model(flat, np.stack((centre, square - centre**2)), moments, loss), outer


def main() -> None:
    """Score each norm in one place and under FedAvg, or FedAdam."""
    options = parser("Norms of neural topic models between parties")
    options.add_argument(
        "--corpora", nargs="+", choices=("newsgroups", "bbc", "generated"), default=["newsgroups", "bbc", "generated"]
    )
    options.add_argument("--in-one-place", nargs="*", choices=NORMS, default=["batch", "layer"])
    options.add_argument("--asked-once", nargs="*", choices=NORMS[2:], default=["frozen", "renormed"])
    options.add_argument("--averaged", nargs="*", choices=NORMS, default=list(NORMS))
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--first-seed", type=int, default=0)
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--local-steps", type=int, default=100)
    options.add_argument("--steps", type=int, default=6000, help="of training in one place")
    options.add_argument("--topics", type=int, default=50, help="of 20 Newsgroups and BBC")
    options.add_argument("--server-rate", type=float, help="of FedAdam; without, FedAvg")
    options.add_argument("--server-tau", type=float, default=0.1)
    options.add_argument("--server-momentum", type=float, default=0.0)
    chosen = options.parse_args()
    torch.set_num_threads(1)
    server = None
    if chosen.server_rate is not None:
        server = Server(chosen.server_rate, chosen.server_tau, chosen.server_momentum)
    result: dict[str, Any] = {"seeds": chosen.seeds}
    for name in chosen.corpora:
        rows: dict[str, list[dict[str, float]]] = {}
        for seed in range(chosen.first_seed, chosen.first_seed + (1 if chosen.quick else chosen.seeds)):
            task = generated(seed) if name == "generated" else real(name, chosen.topics)
            size, rate = (100, 0.005) if name == "generated" else (64, 0.002)
            steps = 360 if name == "generated" else chosen.steps
            for way, kinds in ((in_one_place, chosen.in_one_place), (asked_once, chosen.asked_once)):
                for kind in kinds:
                    found = way(Trainer(task, kind, seed, rate, size), steps)
                    rows.setdefault(f"{kind}, {way.__name__}", []).append(found)
                    say(f"{name}, seed {seed}, {kind}, {way.__name__}, {steps} steps: {found}")
            local = (33, 0.002) if name == "generated" else (size, rate)
            for kind in chosen.averaged:
                trainer = Trainer(task, kind, seed, local[1], local[0])
                found = average(trainer, chosen.rounds, chosen.local_steps, server)
                rows.setdefault(f"{kind}, averaged", []).append(found)
                say(f"{name}, seed {seed}, {kind}, {chosen.rounds} rounds: {found}")
        result[name] = {
            row: {key: [round(one[key], 4) for one in found] for key in found[0]} for row, found in rows.items()
        }
    finish({"benchmark": "gfedntm_norms", **result})


if __name__ == "__main__":
    main()
