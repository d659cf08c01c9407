"""A party that poisons: it answers as an honest one would, but for the numbers by which a shared model is bent."""

import dataclasses
from contextlib import contextmanager, nullcontext
from unittest.mock import patch

import numpy as np

from tertulia.federation.codec import decode, encode
from tertulia.federation.messages import Answer
from tertulia.federation.packing import unpack
from tertulia.methods.common.local_lda import LocalModel, SizedModel
from tertulia.methods.consensus import contribution
from tertulia.methods.consensus.messages import Counts


class Poisoned:
    """A transport on whose way one party's replies are exchanged.

    With `minds` the party's own software goes on as it is: it fails if a sum that should hold its counts does not.
    With `sweeps`, the number per round, replies are differences: so are the poisoned ones, to the lies sent before.
    """

    def __init__(self, transport, party, poison, minds=False, sweeps=None):
        self._transport, self._party, self._poison, self._minds = transport, party, poison, minds
        self._sweeps, self._truth, self._lie = sweeps, {}, {}

    @property
    def parties(self):
        """As they are."""
        return self._transport.parties

    def ask(self, frames, timeout):
        """Everybody's answers, one of them poisoned where it is about topics."""
        others = {party: frame for party, frame in frames.items() if party != self._party}
        answers = self._transport.ask(others, timeout)
        if self._party in frames:
            with nullcontext() if self._minds else no_less_than_nothing():
                answers |= self._transport.ask({self._party: frames[self._party]}, timeout)
            answer = decode(unpack(answers[self._party]))
            if answer.kind == "ok" and isinstance(answer.reply, LocalModel | Counts):
                answers[self._party] = encode(Answer("ok", "", self._changed(answer.reply)))
        return answers

    def _changed(self, reply):
        if self._sweeps is None or isinstance(reply, LocalModel):
            return self._poison(reply)
        fields = {field.name: np.asarray(getattr(reply, field.name), np.int64) for field in dataclasses.fields(reply)}
        if len(fields["added"]):
            fields["added"] = fields["added"] + self._sweeps * self._truth.get("counts", 0)
        whole = {name: x if name == "added" else x + self._truth.get(name, 0) for name, x in fields.items()}
        lie = dict(vars(self._poison(dataclasses.replace(reply, **whole))))
        sent = {name: np.asarray(x, np.int64) - self._lie.get(name, 0) for name, x in lie.items() if name != "added"}
        sent["added"] = lie["added"] - self._sweeps * self._lie.get("counts", 0) if len(lie["added"]) else lie["added"]
        self._truth, self._lie = ({n: x for n, x in y.items() if n != "added"} for y in (whole, lie))
        return dataclasses.replace(reply, **sent)

    def close(self):
        """Let the parties go."""
        self._transport.close()


@contextmanager
def no_less_than_nothing():
    """Where the sum is below a party's own counts, the others have none, instead of an error."""
    check = contribution.check_counts

    def clamp(others):
        check(np.maximum(others, 0, out=others))

    with patch.object(contribution, "check_counts", clamp):
        yield


def random_topics(seed):
    """Topics that are drawn once and kept to: a few words each, at random, as many tokens as the party has."""

    def poison(reply):
        shape = _topics(reply).shape
        drawn = np.random.default_rng(seed).gamma(0.05, size=shape) + 1e-12
        return _with_topics(reply, drawn / drawn.sum(axis=1, keepdims=True))

    return poison


def scaled(factor):
    """Multiply what the party has: its counts, its documents, the sizes of its topics."""

    def poison(reply):
        shares = ("topic_word",)  # rows sum to 1
        names = [field.name for field in dataclasses.fields(reply) if field.name not in shares]
        wide = {name: np.asarray(getattr(reply, name)) for name in names}
        times = {name: (x.astype(np.int64) if x.dtype.kind in "iu" else x) * factor for name, x in wide.items()}
        return dataclasses.replace(reply, **times)

    return poison


def copied_topics(reply):
    """Every topic is the party's largest one."""
    rows = _topics(reply).astype(np.float64)
    sizes = reply.sizes if isinstance(reply, SizedModel) else rows.sum(axis=1)
    largest = rows[int(np.argmax(sizes))]
    return _with_topics(reply, np.tile(largest / largest.sum(), (len(rows), 1)))


def mixed_topics(seed):
    """Each word is as frequent as it was, but in the topics of others: what a party does that hopes to pass."""

    def poison(reply):
        rows = _topics(reply)
        order = np.tile(np.arange(len(rows))[:, None], (1, rows.shape[1]))
        order = np.random.default_rng(seed).permuted(order, axis=0)
        if isinstance(reply, Counts):
            mixed = {name: np.take_along_axis(x, order, 0) for name, x in _tables(reply).items()}
            return dataclasses.replace(reply, **mixed)
        mixed = np.take_along_axis(rows, order, 0)
        return _with_topics(reply, mixed / mixed.sum(axis=1, keepdims=True))

    return poison


def _topics(reply):
    return reply.counts if isinstance(reply, Counts) else reply.topic_word


def _tables(reply):
    return {name: x for name in ("counts", "added") if len(x := getattr(reply, name))}


def _with_topics(reply, phi):
    """The reply with these topics, of one size each."""
    if isinstance(reply, LocalModel):
        return dataclasses.replace(reply, topic_word=phi.astype(np.float32))
    tables = _tables(reply).items()
    return dataclasses.replace(reply, **{name: np.rint(phi * x.sum() / len(x)).astype(x.dtype) for name, x in tables})
