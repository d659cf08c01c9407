"""Attacks on the keys of secure sums: a server that puts itself between members reads everything."""

import dataclasses
from functools import partial

import numpy as np
import pytest

from helpers import masked_toys as toys
from helpers.attacks_secure import Members, refused
from tertulia.errors import FormatError, PartyFailure, PolicyRefusal
from tertulia.federation.identity.keys import fingerprint, new_key, public_der, sign
from tertulia.federation.party.member_keys import make_run_keys
from tertulia.federation.secure.keys import RunKeys, encapsulate
from tertulia.federation.secure.messages import (
    AllCards,
    AskCard,
    Boxes,
    Committed,
    Encapsulations,
    SealedNotes,
    SignedNotes,
)

TASK = toys.Task(1)


@pytest.fixture
def members(tmp_path):
    found = Members(tmp_path, 4)
    yield found
    found.close()


def forged_card(members, name, key=None):
    """A card of the server's own making, in a member's name."""
    key = key or new_key()
    keys = RunKeys.new()
    return keys.card(name, members.run.id, members.plan, public_der(key), partial(sign, key))


def test_a_card_must_be_signed_by_the_key_on_the_roster(members):
    cards = [members.exchange(p, AskCard()).reply for p in members.names]
    for victim in range(1, 4):
        forged = list(cards)
        forged[victim] = forged_card(members, members.names[victim])
        assert members.exchange(members.names[0], AllCards(tuple(forged))).kind == "failed"
    roster_key = cards[1].roster_key  # the right key, without its signature
    stolen = dataclasses.replace(forged_card(members, members.names[1]), roster_key=roster_key)
    with pytest.raises(FormatError, match="not signed by its roster key"):
        stolen.check(members.run.id, members.plan, dict(members.run.keys)[members.names[1]])


def test_a_card_of_another_run_or_plan_or_member_is_refused(members):
    card = members.exchange(members.names[0], AskCard()).reply
    roster = dict(members.run.keys)
    card.check(members.run.id, members.plan, roster[members.names[0]])
    for run, plan in (("other", members.plan), (members.run.id, "other")):
        with pytest.raises(FormatError, match="not signed by its roster key"):
            card.check(run, plan, roster[members.names[0]])
    with pytest.raises(FormatError, match="not on the roster"):
        card.check(members.run.id, members.plan, roster[members.names[1]])
    renamed = dataclasses.replace(card, member=members.names[1])
    with pytest.raises(FormatError):
        renamed.check(members.run.id, members.plan, roster[members.names[0]])


def test_other_cards_than_before_are_refused(members, tmp_path):
    """A member whose keys are lost cannot come back with others in the same run."""
    cards = [members.exchange(p, AskCard()).reply for p in members.names]
    new = RunKeys.new()
    key = new_key()
    changed = new.card(members.names[2], members.run.id, members.plan, public_der(key), partial(sign, key))
    host = members.transport.hosts[members.names[0]]
    host.secure.keys._plan = dataclasses.replace(  # even if the roster named the new key
        host.door.plan, keys=dict(members.run.keys) | {members.names[2]: fingerprint(key.public_key())}
    )
    with pytest.raises((PolicyRefusal, FormatError)):
        host.secure.keys.exchange(AllCards((*cards[:2], changed, cards[3])))
    for wrong in (cards[:3], [*cards, cards[0]], list(reversed(cards))):
        assert members.exchange(members.names[0], AllCards(tuple(wrong))).kind == "failed"


def test_keys_made_for_a_member_are_not_made_again(members):
    party = members.names[0]
    before = members.exchange(party, AskCard()).reply.signed
    key = new_key()
    make_run_keys(
        members.run.party_directory(party), party, members.run.id, members.plan, public_der(key), partial(sign, key)
    )
    assert members.exchange(party, AskCard()).reply.signed == before


def test_a_server_that_encapsulates_in_anothers_name_gets_no_box_open(tmp_path):
    """It replaces a secret on its way: the two members then have different keys, and notice at the first box."""
    run = toys.begun(tmp_path / "run", 4)
    transport = run.transport("local", 1)
    try:
        real, cards = transport.ask, {}

        def ask(frames, *more):
            answers = real(frames, *more)
            from tertulia.federation.codec import decode, encode

            for party, data in answers.items():
                answer = decode(data)
                reply = answer.reply
                if type(reply).__name__ == "Card":
                    cards[party] = reply
                if isinstance(reply, Encapsulations) and party == run.parties[0]:
                    _, ciphertext = encapsulate(cards[run.parties[1]])
                    rows = reply.ciphertexts.copy()
                    rows[1] = np.frombuffer(ciphertext, np.uint8)
                    answers[party] = encode(dataclasses.replace(answer, reply=Encapsulations(rows)))
            return answers

        transport.ask = ask
        with pytest.raises(Exception, match=r"did not answer|not honest"):
            toys.handle_of(run, transport)
    finally:
        transport.close()


