"""Compare hospitals: each releases the sums of its notes' topic shares, here with noise that protects each note."""

from pathlib import Path

import polars as pl

import tertulia as tt
from tertulia.applications import compare

notes = pl.read_csv(Path(__file__).with_name("hospitals.csv"))
hospitals = {str(name): table for (name,), table in notes.group_by("hospital", maintain_order=True)}
model = tt.Consensus(topics=5).fit(hospitals)

print(compare.plan(model, epsilon=2.0).select("what", "seen", "unit", "real epsilon"))
found = compare.parties(model, hospitals, epsilon=2.0)
print(found.table(words=4).select("topic", "north", "south", "west", "kind", "words"))
print(found.similarity())

quarters = compare.parties(model, hospitals, by="quarter", since="2025-10", until="2026-03")  # without noise
print(quarters.over_time().head(6))
