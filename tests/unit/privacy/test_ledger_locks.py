"""A ledger that is open twice in one process keeps its locks: nobody else may put its journal away meanwhile."""

import subprocess
import sys

from tertulia.privacy.ledger import Ledger

LOOK = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("SELECT count(*) FROM entries").fetchone()
db.close()
"""


def test_another_process_does_not_end_the_journal_of_a_ledger_in_use(tmp_path):
    """POSIX drops a process's locks on a file when any of its descriptors for that file is closed."""
    path = tmp_path / "ledger.sqlite"
    first = Ledger(path)
    first.mark_non_private("a test")
    Ledger(path).close()  # another run of the same home, or a look at its budget
    subprocess.run([sys.executable, "-c", LOOK, str(path)], check=True, timeout=60)
    assert (tmp_path / "ledger.sqlite-wal").exists()
    first.mark_non_private("another")
    assert Ledger(path).marks() == ["a test", "another"]
