"""All errors that users may see: each text names the offending thing and the remedy."""

LOST_CONTRIBUTION = (
    "absent: it has lost its state and cannot replace its part of earlier sums, which stays in the model. It sits out "
    "the rest of this run, and takes part in the next"
)


class TertuliaError(Exception):
    """Base of all errors raised on purpose. The text never quotes documents, so a party may send it to the server."""


class InputError(TertuliaError, ValueError):
    """Data that cannot be used as given: an empty file, a missing column, a document without a known word."""


class ConfigError(TertuliaError, ValueError):
    """A wrong setting: the text names the key, the value and what to write instead."""


class NotFitted(TertuliaError, ValueError, AttributeError):
    """An estimator that has no topics yet, because it is not fitted."""


class FormatError(TertuliaError, ValueError):
    """Bytes that are not what they should be: a truncated checkpoint, a model of a newer format."""


class JournalError(TertuliaError, OSError):
    """A commit that could not be written; earlier commits are intact."""


class DirectoryInUse(TertuliaError):
    """A directory that another process works on; the text names the process."""


class PolicyRefusal(TertuliaError):
    """A release that a party's own policy forbids; the text names the rule."""

    def __init__(self, rule: str, why: str) -> None:
        super().__init__(f"refused by rule '{rule}': {why}")
        self.rule = rule


class Unreleased(TertuliaError):
    """An array that a step tried to send without `party.release`."""


class Missed(TertuliaError):
    """A question that builds on an earlier one, which the party missed: the party counts as absent, not as failed."""


class LostContribution(Missed):
    """A party that lost its part of an earlier sum and cannot replace it: it sits out the rest of the run."""

    def __init__(self) -> None:
        super().__init__(LOST_CONTRIBUTION)


class QuorumError(TertuliaError):
    """A question that needs a quorum, and had too few answers."""


class PartyFailure(TertuliaError):
    """A step that failed at a party; the party's own log has the details."""


class Stranger(TertuliaError):
    """A certificate that is not admitted; the text is one of a few constants, so the sender may read it."""


class ConnectionTrouble(TertuliaError):
    """A server that cannot be reached or trusted, or that rejects this party; the text has the remedy."""
