"""A server that makes up its questions: topics that only documents with some known words have, to read these documents.

It knows a few rare words of each target. For each target it sends a topic that holds the known words, and all others
alike. The last topic holds a word that is in no target, and next to nothing of all others. Its alpha is large, the
others' are tiny: a document without known words stays in the last topic, and one with them moves to the target's topic
with all its words, in a sweep or two. The total of the target's topic is then the target, beside documents of other
parties that have these words. A server that knows what the others sent, takes that away.

The rounds of EM, which find the first topics, can be asked in the same way. Their expected counts have no first state
that a large alpha could hold. Here all words but the known ones are a little likelier in the last topic: then shares of
the targets' topics die out in documents without known words, and win in a document with them.

Parties refuse counts that are no total of theirs, by tags that members alone can make. A member that works for the
server gives it the members' key (`helper`): then it can make tags for any question.
"""

from contextlib import closing, contextmanager
from typing import NamedTuple

import numpy as np

from helpers.masked_toys import handle_of
from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import QuorumError
from tertulia.federation.secure.sum_tags import tag_of
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.common.vocabulary import agree
from tertulia.methods.consensus import method, start
from tertulia.methods.consensus.messages import Shared
from tertulia.methods.consensus.method import count_together
from tertulia.runs.driver import settings_of
from tertulia.runs.one_machine import begin
from tertulia.runs.settings import RunSettings

KNOWN = 3  # words of a target
ALPHAS = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5)  # of the targets' topics: the larger, the more documents stray into them
ODDS = (0.93, 0.95, 0.96, 0.97, 0.98)  # of other words in a target's topic, in EM: the larger, the more stray into it


class Read(NamedTuple):
    """How many documents were read: out of totals, and by a server that knows what the other parties sent."""

    of_totals: int
    knowing_others: int
    tried: int


class Target(NamedTuple):
    """A document: its party, the words that the server knows, and all of them, as places on the list."""

    party: str
    known: np.ndarray
    words: np.ndarray


def targets_of(corpora, words, number, rng):
    """Choose documents at random; of each the server knows the words that are rarest in its party."""
    found = []
    for party, corpus in corpora.items():
        held = corpus.encode(Vocabulary(words)).split(0.0)[0]
        df = held.document_frequency()
        for d in range(held.n_documents):
            own = np.unique(held.words[held.documents[d] : held.documents[d + 1]])
            if len(own) >= 4 * KNOWN:
                found.append(Target(party, own[np.argsort(df[own], kind="stable")[:KNOWN]], own))
    return [found[i] for i in rng.permutation(len(found))[:number]]


def question(words, training, targets, alpha, tag_of_counts):
    """Make up the counts of all others."""
    counts = np.full((training.topics, len(words)), 100, np.int32)
    for k, target in enumerate(targets):
        counts[k, target.known] = 10**6
    junk = np.setdiff1d(np.arange(len(words)), np.concatenate([target.words for target in targets]))[-1]
    counts[len(targets) :] = 1
    counts[len(targets) :, junk] = 10**9
    known = np.concatenate([target.known for target in targets])
    counts[len(targets) :, known] = 0
    alphas = np.full(training.topics, 1.0)
    alphas[: len(targets)] = alpha
    return Shared(words, training, counts, alphas, 0, adds_up=False, tag=tag_of_counts(start.EXPECTED, counts))


def soft_question(words, config, round_, targets, odds, tag_of_counts):
    """Make up the total of a round of EM."""
    counts = np.zeros((config.topics, len(words)), np.int32)
    counts[len(targets) :] = 10**4
    counts[len(targets) :, np.concatenate([target.known for target in targets])] = 0
    for k, target in enumerate(targets):
        counts[k] = 10**4
        counts[k, target.known] = 10**4 * len(words) * (1 - odds) / (odds * KNOWN)
    total = start.SoftCounts(counts, tag_of_counts(start.EXPECTED, counts))
    return start.SoftTask(words, round_, config.part(start.FirstTopics), start.FRACTION, None, total)


def is_read(row, target):
    """Tell whether a topic's total [V] shows at least half of the target's other words, and is mostly of them."""
    others = np.setdiff1d(target.words, target.known)
    return bool((row[others] > 0).mean() >= 0.5 and row[target.words].sum() >= 0.5 * row.sum() > 0)


