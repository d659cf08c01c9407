"""Models that a party receives: the shared model of a run, and the model that a proposed run would begin with.

A server may send anything. Its bytes are two files, which count as a model only after the usual loader has read them.
Errors about the model of a proposed run are constants.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tertulia._disk import private_directory, sync_directory, write
from tertulia._locks import brief_lock
from tertulia.corpus import TextOptions
from tertulia.errors import ConfigError, FormatError, JournalError, TertuliaError
from tertulia.federation.codec import decode
from tertulia.federation.engines.grpc import client
from tertulia.federation.party.host import PartyConfig
from tertulia.models import Topics, storage
from tertulia.network.party.party_directory import PartyDirectory

_MOST_TEXT = 1 << 26  # bytes of JSON, words included; parsed, it takes thirty times as many
_LONGEST = 300  # characters of a reason, which may quote what was sent


def fetch_run(party: PartyDirectory, run: str | None = None) -> Path:
    """Fetch the model of a run, by default of the newest finished one; return its path."""
    approved = [path.name for path in party.run_directories() if PartyConfig.load(path).plan is not None]
    if run is not None and run not in approved:
        known = ", ".join(approved) or "none"
        raise ConfigError(f"'{run[:100]}' is no run that {party.directory} has approved: those are {known}")
    if not approved:
        raise ConfigError(f"{party.directory} has approved no run: `tertulia approve {party.directory}`")
    file, identity, reasons = party.file, party.identity, []
    for wanted in [run] if run is not None else reversed(approved):
        try:
            data = client.fetch_model(identity, file.server, wanted)
        except client.NoModel as error:
            reasons.append(f"run {wanted}: {error}")
        else:
            return keep_model(party, wanted, data)
    raise ConfigError(reasons[0])


def keep_model(party: PartyDirectory, run: str, data: bytes) -> Path:
    """Check and store a run's model; raise `FormatError`, and store nothing, if it is not a model of that run."""
    directory = party.runs / run
    model, part = directory / "model", directory / "model.part"
    with brief_lock(directory):
        config = PartyConfig.load(directory)
        if config.plan is None or config.source is None:
            raise ConfigError(f"run {run} was forgotten here: its model is not kept")
        shutil.rmtree(part, ignore_errors=True)  # left by a crash
        try:
            write_files(private_directory(part), files_of(data))
            _check(Topics.load(part), config)
            shutil.rmtree(model, ignore_errors=True)
            part.rename(model)
            sync_directory(directory)
        except OSError as error:
            raise JournalError(
                f"could not write {model} ({error.strerror}): free some space, and fetch again"
            ) from error
        except TertuliaError as error:
            raise FormatError(
                f"what the server sent is no model of run {run} ({str(error)[:_LONGEST]}): nothing was kept; fetch "
                "again, or ask the operator"
            ) from error
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return model


def files_of(data: bytes) -> dict[str, bytes]:
    """Decode the two files of a model; raise `FormatError` if there are others."""
    sent: Any = decode(data)
    if not isinstance(sent, dict) or set(sent) != set(storage.FILES):
        raise FormatError(f"a model has the files {' and '.join(storage.FILES)}")
    if not all(
        isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim == 1 for value in sent.values()
    ):
        raise FormatError("a file is made of bytes")
    found = {name: value.tobytes() for name, value in sent.items()}
    if len(found["model.json"]) > _MOST_TEXT:
        raise FormatError(f"its text is beyond {_MOST_TEXT} bytes")
    return found


def write_files(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write the files of a model, which is not checked yet, to a directory where nobody looks for one."""
    for name, data in files.items():
        write(directory / name, data, private=True)
    sync_directory(directory)


def _check(model: Topics, config: PartyConfig) -> None:
    """Raise `FormatError` for a model of another run, or one that reads texts in another way than was approved."""
    if model.provenance.get("run") != config.run:
        raise FormatError("it is of another run")
    if config.source is not None and model.options != TextOptions.from_dict(config.source["options"]):
        raise FormatError("it reads texts in another way than was approved")


_WHAT = "the model that the server would begin with"
DAMAGED = f"{_WHAT} cannot be one: nothing was approved; call the operator"
NOT_NAMED = f"{_WHAT} is not the one that its proposal names: nothing was approved; call the operator"
TOO_LARGE = f"{_WHAT} is beyond max_topics, max_words or max_cells of this party's policy: nothing was approved"
OTHER_TEXTS = f"{_WHAT} cuts texts in another way than the proposal: nothing was approved; call the operator"
CHANGED = (
    f"{_WHAT} is not the one that this party fetched of that run: one of the two was changed since, and nothing was "
    "approved; call the operator, or `tertulia fetch` that run again and look at it first"
)
NOT_SEEN = f"{_WHAT} was not looked at: nothing was approved"
_BYTES = 32  # for each cell that a policy allows: the topics, and the weights of a network


def open_start(data: bytes, named: str, party: PartyDirectory, options: TextOptions) -> tuple[dict[str, bytes], Topics]:
    """Decode and load the model of a proposed run; raise `ConfigError` unless its hash is the one that is named.

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


def is_fetched(party: PartyDirectory, run: str, named: str) -> bool:
    """Return whether this party fetched that model before; raise `ConfigError` if it fetched another one of the run."""
    copy = party.runs / run / "model"
    if not copy.exists():
        return False
    if storage.fingerprint(copy) != named:
        raise ConfigError(CHANGED)
    return True
