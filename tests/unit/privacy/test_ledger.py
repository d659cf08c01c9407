"""The ledger: charged on disk first, charged once, chained, and safe among threads, processes and crashes."""

import json
import math
import sqlite3
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from helpers.mechanisms import Concentrated
from tertulia.errors import FormatError, JournalError, PolicyRefusal, Unreleased
from tertulia.kernels.reports.channel import Channel
from tertulia.privacy.ledger import Ledger, Release
from tertulia.privacy.mechanisms import (
    Adjacency,
    Claim,
    Clear,
    Derived,
    DiscreteLaplace,
    Mechanism,
    Public,
    Unit,
)
from tertulia.privacy.mechanisms.token_reports import TokenReports
from tertulia.privacy.noise import NoiseKey
from tertulia.privacy.policy import Policy
from tertulia.privacy.reported_documents import Fingerprints

CLEAR = Clear("topic-word matrix", claimed=Claim(8.0, 0.0, "FTM sec. 3.1.1"))
KEY = NoiseKey.fixed(bytes(range(32)))
LAPLACE = DiscreteLaplace("counts", 1, 1.0)


def release(mechanism: Mechanism = CLEAR, name: str = "a", when: int = 1, **fields) -> Release:
    x = np.zeros(4)
    return Release.of(
        mechanism, id=name, party="north", round=when, step="m:s", verb="sum", message_hash="ff", x=x, **fields
    )


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    yield ledger
    ledger.close()


def spent(ledger: Ledger, delta: float = 0.0) -> float:
    return ledger.cost(Unit.DOCUMENT, Adjacency.ADD_REMOVE, delta).epsilon


def test_two_ledgers_on_one_file_see_each_other_s_rows_at_once(ledger):
    other = Ledger(ledger.path)
    for name in "abc":  # unsynced rows too: they are only later on the disk, not later in the file
        assert ledger.record(release(CLEAR, name), sync=False)
        assert [r.id for r in other.releases()][-1] == name
    assert other.record(release(LAPLACE, "d"))
    assert ledger.releases() == other.releases()
    ledger.sync()
    ledger.verify(other.digest())
    other.close()


def test_a_repeated_release_is_charged_once(ledger):
    assert ledger.record(release(LAPLACE))
    digest = ledger.digest()
    assert not ledger.record(release(LAPLACE))
    assert (spent(ledger), ledger.digest()) == (1.0, digest)
    assert ledger.releases() == [release(LAPLACE)]


def test_an_id_stands_for_one_content(ledger):
    ledger.record(release(LAPLACE))
    with pytest.raises(PolicyRefusal, match=r"one release, one content.*'a'"):
        ledger.record(release(replace(LAPLACE, epsilon=0.5)))
    assert spent(ledger) == 1.0


def test_releases_add_up_and_survive_reopening(ledger):
    for i in range(3):
        ledger.record(release(LAPLACE, f"r{i}", i))
    ledger.close()
    again = Ledger(ledger.path)
    assert [r.round for r in again.releases()] == [0, 1, 2]
    assert spent(again) == 3.0


def test_every_charge_is_synced_to_disk(ledger, tmp_path):
    full, off = 2, 0
    assert ledger._db.execute("PRAGMA synchronous").fetchone() == (full,)
    assert Ledger(tmp_path / "scratch.sqlite", durable=False)._db.execute("PRAGMA synchronous").fetchone() == (off,)


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("version", [1, 2])
def test_a_ledger_of_an_earlier_format_is_refused_and_stays_as_it_is(tmp_path, version, key):
    path = tmp_path / "ledger.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE entries (seq INTEGER PRIMARY KEY, id TEXT UNIQUE, body TEXT, hash TEXT)")
        db.execute("INSERT INTO entries (id, body, hash) VALUES ('a', '{}', 'ff')")
        db.execute(f"PRAGMA user_version={version}")
    db.close()
    before = path.read_bytes()
    with pytest.raises(FormatError, match=r"ledger\.sqlite was made by an earlier, unreleased version: it cannot be"):
        Ledger(path, key)
    assert [file.name for file in tmp_path.iterdir()] == ["ledger.sqlite"]
    assert path.read_bytes() == before


