"""A malicious server against the members of a run with secure sums: it sends what it likes, to whom it likes."""

import dataclasses
from contextlib import ExitStack, closing

import numpy as np

from helpers import masked_toys as toys
from tertulia.federation.codec import decode, encode
from tertulia.federation.messages import BEFORE_ALL, Ask, Exchange, Question
from tertulia.federation.secure.keys import hash_of_cards
from tertulia.federation.secure.lists import Label, SumList, body_hash
from tertulia.federation.secure.messages import ListedSum
from tertulia.federation.types import step_name


class Members:
    """The members of a run that have agreed on keys, each in its own host."""

    def __init__(self, directory, n=5, **settings):
        self.run = toys.begun(directory / "run", n, **settings)
        self._stack = ExitStack()
        self.transport = self._stack.enter_context(closing(self.run.transport("local", 1)))
        self.fed = toys.handle_of(self.run, self.transport)
        self.sums, self.plan = self.fed._sums, self.fed.plan
        self.keys = hash_of_cards(toys.sums_of(self.run).cards_or_none())
        self.names = list(self.run.parties)

    def close(self):
        self._stack.close()

    def answer(self, party, frame):
        return decode(self.transport.hosts[party].answer(frame))

    def ask(self, party, step, message, place=(0, 0), verb="sum", **envelope):
        """Ask a party for a masked reply."""
        facts = {"previous": BEFORE_ALL, "safe": 0, "durable": True, "plan": self.plan, "attempt": 0} | envelope
        body = encode(Ask(verb, step_name(step), message))
        return self.answer(party, Question(self.run.id, place, body=body, **facts).to_bytes())

    def replies(self, step, message, place=(0, 0), parties=None, **envelope):
        found = {p: self.ask(p, step, message, place, **envelope) for p in parties or self.names}
        assert all(answer.kind == "ok" for answer in found.values()), found
        return {party: answer.reply for party, answer in found.items()}

    def label(self, step, message, place=(0, 0), attempt=0, verb="sum", widths=()):
        question = Question(self.run.id, place, BEFORE_ALL, 0, True, encode(Ask(verb, step_name(step), message)))
        return Label(self.keys, place, body_hash(question.hash, widths), attempt)

    def listed(self, label, replies):
        return SumList(label, {party: reply.digest.tobytes().hex() for party, reply in replies.items()})

    def exchange(self, party, message):
        return self.answer(party, Exchange(self.run.id, self.plan, encode(message)).to_bytes())

    def present(self, party, listed, replies, signatures=None):
        """Show a list to a party: its signature, or with signatures its shares."""
        own = self.names.index(party)
        boxes = np.stack([reply.boxes[own] for reply in replies.values()])
        return self.exchange(party, ListedSum.of(listed, boxes, signatures))

    def signatures(self, listed, replies, parties=None):
        found = {p: self.present(p, listed, replies) for p in parties or self.names}
        return {p: a.reply.signature for p, a in found.items() if a.kind == "ok"}

    def unmask(self, label, replies, signatures, parties=None):
        """Collect shares for a list, and unmask its total, as the server does."""
        listed = self.listed(label, replies)
        given = {p: self.present(p, listed, replies, signatures) for p in parties or self.names}
        shares = {p: answer.reply for p, answer in given.items() if answer.kind == "ok"}
        first = next(iter(replies.values()))
        found = self.sums.add_up(  # with the server's own code
            label.place, step_name(toys.contribute), "", dataclasses.replace(self.sums.masking("")), replies
        )
        found = dataclasses.replace(found, survivors=listed.survivors, body=label.body, attempt=label.attempt)
        assert len(vars(first.values)) == len(found.shapes)
        return self.sums._unmask(label.place, found, self.sums._seeds(found, shares))


def refused(answer, rule=None):
    """Whether an answer is a refusal, by this rule if given."""
    return answer.kind == "refused" and (rule is None or f"'{rule}'" in answer.text)
