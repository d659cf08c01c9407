"""A malicious party: it answers frames as it likes, where an engine would carry an honest party's answers."""

import numpy as np

from helpers import toys
from tertulia.federation.codec import encode
from tertulia.federation.messages import Answer
from tertulia.federation.server.handle import Handle, Terms
from tertulia.federation.server.journal import Journal


class Parties:
    """A transport whose parties answer by functions of the frame."""

    def __init__(self, **answers):
        self.answers = answers
        self.parties = list(answers)

    def ask(self, frames, timeout):
        return {party: self.answers[party](frame) for party, frame in frames.items()}

    def close(self):
        pass


def honest(value=1.0, weight=2.0):
    """A party that answers every question alike."""
    reply = toys.Weighted(np.array([value]), np.array(weight))
    return lambda frame: encode(Answer("ok", "", reply))


def sends(reply):
    """A party whose answers carry this reply."""
    return lambda frame: encode(Answer("ok", "", reply))


def server(directory, on_failure="skip", **answers):
    """The server's handle, with a list that collects its warnings."""
    warnings = []

    def observe(kind, facts):
        if kind == "warning":
            warnings.append(facts["text"])

    terms = Terms(on_failure=on_failure)
    return Handle("run", Parties(**answers), Journal(directory, durable=False), terms, observe), warnings
