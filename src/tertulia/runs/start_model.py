"""The model that a run starts from, if it continues an earlier one: finding, checking, copying, training.

The model is copied into the new run, in `start`, so that a resumed run needs nothing else. The plan names the copy by
its hash. Its contents were released with the earlier model, so they cost no privacy again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from tertulia._disk import sync_directory, write
from tertulia.corpus import TextOptions
from tertulia.errors import ConfigError
from tertulia.methods.common.vocabulary import extend_words
from tertulia.models import Topics, storage
from tertulia.runs.settings import RunSettings

START = "start"  # in a run's directory


def find_model(place: Path) -> Path:
    """Return the path of a finished run's model, or of the model that is saved in this place itself."""
    if (place / "run.json").exists():
        if not (place / "model").exists():
            raise ConfigError(f"the run {place} is not finished: `tertulia resume {place}` first, then go on from it")
        return place / "model"
    if not (place / storage.FILES[0]).exists():
        raise ConfigError(f"there is nothing to go on from in {place}: name a finished run, or a saved model")
    return place


def go_on(settings: RunSettings, last: Topics) -> RunSettings:
    """Adapt the settings of a run to the model that it starts from; raise `ConfigError` if the two do not fit.

    In a given word list the model's words come first, in their order, and new words follow.
    """
    method = settings.method.taking_over(last)
    settings = settings.replace(method=method)
    why = method.why_not(last)
    if last.options != TextOptions.from_dict(settings.text):
        why = f"it cuts texts in another way ({_differing(last.options, settings)}): use the same [text]"
    if why is not None:
        raise ConfigError(f"method '{method.name}' cannot go on from {settings.start_from}: {why}")
    terms = method.vocabulary_settings
    if terms is None or terms.mode != "public":
        return settings
    words = extend_words(last.vocabulary.words, terms.words, terms.max_words)
    return settings.replace(method=method.replace(vocabulary=terms.replace(words=words, max_words=None)))


def _differing(options: TextOptions, settings: RunSettings) -> str:
    now = TextOptions.from_dict(settings.text)
    pairs = [(part.name, getattr(options, part.name), getattr(now, part.name)) for part in fields(now) if part.compare]
    return ", ".join(f"{name} {before!r}, here {here!r}" for name, before, here in pairs if before != here)


def copy_start(model: Path, run: Path) -> None:
    """Copy the model that a run starts from into its directory."""
    place = run / START
    shutil.rmtree(place, ignore_errors=True)  # left by a crash
    place.mkdir(parents=True)
    for name in storage.FILES:
        write(place / name, (model / name).read_bytes())
    sync_directory(place)


def hash_of_start(run: Path) -> str:
    """Return the hash of the model that a run starts from; empty if there is none."""
    return storage.fingerprint(run / START) if (run / START).exists() else ""


def load_start(run: Path) -> Topics:
    """Load the model that a run starts from."""
    return Topics.load(run / START)


def train_from(last: Topics, train: Callable[..., Any], continue_from: Callable[..., Any]) -> Callable[..., Any]:
    """Return a training function whose first state comes from a model."""

    def both(fed: Any, method: Any, state: Any) -> Any:
        return train(fed, method, fed.commit(continue_from(fed, method, last)) if state is None else state)

    return both
