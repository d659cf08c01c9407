"""A disk that fills in the middle of a transfer: one clear sentence, nothing lost, and the run goes on after it.

The disk is a real one, of a few megabytes, in a mount namespace of the test's own.
"""

import subprocess
import sys

import pytest

ROOM = 'mount -t tmpfs -o size={size} none "$1" && cd "$2" && '
RUN = """
import sys
from pathlib import Path
from benchmarks.engines.rates import echo_run
from tertulia.runs.driver import finish
from tertulia.runs.directory import Run
from tertulia.errors import TertuliaError
place = Path(sys.argv[1]) / "run"
run = echo_run(place, sys.argv[2], 2, int(sys.argv[3]), 4)
try:
    finish(run)
except TertuliaError as error:
    print("stopped:", error)
"""
AGAIN = """
import sys
from pathlib import Path
from tertulia.runs.driver import finish
from tertulia.runs.directory import Run
run = Run.open(Path(sys.argv[1]) / "run", ["benchmarks.engines.echo"])
print("rounds:", len(finish(run).seconds))
"""


def in_a_namespace(script, *arguments):
    return subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", *map(str, arguments)], capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize(
    ("engine", "megabytes"),
    [("local", 3), ("processes", 3), ("grpc", 3), pytest.param("grpc", 200, marks=pytest.mark.slow)],
)
def test_a_disk_that_fills_stops_a_run_that_then_goes_on(engine, megabytes, tmp_path, request):
    try:
        trial = in_a_namespace('mount -t tmpfs none "$1"', tmp_path)
    except FileNotFoundError:
        pytest.skip("there is no unshare here")
    if trial.returncode:
        pytest.skip("no namespace of its own may be made here")
    script = (
        ROOM.format(size=f"{3 * megabytes}m")
        + f'"$3" -c \'{RUN}\' "$1" {engine} {megabytes}000000 && mount -o remount,size={30 * megabytes}m "$1"'
        + f' && "$3" -c \'{AGAIN}\' "$1"'
    )
    ended = in_a_namespace(script, tmp_path, request.config.rootpath, sys.executable)
    assert ended.returncode == 0, ended.stderr
    stopped, rounds = ended.stdout.splitlines()
    assert "No space left on device" in stopped
    assert "free some space" in stopped
    assert rounds == "rounds: 4"
