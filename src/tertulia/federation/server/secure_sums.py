"""The server's half of secure sums: it adds up masked replies, has the list of survivors signed, and unmasks the total.

The server gets a total only with the help of `threshold` members, who agree on one list for each place. What it could
gain by lying is bounded by what the members check (`party.secure_sums`); here it checks what the members send.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, islice
from math import prod
from typing import Any

import numpy as np

from tertulia._arrays import U8, Array
from tertulia.errors import FormatError, PartyFailure, QuorumError
from tertulia.federation.codec import encode
from tertulia.federation.engines.base import Transport
from tertulia.federation.messages import Exchange
from tertulia.federation.plan import Plan
from tertulia.federation.secure import shamir
from tertulia.federation.secure.keys import CIPHERTEXT_BYTES, KEY_BYTES, TAG_BYTES, Card, check_cards, hash_of_cards
from tertulia.federation.secure.lists import Label, SumList, body_hash, least_survivors, threshold
from tertulia.federation.secure.masks import SEED_BYTES, add_masks, sign_of
from tertulia.federation.secure.messages import (
    AllCards,
    AskCard,
    Boxes,
    Encapsulations,
    ListedSum,
    ListSignature,
    MaskedReply,
    Ready,
    Shares,
)
from tertulia.federation.secure.rings import fitting, from_ring
from tertulia.federation.server.answers import Masking, read_answer
from tertulia.federation.server.sum_journal import MaskedSum, Seeds, SumJournal
from tertulia.federation.types import PartyId, Place, message_name, message_type

_MOST_SUBSETS = 5000  # of shares that are tried when some are wrong
NOT_CANCELLED = (
    "the masks of the sum at round {round}, question {ordinal} do not cancel: a party on its list has masked wrongly. "
    "Nothing was added, and this sum cannot be asked for again: begin another run"
)


class SecureSums:
    """The secure sums of one run, at the server."""

    def __init__(
        self, run: str, plan: Plan, transport: Transport, journal: SumJournal, timeout: float | None,
        warn: Callable[[str], None], count: Callable[[PartyId, int, int], None],
    ) -> None:  # fmt: skip
        self._run, self._plan, self._transport, self._timeout, self._warn = run, plan, transport, timeout, warn
        self._count = count  # called with a party and the bytes to and from it
        self.journal = journal
        self.members = plan.roster
        self._cards: tuple[Card, ...] = ()
        self._widths: dict[str, tuple[int, ...]] = {}  # step -> widths of its next sum
        self.failed: set[PartyId] = set()  # parties that could not help with the last message

    @property
    def _n(self) -> int:
        return len(self.members)

    def needed(self, group: Sequence[PartyId] = ()) -> int:
        """Return the number of parties that a list must name: of all members, or of a group of the plan."""
        return least_survivors(self.members, self._plan.min_summed, self._plan.groups, group)

    @property
    def min_summed(self) -> int:
        """The smallest number of first contributions that a list may add."""
        return self._plan.min_summed

    # --- keys of the run ----------------------------------------------------------------------------------------------

    def agree_on_keys(self) -> None:
        """Let all members agree on keys, once per run; raise `QuorumError` if one is missing."""
        known = self.journal.cards_or_none()
        if known is not None:
            self._cards = known
            return
        cards = tuple(self.of_all(dict.fromkeys(self.members, AskCard()), Card).values())
        check_cards(cards, self._run, self._plan.hash, dict(self._plan.keys))
        made = self.of_all(dict.fromkeys(self.members, AllCards(cards)), Encapsulations)
        secrets = _square(made, "ciphertexts", (self._n, CIPHERTEXT_BYTES))
        sent = self.of_all({p: Encapsulations(secrets[:, v]) for v, p in enumerate(self.members)}, Boxes)
        boxes = _square(sent, "boxes", (self._n, KEY_BYTES + TAG_BYTES))
        ready = self.of_all({p: Boxes(boxes[:, v]) for v, p in enumerate(self.members)}, Ready)
        if len({one.proof.tobytes() for one in ready.values()}) != 1:
            raise PartyFailure("the members have not agreed on one key: one of them, or the network, is not honest")
        self.journal.keep_cards(cards)
        self._cards = cards

    def of_all(self, messages: Mapping[PartyId, Any], kind: type) -> dict[PartyId, Any]:
        """Send each member a message of the protocol; raise `QuorumError` unless all reply."""
        replies = self.exchange(messages, kind)
        if missing := [party for party in self.members if party not in replies]:
            raise QuorumError(
                f"secure sums need all {self._n} members at the start of a run, and {', '.join(missing)} did not "
                "answer: wait for them and resume"
            )
        return {party: replies[party] for party in self.members}

    def exchange(
        self, messages: Mapping[PartyId, Any], kind: type, enough: int | None = None, what: str = "a masked sum"
    ) -> dict[PartyId, Any]:
        """Send each party a message of the protocol; return the replies of this kind, and warn of other answers."""
        frames = {p: Exchange(self._run, self._plan.hash, encode(one)).to_bytes() for p, one in messages.items()}
        received = self._transport.ask(frames, self._timeout, enough)
        replies, self.failed = {}, set()
        for party, frame in frames.items():
            self._count(party, len(frame), len(received.get(party, b"")))
            answer = read_answer(received[party]) if party in received else None
            if answer is not None and answer.kind == "ok" and isinstance(answer.reply, kind):
                replies[party] = answer.reply
            elif answer is not None:
                if answer.kind == "failed":
                    self.failed.add(party)
                why = answer.text or f"its answer is no {kind.__name__}"
                self._warn(f"party '{party}' did not help with {what}: {why}")
        return replies

    # --- a sum --------------------------------------------------------------------------------------------------------

    def masking(self, step: str) -> Masking:
        """Return how the replies to a step's next sum are to be masked."""
        return Masking(0, self._widths.get(step, ()), self._n)

    def find_or_none(self, place: Place, question: str) -> tuple[MaskedSum, Seeds | None] | None:
        """Return the sum at a place that was begun before; raise `FormatError` if it was for another question."""
        found = self.journal.find_or_none(place)
        if found is not None and found[0].question != question:
            raise FormatError(
                f"a list was signed for another question in round {place[0]}: the run cannot go on from here. Its "
                "directory was changed, or another version continues it"
            )
        return found

    def add_up(
        self, place: Place, step: str, question: str, masking: Masking, replies: Mapping[PartyId, MaskedReply]
    ) -> MaskedSum:
        """Add up the masked replies of the survivors, and store the list with the total."""
        body, attempt = body_hash(question, masking.widths), masking.attempt
        parts = [_flat(reply) for reply in replies.values()]
        totals = [part.copy() for part in parts[0]]
        for arrays in parts[1:]:
            for total, array in zip(totals, arrays, strict=True):
                total += array
        first = next(iter(replies.values()))
        survivors = {party: reply.digest.tobytes().hex() for party, reply in replies.items()}
        found = MaskedSum(
            step, message_name(first.values), question, body, attempt, survivors, tuple(totals),
            tuple(np.shape(value) for value in vars(first.values).values()),
            np.stack([reply.commitments for reply in replies.values()]),
            np.stack([reply.boxes for reply in replies.values()]),
        )  # fmt: skip
        self.journal.keep_list(place, found)
        return found

    def total(self, place: Place, found: MaskedSum, seeds: Seeds | None) -> Any:
        """Unmask a sum: have its list signed and collect shares, unless its seeds are known."""
        if seeds is None:
            listed = self._list(place, found)
            signatures = self._signatures(listed, found)
            seeds = self._recover(listed, found, signatures)
            self.journal.keep_seeds(place, seeds)
        totals = self._unmask(place, found, seeds)
        self._widths[found.step] = fitting(totals, self._n)
        return from_ring(message_type(found.kind), totals)

    def _list(self, place: Place, found: MaskedSum) -> SumList:
        return SumList(Label(hash_of_cards(self._cards), place, found.body, found.attempt), found.survivors)

    def _signatures(self, listed: SumList, found: MaskedSum) -> dict[PartyId, Array]:
        """Have the list signed by enough members, the survivors first."""
        data, cards = listed.to_bytes(), {card.member: card for card in self._cards}
        signed: dict[PartyId, Array] = {}

        def ask(parties: Sequence[PartyId], enough: int | None) -> None:
            messages = {p: self._listed_for(p, listed, found) for p in parties}
            for party, reply in self.exchange(messages, ListSignature, enough).items():
                if cards[party].verify(reply.signature.tobytes(), data):
                    signed[party] = reply.signature

        self._ask_enough(found, signed, ask, "signed its list")
        return signed

    def _recover(self, listed: SumList, found: MaskedSum, signatures: dict[PartyId, Array]) -> Seeds:
        """Collect shares from enough members, and recover the seeds."""
        given: dict[PartyId, Shares] = {}
        s, absent = len(found.survivors), self._n - len(found.survivors)

        def ask(parties: Sequence[PartyId], enough: int | None) -> None:
            messages = {p: self._listed_for(p, listed, found, signatures) for p in parties}
            for party, reply in self.exchange(messages, Shares, enough).items():
                if fits(reply.of_selves, (s, SEED_BYTES)) and fits(reply.of_pairs, (s, absent, SEED_BYTES)):
                    given[party] = reply

        self._ask_enough(found, given, ask, "given their shares")
        return self._seeds(found, given)

    def _ask_enough(
        self, found: MaskedSum, done: Mapping[PartyId, Any], ask: Callable[[Sequence[PartyId], int | None], None],
        what: str,
    ) -> None:  # fmt: skip
        """Ask until enough members have helped: at first survivors, then all others."""
        needed = threshold(self._n)
        ask(list(found.survivors), needed)
        if len(done) < needed:
            ask([party for party in self._transport.parties if party not in done], None)
        if len(done) < needed:
            raise QuorumError(
                f"{len(done)} of {self._n} members have {what} of a masked sum, and {needed} must: wait for the others "
                "and resume"
            )

    def _listed_for(
        self, party: PartyId, listed: SumList, found: MaskedSum, signatures: dict[PartyId, Array] | None = None
    ) -> ListedSum:
        return ListedSum.of(listed, found.boxes[:, self.members.index(party)], signatures)

    # --- unmasking ----------------------------------------------------------------------------------------------------

    def _seeds(self, found: MaskedSum, given: Mapping[PartyId, Shares]) -> Seeds:
        """Recover the seeds of all self-masks, and of the masks shared with absent members."""
        places = {member: v for v, member in enumerate(self.members)}
        survivors = list(found.survivors)
        absent = [v for member, v in places.items() if member not in found.survivors]
        who = [places[member] for member in given]
        selves, pairs = (np.stack([getattr(one, name) for one in given.values()]) for name in ("of_selves", "of_pairs"))
        own = [places[member] for member in survivors]
        of_selves = self._checked(
            selves, who, found.commitments[range(len(survivors)), own], [f"the self-mask of '{p}'" for p in survivors]
        )
        of_pairs = np.zeros((len(survivors), len(absent), SEED_BYTES), np.uint8)
        for place, member in enumerate(survivors):
            commitments = found.commitments[place][absent]
            own_pairs = given[member].own_pairs if member in given else np.zeros((0, SEED_BYTES), np.uint8)
            if fits(own_pairs, (len(absent), SEED_BYTES)) and _all_committed(own_pairs, commitments):
                of_pairs[place] = own_pairs
            elif absent:
                names = [f"the mask of '{member}' and '{self.members[v]}'" for v in absent]
                of_pairs[place] = self._checked(pairs[:, place], who, commitments, names)
        return Seeds(of_selves, of_pairs)

    def _checked(self, shares: U8, who: Sequence[int], commitments: U8, names: Sequence[str]) -> U8:
        """Recover seeds from shares [m, n, 16]; where they miss a commitment, try others and name wrong senders."""
        t = threshold(self._n)
        found = shamir.recover(shares[:t], who[:t])
        for place, name in enumerate(names):
            if not _committed(found[place], commitments[place]):
                found[place] = self._from_others(shares[:, place : place + 1], who, commitments[place], name)
        return found

    def _from_others(self, shares: U8, who: Sequence[int], commitment: U8, name: str) -> U8:
        t = threshold(self._n)
        for chosen in islice(combinations(range(len(who)), t), _MOST_SUBSETS):
            members = [who[i] for i in chosen]
            seed: U8 = shamir.recover(shares[list(chosen)], members)[0]
            if _committed(seed, commitment):
                for i, member in enumerate(who):
                    if i not in chosen and not np.array_equal(
                        shamir.recover(shares[list(chosen)], members, at=member), shares[i]
                    ):
                        self._warn(f"party '{self.members[member]}' gave a wrong share of {name}")
                return seed
        raise PartyFailure(f"no {t} shares give {name}: the sum cannot be unmasked. Begin another run")

    def _unmask(self, place: Place, found: MaskedSum, seeds: Seeds) -> list[Array]:
        places = {member: v for v, member in enumerate(self.members)}
        absent = [v for member, v in places.items() if member not in found.survivors]
        totals = [total.copy() for total in found.masked]
        masks = [(seed.tobytes(), -1) for seed in seeds.of_selves]
        for member, pairs in zip(found.survivors, seeds.of_pairs, strict=True):
            masks += [(pair.tobytes(), -sign_of(places[member], v)) for v, pair in zip(absent, pairs, strict=True)]
        add_masks(totals, masks)
        zeros, *arrays = totals
        if zeros.any():
            raise FormatError(NOT_CANCELLED.format(round=place[0], ordinal=place[1]))
        return [array.reshape(tuple(shape)) for array, shape in zip(arrays, found.shapes, strict=True)]


def _flat(reply: MaskedReply) -> list[Array]:
    return [reply.zeros, *(np.ascontiguousarray(value).reshape(-1) for value in vars(reply.values).values())]


def _square(replies: Mapping[PartyId, Any], name: str, shape: tuple[int, ...]) -> Array:
    """Stack one array of each member [n, n, b]; raise `PartyFailure` for one of another shape."""
    for party, reply in replies.items():
        if not fits(getattr(reply, name), shape):
            raise PartyFailure(f"party '{party}' sent keys of another form")
    return np.stack([getattr(reply, name) for reply in replies.values()])


def fits(array: Any, shape: tuple[int, ...]) -> bool:
    """Tell whether a party has sent bytes of this shape."""
    return isinstance(array, np.ndarray) and array.dtype == np.uint8 and array.shape == shape and prod(shape) >= 0


def _committed(seed: U8, commitment: U8) -> bool:
    return hashlib.sha256(seed.tobytes()).digest() == commitment.tobytes()


def _all_committed(seeds: U8, commitments: U8) -> bool:
    return all(_committed(seed, commitment) for seed, commitment in zip(seeds, commitments, strict=True))
