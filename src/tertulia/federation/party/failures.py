"""A party's answers when a step fails or is refused: between several owners, only a constant or the name of a rule.

Reasons may quote documents, paths and numbers of raw data, so they go to the party's own `party.log`. In a simulation,
where one owner has all parties, the answer holds the reason.
"""

from __future__ import annotations

import traceback
from pathlib import Path

from tertulia.errors import LOST_CONTRIBUTION, LostContribution, Missed, PolicyRefusal, TertuliaError
from tertulia.federation.codec import encode
from tertulia.federation.messages import Answer

FAILED = "failed: the reason is in the party's own log"
REFUSED = "refused: the reason is in the party's own log"
ABSENT = "absent: it missed an earlier question"
OWN_EPSILON = "the party's own epsilon"
ONE_CONTENT = "one release, one content"
NGRAMS = "ngrams"
OLDER_LEDGER = "older ledger"
RULES = frozenset(  # beside those of policies
    {"run", "plan", "words", "rounds", OWN_EPSILON, ONE_CONTENT, NGRAMS, OLDER_LEDGER}
)
LOG = "party.log"
REFUSALS = "refusals.log"  # one rule's name per line


def kind_of(error: Exception) -> str:
    """Return the kind of answer for an error: refused, absent or failed."""
    if isinstance(error, PolicyRefusal):
        return "refused"
    return "absent" if isinstance(error, Missed) else "failed"


def constant_answer(error: Exception, rules: frozenset[str] = frozenset()) -> Answer:
    """Build the answer for another owner: a constant, or the rule of the policy that refuses."""
    if isinstance(error, PolicyRefusal):
        return Answer("refused", f"refused by rule '{error.rule}'" if error.rule in RULES | rules else REFUSED, None)
    if isinstance(error, Missed):
        return Answer("absent", LOST_CONTRIBUTION if isinstance(error, LostContribution) else ABSENT, None)
    return Answer("failed", FAILED, None)


def full_answer(error: Exception, log: Path | None) -> Answer:
    """Build the answer for an owner of all parties; the traceback of an unexpected error is in the log."""
    if isinstance(error, PolicyRefusal | Missed):
        return Answer(kind_of(error), str(error), None)
    if isinstance(error, TertuliaError):
        return Answer("failed", f"{type(error).__name__}: {error}", None)
    return Answer("failed", f"{type(error).__name__} in a step; the details are in {log or 'the log'}", None)


def describe(error: Exception, *, details: bool) -> str:
    """Describe an error for the party's log: our own text, or the place of another error; with `details`, its text."""
    if isinstance(error, TertuliaError):
        return f"{type(error).__name__}: {error}"
    if details:
        return "".join(traceback.format_exception(error)).rstrip()
    places = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} at " + " > ".join(f"{Path(p.filename).name}:{p.lineno} {p.name}" for p in places)


ENCODED_FAILURE = encode(Answer("failed", FAILED, None))
