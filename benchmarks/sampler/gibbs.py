"""Two long chains from the same start: `blocked`, which counts moves block by block, and collapsed Gibbs.

The start is where training begins, clusters of documents, or random topics, of which most move at once in the first
sweeps: there it matters most that counts wait for their block. Neither learns a prior. Each model is the mean of its
counts over the last quarter of the sweeps, every tenth of them; the gap is between means over seeds. Collapsed Gibbs
from random topics is the reference and never changes: its scores are kept in `benchmarks/out`. All others are kept
only on demand.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.common import OUT, call, say, time_cpu
from benchmarks.sampler.corpora import parts
from benchmarks.sampler.trainers import ALPHA, BETA
from benchmarks.sampler.worker import score
from tertulia.corpus import Corpus
from tertulia.kernels import lda
from tertulia.kernels.core.rng import derive

_KEPT = OUT / "sampler" / "gibbs"
_STEP = 10  # sweeps between samples
SCORES = ("ppl", "npmi", "diversity")


@dataclass(frozen=True)
class Chain:
    """One chain."""

    sampler: Any  # blocked, gibbs
    corpus: str
    topics: int
    sweeps: int
    seed: int
    start: Any  # clusters, random

    @property
    def name(self) -> str:
        """The name of the file with its scores."""
        return f"{self.corpus}-{self.topics}-{self.start}-{self.sampler}-{self.sweeps}-{self.seed}"


def long_gap(corpus: str, K: int, sweeps: int, seeds: Sequence[int], start: str, *, keep: bool) -> dict[str, Any]:
    """Compute the gap of `blocked` to collapsed Gibbs: in perplexity as a share, above 0 where it is worse."""
    found: dict[str, list[dict[str, float]]] = {"gibbs": [], "blocked": []}
    for seed in seeds:
        for sampler, scores in found.items():
            chain = Chain(sampler, corpus, K, sweeps, seed, start)
            scores.append(_measure(chain, keep=keep or (sampler, start) == ("gibbs", "random")))
    means = {sampler: {s: float(np.mean([x[s] for x in scores])) for s in SCORES} for sampler, scores in found.items()}
    exact, ours = means["gibbs"], means["blocked"]
    gaps = {"ppl": ours["ppl"] / exact["ppl"] - 1.0, **{s: ours[s] - exact[s] for s in SCORES[1:]}}
    say(f"{corpus}, {start}: blocked against gibbs {gaps}")
    return {"gap": {name: round(value, 5) for name, value in gaps.items()}, "seeds": list(seeds), "each": found}


def _measure(chain: Chain, *, keep: bool) -> dict[str, float]:
    kept = _KEPT / f"{chain.name}.json"
    if keep and kept.exists():
        found: dict[str, float] = json.loads(kept.read_text())
        return found
    found = call("benchmarks.sampler.gibbs", json.dumps(asdict(chain)))
    if keep:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(found))
    say(f"{chain.name}: {found['cpu_s']:.1f} s, " + ", ".join(f"{found[name]:.3f}" for name in SCORES))
    return found


def sample(chain: Chain, corpus: Corpus) -> lda.LDAState:
    """Run a chain; return its end, with the mean of its counts."""
    K, V, data = chain.topics, len(corpus.vocabulary), (corpus.words, corpus.documents)
    state = lda.train(*data, V, K, ALPHA / K, BETA, 0, chain.seed, start=chain.start)
    total, samples, done = np.zeros((V, K)), 0, 0
    while done < chain.sweeps:
        step = min(_STEP, chain.sweeps - done)
        state, _ = lda.run(*data, state, step, int(derive(chain.seed, done)), chain.sampler)
        done += step
        if done > 0.75 * chain.sweeps:
            total, samples = total + state.cwk, samples + 1
    return state._replace(mean=(total / max(samples, 1)).astype(np.float32))


def main() -> None:
    """Run the chain that the command line names."""
    chain = Chain(**json.loads(sys.argv[1]))
    corpus, heldout = parts(chain.corpus)
    seconds, state = time_cpu(lambda: sample(chain, corpus))
    print(json.dumps({"cpu_s": seconds, **score(lda.topic_word(state), state.alpha, corpus, heldout)}))


if __name__ == "__main__":
    main()
