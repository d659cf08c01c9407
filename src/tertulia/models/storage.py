"""A model on disk: a directory with `topics.safetensors` (the arrays) and `model.json` (everything else).

A save either succeeds or leaves the old model: the new one is written beside it, and then takes its place. A crash
between the two renames leaves the old model under `.NAME.before`, where `load` finds it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import safetensors
from safetensors.numpy import load as unpack
from safetensors.numpy import save as pack

from tertulia._arrays import Array
from tertulia._disk import sync_directory, write
from tertulia._kinds import check_fields
from tertulia.corpus import TextOptions, Vocabulary
from tertulia.errors import FormatError, InputError, JournalError
from tertulia.models.neural.encoder import Encoder

if TYPE_CHECKING:
    from tertulia.models.topics import Topics
    from tertulia.models.vectors.centroids import Centroids

FORMAT = 1
FILES = _JSON, _TENSORS = "model.json", "topics.safetensors"
_ARRAYS = ("topic_word", "alpha")
_MAYBE = "weights"  # not every model has them
_ENCODER = ("weights", "statistics")


class _About:
    """The fields of `model.json`."""

    beta: float
    options: dict[str, Any]
    provenance: dict[str, Any]
    encoder: dict[str, Any] | None
    vocabulary: list[str]
    ids: list[int]
    retired: list[int]
    names: list[str]
    hidden: list[int]


def save(model: Topics, directory: Path) -> Path:
    """Write a model; an existing model is replaced, a directory with other files is refused."""
    target = directory.resolve()
    _check_replaceable(target)
    text = _encode(model)
    arrays = {name: np.ascontiguousarray(getattr(model, name)) for name in _ARRAYS}
    if model.weights is not None:
        arrays[_MAYBE] = np.ascontiguousarray(model.weights)
    if model.encoder is not None:
        arrays |= {f"encoder.{name}": np.ascontiguousarray(getattr(model.encoder, name)) for name in _ENCODER}
    tensors = pack(arrays)
    new, before = target.with_name(f".{target.name}.new"), target.with_name(f".{target.name}.before")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(new, ignore_errors=True)  # a leftover of a crash
    try:
        new.mkdir()
        write(new / _TENSORS, tensors)
        write(new / _JSON, text.encode())
        sync_directory(new)
        _swap(new, target, before)
    except OSError as error:
        shutil.rmtree(new, ignore_errors=True)
        why = f"could not write the model to {directory}: {error.strerror}. What was there is intact"
        raise JournalError(why) from error
    return directory


def load(directory: Path) -> dict[str, Any]:
    """Read the fields of a model."""
    home = directory.resolve()
    before = home.with_name(f".{home.name}.before")
    if not home.exists() and before.exists():
        home = before
    about = _decode(_read(home / _JSON), directory / _JSON)
    check_fields(_About, {name: about[name] for name in _About.__annotations__ if name in about})
    try:
        arrays = unpack(_read(home / _TENSORS))
    except (safetensors.SafetensorError, KeyError, ValueError, MemoryError) as error:
        raise FormatError(
            f"{directory / _TENSORS} is damaged or cut short ({error}): copy or save the model again"
        ) from error
    try:
        return {
            **{name: arrays[name] for name in _ARRAYS},
            _MAYBE: arrays.get(_MAYBE),
            "vocabulary": Vocabulary(tuple(about["vocabulary"])),
            "beta": about["beta"],
            "options": TextOptions.from_dict(about["options"]),
            "provenance": about["provenance"],
            "encoder": _encoder(about.get("encoder"), arrays),
            "ids": tuple(about.get("ids", ())),
            "retired": tuple(about.get("retired", ())),
            "names": about.get("names", []),
            "hidden": tuple(about.get("hidden", ())),
        }
    except (InputError, ValueError) as error:
        raise FormatError(f"the model in {directory} is damaged ({error}): copy or save it again") from error
    except (KeyError, TypeError) as error:
        raise FormatError(f"the model in {directory} lacks {error}: copy or save it again") from error


def fingerprint(directory: Path) -> str:
    """Hash the two files of a saved model."""
    return fingerprint_of({name: _read(directory / name) for name in FILES})


def fingerprint_of(files: Mapping[str, bytes]) -> str:
    """Hash the two files of a model that are not on disk."""
    return hashlib.sha256(b"".join(hashlib.sha256(files[name]).digest() for name in FILES)).hexdigest()


def _encode(model: Topics) -> str:
    usual = tuple(range(model.n_topics))
    about = {
        "format": FORMAT,
        "beta": model.beta,
        "options": model.options.to_dict(),
        "provenance": model.provenance,
        **({"encoder": _about(model.encoder)} if model.encoder is not None else {}),
        **({} if (model.ids, model.retired) == (usual, ()) else {"ids": model.ids, "retired": model.retired}),
        **({"names": model.names} if any(model.names) else {}),
        **({"hidden": model.hidden} if model.hidden else {}),
        "vocabulary": model.vocabulary.words,
    }
    return json.dumps(about, ensure_ascii=False, indent=1) + "\n"


def _about(encoder: Encoder | Centroids) -> dict[str, Any]:
    return {"architecture": encoder.architecture, "embedding": encoder.embedding}


def _encoder(about: dict[str, Any] | None, arrays: dict[str, Array]) -> Encoder | Centroids | None:
    if about is None:
        return None
    weights, statistics = (arrays[f"encoder.{name}"] for name in _ENCODER)
    if isinstance(about["architecture"], dict) and about["architecture"].get("kind") == "centroids":
        from tertulia.models.vectors.centroids import Centroids

        return Centroids(about["architecture"], weights, statistics, about["embedding"])
    return Encoder(about["architecture"], weights, statistics, about["embedding"])


def _decode(data: bytes, path: Path) -> dict[str, Any]:
    try:
        about = json.loads(data)
        version = about["format"]
        json.dumps(about, ensure_ascii=False).encode()  # raises on lone surrogates
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(
            f"{path} is damaged, cut short or no model of Tertulia: copy or save the model again"
        ) from error
    if version != FORMAT or not isinstance(about, dict):
        raise FormatError(
            f"{path} has format {version}, but this Tertulia reads format {FORMAT}: "
            "upgrade with pip install --upgrade tertulia, or save the model with this version"
        )
    return dict(about)


def _check_replaceable(target: Path) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise InputError(f"{target} is a file: a model is a directory, choose another name")
    others = sorted(path.name for path in target.iterdir() if path.name not in FILES)
    if others:
        raise InputError(
            f"{target} holds files that are no part of a model ({', '.join(others[:3])}): choose another name"
        )


def _swap(new: Path, target: Path, before: Path) -> None:
    if target.exists():
        shutil.rmtree(before, ignore_errors=True)
        target.rename(before)
    try:
        new.rename(target)
    except OSError:
        if before.exists():
            before.rename(target)
        raise
    sync_directory(target.parent)
    shutil.rmtree(before, ignore_errors=True)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FormatError(f"cannot read {path} ({error.strerror}): a model has {_JSON} and {_TENSORS}") from error
