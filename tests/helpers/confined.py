"""Runs a command as an image does: on a read-only root, without a network, as a user that nobody knows.

`python confined.py WRITABLE COMMAND...`, started by `confined()` in namespaces of its own. All mounts become read-only,
WRITABLE is memory, only loopback is up, and the command sees itself as user 10001, without any capability.
"""

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

USER = "10001"
_RECURSIVE, _READ_ONLY, _HERE, _MOUNT_SETATTR = 0x8000, 0x1, -100, 442
_SET_FLAGS, _UP = 0x8914, 0x1


def confined(writable, *command, **environment):
    """The finished process, or None where this machine has no namespaces for us."""
    unshare = ["unshare", "--mount", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    if not works([*unshare, sys.executable, "-I", __file__, writable, "true"]):
        return None
    plain = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **environment}
    line = [*unshare, sys.executable, "-I", __file__, str(writable), *map(str, command)]
    return subprocess.run(line, env=plain, capture_output=True, text=True, timeout=300)


def works(line):
    try:
        return subprocess.run([str(word) for word in line], capture_output=True, timeout=60).returncode == 0
    except OSError:
        return False


def set_read_only(path, read_only=True):
    """Every mount from here on; mount(8) does one at a time."""
    attributes = struct.pack("QQQQ", *((_READ_ONLY, 0) if read_only else (0, _READ_ONLY)), 0, 0)
    call = (_MOUNT_SETATTR, _HERE, path.encode(), _RECURSIVE, attributes, ctypes.c_size_t(len(attributes)))
    if ctypes.CDLL(None, use_errno=True).syscall(*call):
        raise OSError(ctypes.get_errno(), "mount_setattr")


def bring_up_loopback():
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14s", b"lo", _UP, b""))


if __name__ == "__main__":
    place, *words = sys.argv[1:]
    set_read_only("/")
    set_read_only("/proc", read_only=False)  # where a new user is written down
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777,noexec,nosuid,nodev", "tmpfs", place], check=True)
    bring_up_loopback()
    os.chdir(Path(place))
    os.environ |= {"HOME": "/nonexistent", "TMPDIR": place}
    os.execvp("unshare", ["unshare", "--user", f"--map-user={USER}", f"--map-group={USER}", *words])
