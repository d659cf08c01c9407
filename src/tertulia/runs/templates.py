"""The first `run.toml` and `policy.toml` of a federation on one machine, with comments, made from a few answers."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from tertulia._disk import atomic_write
from tertulia._toml import toml_value
from tertulia.errors import ConfigError
from tertulia.privacy.policy import Policy, write_example
from tertulia.privacy.policy_lines import lines_needed, write_lines
from tertulia.runs.budgets import announced, planned_releases
from tertulia.runs.settings import RunSettings, settings_from

CONFIG, POLICY = "run.toml", "policy.toml"
EPSILON = 8.0  # of one word
_HEAD = """\
# A run on one machine, made by `tertulia init`. Paths are relative to this file.
# docs/reference.md has every key. First `tertulia check run.toml`, then `tertulia run run.toml`.
"""
_COMMENTS_FROM = 32  # the column


class Outline(NamedTuple):
    """The answers that a first run needs."""

    parties: dict[str, Path]  # name -> file or folder
    columns: dict[str, str]  # name -> the column of texts
    method: str = "consensus"
    topics: int = 20
    private: bool = False
    language: str = "en"
    words: str | None = None  # of a private run: a public list
    operator: Mapping[str, str] = MappingProxyType({})  # what is stated for the officer's page

    def text(self, place: Path) -> str:
        """Return the text of the config in this directory."""
        lines = [
            _HEAD,
            _line("seed", 1, "everything but the parties' noise is a function of it"),
            _line("directory", f"runs/{run_name(place)}", "where the run lives"),
            _line("engine", "local", 'all parties in one process; "processes": each in its own'),
            _line("heldout", 0.1, "share of documents that is only scored on"),
            "\n[method]",
            _line("name", self.method),
            _line("topics", self.topics),
            *(_sound(self._listed(place)) if self.private else _clear(together=len(self.parties) > 1)),
            "\n[text]",
            _line("language", self.language, "whose stop words are left out"),
            _line("clean", True, "tags of HTML are left out, broken characters repaired"),
            *(["\n[operator]", *(_line(key, value) for key, value in self.operator.items())] if self.operator else []),
        ]
        for name, path in self.parties.items():
            lines += [
                f"\n[parties.{name if re.fullmatch('[A-Za-z0-9_-]+', name) else toml_value(name)}]",
                _line("path", _relative(path, place)),
                _line("text", self.columns[name], "the column of texts"),
                _line("policy", POLICY, "what may leave this party; each can have a file of its own"),
            ]
        return "\n".join([*lines, ""])

    def _listed(self, place: Path) -> str:
        """Return the word list as the config names it."""
        return "english" if self.words in (None, "english") else _relative(Path(str(self.words)), place)

    def write(self, place: Path) -> tuple[Path, Path]:
        """Write both files where there are none yet; the policy allows what the run needs, and no more if private."""
        config, policy = place / CONFIG, place / POLICY
        for path in (config, policy):
            if path.exists():
                raise ConfigError(f"{path} exists: edit it, or choose another place")
        text = self.text(place)
        place.mkdir(parents=True, exist_ok=True)
        write_example(policy, strict=self.private)
        try:
            settings = settings_from(tomllib.loads(text), place.resolve())
            write_lines(policy, _lines(settings, Policy.load(policy)))
        except BaseException:
            policy.unlink()
            raise
        atomic_write(config, text.encode())
        return config, policy


def run_name(place: Path) -> str:
    """Return the name of the run in this directory."""
    return place.resolve().name or "first"


def _line(key: str, value: object, comment: str = "") -> str:
    text = f"{key} = {toml_value(value)}"
    return f"{text:<{_COMMENTS_FROM - 2}} # {comment}" if comment else text


def _clear(*, together: bool) -> list[str]:
    mode = [_line("mode", "clear", "no noise: `tertulia privacy` says what that means")] if together else []
    return [
        *mode,
        "\n[method.vocabulary]",
        _line("mode", "union", 'every word that a party sends; "public" sends none'),
        _line("min_documents", 2, "documents that must hold a word, in all parties together"),
        _line("max_share", 0.5, "words in a larger share of all documents are left out"),
    ]


def _sound(words: str) -> list[str]:
    return [
        _line("mode", "sound", "reports of words are noisy, and epsilon is kept"),
        _line("epsilon", EPSILON, "of one word; a document of many words has a multiple of it"),
        "\n[method.vocabulary]",
        _line("mode", "public", "a given list: nothing about the parties' words is sent"),
        _line("words", words, 'a file, one word per line (`tertulia words` makes one), or "english"'),
    ]


def _lines(settings: RunSettings, policy: Policy) -> dict[str, object]:
    """Return the lines that the policy lacks for the plan."""
    found: dict[str, object] = {}
    for party in settings.parties:
        found |= lines_needed(policy, planned_releases(announced(settings, party, policy), party))
    return found


def _relative(path: Path, place: Path) -> str:
    """Return a path relative to the config."""
    return Path(os.path.relpath(path.resolve(), place.resolve())).as_posix()
