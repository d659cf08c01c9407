"""Three hospitals train one model; each compares it with a model that it trains alone."""

from pathlib import Path

import polars as pl

import tertulia as tt

notes = pl.read_csv(Path(__file__).with_name("hospitals.csv"))  # made up
hospitals = {str(name): table for (name,), table in notes.group_by("hospital", maintain_order=True)}

# Notes stay where they are: words with counts, topics and counts leave. A fifth of the notes helps each to choose.
model = tt.Consensus(topics=5).fit(hospitals, validation=0.2, heldout=0.0)
print(model)

for name in hospitals:
    best = model.best_for(name)
    scores = {kind: round(score) for kind, score in best.provenance["validation_perplexity"].items()}
    print(f"{name}: takes {best.provenance['chosen']}, for perplexities are {scores}")