def test_rows_say_when_for_whom_and_under_which_rules(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite", KEY)
    ledger.addressee = ("server of run 7", "ab12")
    ledger.record(release(LAPLACE), Policy())
    first, entry = (row.entry for row in ledger.entries())
    assert first.body == json.dumps(KEY.commitment)
    assert (entry.recipient, entry.plan, entry.policy) == ("server of run 7", "ab12", Policy().version)
    assert abs(datetime.fromisoformat(entry.time) - datetime.now(UTC)) < timedelta(minutes=1)
    assert Policy().version != Policy(allow_single=False).version
    for column in ("time", "recipient", "plan", "policy"):
        with sqlite3.connect(ledger.path) as db:
            (was,) = db.execute(f"SELECT {column} FROM entries WHERE id = 'a'").fetchone()
            db.execute(f"UPDATE entries SET {column} = 'x' WHERE id = 'a'")
        with pytest.raises(FormatError, match="tampered"):
            ledger.verify()
        with db:
            db.execute(f"UPDATE entries SET {column} = ? WHERE id = 'a'", (was,))
        db.close()
    ledger.verify()


def test_post_processing_is_free_if_its_parents_left_before(ledger):
    ledger.record(release(LAPLACE, "a"))
    ledger.record(release(Derived("shares", parents=("a",)), "b"))
    assert spent(ledger) == 1.0


@pytest.mark.parametrize("parent", ["never-released", "raw:north", "mark:known key"])
def test_post_processing_of_anything_else_is_refused(ledger, parent):
    ledger.mark_non_private("known key")
    with pytest.raises(Unreleased, match=f"computed from \\['{parent}'\\]"):
        ledger.record(release(Derived("shares", parents=(parent,))))
    assert ledger.releases() == []


def test_raw_data_without_an_event_is_refused(ledger):
    for parents in ((), ("raw:north",)):
        with pytest.raises(Unreleased):
            ledger.record(replace(release(LAPLACE), event=None, parents=parents))


def test_a_known_key_makes_everything_non_private(ledger):
    ledger.record(release(LAPLACE))
    ledger.mark_non_private("the noise key is fixed")
    ledger.mark_non_private("the noise key is fixed")
    guarantee = ledger.cost(Unit.DOCUMENT, Adjacency.ADD_REMOVE, 1e-6)
    assert guarantee.epsilon == math.inf
    assert guarantee.assumptions == ("the noise key is fixed",) == tuple(ledger.marks())
    assert ledger.table()[0].real.epsilon == math.inf
    assert len(ledger.releases()) == 1


def test_the_table_sets_claimed_beside_real(ledger):
    for i in range(3):
        ledger.record(release(CLEAR, f"c{i}", i))
        ledger.record(release(Concentrated("moments", rho=0.02), f"g{i}", i))
    ledger.record(release(Public("number of documents"), "n"))
    clear, gaussian, public = ledger.table(delta=1e-5)
    assert (clear.claimed, clear.real.epsilon, clear.releases) == (Claim(8.0, 0.0, "FTM sec. 3.1.1"), math.inf, 3)
    assert clear.nbytes == 3 * 32
    assert gaussian.claimed is None
    assert 1.0 < gaussian.real.epsilon < 2.0
    assert public.real.epsilon == 0.0
    assert "is public" in public.real.assumptions[0]
    assert "1/1000" in str(ledger.table(delta=1e-2, population=1000)[1].vacuous)


def test_the_export_is_plain_json_lines(ledger, tmp_path):
    ledger.record(release())
    ledger.mark_non_private("why")
    ledger.export(tmp_path / "ledger.jsonl")
    first, second = [json.loads(line) for line in (tmp_path / "ledger.jsonl").read_text().splitlines()]
    assert first["entry"]["what"] == "topic-word matrix"
    assert (second["entry"], f"2:{second['hash']}") == ("why", ledger.digest())


def three(ledger: Ledger) -> None:
    for i in range(3):
        ledger.record(release(LAPLACE, f"r{i}", i))


@pytest.mark.parametrize(
    "tamper",
    [
        "UPDATE entries SET body = replace(body, '\"noise_parameter\":1.0', '\"noise_parameter\":0.1') WHERE id = 'r1'",
        "UPDATE entries SET id = 'rx' WHERE id = 'r1'",
        "DELETE FROM entries WHERE id = 'r1'",
        "UPDATE entries SET seq = 9 WHERE id = 'r0'",
    ],
)
def test_tampering_is_noticed(ledger, tamper):
    three(ledger)
    ledger.verify()
    with sqlite3.connect(ledger.path) as other:
        assert other.execute(tamper).rowcount == 1
    other.close()
    with pytest.raises(FormatError, match="was tampered with"):
        ledger.verify()


def test_a_kept_digest_notices_a_cut_end(ledger):
    three(ledger)
    digest = ledger.digest()
    with sqlite3.connect(ledger.path) as other:
        other.execute("DELETE FROM entries WHERE id = 'r2'")
    other.close()
    ledger.verify()  # the chain itself is whole
    with pytest.raises(FormatError, match=digest):
        ledger.verify(digest)


def test_without_the_key_a_chain_cannot_be_rebuilt(tmp_path):
    path = tmp_path / "ledger.sqlite"
    three(Ledger(path, KEY))
    reader = Ledger(path)
    assert len(reader.releases()) == 3
    for refused in (reader.verify, lambda: reader.record(release(LAPLACE, "more"))):
        with pytest.raises(FormatError, match="without its noise key"):
            refused()
    with pytest.raises(FormatError, match="belongs to another noise key"):
        Ledger(path, NoiseKey.fixed(bytes(32)))


def test_a_digest_names_its_entry(ledger):
    assert ledger.digest() == f"0:{'0' * 64}"
    three(ledger)
    assert ledger.digest() == ledger.digest(3)
    assert ledger.digest(2).startswith("2:")
    assert ledger.digest(4) == ""


def test_threads_share_a_ledger(ledger):
    with ThreadPoolExecutor(8) as pool:
        charged = list(pool.map(lambda i: ledger.record(release(LAPLACE, f"r{i % 40}")), range(80)))
    assert sum(charged) == 40
    assert len(ledger.releases()) == 40
    ledger.verify()


def test_a_budget_holds_among_threads(ledger):
    policy = Policy.parse('[[budget]]\nunit = "document"\nepsilon = 5.0\ndelta = 0.0')

    def attempt(i: int) -> bool:
        try:
            return ledger.record(release(LAPLACE, f"r{i}"), policy)
        except PolicyRefusal:
            return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(24))) == 5
    assert spent(ledger) == 5.0


