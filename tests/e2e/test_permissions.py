"""Places that may not be written to: one sentence each, and nothing is half made. Root gives up its privilege."""

import json
import os
import shutil
import subprocess
import sys

import pytest

CONFIG = 'directory = "out/run"\n[method]\nname = "consensus"\ntopics = 2\nrounds = 1\n[data]\npath = "d.jsonl"\n'


@pytest.fixture
def closed(tmp_path):
    """A folder that its owner has closed for writing, with what commands need."""
    folder = tmp_path / "closed"
    folder.mkdir()
    (folder / "run.toml").write_text(CONFIG)
    rows = [{"text": f"rain and sun {i}", "party": "ab"[i % 2]} for i in range(20)]
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert tertulia(folder, "init", "oncology", "--members", "north").returncode == 0
    (folder / "oncology").chmod(0o500)
    folder.chmod(0o500)
    yield folder
    folder.chmod(0o700)
    (folder / "oncology").chmod(0o700)


def tertulia(folder, *arguments):
    command = [sys.executable, "-m", "tertulia", *arguments]
    if os.geteuid() == 0:  # root may write anywhere: the test would prove nothing
        if shutil.which("setpriv") is None:
            pytest.skip("there is no setpriv here, and the tests run as root")
        command = ["setpriv", "--bounding-set=-dac_override", *command]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["run", "run.toml"], "there is no permission for out: run this as who owns it, or choose another place"),
        (["init", "cardiology", "--members", "north"], "cannot be written (Permission denied): choose a place"),
        (["serve", "oncology"], "there is no permission for oncology"),
        (["join"], "cannot be written (Permission denied): choose a place"),
    ],
)
def test_no_permission_to_write(command, sentence, closed):
    before = sorted(closed.rglob("*"))
    invitation = map(str, closed.rglob("north.invite")) if command == ["join"] else []
    ended = tertulia(closed, *command, *invitation)
    assert ended.returncode == 1, ended.stderr
    assert sentence in " ".join(ended.stderr.split())
    assert len(ended.stderr.strip().splitlines()) <= 3
    assert sorted(closed.rglob("*")) == before
