"""Which parties FTM takes for alike: collections that are cut at random, and by subject.

Nine collections are cut at random into six parts sized 1 to 6, and by label; every part of at least 90 documents gets a
model of its own (10, 20 and 40 topics, 50 sweeps, alpha learned and fixed). For each two parts of a cut: whether the
test of `methods/ftm/alignment.py` takes them for alike, and the share of other divisions of their topics that are
nearer. Random parts should be alike. Parts by label should not where labels are subjects; kinds of diseases, fields of
study and directorates overlap, and good and bad reviews are about the same films.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import polars as pl

from benchmarks.common import data, finish, newsgroups, parser, say
from tertulia.corpus import Corpus, read
from tertulia.corpus.splits import Row, at_random
from tertulia.corpus.vocabulary import Vocabulary, propose
from tertulia.kernels import lda
from tertulia.kernels.lda.options import NEVER, Learning
from tertulia.methods.ftm.alignment import DIVISIONS, PartyTopics, are_alike, party_topics, share_of_nearer


class Collection(NamedTuple):
    """Where documents come from, and which of them are taken."""

    file: str
    label: str | None  # the column that they are cut by; None: only at random
    every: int = 1  # one of this number is taken
    least: int = 10  # documents that hold a word


COLLECTIONS = {
    "newsgroups": Collection("newsgroups20", "party"),
    "quarter": Collection("newsgroups20", "party", 4),
    "bbc": Collection("bbc_news", "label"),
    "enron": Collection("enron_spam", "label", 8),
    "medical": Collection("medical_abstracts_2888", "label"),
    "grants": Collection("nsf_awards_fy2026", "party"),
    "titles": Collection("mag_titles_fos", "label", 4, 5),
    "imdb": Collection("imdb50k", "label", 16),
    "reuters": Collection("reuters21578", None, 4),
}
FEWEST, TOPICS, SWEEPS = 90, (10, 20, 40), 50


def collection(name: str) -> Corpus:
    """Read a corpus with the labels that it is cut by."""
    chosen = COLLECTIONS[name]
    if chosen.file == "newsgroups20":
        corpus = newsgroups(min_documents=chosen.least, label="party")
    else:
        corpus = read(data(f"{chosen.file}.parquet"), id="id", label=chosen.label)
    corpus = corpus.select(list(range(0, corpus.n_documents, chosen.every)))
    return corpus.encode(Vocabulary(tuple(propose(corpus, chosen.least, 0.5).words)))


def cuts(corpus: Corpus, seed: int, *, by_label: bool) -> dict[str, list[Corpus]]:
    """Cut a corpus at random, and by label."""
    chosen = at_random({str(i): i for i in range(1, 7)}, seed)
    labels = {"random": [chosen(Row(name, "")) for name in corpus.table["id"]]}
    if by_label:
        labels["by label"] = corpus.table["label"].to_list()
    return {kind: list(_parts(corpus, pl.Series(label))) for kind, label in labels.items()}


def _parts(corpus: Corpus, labels: pl.Series) -> Iterator[Corpus]:
    for label in labels.unique().sort():
        part = corpus.select((labels == label).to_numpy())
        if part.n_documents >= FEWEST:
            yield part


def topics_of(part: Corpus, K: int, seed: int, *, learn: bool) -> PartyTopics:
    """Train a model of one part, as FTM's server sees it in the first round."""
    state = lda.train(
        part.words, part.documents, len(part.vocabulary), K, 5.0 / K, 0.01, SWEEPS, seed,
        learning=Learning(alpha=True) if learn else NEVER,
    )  # fmt: skip
    return party_topics(lda.topic_word(state), lda.topic_sizes(state) if learn else None)


def measure(corpus: Corpus, seeds: list[int], *, by_label: bool, learn: bool) -> dict[str, dict[str, list[float]]]:
    """Count, by cut and number of topics, pairs, the share that is alike, the least and largest share of nearer."""
    pairs: dict[str, dict[str, list[tuple[bool, float]]]] = {}
    for seed in seeds:
        for kind, parts in cuts(corpus, seed, by_label=by_label).items():
            for K in TOPICS:
                models = [topics_of(part, K, 100 * seed + i, learn=learn) for i, part in enumerate(parts)]
                found = [(are_alike(a, b), share_of_nearer(a, b)) for a, b in combinations(models, 2)]
                pairs.setdefault(kind, {}).setdefault(str(K), []).extend(found)
    return {kind: {K: _summary(own) for K, own in by_topics.items()} for kind, by_topics in pairs.items()}


def _summary(pairs: list[tuple[bool, float]]) -> list[float]:
    alike, nearer = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return [len(pairs), round(sum(alike) / len(pairs), 3), round(min(nearer), 3), round(max(nearer), 3)]


def main() -> None:
    """Run the benchmark."""
    command = parser("Which parties FTM takes for alike")
    command.add_argument("--corpora", nargs="+", choices=COLLECTIONS, help="by default all, or with --quick two")
    arguments = command.parse_args()
    seeds = [0] if arguments.quick else [0, 1, 2]
    names = arguments.corpora or (("quarter", "bbc") if arguments.quick else COLLECTIONS)
    result: dict[str, Any] = {"benchmark": "ftm_likeness", "seeds": seeds, "divisions": DIVISIONS}
    for name in names:
        corpus = collection(name)
        for learn in (True, False):
            key = f"{name}, alpha {'learned' if learn else 'fixed'}"
            result[key] = measure(corpus, seeds, by_label=COLLECTIONS[name].label is not None, learn=learn)
            say(f"{key}: {result[key]}")
    finish(result)


if __name__ == "__main__":
    main()
