"""Stage 0 of every method: one ordered vocabulary for all (gFedNTM, stage 1).

Parties propose their words with document counts, the server merges and prunes. In mode `public` a given word list is
used and nothing about the data is sent. With secure sums the server learns only words that several members have
(`shared_words`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tertulia._kinds import check_array
from tertulia.corpus import Corpus, Vocabulary
from tertulia.corpus.vocabulary import MergeMode, disjoint_parties, merge, pack_words, propose, unpack_words
from tertulia.errors import FormatError, InputError
from tertulia.federation import fields
from tertulia.federation.types import Federation, Nothing, Party, Planned, message, step
from tertulia.methods.common import shared_words
from tertulia.methods.common.settings import MANY_DOCUMENTS, VocabularySettings
from tertulia.methods.common.shared_words import agree_in_secret, choose, plan_choice, plan_in_secret
from tertulia.privacy.mechanisms import Clear, Public
from tertulia.privacy.mechanisms.things import thing

WORDS = Clear(thing("words with document counts", "words, each with the number of documents that have it", words="own"))
DOCUMENTS = Public("number of documents")
NONE_CHOSEN = (
    "no word was chosen under noise: no party has one in enough documents. Raise vocabulary.epsilon, or give a word "
    "list (mode 'public')"
)


@message
class ProposedWords:
    """A party's words, as bytes with offsets, and the number of its documents that hold each."""

    text: fields.Bytes
    offsets: fields.Offsets  # [n + 1]
    counts: fields.Places  # [n]
    documents: fields.DocumentCount

    @cached_property
    def unpacked(self) -> list[str]:
        """The words themselves."""
        return unpack_words(self.text, self.offsets)

    def check_reply(self, ask: Nothing) -> None:
        """Raise unless these are words, each with its number of documents."""
        check_array("counts", self.counts, (len(self.unpacked),))
        if len(self.unpacked) and self.counts.max() > self.documents:
            raise FormatError("a word is in more documents than there are")


@step(doing="agreeing on words")
def propose_words(party: Party, state: Any, ask: Nothing) -> tuple[Any, ProposedWords]:
    """Propose the words of this party's training documents, but for those that its policy withholds as rare."""
    documents = party.documents()
    least = party.min_documents_per_word
    proposal = propose(documents, least)
    if withheld := len(propose(documents).words) - len(proposal.words) if least > 1 else 0:
        party.notice(f"{withheld} words that fewer than {least} of its documents have stay here")
    if alone := int((np.asarray(proposal.counts) == 1).sum()):
        party.notice(
            f"{alone} of the {len(proposal.words)} words that leave now are in only one of its documents; "
            "vocabulary mode 'public' sends none"
        )
    text, offsets = pack_words(proposal.words)
    return state, ProposedWords(
        party.release(text, WORDS),
        party.release(offsets, WORDS),
        party.release(np.asarray(proposal.counts), WORDS),
        party.release(np.array(proposal.n_documents), DOCUMENTS),
    )


def check_has_words(party: Party, corpus: Corpus) -> None:
    """Raise `InputError` unless a party's documents hold a word of the agreed vocabulary."""
    if corpus.n_tokens == 0:
        raise InputError(
            f"no word of party '{party.id}' is in the agreed vocabulary: check its language, or use 'union'"
        )


def words_of_one_document(corpus: Corpus) -> int:
    """Count the words that only one of a party's documents has: each shows the server something of that document."""
    return int((np.asarray(propose(corpus).counts) == 1).sum())


def agree(fed: Federation, terms: VocabularySettings, known: tuple[str, ...] = ()) -> Vocabulary:
    """Let all parties arrive at one vocabulary; known words, of an earlier model, keep their places in it."""
    if terms.mode == "public":
        return Vocabulary(terms.words)
    if terms.in_secret or terms.mode == "private":
        in_secret = terms.in_secret or fed.secure
        named = agree_in_secret(fed, terms).words if in_secret else choose(fed, terms)
        if not (words := extend_words(known, named, terms.max_words)):
            raise InputError(NONE_CHOSEN)
        return Vocabulary(words)
    proposals = {
        party: (reply.unpacked, reply.counts, int(reply.documents))
        for party, reply in fed.each(propose_words, Nothing()).items()
    }
    _warn_of_strangers(proposals, terms.mode)
    n_documents = sum(documents for _, _, documents in proposals.values())
    limits = terms.limits(n_documents if not known else MANY_DOCUMENTS)
    mode: MergeMode = "union" if terms.mode == "union" else "min_parties"
    found = merge(proposals, mode, terms.min_parties or 2, *limits, terms.max_words, terms.phrases)
    return Vocabulary(extend_words(known, found.words, terms.max_words))


def extend_words(known: Sequence[str], found: Sequence[str], most: int | None) -> tuple[str, ...]:
    """Return all known words in their places, then new ones, as many as there may be.

    >>> extend_words(("sun", "rain"), ("rain", "wind", "hail"), 3)
    ('sun', 'rain', 'wind')
    """
    return tuple(dict.fromkeys((*known, *found)))[: None if most is None else max(most, len(known))]


WORD_STEPS = (propose_words, *shared_words.STEPS)


def plan_vocabulary(terms: VocabularySettings) -> list[Planned]:
    """List what agreeing on words will disclose."""
    if terms.mode == "public":
        return []
    if terms.in_secret:
        return plan_in_secret(terms)
    if terms.mode == "private":
        return plan_choice(terms)
    return [Planned(propose_words, "each", mechanism, 1) for mechanism in (WORDS, DOCUMENTS)]


def _warn_of_strangers(proposals: dict[str, Any], mode: str) -> None:
    for party in disjoint_parties(proposals):
        text = f"party '{party}' shares no word with any other party: is it another language, or tokenised differently?"
        if mode == "min_parties":
            raise InputError(f"{text} It would have no word left: use vocabulary mode 'union', or leave it out")
        warnings.warn(text, stacklevel=2)
