"""An environment variable kills a party in production: the product knows no such variable."""

import os
import subprocess
import sys
from pathlib import Path

import tertulia

PASS = "from tertulia.federation import faults\nfor _ in range(3): faults.point('party.after_save')\nprint('alive')"


def test_the_variable_does_nothing_outside_of_tests(tmp_path):
    source = Path(tertulia.__file__).parents[1]
    environment = os.environ | {
        "TERTULIA_FAULT": f"party.after_save:1:{tmp_path / 'marker'}",
        "PYTHONPATH": str(source),
    }
    done = subprocess.run([sys.executable, "-c", PASS], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == "alive\n"
    assert not (tmp_path / "marker").exists()


def test_no_source_reads_it():
    package = Path(tertulia.__file__).parent
    assert not [path for path in package.rglob("*.py") if "TERTULIA_FAULT" in path.read_text(encoding="utf-8")]


def test_crash_tests_still_can(tmp_path):
    environment = os.environ | {"TERTULIA_FAULT": f"party.after_save:2:{tmp_path / 'marker'}"}
    done = subprocess.run([sys.executable, "-c", PASS], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == -9
    assert (tmp_path / "marker").exists()
