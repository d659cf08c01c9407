"""Withdrawals in a ledger: durable, chained, without names; nothing that was charged changes."""

import json
import sqlite3

import numpy as np
import pytest

from tertulia.errors import FormatError, PolicyRefusal
from tertulia.kernels.reports.channel import Channel
from tertulia.privacy.ledger import Ledger, Release
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.mechanisms.token_reports import TokenReports
from tertulia.privacy.noise import NoiseKey
from tertulia.privacy.reported_documents import NOBODY, Fingerprints
from tertulia.privacy.withdrawals import NOT_RECALLED, Withdrawal, Withdrawals, counted, mac_of_id, mac_of_user

KEY = NoiseKey.fixed(bytes(range(32)))
REPORTS = TokenReports("reports of tokens", channel=Channel("krr", 1.0, 5))
ANN, BEN = (mac_of_user(KEY, name) for name in ("ann", "ben"))
A1, A2, B1 = (mac_of_id(KEY, name) for name in ("a1", "a2", "b1"))


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite", KEY)
    yield ledger
    ledger.close()


def release(name="reports"):
    return Release.of(
        REPORTS, id=name, party="north", round=0, step="m:s", verb="reports", message_hash="", x=np.zeros(0)
    )


def documents(*rows):
    ids, users = zip(*rows, strict=True)
    return Fingerprints(ids, [KEY.mac(id_) for id_ in ids], users)


def test_a_withdrawal_is_an_entry_that_names_nobody(ledger):
    entry = Withdrawal.of(KEY, "user", "ann")._replace(ids=frozenset({A1}), contents=frozenset({B1}))
    assert ledger.withdraw([entry, Withdrawal.of(KEY, "document", "b1")]) == 2
    rows = [row.entry for row in ledger.entries()][1:]
    assert not any("ann" in row.id + row.body for row in rows)
    assert all(json.loads(row.body)["withdrawn"] in ("user", "document") and row.time for row in rows)
    found = ledger.withdrawals()
    assert (found.users, found.documents, found.of_users, found.contents) == ({ANN}, {B1}, {A1}, {B1})
    assert found.last == 2
    day = rows[0].time[:10]
    assert str(found) == f"Withdrawn since {day}: 1 document of 1 user and 1 document. {NOT_RECALLED}"
    assert str(ledger.withdrawals(after=1)) == f"Withdrawn since {day}: 1 document. {NOT_RECALLED}"
    assert str(ledger.withdrawals(after=2)) == ""
    assert Withdrawal.from_json(entry.to_json()) == entry
    ledger.verify()


def test_it_is_recorded_once_and_read_again_from_the_disk(ledger):
    one = Withdrawal.of(KEY, "user", "ann")
    assert [ledger.withdraw([one]), ledger.withdraw([one])] == [1, 0]
    digest = ledger.digest()
    ledger.close()
    again = Ledger(ledger.path, KEY)
    assert again.withdrawals().users == {ANN}
    assert again.digest() == digest
    assert again.releases() == []  # no release
    again.close()


def test_a_stretch_of_the_ledger_has_its_own(ledger):
    for name in ("ann", "ben"):
        ledger.withdraw([Withdrawal.of(KEY, "user", name)])
    assert ledger.withdrawals(until=1).users == {ANN}
    later = ledger.withdrawals(after=1)
    assert (later.users, later.last) == ({BEN}, 2)
    nothing = ledger.withdrawals(after=2)
    assert (bool(nothing), nothing.last) == (False, 2)


@pytest.mark.parametrize(
    "forge",
    [
        "UPDATE entries SET body = replace(body, 'user', 'document') WHERE seq = 1",
        "DELETE FROM entries WHERE seq = 1",
        "UPDATE entries SET id = 'mark:x' WHERE seq = 1",
    ],
)
def test_an_edited_or_removed_withdrawal_is_refused(ledger, forge):
    ledger.withdraw([Withdrawal.of(KEY, "user", "ann"), Withdrawal.of(KEY, "user", "ben")])
    ledger.close()
    with sqlite3.connect(ledger.path) as db:
        db.execute(forge)
    db.close()
    with pytest.raises(FormatError, match="tampered with"):
        Ledger(ledger.path, KEY)


def test_a_removed_last_withdrawal_is_found_by_a_digest(ledger):
    ledger.withdraw([Withdrawal.of(KEY, "user", "ann")])
    digest = ledger.digest()
    ledger.close()
    with sqlite3.connect(ledger.path) as db:
        db.execute("DELETE FROM entries WHERE seq = 1")
    db.close()
    shorter = Ledger(ledger.path, KEY)
    with pytest.raises(FormatError, match="has lost the entries"):
        shorter.verify(digest)
    shorter.close()


@pytest.mark.parametrize(
    "body",
    ["[]", "{}", '{"withdrawn": "party", "mac": "00"}', '{"withdrawn": "user", "mac": "zz"}', "nonsense",
     json.dumps({"withdrawn": "user", "mac": "00" * 16, "documents": "AAAA", "contents": ""})],
)  # fmt: skip
def test_a_damaged_body_is_refused_in_the_projects_words(body):
    with pytest.raises(FormatError, match="restore the ledger from a backup"):
        Withdrawal.from_json(body)


def test_what_was_spent_stays_spent_and_reports_are_never_drawn_again(ledger):
    ledger.record_reports(release(), documents((A1, ANN), (B1, BEN)))
    before = ledger.cost(Unit.TOKEN, Adjacency.SUBSTITUTE, 0.0).epsilon, ledger.releases()
    ledger.withdraw([Withdrawal.of(KEY, "user", "ann")])
    assert (ledger.cost(Unit.TOKEN, Adjacency.SUBSTITUTE, 0.0).epsilon, ledger.releases()) == before
    for name, row in (("reports", (A1, ANN)), ("reports", (A2, ANN)), ("other", (A1, ANN))):  # known, new, another list
        digest = ledger.digest()
        with pytest.raises(PolicyRefusal, match="withdrawal"):
            ledger.record_reports(release(name), documents((B1, BEN), row))
        assert ledger.digest() == digest
    ledger.record_reports(release(), documents((B1, BEN)))


def test_the_ledger_knows_whose_documents_it_has_seen(ledger):
    ledger.record_reports(release(), documents((A1, ANN), (B1, BEN)))
    ledger.record_reports(release("other"), documents((A2, ANN)))
    known = ledger.every_reported()
    assert set().union(*(one.ids_of_user(ANN) for one in known)) == {A1, A2}
    assert [one.has_id(A2) for one in known] == [False, True]
    assert not any(one.ids_of_user(mac_of_user(KEY, "cleo")) for one in known)


def test_which_documents_a_withdrawal_covers():
    found = Withdrawals(users=frozenset({ANN}), documents=frozenset({B1}), of_users=frozenset({A1}))
    assert found.cover(A2, ANN)  # any document of hers
    assert found.cover(B1, BEN)  # the document itself
    assert found.cover(A1, NOBODY)  # hers, though it no longer says so
    assert not found.cover(A1, BEN)  # another user's document, with the same id
    assert not found.cover(A2, NOBODY)
    assert [counted(0, 0), counted(0, 1), counted(1, 2)] == ["", "1 document", "1 user and 2 documents"]
