"""A party with a home and a strict policy, a hostile server's questions as frames, and a tiny method to ask for."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import polars as pl

from tertulia.corpus import Corpus, Vocabulary
from tertulia.federation.codec import decode, encode
from tertulia.federation.messages import BEFORE_ALL, Answer, Ask, Question
from tertulia.federation.party.host import PartyConfig, PartyHost
from tertulia.federation.types import Nothing, message, step, step_name
from tertulia.kernels.reports import Channel, reports_of_documents
from tertulia.privacy import chain
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.mechanisms import Derived, DiscreteLaplace
from tertulia.privacy.mechanisms.noisy_tables import NoisyTable
from tertulia.privacy.mechanisms.token_reports import TokenReports

WORDS = ("ache", "burn", "cold", "dose", "fever")
LATER = ("limits", "users", "documents_of_user", "unnamed_users")  # what rows of ledgers have held since
STRICT = "allow_clear = false\nallow_metrics = false\n"
BUDGET = '[[budget]]\nunit = "token"\nadjacency = "substitute"\nepsilon = {}\ndelta = 0.0\n'


@message
class Values:
    values: object


@message
class Turns:
    turns: int


@step
def count(party, state, ask: Nothing):
    """Noisy counts of the words, and a state that moves on with each question."""
    turns = 0 if state is None else state.turns
    words = party.documents(Vocabulary(WORDS)).words
    counts = np.bincount(words, minlength=len(WORDS)) * turns
    return Turns(turns + 1), Values(party.release(counts, DiscreteLaplace("counts", sensitivity=1, epsilon=0.1)))


@step
def tabulate(party, state, ask: Nothing):
    words = party.documents(Vocabulary(WORDS)).words
    cells = np.bincount(words, minlength=len(WORDS))[None] << 20
    return state, Values(party.release(cells, NoisyTable("table", sigma=4.0)))


@step
def report(party, state, ask: Nothing):
    """The reports of all tokens, in order."""
    corpus, channel = party.documents(Vocabulary(WORDS)), Channel("krr", 1.0, len(WORDS))
    made = party.randomise(corpus, TokenReports("reports of tokens", channel=channel))
    idx = reports_of_documents(corpus.words, corpus.documents, channel, made.documents).idx
    return state, Values(party.release(idx, Derived("reports", parents=made.parents)))


@step
def measure_lengths(party, state, ask: Nothing):
    lengths = party.documents().lengths
    return state, Values(party.release(lengths, DiscreteLaplace("lengths", sensitivity=1, epsilon=1000.0)))


STEPS = (count, tabulate, report, measure_lengths)


def corpus_of(texts, ids=None, users=None) -> Corpus:
    corpus = Corpus.from_texts(texts, ids=ids)
    if users is None:
        return corpus
    return dataclasses.replace(corpus, table=corpus.table.with_columns(pl.Series("user", users)))


def as_written_before(host: PartyHost, directory: Path) -> None:
    """Give a party the ledger that an earlier version would have written: without limits, and without users."""
    old, rows = Ledger(directory / "earlier.sqlite", durable=False), host.ledger.entries()
    (former,) = host.policy.bounds.policies
    for entry, seq, _ in rows:
        if seq:
            body = {name: value for name, value in json.loads(entry.body).items() if name not in LATER}
            earlier = entry._replace(body=json.dumps(body), policy=former)
            chain.insert(old._db, None, old.digest().partition(":")[2], earlier)
    host.home = host.home._replace(ledger=old)


def party(directory: Path, corpus: Corpus, *, policy: str = STRICT, run: str = "run", **config) -> PartyHost:
    """A party whose ledger is at home, beside the directory; `corpus` may be another one each time."""
    settings = {"id": "north", "run": run, "seed": 1, "methods": (__name__,), "home": str(directory.parent / "home")}
    PartyConfig(**{**settings, **config}).save(directory)
    (directory / "policy.toml").write_text(policy)
    return PartyHost(directory, corpus)


def ask(host: PartyHost, function, given=None, place=(0, 0), previous=BEFORE_ALL, verb="sum") -> Answer:
    """A question as an engine hands it over."""
    body = encode(Ask(verb, step_name(function), Nothing() if given is None else given))
    return decode(host.answer(Question(host.config.run, place, previous, 0, True, body).to_bytes()))
