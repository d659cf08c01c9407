"""`tertulia rehearse`: the whole way in one command. `test_operator`, its quick sibling, types the same commands."""

import json
import os
import subprocess
import sys
import time

import pytest

from tertulia.cli.rehearse import _children
from tertulia.errors import ConfigError


@pytest.mark.slow
def test_a_rehearsal_ends_with_a_model_and_leaves_no_process(tmp_path):
    command = [sys.executable, "-m", "tertulia", "rehearse", "2", "--documents", "60", "--directory", "r"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "20 topics over" in done.stdout
    assert 'What left "north"' in done.stdout
    assert "$ tertulia fetch r/north\n" in done.stdout
    assert len(list((tmp_path / "r" / "north" / "runs").glob("*/model/model.json"))) == 1
    for path in (tmp_path / "r" / "rehearsed" / "status.json", tmp_path / "r" / "south" / "status.json"):
        pid = json.loads(path.read_text())["pid"]
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert again.returncode == 1
    assert "r exists: remove it" in again.stderr


def test_a_command_that_ends_by_itself_is_noticed_with_its_last_words(tmp_path):
    started = time.monotonic()
    with _children() as children:
        children.begin("serve", tmp_path / "nothing")
        with pytest.raises(ConfigError) as found:
            children.wait(lambda: False, "the server", 300.0)
    assert time.monotonic() - started < 60
    assert f"`tertulia serve {tmp_path / 'nothing'}` has ended by itself (exit code 1). It said:\n" in str(found.value)
    assert "error: " in str(found.value).splitlines()[-1]
