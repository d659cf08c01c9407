"""The words that the members of a run with secure sums have agreed on, stored at a party as tags.

A tag is an HMAC of a word under a key that the members share. So a party can check a word that it does not have itself,
and the server, which has no key, cannot put a word of its choice on the list.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from tertulia._arrays import U8, Array
from tertulia._disk import atomic_write, private_directory, read_checked, with_checksum
from tertulia.errors import FormatError, PolicyRefusal
from tertulia.federation.codec import decode, encode
from tertulia.federation.party.member_keys import FOLDER, MemberKeys

TAG_BYTES = 16
WORDS = "words"  # the purpose of the tags that are stored
RULE = "words"


class AgreedWords:
    """The agreed words of one run."""

    def __init__(self, directory: Path, keys: MemberKeys, *, durable: bool) -> None:
        self._path, self._keys, self._durable = directory / FOLDER / "words.safetensors", keys, durable

    def tags_of(self, words: Sequence[str], purpose: str = WORDS) -> U8:
        """Return the tags of words [n, 16]."""
        key = self._keys.members_key(purpose)
        tags = b"".join(hmac.digest(key, word.encode(), "sha256")[:TAG_BYTES] for word in words)
        return np.frombuffer(tags, np.uint8).reshape(-1, TAG_BYTES)

    def agree(self, tags: Array) -> None:
        """Store the tags of the agreed words; a second agreement must be the same."""
        if tags.ndim != 2 or tags.shape[1] != TAG_BYTES or tags.dtype != np.uint8:
            raise FormatError("the tags of agreed words have another form")
        found = frozenset(row.tobytes() for row in tags)
        if self._known is not None and self._known != found:
            raise PolicyRefusal(RULE, "the members have agreed on other words before, and a run has one list")
        if self._known is None:
            private_directory(self._path.parent)
            ordered = np.frombuffer(b"".join(sorted(found)), np.uint8)
            atomic_write(self._path, with_checksum(encode({"tags": ordered})), durable=self._durable)
            self.__dict__.pop("_known", None)

    @cached_property
    def _known(self) -> frozenset[bytes] | None:
        if not self._path.exists():
            return None
        data = decode(read_checked(self._path))["tags"].tobytes()
        return frozenset(data[i : i + TAG_BYTES] for i in range(0, len(data), TAG_BYTES))

    def check(self, words: Sequence[str]) -> None:
        """Raise `PolicyRefusal` if the members have not agreed on one of these words."""
        earlier = self._keys.start_words
        new = [word for word in words if word not in earlier]
        known = self._known if self._known is not None else frozenset() if earlier else None
        if known is None:
            raise PolicyRefusal(RULE, "the members have agreed on no words yet")
        if not all(row.tobytes() in known for row in self.tags_of(new)):
            raise PolicyRefusal(RULE, "the list holds a word that the members have not agreed on")
