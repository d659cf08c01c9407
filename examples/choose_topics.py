"""Choose the number of topics: train several models, and plot perplexity, coherence and stability."""

from pathlib import Path

import matplotlib as mpl
import polars as pl

import tertulia as tt

mpl.use("agg")  # draws into files; leave it out in a notebook
notes = pl.read_csv(Path(__file__).with_name("hospitals.csv"))

found = tt.choose_topics(notes, (2, 3, 5, 8, 12), estimator=tt.LDA(sweeps=100), heldout=0.2)
print(found)
print(found.models[found.best])
found.plot().figure.savefig("topic-numbers.png")
