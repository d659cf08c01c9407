"""Errors of the operating system in a line, and completion scripts."""

import errno
import os
import subprocess
import sys

import pytest

from tertulia.cli.process import one_line


@pytest.mark.parametrize(
    ("number", "text"),
    [(errno.EACCES, "no permission for /x"), (errno.EROFS, "/x cannot be written"), (errno.ENOSPC, "full at /x")],
)
def test_errors_name_the_file_and_the_remedy(number, text):
    assert text in one_line(OSError(number, os.strerror(number), "/x"))
    assert one_line(OSError(errno.EIO, "Input/output error", "/x")) == "/x: Input/output error"


def test_shells_complete_commands(tertulia):
    for shell in ("bash", "zsh", "fish"):
        code, script, _ = tertulia("completion", shell)
        assert code == 0
        assert "_TERTULIA_COMPLETE" in script
    assert tertulia("completion", "tcsh")[0] == 2
    asked = {"_TERTULIA_COMPLETE": "complete_bash", "COMP_WORDS": "tertulia disc", "COMP_CWORD": "1"}
    code = "import sys; sys.argv = ['tertulia']; from tertulia.cli.main import main; main()"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["disclosures"]
