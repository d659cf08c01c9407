"""Rows 6 and 24: what a party's process prints, warns of or fails with appears on the server's terminal."""

import subprocess
import sys

import pytest

from helpers.attacks import NOTES
from tertulia.corpus import Corpus
from tertulia.errors import PartyFailure
from tertulia.federation.party.failures import FAILED
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin
from tertulia.runs.settings import RunSettings

PATIENT = "Maria Garcia"
ROWS = f"{PATIENT},4711,diabetes,ward 7\nJuan Lopez,4712,asthma,ward 3\n"


def config(folder, owners):
    (folder / "north.csv").write_text(ROWS)
    (folder / "south.csv").write_text("text\n" + "\n".join(NOTES) + "\n")
    path = folder / "run.toml"
    path.write_text(
        f'directory = "run"\nengine = "processes"\n[federation]\nowners = "{owners}"\n'
        '[method]\nname = "ftm"\ntopics = 2\n[parties.north]\npath = "north.csv"\n[parties.south]\npath = "south.csv"\n'
    )
    return path


def test_a_file_without_a_header_shows_no_row_to_the_server(tmp_path):
    command = [sys.executable, "-m", "tertulia", "run", str(config(tmp_path, "several"))]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert f"party 'north': {FAILED}" in done.stderr.replace("\n", " ")
    assert not any(word in done.stdout + done.stderr for word in ("Garcia", "4711", "diabetes"))
    assert "column" in (tmp_path / "run" / "parties" / "north" / "party.log").read_text()


@pytest.mark.parametrize("engine", ["processes", "local"])
@pytest.mark.parametrize("fails", [False, True])
def test_a_party_speaks_into_its_own_log(engine, fails, tmp_path, capfd):
    """With engine `local` all share one process, whose streams are the server's: there only errors stay away."""
    method = {"name": "custom", "module": "helpers.loud", "config": {"fail": fails}}
    settings = RunSettings(
        directory=str(tmp_path / "run"), engine=engine, method=method, heldout=0.0, federation={"owners": "several"}
    )
    run = begin(settings, {name: Corpus.from_texts(NOTES) for name in ("north", "south")})
    if fails:
        with pytest.raises(PartyFailure, match=FAILED):
            finish(run)
    elif engine == "processes":
        assert finish(run) == {"north": 15, "south": 15}
    else:
        return
    shown = "".join(capfd.readouterr())
    assert "garcia" not in shown
    log = (run.party_directory("north") / "party.log").read_text()
    if fails:
        assert "ValueError at" in log
        assert "garcia" not in log
    else:
        assert all(f"{kind} " in log for kind in ("stdout", "stderr", "descriptor", "warning", "notice"))
