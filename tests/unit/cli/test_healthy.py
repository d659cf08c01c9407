"""The probe that containers run: is it healthy, is it alive."""

import subprocess
import sys

import pytest

from tertulia.cli import healthy
from tertulia.operations.health import Monitor, on_port


@pytest.fixture
def watched():
    watch = Monitor("server", "oncology")
    with on_port(watch, 0) as port:
        yield watch, str(port)


def test_a_server_at_work_is_healthy(watched):
    watch, port = watched
    watch.say(state="round")
    assert healthy.main([port]) == healthy.main(["--alive", port]) == 0


def test_a_run_that_has_stopped_is_no_reason_to_start_the_server_again(watched):
    watch, port = watched
    watch.say(state="stopped")
    assert (healthy.main([port]), healthy.main(["--alive", port])) == (1, 0)


def test_where_nothing_answers_nothing_lives(watched):
    with on_port(Monitor("party", "north"), 0) as gone:
        pass
    assert healthy.main([str(gone)]) == healthy.main(["--alive", str(gone)]) == 1


def test_another_question_is_none():
    asked = subprocess.run([sys.executable, "-m", "tertulia.cli.healthy", "http"], capture_output=True, text=True)
    assert (asked.returncode, asked.stderr) == (2, "usage: python -m tertulia.cli.healthy [--alive] PORT\n")
