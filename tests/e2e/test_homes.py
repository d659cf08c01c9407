"""A party's directory belongs to the party: once a run is laid out, the server's process opens nothing in it."""

import os
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from tertulia.corpus import Corpus
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin, best_for, open_party
from tertulia.runs.settings import RunSettings

OPENING = {
    "open",
    "sqlite3.connect",
    "os.listdir",
    "os.scandir",
    "os.mkdir",
    "os.remove",
    "os.rename",
    "shutil.copyfile",
}
METHOD = {"name": "ftm", "topics": 3, "rounds": 2, "sweeps": 5, "vocabulary": {"max_share": 1.0}}
_opened: set[Path] | None = None  # what is recorded; an audit hook stays for as long as the process lives


def _record(event, arguments):
    if _opened is not None and event in OPENING and isinstance(arguments[0], str | bytes | os.PathLike):
        _opened.add(Path(os.fsdecode(arguments[0])).absolute())


sys.addaudithook(_record)


@contextmanager
def recording():
    global _opened
    _opened = found = set()
    try:
        yield found
    finally:
        _opened = None


@pytest.fixture
def laid_out(worded, tmp_path):
    """A run of two parties, one with a home outside of it, that has not begun to train."""
    corpora = {name: Corpus.from_texts(worded(i, 24 + i)) for i, name in enumerate(("north", "south"))}
    own = {"south": {"home": str(tmp_path / "home")}}
    settings = RunSettings(
        directory=str(tmp_path / "run"), engine="processes", method=METHOD, parties=own, validation=0.2
    )
    return begin(settings, corpora)


def inside(opened, run):
    """What was opened of parties' directories and homes."""
    theirs = (run.directory / "parties", run.directory.parent / "home")
    return sorted(path for path in opened if any(path.is_relative_to(directory) for directory in theirs))


def test_the_server_opens_no_file_of_a_party(laid_out):
    with recording() as opened:
        model = finish(laid_out)
    assert inside(opened, laid_out) == []
    assert any(path.parent == laid_out.directory / "server" for path in opened)  # its own commits are seen
    ledgers = {party: open_party(laid_out, party).ledger for party in laid_out.parties}
    assert model.provenance["ledgers"] == {party: ledger.digest() for party, ledger in ledgers.items()}
    assert all(len(ledger.releases()) > 0 for ledger in ledgers.values())
    with recording() as opened:  # what a party chose is for its owner to read
        best_for(laid_out.directory, "north")
    assert laid_out.party_directory("north") / "kept" / "best.safetensors" in inside(opened, laid_out)


@pytest.mark.parametrize(
    ("party", "look"),
    [
        ("north", lambda run, party: open_party(run, party)),
        ("north", lambda run, party: open_party(run, party).ledger),
        ("south", lambda run, party: open_party(run, party).ledger),
        ("north", lambda run, party: open_party(run, party).corpus),
    ],
    ids=["config", "ledger", "ledger at home", "documents"],
)
def test_whatever_opens_a_partys_file_would_be_seen(laid_out, party, look):
    with recording() as opened:
        look(laid_out, party)
    assert inside(opened, laid_out)
