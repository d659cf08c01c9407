"""How a party unpacks what it is asked, and packs what it answers.

It keeps the last question of each step in memory, from which the server may send the next one as differences. A party
that was started again has none, says that it is lacking it, and gets the question in full.
"""

from __future__ import annotations

import dataclasses

from tertulia.federation.messages import Ask, Question
from tertulia.federation.packing import Base, Bases, pack, unpack


class Packing:
    """One party's questions that the server knows it has."""

    def __init__(self) -> None:
        self._asked = Bases()

    def unpack(self, question: Question) -> Question:
        """The question as it was asked; raise `LackingBase` if it cannot be made out."""
        body = unpack(question.body, self._asked.find_or_none)
        return question if body is question.body else dataclasses.replace(question, body=body)

    def keep(self, question: Question, ask: Ask) -> None:
        """Remember a question that is being answered."""
        self._asked.keep(ask.step, Base(question.hash, question.body))

    def pack(self, answer: bytes, question: Question) -> bytes:
        """The bytes that travel for an answer."""
        return pack(answer) if question.packs else answer
