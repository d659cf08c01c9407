"""A party's store of word lists: a list is sent once, and later questions name it by its fingerprint."""

from __future__ import annotations

import json
from pathlib import Path

from tertulia._disk import atomic_write, private_directory, read_checked, with_checksum
from tertulia.errors import FormatError
from tertulia.federation.checks import are_words
from tertulia.federation.messages import Ask, Content, WordLists, fingerprint, named_or_none

_MOST = 8  # lists of a run; a run has one, but a simulation may try others


class LackingWords(Exception):
    """A question names a list that this party does not have: the server must send it."""


class WordStore:
    """The lists in a party's directory."""

    def __init__(self, directory: Path, *, durable: bool) -> None:
        self.directory = directory
        self.durable = durable
        self._known: dict[str, tuple[str, ...]] = {}

    def complete(self, content: Content, sent: WordLists) -> Ask:
        """Decode a question, and put in the words of the list that it names."""
        ask = content.ask()
        name = named_or_none(ask.message)
        if name is None:
            return ask
        words = _checked(name, sent[name]) if sent.get(name) else self._find_or_none(name)
        if words is None:
            raise LackingWords
        return content.with_words(words)

    def keep(self, sent: WordLists) -> None:
        """Store received lists whose fingerprints are correct."""
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
