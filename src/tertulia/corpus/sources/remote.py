"""Files behind an address: Parquet, CSV and JSON lines that polars scans over HTTP(S) or in a bucket.

Only what is needed is fetched, and nothing is stored here. An address with a signature or a password belongs in an
environment variable; polars' own errors quote addresses, so they are not passed on. Buckets take their credentials
from the environment, as polars documents it (`AWS_ACCESS_KEY_ID` and the like).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from tertulia.corpus.formats.base import Record, Request, Table
from tertulia.corpus.sources.base import Opened
from tertulia.errors import InputError

_SCANS = {".parquet": "scan_parquet", ".pq": "scan_parquet", ".csv": "scan_csv", ".tsv": "scan_csv",
          ".jsonl": "scan_ndjson", ".ndjson": "scan_ndjson"}  # fmt: skip
_BATCH = 500  # rows


def check_public(address: str) -> None:
    """Raise `InputError` if an address in a setting holds what may be a credential; it is not shown."""
    parts = urlsplit(address)
    if parts.query or (parts.scheme in ("http", "https") and "@" in parts.netloc):
        raise InputError(
            f"the address of {PurePosixPath(parts.path).name} has a user, a password or parameters, which may be "
            "secret: put the whole address into an environment variable, and name it in address_env"
        )


def open_address(address: str, name: str, request: Request) -> Opened:
    """Open the file behind an address; errors call it `name`."""
    file = PurePosixPath(urlsplit(address).path)
    suffixes = [suffix.lower() for suffix in file.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    if not suffixes or suffixes[-1] not in _SCANS:
        raise InputError(f"{name} is of no known kind: behind an address {', '.join(_SCANS)} are read")
    frame, columns = _scan(address, name, _SCANS[suffixes[-1]], _options(suffixes[-1], request))
    wanted = [column for column in columns if column in request.wanted]

    def records() -> Iterator[Record]:
        from polars.exceptions import PolarsError

        number = 0
        try:
            for batch in frame.select(wanted).collect_batches(chunk_size=_BATCH):
                for values in batch.iter_rows(named=True):
                    number += 1
                    yield Record(f"{file.name}: row {number}", values)
        except (PolarsError, OSError) as error:
            raise InputError(
                f"{name} cannot be read after row {number} ({type(error).__name__}); nothing that was read is used"
            ) from None

    return Opened(name, file.name.split(".")[0], file.name, Table(columns, records()))


def _options(suffix: str, request: Request) -> dict[str, Any]:
    """Return the options of a scan; all fields of CSV are read as text, as from a file."""
    if suffix not in (".csv", ".tsv"):
        return {}
    if request.encoding not in (None, "utf-8"):
        raise InputError(f"encoding = '{request.encoding}': CSV behind an address must be UTF-8; copy the file here")
    return {"separator": request.separator or ("\t" if suffix == ".tsv" else ","), "infer_schema": False}


def _scan(address: str, name: str, scan: str, options: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
    import polars as pl
    from polars.exceptions import PolarsError

    try:
        frame = getattr(pl, scan)(address, **options)
        return frame, tuple(frame.collect_schema().names())
    except (PolarsError, OSError) as error:
        missing = isinstance(error, FileNotFoundError)
        why = "there is no such file" if missing else type(error).__name__
        raise InputError(f"{name} cannot be read ({why}): check the address, and who may read it") from None
