"""Word lists that a party was sent once, and that questions name by their fingerprints from then on."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from tertulia._disk import atomic_write, private_directory, read_checked, with_checksum
from tertulia.errors import FormatError
from tertulia.federation.messages import Ask, WordLists, fingerprint, named_or_none
from tertulia.federation.party.bounds import are_words

_MOST = 8  # of a run; it has one, but a simulation may try others


class LackingWords(Exception):
    """A question names a list that this party was never sent: the server has to send it."""


class WordStore:
    """The lists in a party's directory."""

    def __init__(self, directory: Path, *, durable: bool) -> None:
        self.directory = directory
        self.durable = durable
        self._known: dict[str, tuple[str, ...]] = {}

    def complete(self, ask: Ask, sent: WordLists) -> Ask:
        """What is asked, with the words that it names."""
        name = named_or_none(ask.message)
        if name is None:
            return ask
        words = _checked(name, sent[name]) if sent.get(name) else self._find_or_none(name)
        if words is None:
            raise LackingWords
        return dataclasses.replace(ask, message=dataclasses.replace(ask.message, words=words))

    def keep(self, sent: WordLists) -> None:
        """Store lists that were sent, if they have their fingerprints."""
        for name, words in sent.items():
            if name in self._known or len(self._known) >= _MOST or fingerprint(words) != name:
                continue
            private_directory(self.directory)
            atomic_write(self._path(name), with_checksum(json.dumps(words).encode()), durable=self.durable)
            self._known[name] = words

    def _find_or_none(self, name: str) -> tuple[str, ...] | None:
        if name not in self._known and name.isalnum() and self._path(name).exists():
            self._known[name] = _checked(name, tuple(json.loads(read_checked(self._path(name)))))
        return self._known.get(name)

    def _path(self, name: str) -> Path:
        return self.directory / f"{name}.json"


def _checked(name: str, words: tuple[str, ...]) -> tuple[str, ...]:
    if not are_words(words) or fingerprint(words) != name:
        raise FormatError("a word list does not have its fingerprint")
    return words
