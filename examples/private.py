"""A federation with noise for each word; the ledgers give the epsilon of a word and of a whole note."""

from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

import tertulia as tt
from tertulia.runs.directory import Run
from tertulia.view.tables import privacy_totals

here = Path(__file__).parent
notes = pl.read_csv(here / "hospitals.csv")
hospitals = {str(name): table for (name,), table in notes.group_by("hospital", maintain_order=True)}

with TemporaryDirectory() as place:
    listed = {"mode": "public", "words": str(here / "words.txt")}  # parties may not show which words they have
    method = tt.Consensus(topics=5, mode="sound", epsilon=8, beta=0.1, vocabulary=listed)
    model = method.fit(hospitals, directory=Path(place) / "run", heldout=0.0)
    print(model)
    for row in privacy_totals(Run.open(Path(place) / "run"), 1e-6):
        print(f"{row['party']}, {row['of']}: real epsilon {row['real epsilon']} {row['holds']}")
