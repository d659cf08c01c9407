"""`tertulia rehearse`: the whole way in one command. `test_operator`, its quick sibling, types the same commands."""

import json
import os
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_a_rehearsal_ends_with_a_model_and_leaves_no_process(tmp_path):
    command = [sys.executable, "-m", "tertulia", "rehearse", "2", "--documents", "60", "--directory", "r"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "20 topics over" in done.stdout
    assert 'What left "north"' in done.stdout
    for path in (tmp_path / "r" / "rehearsed" / "status.json", tmp_path / "r" / "south" / "status.json"):
        pid = json.loads(path.read_text())["pid"]
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert again.returncode == 1
    assert "r exists: remove it" in again.stderr
