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
from tertulia.federation.server.inquiries import LedgerDigests
from tertulia.runs.one_machine import run_on_one_machine
from tertulia.runs.settings import RunSettings

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
    assert verified.exit_code == 4, verified.output
    assert "4 entries, none changed; whether any were cut off: cannot tell" in verified.output.replace("\n", " ")
    shown = json.loads(run.invoke(app, ["ledger", "show", str(home), "--json"]).stdout)["ledger"]
    assert [row["what"] for row in shown] == ["counts"] * 3
    assert {row["recipient"] for row in shown} == {"server of run run"}
    assert all(row["time"] and row["policy"] for row in shown)
    assert run.invoke(app, ["ledger", "export", str(home), "-o", str(tmp_path / "out.jsonl")]).exit_code == 0
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 4
    (home / "noise.key").unlink()
    assert run.invoke(app, ["ledger", "show", str(home)]).exit_code == 0  # what was spent can be read without the key
    assert "noise.key is missing" in run.invoke(app, ["ledger", "verify", str(home)]).output


def test_a_model_knows_whether_a_ledger_is_the_one_it_came_from(tertulia, tmp_path):
    """`ledger verify --model`: right, a chain whose end was cut, and a model of other runs."""

    def train(name):
        homes = {party: {"home": str(tmp_path / party)} for party in ("north", "south")}
        corpora = dict.fromkeys(homes, CORPUS)
        method = {"name": "ftm", "topics": 2, "rounds": 1, "sweeps": 1, "vocabulary": {"min_documents": 1}}
        settings = RunSettings(directory=str(tmp_path / name), method=method, heldout=0.0, parties=homes)
        run_on_one_machine(settings, corpora)

    train("first")
    arguments = ("ledger", "verify", tmp_path / "north", "--model", tmp_path / "first")
    code, out, _ = tertulia(*arguments, "--party", "north")
    assert (code, "none changed; none lost that the model knows of" in out) == (0, True)
    train("second")  # the chain goes on, and the older model's digest is still in it
    assert tertulia(*arguments, "--party", "north")[0] == 0
    code, _, err = tertulia(*arguments, "--party", "south")  # a ledger of somebody else's
    assert (code, "south" in err or "ledger" in err) == (1, True)
    code, _, err = tertulia(*arguments)
    assert (code, "['north', 'south']" in err) == (1, True)

    change(tmp_path / "north", "DELETE FROM entries WHERE seq = (SELECT MAX(seq) FROM entries)")
    code, out, _ = tertulia("ledger", "verify", tmp_path / "north")  # the chain itself is whole
    assert (code, "cannot tell without --model" in out, "none lost" in out) == (4, True, False)
    newer = ("ledger", "verify", tmp_path / "north", "--model", tmp_path / "second" / "model", "--party", "north")
    code, _, err = tertulia(*newer)
    assert (code, "restore" in err or "lost" in err or "missing" in err) == (1, True), err
