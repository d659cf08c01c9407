"""Somebody with an account on the party's machine edits, cuts or rebuilds the ledger, so that budgets last longer."""

import hashlib
import json
import sqlite3

import pytest
from typer.testing import CliRunner

from helpers.attacks_noise import ask, corpus_of, count, party
from tertulia.cli.main import app
from tertulia.errors import FormatError
from tertulia.federation.engines.base import EngineSetup, start_engine
from tertulia.federation.server.ledger_digests import LedgerDigests

CORPUS = corpus_of(["ache burn cold", "dose fever"])


@pytest.fixture
def home(tmp_path):
    host = party(tmp_path / "north", CORPUS)
    for i in range(3):
        ask(host, count, place=(0, i), previous=(0, i - 1) if i else (-1, 0))
    host.ledger.close()
    return tmp_path / "home"


def change(home, *statements):
    with sqlite3.connect(home / "ledger.sqlite") as db:
        for statement in statements:
            db.execute(statement)
    db.close()


def rebuild(home):
    """The chain of hashes that anybody can compute."""
    with sqlite3.connect(home / "ledger.sqlite") as db:
        previous = "0" * 64
        columns = "seq, id, body, time, recipient, plan, policy"
        for seq, *entry in db.execute(f"SELECT {columns} FROM entries ORDER BY seq").fetchall():
            previous = hashlib.blake2b(json.dumps([previous, *entry]).encode(), digest_size=32).hexdigest()
            db.execute("UPDATE entries SET hash = ? WHERE seq = ?", (previous, seq))
    db.close()


EDIT = """UPDATE entries SET body = replace(body, '"noise_parameter":0.1', '"noise_parameter":0.001')"""


@pytest.mark.parametrize("rebuilt", [False, True])
def test_an_edited_ledger_releases_nothing(home, tmp_path, rebuilt):
    change(home, EDIT)
    if rebuilt:
        rebuild(home)
    answer = ask(party(tmp_path / "next", CORPUS, run="next"), count)
    assert answer.kind == "failed"
    assert CliRunner().invoke(app, ["ledger", "verify", str(home)]).exception is not None


def test_a_cut_ledger_is_noticed_by_the_server(home, tmp_path):
    digests = LedgerDigests(tmp_path / "server" / "ledgers.json", "run")

    def check():
        transport = start_engine("local", EngineSetup({"north": tmp_path / "north"}, 1, {"north": CORPUS}))
        try:
            return digests.check(transport, None, pytest.fail)
        finally:
            transport.close()

    kept = check()
    assert kept["north"].startswith("3:")
    check()
    change(home, "DELETE FROM entries WHERE seq = 3")
    with pytest.raises(FormatError, match="'north' has lost entries"):
        check()
    host = party(tmp_path / "north", CORPUS)  # it goes on, and is as long as before
    ask(host, count, place=(5, 0))
    host.ledger.close()
    with pytest.raises(FormatError, match="'north' has lost entries"):
        check()


def test_the_command_shows_exports_and_verifies(home, tmp_path):
    run = CliRunner()
    verified = run.invoke(app, ["ledger", "verify", str(home)])
    assert verified.exit_code == 0, verified.output
    assert "4 entries, none changed, none lost" in verified.output.replace("\n", " ")
    shown = json.loads(run.invoke(app, ["ledger", "show", str(home), "--json"]).stdout)["ledger"]
    assert [row["what"] for row in shown] == ["counts"] * 3
    assert {row["recipient"] for row in shown} == {"server of run run"}
    assert all(row["time"] and row["policy"] for row in shown)
    assert run.invoke(app, ["ledger", "export", str(home), "-o", str(tmp_path / "out.jsonl")]).exit_code == 0
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 4
    (home / "noise.key").unlink()
    assert run.invoke(app, ["ledger", "show", str(home)]).exit_code == 0  # what was spent can be read without the key
    assert "noise.key is missing" in str(run.invoke(app, ["ledger", "verify", str(home)]).exception)
