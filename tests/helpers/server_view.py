"""Everything that the server of a run sees: the replies to its questions, as it gets them."""

import importlib
import tempfile
import warnings
from contextlib import closing

import numpy as np

from helpers.masked_toys import handle_of
from tertulia.corpus import Corpus
from tertulia.federation.types import step_name
from tertulia.methods.registry import entry_of
from tertulia.runs.driver import settings_of
from tertulia.runs.one_machine import begin
from tertulia.runs.settings import RunSettings


class Watched:
    """The server's handle, with a list of all replies."""

    def __init__(self, handle):
        self._handle, self.seen = handle, []

    def __getattr__(self, name):
        return getattr(self._handle, name)

    def _note(self, verb, step, message):
        reply = getattr(self._handle, verb)(step, message)
        self.seen.append((step_name(step).partition(":")[2], reply))
        return reply

    def sum(self, step, message):
        return self._note("sum", step, message)

    def each(self, step, message):
        return self._note("each", step, message)


def view(method, texts, names, seed=0, **federation):
    """Train on lists of texts by party, over a public list; return the replies by step, and the topics [K, V]."""
    corpora = {party: Corpus.from_texts(own, [f"{party}{i}" for i in range(len(own))]) for party, own in texts.items()}
    public = {"mode": "public", "words": tuple(names)}
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the quality of topics
        settings = RunSettings(
            directory=f"{place}/run", method={**method, "vocabulary": public}, heldout=0.0, seed=seed,
            parties={party: {} for party in texts}, federation=federation,
        )  # fmt: skip
        run = begin(settings, corpora, durable=False)
        with closing(run.transport("local", 1, corpora)) as transport:
            fed = Watched(handle_of(run, transport))
            config = settings_of(run).method
            trained = importlib.import_module(entry_of(config).module).train(fed, config, None)
    index = trained.topics.vocabulary.index
    return fed.seen, np.asarray(trained.topics.topic_word)[:, [index[name] for name in names]]


def replies(seen, step):
    """The replies to one step, in order."""
    return [reply for name, reply in seen if name == step]
