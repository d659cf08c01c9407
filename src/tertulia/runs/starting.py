"""A party looks at the model that a proposed run would begin with. A server may send anything: errors are constants."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tertulia.corpus import TextOptions
from tertulia.errors import ConfigError, TertuliaError
from tertulia.models import Topics, storage
from tertulia.runs.fetching import files_of, write_files
from tertulia.runs.membership import PartyDirectory

_WHAT = "the model that the server would begin with"
DAMAGED = f"{_WHAT} cannot be one: nothing was approved; call the operator"
NOT_NAMED = f"{_WHAT} is not the one that its proposal names: nothing was approved; call the operator"
TOO_LARGE = f"{_WHAT} is beyond max_topics, max_words or max_cells of this party's policy: nothing was approved"
OTHER_TEXTS = f"{_WHAT} cuts texts in another way than the proposal: nothing was approved; call the operator"
NOT_SEEN = f"{_WHAT} was not looked at: nothing was approved"
_BYTES = 32  # for each cell that a policy allows: the topics, and the weights of a network


def open_start(data: bytes, named: str, party: PartyDirectory, options: TextOptions) -> tuple[dict[str, bytes], Topics]:
    """The files of a model that was sent, and the model; raise `ConfigError` unless it is the one that is named.

    It is hashed before it is read, and must be within the limits that the policy has for every question.
    """
    policy = party.policy
    try:
        files = files_of(data)
    except TertuliaError:
        raise ConfigError(DAMAGED) from None
    if storage.fingerprint_of(files) != named:
        raise ConfigError(NOT_NAMED)
    if sum(map(len, files.values())) > _BYTES * policy.max_cells:
        raise ConfigError(TOO_LARGE)
    with tempfile.TemporaryDirectory(prefix=".start-", dir=party.runs) as place:
        write_files(Path(place), files)
        try:
            model = Topics.load(place)
        except TertuliaError:
            raise ConfigError(DAMAGED) from None
    words = len(model.vocabulary)
    if model.n_topics > policy.max_topics or words > policy.max_words or model.n_topics * words > policy.max_cells:
        raise ConfigError(TOO_LARGE)
    if model.options != options:
        raise ConfigError(OTHER_TEXTS)
    return files, model
