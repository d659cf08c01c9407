"""NSF: awards of the US National Science Foundation, as downloads of a year, answers of the API, or exported CSV.

A year is a folder of JSON files with one award each; an answer of the API holds a list of awards. Abstracts may hold
tags of HTML, which are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tertulia.corpus.formats import open_table
from tertulia.corpus.formats.base import Record, Request, Table, read_bytes
from tertulia.corpus.markup import looks_like_html, plain_text
from tertulia.corpus.sources.base import Layout
from tertulia.errors import InputError

_NAMES = {  # in downloads, in the API, in exported CSV
    "id": ("awd_id", "id", "AwardNumber"),
    "title": ("awd_titl_txt", "title", "Title"),
    "abstract": ("awd_abstract_narration", "abstractText", "Abstract"),
    "date": ("awd_eff_date", "startDate", "StartDate"),
    "division": ("org_div_long_name", "fundProgramName", "NSFOrganization"),
    "directorate": ("org_dir_long_name", "NSFDirectorate"),
}


def _open(path: Path, request: Request) -> Table:
    """Open a file of one award, or of an answer of the API; other files are tables."""
    if path.suffix != ".json":
        return open_table(path, request)
    try:
        whole = json.loads(read_bytes(path))
    except (ValueError, RecursionError):
        return open_table(path, request)  # one object per line
    if isinstance(whole, Mapping) and isinstance(whole.get("response"), Mapping):
        whole = whole["response"].get("award")
    awards = whole if isinstance(whole, list) else [whole]
    if not awards or not all(isinstance(award, Mapping) for award in awards):
        raise InputError(f"{path} holds no award of NSF: {LAYOUT.hint}")

    def records() -> Iterator[Record]:
        for number, award in enumerate(awards, start=1):
            yield Record(f"{path.name}: award {number}", award)

    columns: dict[str, Any] = dict.fromkeys(name for award in awards for name in award)
    return Table(tuple(columns), records())


def _convert(record: Record) -> Record:
    found = {name: next((v for n in names if (v := record.values.get(n))), None) for name, names in _NAMES.items()}
    text = found["abstract"]
    if isinstance(text, str) and looks_like_html(text):
        found["abstract"] = plain_text(text)
    return record._replace(values=found)


LAYOUT = Layout(
    columns={"text": ("title", "abstract"), "id": "id", "date": "date", "label": "division"},
    marks=_NAMES["abstract"],
    raw=tuple(name for names in _NAMES.values() for name in names),
    gives=tuple(_NAMES),
    convert=_convert,
    open=_open,
    hint="it reads awards with abstracts: awd_abstract_narration, abstractText or Abstract",
)
