"""A run that goes on from an earlier one: which model that is, whether it fits, and what it changes.

The earlier model is copied into the new run, in `start`, so that the run needs nothing else when it is resumed. The
plan names the copy by its hash. Whatever is in it was released with the earlier model: it costs no privacy again.
"""

from __future__ import annotations

import shutil
from dataclasses import fields
from pathlib import Path

from tertulia._disk import sync_directory, write
from tertulia.corpus import TextOptions
from tertulia.errors import ConfigError
from tertulia.methods.common.continuing import Continuing
from tertulia.methods.common.vocabulary import extend_words
from tertulia.models import Topics, storage
from tertulia.runs.config import RunSettings

START = "start"  # in a run's directory


def find_model(place: Path) -> Path:
    """The saved model of a finished run, or the one that is saved in this place itself."""
    if (place / "run.json").exists():
        if not (place / "model").exists():
            raise ConfigError(f"the run {place} is not finished: `tertulia resume {place}` first, then go on from it")
        return place / "model"
    if not (place / storage.FILES[0]).exists():
        raise ConfigError(f"there is nothing to go on from in {place}: name a finished run, or a saved model")
    return place


def go_on(settings: RunSettings, last: Topics) -> RunSettings:
    """The settings of a run that begins with this model; raise `ConfigError` if the two do not fit.

    A given word list goes on, too: the model's words keep their places in it, and new ones follow.
    """
    method = settings.method
    why = method.why_not(last) if isinstance(method, Continuing) else None
    if last.options != TextOptions.from_dict(settings.text):
        why = f"it cuts texts in another way ({_differing(last.options, settings)}): use the same [text]"
    if why is not None:
        raise ConfigError(f"method '{method.name}' cannot go on from {settings.start_from}: {why}")
    terms = getattr(method, "vocabulary", None)
    if terms is None or terms.mode != "public":
        return settings
    words = extend_words(last.vocabulary.words, terms.words, terms.max_words)
    return settings.replace(method=method.replace(vocabulary=terms.replace(words=words, max_words=None)))


def _differing(options: TextOptions, settings: RunSettings) -> str:
    now = TextOptions.from_dict(settings.text)
    pairs = [(part.name, getattr(options, part.name), getattr(now, part.name)) for part in fields(now) if part.compare]
    return ", ".join(f"{name} {before!r}, here {here!r}" for name, before, here in pairs if before != here)


def copy_start(model: Path, run: Path) -> None:
    """Put the model that a run begins with into its directory."""
    place = run / START
    shutil.rmtree(place, ignore_errors=True)  # what a crash left
    place.mkdir(parents=True)
    for name in storage.FILES:
        write(place / name, (model / name).read_bytes())
    sync_directory(place)


def hash_of_start(run: Path) -> str:
    """The hash of the model that a run begins with; empty: it begins anew."""
    return storage.fingerprint(run / START) if (run / START).exists() else ""
