"""CORDIS: projects of the European Union's framework programmes, as `project.csv` (data.europa.eu, cordis-HORIZON)."""

from __future__ import annotations

from tertulia.corpus.sources.base import Layout

LAYOUT = Layout(
    columns={"text": ("title", "objective"), "id": "id", "date": "startDate", "label": "legalBasis"},
    hint="it reads project.csv, which has a column objective",
)
