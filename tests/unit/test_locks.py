"""The lock of a directory: one holder, who is named, and whom the kernel forgets when it is killed."""

import os
import platform
import signal
import subprocess
import sys

import pytest

from tertulia._locks import holding
from tertulia.errors import DirectoryInUse

HOLDER = """
import sys, time
from pathlib import Path
from tertulia._locks import holding
with holding(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_second_gets_an_error_that_names_the_first(tmp_path):
    with holding(tmp_path), pytest.raises(DirectoryInUse) as refused, holding(tmp_path):
        pass
    said = str(refused.value)
    assert f"process {os.getpid()} on {platform.node()} since 20" in said
    assert f"tertulia resume {tmp_path}" in said
    with holding(tmp_path):  # given back, also after an error
        pass


def test_kill_9_gives_the_lock_back(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    with pytest.raises(DirectoryInUse, match=f"process {process.pid} on"), holding(tmp_path):
        pass
    said = []
    os.kill(process.pid, signal.SIGKILL)
    with holding(tmp_path, wait=said.append):
        pass
    assert not said or f"process {process.pid} on" in said[0]
    process.communicate()
