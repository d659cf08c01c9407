"""The core needs no POSIX system: Windows lacks some modules, and some names of `os`, `signal` and `socket`."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tertulia

PACKAGE = Path(tertulia.__file__).parent
MODULES = {"crypt", "fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"}
NAMES = {
    "os": frozenset(
        [
            "O_CLOEXEC",
            "O_DIRECTORY",
            "O_NOFOLLOW",
            "O_NONBLOCK",
            "WNOHANG",
            "chown",
            "confstr",
            "ctermid",
            "fchmod",
            "fchown",
            "fork",
            "forkpty",
            "getegid",
            "geteuid",
            "getgid",
            "getgroups",
            "getloadavg",
            "getpgid",
            "getpgrp",
            "getsid",
            "getuid",
            "initgroups",
            "killpg",
            "lchown",
            "mkfifo",
            "mknod",
            "nice",
            "openpty",
            "posix_fadvise",
            "posix_fallocate",
            "posix_spawn",
            "pread",
            "preadv",
            "pwrite",
            "pwritev",
            "register_at_fork",
            "sched_getaffinity",
            "sched_setaffinity",
            "sendfile",
            "setegid",
            "seteuid",
            "setgid",
            "setpgid",
            "setsid",
            "setuid",
            "statvfs",
            "sysconf",
            "uname",
            "wait",
            "wait3",
            "wait4",
            "waitid",
        ]
    ),
    "signal": frozenset(("SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGUSR1", "SIGUSR2")),
    "socket": ["AF_UNIX"],
}
POSIX_ONLY = {"federation/engines/ray", "federation/engines/grpc/proxy.py"}  # the proxy says so, a cluster is Linux


def uses(tree: ast.AST, guarded: bool = False) -> list[str]:
    """What a file uses that Windows lacks, outside of `if hasattr(...)` and of `try: ... except AttributeError`."""
    found = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name in MODULES]
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            found.append(str(node.module))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and not guarded:
            found += [f"{node.value.id}.{node.attr}"] if node.attr in NAMES.get(node.value.id, ()) else []
        tested = isinstance(node, ast.If) and "hasattr" in ast.unparse(node.test)
        caught = isinstance(node, ast.Try) and any("AttributeError" in ast.unparse(h.type or h) for h in node.handlers)
        found += uses(node, guarded or tested or caught)
    return found


def test_the_core_uses_nothing_that_windows_lacks():
    found = {}
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE).as_posix()
        if not any(place.startswith(one) for one in POSIX_ONLY) and (used := uses(ast.parse(path.read_text("utf-8")))):
            found[place] = used
    assert not found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import fcntl", ["fcntl"]),
        ("def f():\n    from resource import getrlimit", ["resource"]),
        ("import os\nos.pread(1, 2, 3)", ["os.pread"]),
        ("import os\nif hasattr(os, 'sysconf'):\n    os.sysconf('SC_PAGE_SIZE')", []),
        ("import os\ntry:\n    os.sysconf('SC_PAGE_SIZE')\nexcept AttributeError:\n    pass", []),
    ],
)
def test_what_windows_lacks_is_found(source, found):
    assert uses(ast.parse(source)) == found


WITHOUT = """
import importlib, os, pkgutil, signal, sys
OPTIONAL = "engines.ray engines.nvflare engines.grpc network.flare pages.live plots neural speech".split()
def load():
    import tertulia
    for found in pkgutil.walk_packages(tertulia.__path__, "tertulia."):
        if not any(part in found.name for part in OPTIONAL) and not found.name.endswith("__main__"):
            importlib.import_module(found.name)
load()  # for the libraries, whose own guards ask for the system
for name in [name for name in sys.modules if name.partition(".")[0] == "tertulia"]:
    del sys.modules[name]
sys.modules.update(dict.fromkeys({modules!r}))
for owner, names in ((os, {os!r}), (signal, {signal!r})):
    for name in names:
        if hasattr(owner, name):
            delattr(owner, name)
load()
from tertulia.kernels.core.parallel import threads_for
assert threads_for(-1) >= 1
print("imported")
"""


@pytest.mark.slow
def test_the_core_is_imported_without_what_windows_lacks():
    program = WITHOUT.format(
        modules=sorted(MODULES - {"posix"}), os=sorted(NAMES["os"]), signal=sorted(NAMES["signal"])
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "imported\n", done.stderr[-2000:]
