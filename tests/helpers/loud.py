"""A method whose step is noisy: it prints, warns and fails with words of documents on its lips."""

import os
import sys
import warnings

import numpy as np

from tertulia.federation.types import Nothing, Planned, message, step
from tertulia.privacy.mechanisms import Public

DOCUMENTS = Public("number of documents")


@message
class Size:
    documents: object


@step
def count(party, state, ask: Nothing):
    """Say too much, in every way that a library has."""
    texts = party.documents().vocabulary.words
    print("stdout", *texts, flush=True)
    print("stderr", *texts, file=sys.stderr, flush=True)
    os.write(2, f"descriptor {texts}\n".encode())
    warnings.simplefilter("always")
    warnings.warn(f"warning {texts}", stacklevel=1)
    party.notice(f"notice {texts}")
    return state, Size(party.release(np.array(party.documents().n_documents), DOCUMENTS))


@step
def fail(party, state, ask: Nothing):
    raise ValueError(str(party.documents().vocabulary.words))


STEPS = (count, fail)


def plan(config):
    return [Planned(one, "each", DOCUMENTS, 1) for one in STEPS]


def train(fed, config, state):
    """Ask for one of the two."""
    sizes = fed.each(fail if config.get("fail") else count, Nothing())
    return {party: int(size.documents) for party, size in sizes.items()}
