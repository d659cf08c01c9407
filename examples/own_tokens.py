"""Your own tokeniser, phrases beside words, and lists of tokens: all parties tokenise in the same way."""

import re
from pathlib import Path

import polars as pl

import tertulia as tt


def cut(sentence: str) -> list[str]:
    """Return words of at least five letters, which are used unchanged. It could be spaCy, or MeCab."""
    return re.findall("[a-z]{5,}", sentence.lower())


notes = pl.read_csv(Path(__file__).with_name("hospitals.csv"))
hospitals = {str(name): table for (name,), table in notes.group_by("hospital", maintain_order=True)}

text = tt.TextOptions(tokenizer=cut, ngrams=2)  # heart_attack beside heart and attack
model = tt.Consensus(topics=5).fit(hospitals, text=text)
print(model)
print(sorted(word for word in model.vocabulary.words if "_" in word)[:8])

# Only the function's name is saved. Who loads the model gives lists of words, or the function once more.
model.save("shared-topics")
loaded = tt.Topics.load("shared-topics")
print(loaded.options.tokenizer)
print(loaded.transform([["heart", "attack"]]).round(2))
print(loaded.with_tokenizer(cut).transform(["A heart attack."]).round(2))
