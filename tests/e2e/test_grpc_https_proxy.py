"""A party behind a company's HTTPS proxy: it dials out through it, and mutual TLS goes from end to end.

Loopback never goes through a proxy, so the server has another address, in a network namespace of the test's own.
"""

import shutil
import subprocess
import sys

import pytest

ADDRESS = "10.77.0.1"
SCRIPT = f"""
import os, sys, tempfile, threading
from pathlib import Path
from helpers.connect_proxy import ConnectProxy
proxy = ConnectProxy()
os.environ["https_proxy"] = proxy.address
os.environ.pop("no_proxy", None)
from benchmarks.engines.network import Net
from tertulia.federation.engines.grpc.attendance import Attendance
with tempfile.TemporaryDirectory() as folder:
    net = Net(Path(folder), ["north"], "{ADDRESS}")
    stop = threading.Event()
    attendance = Attendance(net.identities["north"], net.address, lambda frame: frame[::-1])
    worker = threading.Thread(target=attendance.run, args=(stop,))
    worker.start()
    try:
        net.wait_for_all(20)
        print(net.gate.transport(["north"]).ask({{"north": b"abc" * 10**6}}, 20)["north"] == b"cba" * 10**6)
    finally:
        stop.set()
        worker.join()
        net.gate.stop()
print(set(proxy.targets) == {{net.address}}, len(proxy.targets))
"""


def test_a_party_dials_out_through_its_companys_proxy(request):
    if not shutil.which("unshare") or not shutil.which("ip"):
        pytest.skip("there is no unshare or no ip here")
    namespace = f"ip link set lo up && ip addr add {ADDRESS}/32 dev lo && "
    if subprocess.run(["unshare", "-rn", "sh", "-c", namespace + "true"], capture_output=True).returncode:
        pytest.skip("no network namespace of its own may be made here")
    root = request.config.rootpath
    command = namespace + 'cd "$1" && PYTHONPATH="$1:$1/src:$1/tests" exec "$2" -c "$3"'
    ended = subprocess.run(
        ["unshare", "-rn", "sh", "-c", command, "sh", str(root), sys.executable, SCRIPT],
        capture_output=True, text=True, timeout=90,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    right, through = ended.stdout.splitlines()
    assert right == "True"
    assert through.startswith("True")
    assert int(through.split()[1]) >= 2  # to join, and to attend
