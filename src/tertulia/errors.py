"""Every error that a user may meet: each names the offending thing and the remedy."""


class TertuliaError(Exception):
    """Base of all errors raised on purpose. Its text never quotes documents, so it may cross from party to server."""


class InputError(TertuliaError, ValueError):
    """Data that cannot be used as given: an empty file, a missing column, a document without a known word."""


class ConfigError(TertuliaError, ValueError):
    """A setting that is wrong: the text names the key, the value and what to write instead."""


class NotFitted(TertuliaError, ValueError, AttributeError):
    """A trainer that was not trained yet is asked for its topics."""


class FormatError(TertuliaError, ValueError):
    """Bytes that are not what they should be: a truncated checkpoint, a model of a newer format."""


class JournalError(TertuliaError, OSError):
    """A commit that could not be written; whatever was committed before is intact."""


class DirectoryInUse(TertuliaError):
    """Another process works on this directory; the text names it."""


class PolicyRefusal(TertuliaError):
    """A party's own policy forbids a release; the text carries the rule's name."""

    def __init__(self, rule: str, why: str) -> None:
        super().__init__(f"refused by rule '{rule}': {why}")
        self.rule = rule


class Unreleased(TertuliaError):
    """A step tried to send an array that did not pass through `party.release`."""


class Missed(TertuliaError):
    """A party lacks what a question builds on, as it missed an earlier one: it counts as absent, nothing has failed."""


class QuorumError(TertuliaError):
    """Too few parties answered a question that needs a quorum."""


class PartyFailure(TertuliaError):
    """A party's step failed; its own log has the details."""


class Stranger(TertuliaError):
    """A certificate that is not admitted; the text is one of a few constants, which may cross to who showed it."""


class ConnectionTrouble(TertuliaError):
    """A server that cannot be reached, cannot be trusted, or does not let this party in; the text has the remedy."""
