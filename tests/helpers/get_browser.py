"""`make test` calls this once: have a browser and axe-core, where they may be had.

The browser is Debian's headless shell, which is installed if it is missing and we are root; axe-core comes from npm
into the environment. Where either cannot be had, tests of pages skip and say why (with CI set, they fail).
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from helpers.browser import AXE, BROWSERS, executable_or_none

AXE_VERSION = "4.14.0"
AXE_SHA512 = (
    "f564d9c448ec67b6f5dd31fc24f99b576cfc0876e5f34ff6866dd73c41b82603"
    "5d40b2bcd480515e64b11df3003a44aa41e4714ffd1dc0d0f3d863a6df3ce971"
)


def get_browser() -> None:
    if executable_or_none() is None:
        _debian(BROWSERS[0], "fonts-dejavu-core")


def get_axe() -> None:
    """Fetch axe-core; what is not the file that we know is refused."""
    if AXE.exists():
        return
    if shutil.which("npm") is None:
        _debian("npm")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["npm", "pack", "--silent", f"axe-core@{AXE_VERSION}"],
            cwd=folder,
            check=True,
            timeout=300,
            stdout=subprocess.DEVNULL,
        )
        packed = next(Path(folder).glob("*.tgz"))
        if hashlib.sha512(packed.read_bytes()).hexdigest() != AXE_SHA512:
            raise SystemExit(f"axe-core {AXE_VERSION} is not the package that tests were written for")
        with tarfile.open(packed) as archive:
            found = archive.extractfile("package/axe.min.js")
            assert found is not None
            AXE.write_bytes(found.read())


def _debian(*packages: str) -> None:
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise OSError(f"install {' '.join(packages)}: only root may, by apt-get")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update", "-q"], ["install", "-q", "-y", "--no-install-recommends", *packages]):
        subprocess.run(["apt-get", *arguments], check=True, env=quiet, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    missing = []
    for get in (get_browser, get_axe):
        try:
            get()
        except (OSError, subprocess.SubprocessError) as error:
            missing.append(str(error))
    if missing:
        print(f"tests of pages will be skipped: {'; '.join(missing)}", file=sys.stderr)
        raise SystemExit(1)
