"""The made-up questions of `steering`, asked of PrivateTopics: topics that only documents with known words have.

Its parties answer any topics, since no secret of theirs could tell made-up ones: what protects is the noise.
"""

import tempfile
from contextlib import closing

import numpy as np

from helpers.masked_toys import handle_of
from helpers.steering import KNOWN, targets_of
from tertulia.methods.common.vocabulary import agree
from tertulia.methods.private_topics import budget, method
from tertulia.runs.driver import settings_of
from tertulia.runs.one_machine import begin
from tertulia.runs.settings import RunSettings

EPSILON = 3.0  # of a document
ODDS = 0.95  # of other words in a target's topic, against the last topic
SETTINGS = {"name": "private_topics", "adapt": False, "rounds": 3}


def words_read(mode, corpora, words, topics=21, seed=0):
    """Return the share of the targets' unknown words that the server reads, and that of a guess.

    Of each target it names as many words as the target has beside the known ones: those with the largest numbers in
    the total of the target's topic, over all parties and rounds.
    """
    own = {"mode": mode, "epsilon": EPSILON if mode == "doc" else None, "topics": topics}
    vocabulary = {"mode": "public", "words": words}
    with tempfile.TemporaryDirectory() as place:
        settings = RunSettings(
            directory=f"{place}/run", heldout=0.0, method={**SETTINGS, **own, "vocabulary": vocabulary},
            parties={party: {} for party in corpora},
        )  # fmt: skip
        run = begin(settings, corpora, durable=False)
        with closing(run.transport("local", 1, corpora)) as transport:
            fed, config = handle_of(run, transport), settings_of(run).method
            agreed = agree(fed, config.vocabulary).words
            targets = targets_of(corpora, agreed, topics - 1, np.random.default_rng(seed))
            asked = [_question(config, agreed, targets, round_) for round_ in range(config.rounds)]
            total = sum(fed.sum(method.expect, ask).counts.astype(float) for ask in asked)
    found, guess = [], []
    for row, target in zip(total, targets, strict=False):
        unknown = np.setdiff1d(target.words, target.known)
        row[target.known] = -np.inf
        found.append(np.isin(np.argsort(-row, kind="stable")[: len(unknown)], unknown).mean())
        guess.append(len(unknown) / (len(row) - KNOWN))
    return float(np.mean(found)), float(np.mean(guess))


def _question(config, words, targets, round_):
    """Make up topics: one for each target, and one for all other documents."""
    phi = np.ones((config.topics, len(words)))
    phi[-1, np.concatenate([target.known for target in targets])] = 1e-6
    for k, target in enumerate(targets):
        phi[k, target.known] = len(words) * (1 - ODDS) / (ODDS * KNOWN)
    phi /= phi.sum(axis=1, keepdims=True)
    alpha = np.full(config.topics, 1e-6)
    return method.Expect(words, round_, phi, alpha, 5.0, config.part(budget.Noise))
