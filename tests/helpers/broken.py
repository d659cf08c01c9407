"""Deliberately broken protections, each of which an audit must catch: the attack that does, and how to break it."""

import dataclasses
from contextlib import contextmanager
from unittest import mock

import numpy as np

from tertulia.corpus import Corpus
from tertulia.federation.party import secure_sums
from tertulia.federation.party.context import StepContext
from tertulia.methods.private_topics import budget
from tertulia.methods.private_topics import method as private_topics
from tertulia.operations.audit import attacks
from tertulia.privacy.mechanisms.shared_gaussian import SharedGaussian
from tertulia.privacy.mechanisms.token_reports import TokenReports
from tertulia.privacy.mechanisms.word_union import WordUnion
from tertulia.privacy.noise import NoiseKey, NoiseStream
from tertulia.runs.settings import RunSettings

WORDS = tuple(f"w{i}x" for i in range(120))
PUBLIC = {"mode": "public", "words": WORDS}
TOKENS = {"name": "ftm", "topics": 3, "rounds": 3, "sweeps": 2, "mode": "sound", "epsilon": 3.0, "vocabulary": PUBLIC}
DOCUMENTS = {"name": "private_topics", "topics": 3, "epsilon": 8.0, "vocabulary": PUBLIC}
LAPLACE = {**TOKENS, "channel": "laplace"}
UNION = {**TOKENS, "vocabulary": {"mode": "private", "epsilon": 3.0}}
EFFORT = attacks.Effort(draws=40_000, documents=20, runs=1, confidence=0.999)
CANARIES = 1400  # documents: all of their words are among those that are paired


def corpora(parties):
    """Documents of common words, the same in each call."""
    rng = np.random.default_rng(5)
    return {
        party: Corpus.from_texts(
            [" ".join(rng.choice(WORDS, 30)) for _ in range(30)], [f"{party}{i}" for i in range(30)]
        )
        for party in parties
    }


def audited(method, kind, secure):
    """Attack a configuration by one kind of attack."""
    parties = ("north", "south", "west") if secure else ("north", "south")
    settings = RunSettings(method=method, federation={"secure": secure}, parties={party: {} for party in parties})
    effort = EFFORT._replace(canaries=CANARIES) if kind == "documents" else EFFORT
    return attacks.audit(settings, corpora(parties), effort, kinds=(kind,))


def _patch(target, name, broken):
    """Replace a function by one that gets the original first."""
    original = getattr(target, name)
    return mock.patch.object(target, name, lambda *given, **named: broken(original, *given, **named))


def _unclipped(original, words, documents, groups, topic_word, alpha, clip, *rest):
    return original(words, documents, groups, topic_word, alpha, 1e3 * clip, *rest)


def _fresh_reports(original, *given, **named):
    made = original(*given, **named)
    keys = np.random.default_rng().integers(0, 2**32, made.documents.shape, np.uint32)
    return made._replace(documents=keys)


def _drop_unknown(original, context, vocabulary=None, part="train", *, unknown=False):
    corpus = original(context, vocabulary, part)
    return corpus if not unknown else dataclasses.replace(corpus, vocabulary=vocabulary.with_unknown)


def _one_entry(original, mechanism):
    charge = original(mechanism)
    return charge.get("event", charge)


@contextmanager
def _both(first, second):
    with first, second:
        yield


def _whole_parts():
    """Each sum is given the whole budget."""
    return mock.patch.dict(budget.PARTS, dict.fromkeys(budget.PARTS, 1.0))


def _one_round():
    """Each round is given the noise of a single one."""
    return _patch(budget, "sigma_for", lambda f, epsilon, delta, rounds: f(epsilon, delta, 1))


# name: (method, secure sums, kind of attack that catches it, what breaks)
BROKEN = {
    "no clipping": (DOCUMENTS, False, "documents",
        lambda: _patch(private_topics.clipped, "clipped_counts", _unclipped)),
    "no composition": (DOCUMENTS, False, "documents", lambda: _both(_whole_parts(), _one_round())),
    "rounds do not add up": ({**DOCUMENTS, "rounds": 12}, False, "documents", _one_round),
    "half the sensitivity": (DOCUMENTS, False, "documents",
        lambda: _patch(budget, "sensitivity_of", lambda f, what: f(what) / 2)),
    "noise of one question used for all": (DOCUMENTS, False, "documents",
        lambda: _patch(NoiseKey, "stream", lambda f, key, *given: f(key, "run", "id", "hash"))),
    "masks reused": (DOCUMENTS, True, "masks",
        lambda: _patch(secure_sums.SecureSums, "_seeds", lambda f, member, label, root: f(member, b"", b"root" * 8))),
    "no noise": (DOCUMENTS, False, "mechanism",
        lambda: mock.patch.object(SharedGaussian, "apply", lambda mechanism, x, noise: x)),
    "noise of half the deviation": (DOCUMENTS, False, "mechanism",
        lambda: _patch(NoiseStream, "gaussian", lambda f, stream, n, sigma: f(stream, n, sigma / 2))),
    "a share of the noise, sums in clear": (DOCUMENTS, False, "mechanism",
        lambda: _patch(SharedGaussian, "apply", lambda f, mechanism, *x: f(mechanism.with_shares(6), *x))),
    "threshold off": (UNION, False, "mechanism",
        lambda: mock.patch.object(WordUnion, "apply", lambda mechanism, x, noise: (x > 0).astype(np.uint8))),
    "factor 2 of Laplace noise": (LAPLACE, False, "mechanism",
        lambda: _patch(TokenReports, "charge", _one_entry)),
    "fresh noise in each round": (TOKENS, False, "tokens",
        lambda: _patch(StepContext, "randomise", _fresh_reports)),
    "words off the list dropped": (TOKENS, False, "tokens",
        lambda: _patch(StepContext, "documents", _drop_unknown)),
}  # fmt: skip


def is_caught(name):
    """Tell whether an audit finds a broken protection."""
    method, secure, kind, how = BROKEN[name]
    with how():
        return audited(method, kind, secure).violated


def is_clean(name):
    """Tell whether the same attack finds nothing where nothing is broken."""
    method, secure, kind, _ = BROKEN[name]
    return not audited(method, kind, secure).violated
