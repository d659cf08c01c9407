"""What earlier versions wrote, unpacked from `tests/fixtures/formats` as if it had been written where it is now."""

import tarfile
from pathlib import Path

from tertulia.privacy.home import LEDGER
from tertulia.privacy.snapshots import contents, copy_whole, snapshot

PACKED = Path(__file__).parents[1] / "fixtures" / "formats"
NAMES = ("first", "methods", "ledger-2", "plans", "ledger-3", "packed", "houses")
OLD_LEDGERS = ("first", "methods", "ledger-2", "plans")  # of formats 1 and 2


def unpack(name: str, into: Path) -> Path:
    """A fixture's directory; the paths in its files are its own."""
    root = into / name
    with tarfile.open(PACKED / f"{name}.tar.xz") as packed:
        packed.extractall(root, filter="data")
    made, here = f"/srv/tertulia/{name}".encode(), str(root).encode()
    for path in root.rglob("*"):
        if path.suffix in (".json", ".toml") and made in path.read_bytes():
            path.write_bytes(path.read_bytes().replace(made, here))
    return root


def tree(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a folder: its mode and its bytes."""
    return {str(p.relative_to(root)): (p.stat().st_mode, p.read_bytes()) for p in root.rglob("*") if p.is_file()}


def settled(root: Path, place: Path) -> dict[str, bytes]:
    """The same without locks, and with ledgers as one file: what a crash left in their logs is in them."""
    found = {}
    for name in tree(root):
        path = root / name
        if path.name == LEDGER:
            place.mkdir(parents=True, exist_ok=True)
            path = copy_whole(path, place / "ledger.sqlite")
        if path.name != "lock" and not path.name.endswith(("-wal", "-shm")):
            found[name] = path.read_bytes()
        (place / "ledger.sqlite").unlink(missing_ok=True)
    return found


def homes(root: Path) -> list[Path]:
    """Every directory with a ledger."""
    return sorted(path.parent for path in root.rglob(LEDGER))


def entries(home: Path) -> list[tuple[str, str]]:
    """What a home's ledger says."""
    with snapshot(home / LEDGER) as db:
        return contents(db)
