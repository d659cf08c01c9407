"""How long to train a neural topic model on one machine, and on how many words: what `tt.ProdLDA` does by itself.

`stopping`: for each corpus and seed ProdLDA is trained for one epoch (a control: this is what an early stop keeps if it
goes wrong), for 50, until its loss stalls (the default), and with a quarter of the documents for validation. `words`:
the default with 1,000, 2,000, 5,000 and all words of BBC. Scores are NPMI of ten top words (a window of ten tokens over
all words of all documents) and diversity; LDA with as many topics, and random words, stand beside them.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.common import data, finish, parser, say
from benchmarks.gfedntm_corpora import Setting, synthetic
from tertulia import LDA, ProdLDA, Topics
from tertulia.corpus import Corpus, read
from tertulia.metrics import npmi, topic_diversity

FILES = {"newsgroups": "newsgroups20.parquet", "titles": "mag_titles_fos.parquet", "bbc": "bbc_news.parquet"}
TOPICS = {"newsgroups": 50, "titles": 50, "bbc": 50, "generated": 20}
WAYS: dict[str, dict[str, Any]] = {
    "one epoch": {"epochs": 1},
    "50 epochs": {"epochs": 50},
    "until it stalls": {},
    "validated": {"validation": 0.25},
}
SIZES = (1000, 2000, 5000, None)


def corpus_of(name: str, documents: int | None = None) -> Corpus:
    """Documents over all their words; generated ones are LDA's, 2,000 of 20 topics over 1,000 words."""
    if name != "generated":
        corpus = read(data(FILES[name]), id="id")
        return corpus.select(np.sort(np.random.default_rng(0).permutation(corpus.n_documents)[:documents]))
    setting = Setting(nodes=1, words=1000, topics=20, shared=20, eta=0.02, training=2000, validation=1)
    return synthetic(setting, 0).parties["node0"]


def scored(model: Topics, corpus: Corpus) -> dict[str, float]:
    """Coherence and diversity."""
    return {"npmi": round(npmi(model, corpus).mean, 4), "diversity": round(topic_diversity(model), 4)}


def trained(corpus: Corpus, topics: int, seed: int, **settings: Any) -> dict[str, float]:
    """One model's scores, the epochs that it was trained for, and CPU seconds."""
    begun = time.process_time()
    model = ProdLDA(topics=topics, **settings).fit(corpus, seed=seed)
    spent = round(time.process_time() - begun, 1)
    return {**scored(model, corpus), "epochs": model.provenance["epochs"], "cpu_seconds": spent}


def controls(corpus: Corpus, topics: int, seed: int) -> dict[str, dict[str, float]]:
    """LDA on the same 2,000 words, and topics whose words are drawn by their frequency."""
    lda = LDA(topics=topics, vocabulary={"max_words": 2000}).fit(corpus, seed=seed)
    words = corpus.encode(lda.vocabulary)
    order = np.random.default_rng(seed).exponential(size=(topics, len(lda.vocabulary)))
    mass = np.maximum(np.bincount(words.words, minlength=len(lda.vocabulary)), 1) / order
    random = Topics(mass / mass.sum(axis=1, keepdims=True), lda.vocabulary)
    return {"lda": scored(lda, corpus), "random words": scored(random, corpus)}


def stopping(name: str, seeds: range, documents: int | None) -> dict[str, list[dict[str, float]]]:
    """All ways on one corpus, a result for each seed."""
    corpus, found = corpus_of(name, documents), dict[str, list[dict[str, float]]]()
    for seed in seeds:
        for way, settings in WAYS.items():
            found.setdefault(way, []).append(trained(corpus, TOPICS[name], seed, **settings))
            say(f"{name}, seed {seed}, {way}: {found[way][-1]}")
        for control, result in controls(corpus, TOPICS[name], seed).items():
            found.setdefault(control, []).append(result)
    return found


def words(seeds: range) -> dict[str, list[dict[str, float]]]:
    """The default on more or fewer words of BBC."""
    corpus, found = corpus_of("bbc"), dict[str, list[dict[str, float]]]()
    for size in SIZES:
        vocabulary = {"max_words": size}
        found[str(size or "all")] = [trained(corpus, 50, seed, vocabulary=vocabulary) for seed in seeds]
        say(f"{size or 'all'} words: {found[str(size or 'all')]}")
    return found


def summary(results: list[dict[str, float]]) -> dict[str, Any]:
    """Mean and standard deviation over seeds, and all values."""
    found = {}
    for key in results[0]:
        values = [result[key] for result in results]
        found[key] = {"mean": round(float(np.mean(values)), 4), "sd": round(float(np.std(values)), 4), "all": values}
    return found


def main() -> None:
    """Run the benchmark."""
    options = parser("How long to train a neural topic model, and on how many words")
    options.add_argument("--corpora", nargs="*", choices=list(TOPICS), help="all by default")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--documents", type=int, help="of each corpus at most; all by default")
    options.add_argument("--words", action="store_true", help="only the sizes of the vocabulary")
    chosen = options.parse_args()
    seeds = range(1 if chosen.quick else chosen.seeds)
    names = chosen.corpora or (["bbc", "generated"] if chosen.quick else list(TOPICS))
    runs = {} if chosen.words else {name: stopping(name, seeds, chosen.documents) for name in names}
    sizes = words(seeds) if chosen.words or not (chosen.quick or chosen.corpora) else {}
    finish(
        {
            "benchmark": "neural_stopping",
            "seeds": len(seeds),
            "documents": chosen.documents or "all",
            "stopping": {name: {way: summary(r) for way, r in found.items()} for name, found in runs.items()},
            "words": {size: summary(results) for size, results in sizes.items()},
        }
    )


if __name__ == "__main__":
    main()
