"""A party gets the shared model of a run that it took part in.

What a server sends is data: two files, which become a model only when the loader of all models has read them.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tertulia._disk import private_directory, sync_directory, write
from tertulia._locks import taking_turns
from tertulia.corpus import TextOptions
from tertulia.errors import ConfigError, FormatError, JournalError, TertuliaError
from tertulia.federation.codec import decode
from tertulia.federation.engines.grpc import calls, dial
from tertulia.federation.party.host import PartyConfig
from tertulia.models import Topics, storage
from tertulia.runs.membership import PartyDirectory

_MOST_TEXT = 1 << 26  # bytes of JSON, words included; parsed, it takes thirty times as many
_LONGEST = 300  # characters of a reason, which may quote what was sent


def fetch_run(party: PartyDirectory, run: str | None = None) -> Path:
    """Fetch a run's model, or that of the newest run that is finished; return where it is."""
    approved = [path.name for path in party.run_directories() if PartyConfig.load(path).plan is not None]
    if run is not None and run not in approved:
        known = ", ".join(approved) or "none"
        raise ConfigError(f"'{run[:100]}' is no run that {party.directory} has approved: those are {known}")
    if not approved:
        raise ConfigError(f"{party.directory} has approved no run: `tertulia approve {party.directory}`")
    file, identity, reasons = party.file, party.identity, []
    for wanted in [run] if run is not None else reversed(approved):
        try:
            data = calls.fetch_model(identity, file.server, wanted)
        except dial.NoModel as error:
            reasons.append(f"run {wanted}: {error}")
        else:
            return keep_model(party, wanted, data)
    raise ConfigError(reasons[0])


def keep_model(party: PartyDirectory, run: str, data: bytes) -> Path:
    """Write what a server sent as a run's model, if it can be that; else raise `FormatError`, and nothing is kept."""
    directory = party.runs / run
    model, part = directory / "model", directory / "model.part"
    with taking_turns(directory):
        config = PartyConfig.load(directory)
        if config.plan is None or config.source is None:
            raise ConfigError(f"run {run} was forgotten here: its model is not kept")
        shutil.rmtree(part, ignore_errors=True)  # what a crash left
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
    """The two files of a model that was sent, and no other."""
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
    """Write the files of a model; not yet checked, nobody must take them for one."""
    for name, data in files.items():
        write(directory / name, data, private=True)
    sync_directory(directory)


def _check(model: Topics, config: PartyConfig) -> None:
    """A model of another run, or one that cuts texts in another way than was approved, is a mistake, or worse."""
    if model.provenance.get("run") != config.run:
        raise FormatError("it is of another run")
    if config.source is not None and model.options != TextOptions.from_dict(config.source["options"]):
        raise FormatError("it reads texts in another way than was approved")