def test_a_server_that_changes_a_string_or_a_box_is_noticed(tmp_path):
    run = toys.begun(tmp_path / "run", 4)
    transport = run.transport("local", 1)
    try:
        real = transport.ask

        def ask(frames, *more):
            from tertulia.federation.codec import decode, encode

            answers = real(frames, *more)
            for party, data in answers.items():
                answer = decode(data)
                if isinstance(answer.reply, Boxes) and party == run.parties[3]:
                    boxes = answer.reply.boxes.copy()
                    boxes[0, 3] ^= 1
                    answers[party] = encode(dataclasses.replace(answer, reply=Boxes(boxes)))
            return answers

        transport.ask = ask
        with pytest.raises(Exception, match="did not answer"):
            toys.handle_of(run, transport)
    finally:
        transport.close()


def test_members_that_differ_in_their_key_stop_the_run(tmp_path):
    run = toys.begun(tmp_path / "run", 4)
    transport = run.transport("local", 1)
    try:
        host = transport.hosts[run.parties[1]]
        from tertulia.federation.party import member_keys

        real = host.secure.keys.exchange

        def lie(message):
            reply = real(message)
            return dataclasses.replace(reply, proof=reply.proof ^ 1) if hasattr(reply, "proof") else reply

        host.secure.keys.exchange = lie
        assert member_keys.RULE == "secure"
        with pytest.raises(PartyFailure, match="not agreed on one key"):
            toys.handle_of(run, transport)
    finally:
        transport.close()


def test_nothing_is_answered_before_keys_are_agreed(tmp_path):
    run = toys.begun(tmp_path / "run", 4)
    transport = run.transport("local", 1)
    try:
        members = Members.__new__(Members)
        members.run, members.transport, members.names = run, transport, list(run.parties)
        members.plan = transport.hosts[run.parties[0]].door.plan.hash
        answer = members.ask(run.parties[0], toys.contribute, TASK)
        assert refused(answer, "secure")
    finally:
        transport.close()


# --- notes ------------------------------------------------------------------------------------------------------------


def committed(members, task=TASK, place=(0, 0)):
    found = {p: members.ask(p, toys.tell, task, place, verb="relay", attempt=-1) for p in members.names}
    assert all(answer.kind == "ok" for answer in found.values()), found
    return np.stack([answer.reply.commitment for answer in found.values()])


def body_of(members, task=TASK):
    from tertulia.federation.codec import encode
    from tertulia.federation.messages import BEFORE_ALL, Ask, Question
    from tertulia.federation.types import step_name

    body = encode(Ask("relay", step_name(toys.tell), task))
    return Question(members.run.id, (0, 0), BEFORE_ALL, 0, True, body).hash


def test_a_note_is_sealed_only_against_commitments_of_all(members):
    rows, body, party = committed(members), body_of(members), members.names[0]
    own = rows.copy()
    own[0] ^= 1
    assert refused(members.exchange(party, Committed((0, 0), body, own)), "secure")
    assert members.exchange(party, Committed((0, 0), body, rows[:3])).kind == "failed"
    assert members.exchange(party, Committed((0, 0), body, rows)).kind == "ok"
    other = rows.copy()
    other[2] ^= 1
    assert refused(members.exchange(party, Committed((0, 0), body, other)), "secure")  # not the same as before


def test_a_note_that_differs_from_its_commitment_is_refused(members):
    """Else the last member could copy the tags that it has read in the notes of others."""
    rows, body = committed(members), body_of(members)
    sealed = [members.exchange(p, Committed((0, 0), body, rows)).reply.sealed for p in members.names]
    swapped = (sealed[0], sealed[2], sealed[1], sealed[3])
    assert members.exchange(members.names[0], SealedNotes((0, 0), body, swapped)).kind == "failed"
    assert members.exchange(members.names[0], SealedNotes((0, 0), body, tuple(sealed))).kind == "ok"


def test_notes_count_only_when_all_have_signed(members):
    rows, body = committed(members), body_of(members)
    sealed = tuple(members.exchange(p, Committed((0, 0), body, rows)).reply.sealed for p in members.names)
    signed = [members.exchange(p, SealedNotes((0, 0), body, sealed)).reply.signature for p in members.names]
    party = members.names[0]
    for few in (signed[:3], [signed[0]] * 4, [*signed[:3], signed[0]]):
        answer = members.exchange(party, SignedNotes((0, 0), body, tuple(few)))
        assert refused(answer, "secure")
    from tertulia.federation.types import Nothing

    early = members.ask(party, toys.read_notes, Nothing(), (0, 1), verb="each", attempt=-1, previous=(0, 0))
    assert early.kind == "absent"
    assert members.exchange(party, SignedNotes((0, 0), body, tuple(signed))).kind == "ok"
    late = members.ask(party, toys.read_notes, Nothing(), (0, 1), verb="each", attempt=-1, previous=(0, 0))
    assert late.kind == "ok"


def test_a_second_question_at_the_place_of_a_note_is_refused(members):
    committed(members)
    answer = members.ask(members.names[0], toys.tell, toys.Task(2), verb="relay", attempt=-1)
    assert answer.kind in ("refused", "failed")
