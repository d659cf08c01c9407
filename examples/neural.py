"""A neural topic model, federated: ProdLDA by synchronised gradients, equal to pooled training."""

from pathlib import Path

import polars as pl

import tertulia as tt

notes = pl.read_csv(Path(__file__).with_name("hospitals.csv"))
hospitals = {str(name): table for (name,), table in notes.group_by("hospital", maintain_order=True)}

method = tt.GFedNTM(model="prodlda", topics=5, epochs=20, batch_size=64, learning_rate=0.02)
model = method.fit(hospitals, heldout=0.1)
print(model)
print(f"{model.communication.rounds} rounds, diversity {model.diversity():.2f}")

# The same network on one machine is an estimator like any other.
alone = tt.ProdLDA(topics=5, epochs=20, batch_size=64, learning_rate=0.02).fit(notes)
print(alone.topics_table(6))