def singled_out(directory, corpora, words, topics, number, seed=0, *, helper=True):
    """Attack a run with secure sums; return how many of `number` documents were read."""
    batches = -(-number // (topics - 1))
    method_ = {"topics": topics, "rounds": batches * len(ALPHAS)}
    with attacked(directory, corpora, words, method_, helper) as (fed, config, agreed, tags):
        targets = targets_of(corpora, agreed, number, np.random.default_rng(seed))
        read = np.zeros((2, len(targets)), dtype=bool)
        parts = dict.fromkeys(corpora, 0)
        with sent_counts() as sent:
            for alpha in ALPHAS:
                for first in range(0, len(targets), topics - 1):
                    some = targets[first : first + topics - 1]
                    asked = question(agreed, config.part(Training), some, alpha, tags)
                    if is_answered(fed, count_together, asked):
                        parts = {party: parts[party] + sent[party] for party in corpora}
                        note_read(read, first, some, parts)
    return Read(*read.sum(axis=1).tolist(), len(targets))


def singled_out_by_em(directory, corpora, words, topics, number, seed=0, *, helper=True):
    """Attack the rounds of EM in the same way, with as small an alpha as settings allow."""
    batches = -(-number // (topics - 1))
    method_ = {"topics": topics, "start_rounds": batches * len(ODDS), "alpha": 1e-6 * topics}
    with attacked(directory, corpora, words, method_, helper) as (fed, config, agreed, tags):
        targets = targets_of(corpora, agreed, number, np.random.default_rng(seed))
        read = np.zeros((2, len(targets)), dtype=bool)
        with expected_counts() as expected:
            for round_, odds in enumerate(ODDS):
                for first in range(0, len(targets), topics - 1):
                    some = targets[first : first + topics - 1]
                    expected.clear()
                    asked = soft_question(agreed, config, round_ * batches + first, some, odds, tags)
                    if is_answered(fed, start.expect, asked):
                        note_read(read, first, some, dict(zip(corpora, expected, strict=True)))
    return Read(*read.sum(axis=1).tolist(), len(targets))


def is_answered(fed, step, asked):
    """Ask for a sum; False if the parties refuse."""
    try:
        fed.sum(step, asked)
    except QuorumError:
        return False
    return True


def note_read(read, first, targets, parts):
    """Mark which targets the totals show, and the part of each target's own party."""
    total = sum(parts.values())
    for k, target in enumerate(targets):
        read[:, first + k] |= is_read(total[k], target), is_read(parts[target.party][k], target)


@contextmanager
def attacked(directory, corpora, words, method_, helper):
    """A run with secure sums whose members have agreed on words: handle, settings, words, and the tags of numbers.

    Without the help of a member the server has no key for tags, so it sends one that it has seen, or guesses.
    """
    listed = {"mode": "listed", "words": words, "max_share": 1.0}
    given = {"name": "consensus", "learn_alpha": False, "vocabulary": listed, "evaluate": False, **method_}
    run = begin(RunSettings(directory=str(directory), heldout=0.0, federation={"secure": True}, method=given), corpora)
    with closing(run.transport("local", 1)) as transport:
        fed = handle_of(run, transport)
        config = settings_of(run).method
        words = agree(fed, config.vocabulary).words
        keys = next(iter(transport.hosts.values())).secure.keys

        def tag(name, numbers):
            return tag_of(keys.members_key("tag of " + name), (numbers,)) if helper else np.array([5, 7])

        yield fed, config, words, tag


@contextmanager
def expected_counts():
    """The expected counts [K, V] of each party in turn, in whole tokens."""
    found, expected = [], start._expected

    def note(party, tokens, ask):
        counts, used = expected(party, tokens, ask)
        table = np.zeros((len(counts), len(ask.words)))
        table[:, used] = np.rint(counts / ask.per_token)
        found.append(table)
        return counts, used

    start._expected = note
    try:
        yield found
    finally:
        start._expected = expected


@contextmanager
def sent_counts():
    """The changes of counts that each party sends, before they are masked."""
    found, release = {}, method.release

    def note(party, tables, mechanism):
        found[party.id] = tables[0].T
        return release(party, tables, mechanism)

    method.release = note
    try:
        yield found
    finally:
        method.release = release


def corpora_of_notes(parties=4, documents=40, seed=0):
    """Documents of 30 common words; each has three words that every party has, but in this one document only."""
    rng = np.random.default_rng(seed)
    common = [f"word{i}" for i in range(300)]

    def note(number):
        rare = [f"rare{3 * number + i}" for i in range(KNOWN)]
        return " ".join([*rng.choice(common, 30), *rare])

    return {f"p{i}": Corpus.from_texts([note(d) for d in range(documents)]) for i in range(parties)}
