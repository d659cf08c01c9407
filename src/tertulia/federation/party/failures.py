"""What a party says when it does not answer: between several owners a constant, or the name of a rule, and no more.

Reasons may quote documents, paths and numbers of raw data. They go to `party.log`, at the party. Where one owner has
all parties, a simulation, there is nobody to keep them from.
"""

from __future__ import annotations

import traceback
from pathlib import Path

from tertulia.errors import Missed, PolicyRefusal, TertuliaError
from tertulia.federation.codec import encode
from tertulia.federation.messages import Answer

FAILED = "failed: the reason is in the party's own log"
REFUSED = "refused: the reason is in the party's own log"
ABSENT = "absent: it missed an earlier question"
OWN_EPSILON = "the party's own epsilon"
ONE_CONTENT = "one release, one content"
NGRAMS = "ngrams"
RULES = frozenset({"run", "plan", "words", "rounds", OWN_EPSILON, ONE_CONTENT, NGRAMS})  # beside those of policies
LOG = "party.log"
REFUSALS = "refusals.log"  # the name of a rule per line


def kind_of(error: Exception) -> str:
    """Whether a party refuses, is absent, or has failed."""
    if isinstance(error, PolicyRefusal):
        return "refused"
    return "absent" if isinstance(error, Missed) else "failed"


def constant_answer(error: Exception, rules: frozenset[str] = frozenset()) -> Answer:
    """What another owner may know: that there is no answer, and which rule of the policy forbids it."""
    if isinstance(error, PolicyRefusal):
        return Answer("refused", f"refused by rule '{error.rule}'" if error.rule in RULES | rules else REFUSED, None)
    return Answer("absent", ABSENT, None) if isinstance(error, Missed) else Answer("failed", FAILED, None)


def full_answer(error: Exception, log: Path | None) -> Answer:
    """What an owner of all parties wants to know; unexpected errors have their traceback in the log."""
    if isinstance(error, PolicyRefusal | Missed):
        return Answer(kind_of(error), str(error), None)
    if isinstance(error, TertuliaError):
        return Answer("failed", f"{type(error).__name__}: {error}", None)
    return Answer("failed", f"{type(error).__name__} in a step; the details are in {log or 'the log'}", None)


def describe(error: Exception, *, details: bool) -> str:
    """The reason for the party's log: our own texts, and of others where it happened; what they say, if it may be."""
    if isinstance(error, TertuliaError):
        return f"{type(error).__name__}: {error}"
    if details:
        return "".join(traceback.format_exception(error)).rstrip()
    places = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} at " + " > ".join(f"{Path(p.filename).name}:{p.lineno} {p.name}" for p in places)


ENCODED_FAILURE = encode(Answer("failed", FAILED, None))
