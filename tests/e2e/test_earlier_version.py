"""A run under way that an earlier version began: `resume` refuses it with one sentence, and nothing more leaves."""

import gc
import json
import re

import pytest

from helpers.attacks import edit_json
from helpers.runs import Interrupted, interrupt_at, prepared
from tertulia._disk import read_checked, with_checksum
from tertulia.privacy.snapshots import read_ledger
from tertulia.runs.driver import finish

METHOD = {"name": "consensus", "topics": 2, "rounds": 3, "start_sweeps": 1, "sweeps": 1}
AGAIN = "earlier, unreleased version (began|made) th(e|is) run, begin it again"


@pytest.fixture
def under_way(tmp_path, worded):
    """A run that was interrupted after its second round."""
    run = prepared(tmp_path / "run", {party: worded(i, 9) for i, party in enumerate("ab")}, METHOD)
    with pytest.raises(Interrupted):
        finish(run, observe=interrupt_at(2))
    gc.collect()  # closes the parties' ledgers
    return run


def moved_steps(run):
    """A party's own file names a module of steps that is at another place now."""
    for party in run.parties:
        edit_json(run.party_directory(party) / "party.json", methods=["tertulia.methods.consensus.steps"])
    return "there is no module 'tertulia.methods.consensus.steps'"


def module_without_steps(run):
    """The module exists, and something else is in it now."""
    for party in run.parties:
        edit_json(run.party_directory(party) / "party.json", methods=["tertulia.methods.consensus.settings"])
    return "module 'tertulia.methods.consensus.settings' lists no steps"


def moved_messages(run):
    """Commits hold messages, which are named by their modules."""
    for path in (run.directory / "server").glob("commit-*"):
        data = read_checked(path)
        assert b"tertulia.methods.consensus." in data
        path.write_bytes(with_checksum(data.replace(b"tertulia.methods.consensus.", b"tertulia.methods.gathering.")))
    return r"does not hold a commit .*unknown message 'tertulia\.methods\.gathering\."


def renamed_setting(run):
    """`robust` was called `vouched`."""
    config = json.loads((run.directory / "run.json").read_text())["config"]
    config["method"]["vouched"] = config["method"].pop("robust")
    edit_json(run.directory / "run.json", config=config)
    return "vouched"


def left_by(run):
    """The entries of all ledgers, and the commits."""
    ledgers = [read_ledger(run.party_directory(party), with_key=False).entries() for party in run.parties]
    return ledgers, {path: path.read_bytes() for path in (run.directory / "server").glob("commit-*")}


@pytest.mark.parametrize("change", [moved_steps, module_without_steps, moved_messages, renamed_setting])
def test_a_run_of_an_earlier_version_is_refused_with_one_sentence(change, under_way, tertulia):
    why = change(under_way)
    before = left_by(under_way)
    code, out, err = tertulia("resume", under_way.directory)
    assert (code, out) == (1, "")
    assert re.search(AGAIN, err), err
    assert re.search(why, err), err
    (said,) = (line for line in err.splitlines() if line.startswith("error: "))
    assert err.rstrip().endswith(said)  # no traceback
    assert left_by(under_way) == before
