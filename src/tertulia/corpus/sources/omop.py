"""OMOP: clinical notes in the table NOTE of the OMOP Common Data Model, version 5 (ohdsi.github.io/CommonDataModel)."""

from __future__ import annotations

from tertulia.corpus.sources.base import Layout

LAYOUT = Layout(
    columns={"text": "note_text", "id": "note_id", "date": "note_date", "user": "person_id"},
    query="SELECT * FROM note",
    hint="name the table by a query of your own, if it is in another schema",
)
