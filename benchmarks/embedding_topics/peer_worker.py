"""One job of a peer, in a process of its own: it needs numpy and the peer, and nothing of this package.

`python peer_worker.py JOB.json` reads a job {peer, topics, seeds, documents, vectors, words, parties}: `documents` is a
file of texts, `vectors` one of their vectors, and `words` those of a public list, for peers that embed words. It prints
for each seed, and each model that the peer trains, [topics, assigned, nearest, seconds] as JSON. Seconds are CPU
seconds of all threads with the vectors given, after a warm-up on a few documents where there is something to compile.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

_WARM, _TOP = 400, 25  # documents of a warm-up; words of a topic
_COMPILED = ("bertopic", "merge_models")
Job = dict[str, Any]
# Words of topics; topics of documents, -1 for none; the same with the nearest topic instead of none; CPU seconds
Found = tuple[list[list[str]], list[int], list[int], float]


def bertopic(texts: list[str], vectors: Any, job: Job) -> list[Found]:
    """Train BERTopic by its defaults, and with its number of topics reduced to K, outliers beside them."""
    began = time.process_time()
    model = _trained(texts, vectors, job["seed"])
    trained = time.process_time() - began
    usual = _found(model, texts, vectors, trained)
    began = time.process_time()
    model.reduce_topics(texts, nr_topics=job["topics"] + 1)  # as `nr_topics` does at the end of `fit`
    return [usual, _found(model, texts, vectors, trained + time.process_time() - began)]


def _trained(texts: list[str], vectors: Any, seed: int) -> Any:
    from bertopic import BERTopic
    from umap import UMAP

    # BERTopic's own UMAP, with a seed
    reducer = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", low_memory=False, random_state=seed)
    return BERTopic(umap_model=reducer, top_n_words=_TOP).fit(texts, embeddings=vectors)


def _found(model: Any, texts: list[str], vectors: Any, seconds: float) -> Found:
    words, assigned = model.get_topics(), [int(k) for k in model.topics_]
    nearest = assigned
    if -1 in assigned and max(assigned) >= 0:
        nearest = model.reduce_outliers(texts, assigned, strategy="embeddings", embeddings=vectors)
    topics = [[word for word, _ in words[k] if word] for k in sorted(words) if k >= 0]
    return topics, assigned, [int(k) for k in nearest], seconds


def merge_models(texts: list[str], vectors: Any, job: Job) -> list[Found]:
    """Train BERTopic at each party, K topics each, and merge: documents get the nearest of the merged topics."""
    from bertopic import BERTopic

    began = time.process_time()
    parties, models = np.array(job["parties"])[: len(texts)], []
    for name in sorted(set(parties)):
        mine = np.flatnonzero(parties == name)
        own = [texts[n] for n in mine]
        models.append(_trained(own, vectors[mine], job["seed"]))
        if len(models[-1].get_topics()) > job["topics"] + 1:
            models[-1].reduce_topics(own, nr_topics=job["topics"] + 1)
    model = BERTopic.merge_models(models)
    seconds, words = time.process_time() - began, model.get_topics()
    kept = [k for k in sorted(words) if k >= 0]
    centres = np.asarray(model.topic_embeddings_)[[k + model._outliers for k in kept]]
    centres = centres / np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-9)
    topics = [[word for word, _ in words[k] if word] for k in kept]
    nearest = (vectors @ centres.T).argmax(axis=1).tolist()
    return [(topics, nearest, nearest, seconds)]


def fastopic(texts: list[str], vectors: Any, job: Job) -> list[Found]:
    """Train FASTopic by its defaults, over at most 5,000 words."""
    import torch
    from fastopic import FASTopic

    began = time.process_time()
    torch.manual_seed(job["seed"])
    model = FASTopic(job["topics"], preprocess=_Counts(), num_top_words=_TOP, doc_embed_model=_Given(job["words"]))
    top, theta = model.fit_transform(texts, preset_doc_embeddings=vectors)
    seconds = time.process_time() - began
    nearest = np.asarray(theta).argmax(axis=1).tolist()
    return [([line.split() for line in top], nearest, nearest, seconds)]


class _Counts:
    """The interface of topmost's preprocessing, which needs torchvision."""

    def preprocess(self, texts: list[str]) -> dict[str, Any]:
        """Count words."""
        from sklearn.feature_extraction.text import CountVectorizer

        counter = CountVectorizer(max_features=5000)
        return {"train_bow": counter.fit_transform(texts), "vocab": list(counter.get_feature_names_out())}


class _Given:
    """An encoder that has the vectors of single words; the documents' vectors are given, and other words have none."""

    def __init__(self, words: str) -> None:
        with np.load(words) as stored:
            self.place = {str(word): n for n, word in enumerate(stored["words"])}
            self.vectors = stored["vectors"]

    def encode(self, sentences: list[str], **_: Any) -> Any:
        """Look up the words' vectors."""
        none = np.zeros(self.vectors.shape[1], np.float32)
        return np.stack([self.vectors[self.place[word]] if word in self.place else none for word in sentences])


def turftopic(texts: list[str], vectors: Any, job: Job) -> list[Found]:
    """Train Turftopic's Gaussian mixture and SensTopic."""
    from turftopic import GMM, SensTopic

    known = {"encoder": _Given(job["words"]), "random_state": job["seed"]}
    return [
        _turftopic(model, texts, vectors) for model in (GMM(job["topics"], **known), SensTopic(job["topics"], **known))
    ]


def topeax(texts: list[str], vectors: Any, job: Job) -> list[Found]:
    """Train Turftopic's Topeax, which finds its number of topics by itself."""
    from turftopic import Topeax

    return [_turftopic(Topeax(encoder=_Given(job["words"]), random_state=job["seed"]), texts, vectors)]


def _turftopic(model: Any, texts: list[str], vectors: Any) -> Found:
    began = time.process_time()
    theta = np.asarray(model.fit_transform(texts, embeddings=vectors))
    seconds, names, weights = time.process_time() - began, model.get_vocab(), np.asarray(model.components_)
    topics = [[str(names[v]) for v in np.argsort(-row)[:_TOP]] for row in weights]
    nearest = theta.argmax(axis=1).tolist()
    return topics, nearest, nearest, seconds


def main() -> None:
    """Run the jobs of one file."""
    warnings.simplefilter("ignore")
    job = json.loads(Path(sys.argv[1]).read_text())
    texts = json.loads(Path(job["documents"]).read_text())
    with np.load(job["vectors"]) as stored:
        vectors = np.ascontiguousarray(stored["vectors"], np.float32)
    train: Callable[[list[str], Any, Job], list[Found]] = globals()[job["peer"]]
    if job["peer"] in _COMPILED:
        train(texts[:_WARM], vectors[:_WARM], {**job, "seed": 0})
    print(json.dumps([train(texts, vectors, {**job, "seed": seed}) for seed in job["seeds"]]))


if __name__ == "__main__":
    main()
