"""Rows per second and memory of each source, each in a process of its own."""

from __future__ import annotations

import base64
import gzip
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl

from benchmarks.common import call, peak_mb, reset_peak, say
from tertulia.corpus import TextOptions, read
from tertulia.corpus.readers import Source
from tertulia.corpus.report import ReadReport

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from helpers.postgres import postgres, programs  # type: ignore[import-not-found]
from helpers.web import served  # type: ignore[import-not-found]

ROWS, QUICK = 1_000_000, 50_000
_WORDS, _LENGTH = 20_000, 20  # of the generated notes
_BLOCK = 10_000  # rows
_VARIABLE = "TERTULIA_BENCHMARK_DATABASE"
_NOTE = {"text": "note_text", "id": "note_id", "user": "person_id"}


def notes(rows: int) -> Iterator[pl.DataFrame]:
    """Generate notes of Zipf's words, with ids, patients and dates, in blocks."""
    rng = np.random.default_rng(0)
    words = np.array([f"word{'abcdefghij'[v % 10]}{v}" for v in range(_WORDS)])
    weights = 1 / np.arange(1, _WORDS + 1)
    weights /= weights.sum()
    for start in range(0, rows, _BLOCK):
        n = min(_BLOCK, rows - start)
        drawn = words[rng.choice(_WORDS, (n, _LENGTH), p=weights)]
        texts = [" ".join(row) + "." for row in drawn]
        ids = np.arange(start, start + n)
        yield pl.DataFrame({"note_id": ids, "person_id": ids // 10, "note_date": "2024-01-05", "note_text": texts})


def _reference(row: Mapping[str, Any]) -> str:
    data = base64.b64encode(row["note_text"].encode()).decode()
    resource = {
        "resourceType": "DocumentReference", "id": str(row["note_id"]), "status": "current",
        "subject": {"reference": f"Patient/{row['person_id']}"},
        "content": [{"attachment": {"contentType": "text/plain", "data": data}}],
    }  # fmt: skip
    return json.dumps(resource) + "\n"


def _work(row: Mapping[str, Any]) -> str:
    index: dict[str, list[int]] = {}
    for place, word in enumerate(row["note_text"].split()):
        index.setdefault(word, []).append(place)
    return json.dumps({"id": f"W{row['note_id']}", "title": None, "abstract_inverted_index": index}) + "\n"


def write(folder: Path, rows: int) -> None:
    """Write the same notes in every format."""
    with (
        (folder / "notes.csv").open("w") as csv,
        (folder / "notes.jsonl").open("w") as lines,
        (folder / "notes.ndjson").open("w") as fhir,
        gzip.open(folder / "works.jsonl.gz", "wt", compresslevel=1) as works,
    ):
        for number, block in enumerate(notes(rows)):
            csv.write(block.write_csv(include_header=number == 0))
            lines.write(block.write_ndjson())
            for row in block.iter_rows(named=True):
                fhir.write(_reference(row))
                works.write(_work(row))
    pl.scan_csv(folder / "notes.csv").sink_parquet(folder / "notes.parquet")
    with duckdb.connect(str(folder / "notes.duckdb")) as connection:
        connection.execute(f"CREATE TABLE note AS SELECT * FROM '{folder}/notes.parquet'")


def sources(folder: Path, address: str, database: str | None) -> dict[str, dict[str, Any]]:
    """Return the arguments of `read` by source."""
    query = {"query": "SELECT * FROM note", **_NOTE}
    found: dict[str, dict[str, Any]] = {
        "csv": {"path": str(folder / "notes.csv"), **_NOTE},
        "jsonl": {"path": str(folder / "notes.jsonl"), **_NOTE},
        "parquet": {"path": str(folder / "notes.parquet"), **_NOTE},
        "parquet behind an address": {"path": f"{address}/notes.parquet", **_NOTE},
        "duckdb": {"path": str(folder / "notes.duckdb"), **query},
        "fhir": {"path": str(folder / "notes.ndjson"), "format": "fhir"},
        "openalex": {"path": str(folder / "works.jsonl.gz"), "format": "openalex"},
    }
    if database is not None:
        found["postgresql"] = {"address_env": _VARIABLE, **query}
    return found


def measure(source: dict[str, Any], folder: str) -> dict[str, float]:
    """Read a source alone, and into a corpus on disk."""
    reset_peak()
    before, start = peak_mb(), time.process_time()
    rows = sum(1 for _ in Source(**source).rows(ReadReport()))
    alone, start = time.process_time() - start, time.process_time()
    corpus = read(**source, directory=folder, options=TextOptions(stop_words="none"))
    took = time.process_time() - start
    assert corpus.n_documents == rows
    return {
        "rows_per_s": round(rows / took),
        "source_alone_rows_per_s": round(rows / alone),
        "memory_mb": round(peak_mb() - before),
    }


def _load(server: Any, folder: Path) -> None:
    """Copy the notes into PostgreSQL, by the server itself."""
    (folder / "notes.csv").chmod(0o644)
    server.execute(
        "CREATE TABLE note (note_id bigint, person_id bigint, note_date date, note_text text)",
        f"COPY note FROM '{folder}/notes.csv' WITH (FORMAT csv, HEADER)",
    )


def run(quick: bool) -> dict[str, Any]:
    """Measure every source."""
    rows = QUICK if quick else ROWS
    result: dict[str, Any] = {"rows": rows, "rows_per_s": {}, "source_alone_rows_per_s": {}, "memory_mb": {}}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tertulia-sources-")))
        folder.chmod(0o755)  # the server's user reads it
        say(f"writing {rows:,} notes to {folder}")
        write(folder, rows)
        address, _ = stack.enter_context(served(folder))
        database = None
        if programs() is not None:
            server = stack.enter_context(postgres(folder / "server"))
            _load(server, folder)
            database = os.environ[_VARIABLE] = server.address()
        for name, source in sources(folder, address, database).items():
            say(name)
            found = call("benchmarks.sources.reading", json.dumps(source), str(folder / "corpus"))
            for key, value in found.items():
                result[key][name] = value
    return result


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]), sys.argv[2])))
