"""How long to train a neural topic model on one machine, and on how many words: what `tt.ProdLDA` does by itself.

`stopping`: ProdLDA is trained on three quarters of the documents; the other quarter validates. Models of one and the
same training are compared: after one epoch (a control: what an early stop keeps if it goes wrong), after 50, and the
one that validation keeps. `epochs`: 50 epochs on all documents, and until the loss stalls. `words`: the default with
1,000, 2,000, 5,000 and all words of BBC. Scores are NPMI of ten top words (a window of ten tokens over all words of all
documents) and diversity; LDA with as many topics, and random words, stand beside them.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.common import data, finish, parser, say
from benchmarks.gfedntm.corpora import Setting, synthetic
from tertulia import LDA, ProdLDA, Topics
from tertulia.api.neural import ProdLDATrainer
from tertulia.api.trainers import words_of
from tertulia.corpus import Corpus, read
from tertulia.metrics import npmi, topic_diversity
from tertulia.models.neural.architecture import Sizes
from tertulia.models.neural.bags import Bags, Schedule
from tertulia.models.neural.network import Network
from tertulia.models.neural.training import Progress, has_stalled, train, validation_loss

FILES = {"newsgroups": "newsgroups20.parquet", "titles": "mag_titles_fos.parquet", "bbc": "bbc_news.parquet"}
TOPICS = {"newsgroups": 50, "titles": 50, "bbc": 50, "generated": 20}
PARTS = ("stopping", "epochs", "words")
SIZES = (1000, 2000, 5000, None)
EPOCHS = 50
Scores = dict[str, float]


def corpus_of(name: str) -> Corpus:
    """Return all documents over all their words; generated ones are LDA's, 2,000 of 20 topics over 1,000 words."""
    if name != "generated":
        return read(data(FILES[name]), id="id")
    setting = Setting(nodes=1, words=1000, topics=20, shared=20, eta=0.02, training=2000, validation=1)
    return synthetic(setting, 0).parties["node0"]


def sample(corpus: Corpus, documents: int | None) -> Corpus:
    """Draw as many of its documents, all by default; coherence is counted in all of them in any case."""
    chosen = np.random.default_rng(0).permutation(corpus.n_documents)[:documents]
    return corpus.select(np.sort(chosen))


def score(model: Topics, corpus: Corpus) -> Scores:
    """Return coherence and diversity."""
    return {"npmi": round(npmi(model, corpus).mean, 4), "diversity": round(topic_diversity(model), 4)}


def stopping(corpus: Corpus, reference: Corpus, topics: int, seed: int) -> dict[str, Scores]:
    """Score models of one training, as `tt.ProdLDA(validation=0.25)` runs it and at least for 50 epochs."""
    settings = ProdLDATrainer(topics=topics)
    corpus = corpus.encode(words_of(corpus, settings.vocabulary))
    bags, held = Bags.of(corpus).split_validation(0.25, seed)
    network = Network("prodlda", Sizes(len(corpus.vocabulary), topics), "batch")
    schedule = Schedule.over(bags.n_documents, settings.batch_size, seed)
    progress, losses, found = (
        Progress.initial(network, seed),
        list[float](),
        {},
    )

    def note(way: str) -> None:
        model = Topics(network.topic_word(progress.weights, progress.statistics), corpus.vocabulary)
        found[way] = {**score(model, reference), "epochs": float(len(losses))}

    ended = False
    while not ended or len(losses) < EPOCHS:
        steps = range(len(losses) * schedule.batches, (len(losses) + 1) * schedule.batches)
        progress = train(network, progress, bags, schedule, steps, settings.learning_rate, settings.betas)
        losses.append(validation_loss(network, progress.weights, held, seed))
        if not ended and losses[-1] == min(losses):
            note("validated")
        ended = ended or has_stalled(losses, settings.stop_after)
        if len(losses) in (1, EPOCHS):
            note("one epoch" if len(losses) == 1 else "50 epochs")
    return {**found, **controls(corpus, reference, topics, seed)}


def fit_and_score(corpus: Corpus, reference: Corpus, topics: int, seed: int, **settings: Any) -> Scores:
    """Return one model's scores, the epochs that it was trained for, and CPU seconds."""
    started = time.process_time()
    model = ProdLDA(topics=topics, **settings).fit(corpus, seed=seed).topics_
    spent = round(time.process_time() - started, 1)
    return {**score(model, reference), "epochs": model.provenance["epochs"], "cpu_seconds": spent}


def controls(corpus: Corpus, reference: Corpus, topics: int, seed: int) -> dict[str, Scores]:
    """Score LDA on the same words, and topics whose words are drawn by their frequency."""
    lda = LDA(topics=topics, vocabulary={"min_documents": 1, "max_share": 1.0}).fit(corpus, seed=seed).topics_
    order = np.random.default_rng(seed).exponential(size=(topics, len(corpus.vocabulary)))
    mass = np.maximum(np.bincount(corpus.words, minlength=len(corpus.vocabulary)), 1) / order
    random = Topics(mass / mass.sum(axis=1, keepdims=True), corpus.vocabulary)
    return {"lda": score(lda, reference), "random words": score(random, reference)}


def run(part: str, name: str, seed: int, documents: int | None) -> dict[str, Scores]:
    """Run one part with one seed."""
    reference, topics = corpus_of(name), TOPICS[name]
    corpus = sample(reference, documents)
    if part == "stopping":
        return stopping(corpus, reference, topics, seed)
    if part == "epochs":
        ways: dict[str, dict[str, Any]] = {"50 epochs": {"epochs": EPOCHS}, "until it stalls": {}}
    else:
        ways = {str(size or "all"): {"vocabulary": {"max_words": size}} for size in SIZES}
    return {way: fit_and_score(corpus, reference, topics, seed, **settings) for way, settings in ways.items()}


def over_seeds(part: str, name: str, seeds: range, documents: int | None) -> dict[str, dict[str, Any]]:
    """Return each score's mean, standard deviation and values."""
    runs = []
    for seed in seeds:
        runs.append(run(part, name, seed, documents))
        say(f"{part}, {name}, seed {seed}: {runs[-1]}")
    return {way: {key: spread([found[way][key] for found in runs]) for key in runs[0][way]} for way in runs[0]}


def spread(values: list[float]) -> dict[str, Any]:
    """Return mean, standard deviation, and the values."""
    return {"mean": round(float(np.mean(values)), 4), "sd": round(float(np.std(values)), 4), "all": values}


def main() -> None:
    """Run the benchmark."""
    options = parser("How long to train a neural topic model, and on how many words")
    options.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    options.add_argument("--corpora", nargs="*", choices=list(TOPICS), default=list(TOPICS))
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--documents", type=int, help="to train on, of each corpus; all by default")
    chosen = options.parse_args()
    names, seeds = ["bbc", "generated"] if chosen.quick else chosen.corpora, range(1 if chosen.quick else chosen.seeds)
    corpora = {part: ["bbc"] if part == "words" else names for part in chosen.parts}
    found = {
        part: {name: over_seeds(part, name, seeds, chosen.documents) for name in corpora[part]} for part in chosen.parts
    }
    about = {"seeds": len(seeds), "documents": chosen.documents or "all"}
    finish({"benchmark": "neural_stopping", **about, **found})


if __name__ == "__main__":
    main()