SETUP = """
    import os, signal, sys
    import numpy as np
    from tertulia.privacy.ledger import Ledger, Release
    from tertulia.privacy.mechanisms import DiscreteLaplace
    from tertulia.privacy.policy import Policy

    ledger = Ledger(sys.argv[1])
    def charge(id, policy=None):
        mechanism = DiscreteLaplace("counts", 1, 1.0)
        ledger.record(Release.of(mechanism, id=id, party="north", round=1, step="m:s", verb="sum", message_hash="ff",
                                 x=np.zeros(4)), policy)
"""


def start(code: str, *arguments: str) -> subprocess.Popen:
    program = textwrap.dedent(SETUP) + textwrap.dedent(code)
    return subprocess.Popen([sys.executable, "-c", program, *arguments])


def test_a_charge_survives_kill_nine_before_the_reply(tmp_path):
    path = tmp_path / "ledger.sqlite"
    assert start('charge("a"); os.kill(os.getpid(), signal.SIGKILL)', str(path)).wait() == -9
    ledger = Ledger(path)
    ledger.verify()
    assert spent(ledger) == 1.0
    assert not ledger.record(release(LAPLACE))  # the restarted party repeats the release: no new charge


def test_kill_nine_within_a_charge_leaves_no_half_of_it(tmp_path):
    path = tmp_path / "ledger.sqlite"
    code = """
    class Killer(Policy):
        def check(self, release, ledger):
            os.kill(os.getpid(), signal.SIGKILL)
    charge("a"); charge("b", Killer())
    """
    assert start(code, str(path)).wait() == -9
    ledger = Ledger(path)
    ledger.verify()
    assert [r.id for r in ledger.releases()] == ["a"]
    ledger.record(release(LAPLACE, "b"))


def test_processes_share_a_ledger(tmp_path):
    path = tmp_path / "ledger.sqlite"
    code = 'for i in range(20): charge(f"{sys.argv[2]}-{i}")'
    racers = [start(code, str(path), name) for name in "abc"]
    assert [racer.wait() for racer in racers] == [0, 0, 0]
    ledger = Ledger(path)
    ledger.verify()
    assert len(ledger.releases()) == 60


def test_a_full_disk_refuses_the_release_and_loses_nothing(ledger):
    three(ledger)
    pages = ledger._db.execute("PRAGMA page_count").fetchone()[0]
    ledger._db.execute(f"PRAGMA max_page_count={pages}")
    big = replace(LAPLACE, what="x" * 100_000)
    with pytest.raises(JournalError, match=r"disk is full.*nothing was released"):
        ledger.record(release(big, "big"))
    ledger.verify()
    assert spent(ledger) == 3.0


def test_a_file_that_is_no_ledger_is_named(tmp_path):
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(FormatError, match=r"ledger\.sqlite is not a ledger"):
        Ledger(path)


def test_a_path_that_cannot_be_opened_is_named(tmp_path):
    (tmp_path / "ledger.sqlite").mkdir()
    with pytest.raises(JournalError, match=r"ledger\.sqlite cannot be used"):
        Ledger(tmp_path / "ledger.sqlite")


def test_a_newer_ledger_is_named(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with sqlite3.connect(path) as newer:
        newer.execute("PRAGMA user_version=99")
    newer.close()
    with pytest.raises(FormatError, match=r"format 99.*upgrade"):
        Ledger(path)


def test_after_reports_were_refused_later_charges_are_still_counted(ledger):
    """A refusal rolls back, and must leave nothing behind in memory that hides the rows to come."""
    tokens = TokenReports("reports", channel=Channel("krr", 1.0, V=9))
    first, edited = (Fingerprints([b"i" * 16], [content * 16]) for content in (b"a", b"b"))
    policy = Policy.parse('[[budget]]\nunit = "token"\nadjacency = "substitute"\nepsilon = 1.5\ndelta = 0.0\n')
    ledger.record_reports(release(tokens, "reports"), first, policy)
    with pytest.raises(PolicyRefusal):
        ledger.record_reports(release(tokens, "reports"), edited, policy)
    assert ledger.reported("reports").number(edited)[1].rows
    ledger.record(release(DiscreteLaplace("counts", 1, 0.25, unit=Unit.TOKEN, adjacency=Adjacency.SUBSTITUTE), "more"))
    assert ledger.cost(Unit.TOKEN, Adjacency.SUBSTITUTE, 0.0).epsilon == pytest.approx(1.25)
