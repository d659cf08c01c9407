"""FTM with a different number of topics at each party: similar topics are merged, others stay with their party."""

from pathlib import Path

import polars as pl

import tertulia as tt

notes = pl.read_csv(Path(__file__).with_name("hospitals.csv"))
hospitals = {str(name): table for (name,), table in notes.group_by("hospital", maintain_order=True)}

own_sizes = {"north": {"topics": 4}, "south": {"topics": 6}, "west": {"topics": 3}}
model = tt.FTM(rounds=3, sweeps=40).fit(hospitals, party_settings=own_sizes)
print(model)

for name, own in model.local.items():
    print(f"{name}: {own.n_topics} topics of its own, such as: {' '.join(own.top_words(6)[0])}")
print(model.local["north"].compare(model.local["south"], words=4).select("state", "similarity", "both"))
