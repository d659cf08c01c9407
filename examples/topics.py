"""Work with topics: name, hide, merge and compare them, and follow them over time."""

from pathlib import Path

import polars as pl

import tertulia as tt

HERE = Path(__file__).parent
planets, gardens = pl.read_ndjson(HERE / "planets.jsonl")["text"], pl.read_csv(HERE / "gardens.csv")["note"]
notes = [
    {"text": text, "label": label, "date": f"2026-{1 + number % 3:02d}-15"}
    for label, texts in (("planets", planets), ("gardens", gardens))
    for number, text in enumerate(texts)
]

every_word = {"min_documents": 1}  # there are few documents
model = tt.LDA(topics=4, sweeps=200, vocabulary=every_word).fit(notes)

# Names from words that tell topics apart. A language model could give them: by=lambda words: ask(", ".join(words))
model = model.rename(model.suggest_names())
print(model)

# A topic is put aside, two are made one; each step gives a new model, and all of it is saved.
smaller = model.merge([[0, 1]]).hide([2]).rename({0: "the two together"})
print(smaller.topics_table(5))
print(smaller.provenance["merged"])

# Which topics does another seed find, too?
other = tt.LDA(topics=4, sweeps=200, vocabulary=every_word, random_state=1).fit(notes)
print(model.compare(other, words=5))

# Where and when are they?
print(model.by_label(notes))
print(model.over_time(notes, by="month"))

# How many topics should there be? With so few documents this is only a show.
found = tt.choose_topics(notes, (2, 4, 8), estimator=tt.LDA(sweeps=100, vocabulary=every_word), heldout=0.2)
print(found)
