"""PC-TD's figures 2 to 4 on public articles: 502 of Reuters-21578, 2-6 March 1987, and 20 Newsgroups, 26-30 April 1993.

Three participants hold 85, 165 and 252 articles, in the order of time; as many others are held out. Perplexity is by
document completion on everybody's held-out articles, with 1 % of the uniform distribution mixed into every model, since
a single participant has never seen some words. `ppl` is by sigma, after 35 iterations. Coherence is of the ten top
words, over all articles: UMass as the paper defines it, and NPMI in windows of ten words. Means over seeds stand beside
the lowest and the highest. The JSON's top level is Reuters; `newsgroups` holds the same keys for the other corpus.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import OUT, call, finish, parser, say
from benchmarks.pctd.bench import PAPER_SIGMA, ROUNDS, TAU, Bench, convergence, mean
from benchmarks.pctd.data import add_corpora, articles
from benchmarks.pctd.plot import draw, table
from tertulia import LDA, Corpus
from tertulia.metrics import completion, unigram
from tertulia.privacy.mechanisms.gaussian import moments_epsilon, real_levels, sigma_for, theorem_epsilon
from tertulia.runs.scenarios import side_by_side

SIGMAS = (0.0, 0.05, 0.1, 0.25, 0.3)
TAUS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
DELTA = 1e-6


def alone(bench: Bench, words: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """Score each participant's own model, and all their topics side by side, which nobody trained."""
    public, found = {"mode": "public", "words": words}, []
    for seed in bench.seeds:
        own = {
            party: bench.fit(seed, parties={party: corpus}, vocabulary=public)
            for party, corpus in bench.corpus.parties.items()
        }
        own["side by side"] = side_by_side(list(own.values()))
        found.append({name: {"perplexity": bench.perplexity(model)} for name, model in own.items()})
    return {name: mean([row[name] for row in found]) for name in found[0]}


def by_topics(bench: Bench, words: tuple[str, ...]) -> dict[str, dict[str, dict[str, float]]]:
    """Measure coherence of PC-TD without and with noise, and of LDA with the paper's priors, for each K (figure 4)."""
    found = {}
    for K in bench.topics:
        public = {"mode": "public", "words": words}
        lda = LDA(topics=K, alpha=50, learn_alpha=False, beta=0.01, sweeps=200, vocabulary=public)
        found[str(K)] = {
            "pctd": mean([bench.coherence(bench.fit(seed, topics=K)) for seed in bench.seeds]),
            "pctd_noise": mean([bench.coherence(bench.fit(seed, PAPER_SIGMA, topics=K)) for seed in bench.seeds]),
            "lda": mean([bench.coherence(lda.fit(bench.corpus.train, seed=seed).topics_) for seed in bench.seeds]),
        }
        say(f"K = {K}: {found[str(K)]}")
    return found


def by_tau(bench: Bench) -> dict[float, dict[str, float]]:
    """Return perplexity and coherence for each strength of word relations."""
    found = {}
    for tau in TAUS:
        models = [bench.fit(seed, tau=tau) for seed in bench.seeds]
        found[tau] = mean([{"perplexity": bench.perplexity(m), **bench.coherence(m)} for m in models])
    say(f"tau: {found}")
    return found


def figures(name: str, bench: Bench, out: Path) -> dict[str, Any]:
    """Make all figures of one corpus: JSON, a picture and a table."""
    models = {sigma: [bench.fit(seed, sigma, evaluate=True) for seed in bench.seeds] for sigma in SIGMAS}
    curves = {sigma: convergence(of_sigma) for sigma, of_sigma in models.items()}
    words = models[0.0][0].vocabulary.words
    by_sigma = {sigma: mean([{"perplexity": bench.perplexity(m)} for m in found]) for sigma, found in models.items()}
    ppl = {sigma: row["perplexity"] for sigma, row in by_sigma.items()}
    rivals, taus = alone(bench, words), by_tau(bench)
    singles = {name: row["perplexity"] for name, row in rivals.items() if name in bench.corpus.parties}
    nothing = completion(unigram(bench.corpus.train.encode(models[0.0][0].vocabulary)), 1.0,
                         bench.corpus.test.encode(models[0.0][0].vocabulary)).perplexity  # fmt: skip
    result: dict[str, Any] = {
        "seeds": len(bench.seeds),
        "ppl": {f"{sigma:g}": value for sigma, value in ppl.items()},
        "ppl_spread": {f"{sigma:g}": row for sigma, row in by_sigma.items()},
        "ppl_unigram": nothing,
        "alone": rivals,
        "tau": {f"{tau:g}": row for tau, row in taus.items()},
        "ppl_single_best": min(singles.values()),
        "ppl_federated": ppl[0.0],
        "coherence": by_topics(bench, words),
        "consistency_gain_npmi": taus[TAU]["npmi"] - taus[0.0]["npmi"],
        "real_eps": real_epsilons(bench.corpus.train),
    }
    out.mkdir(parents=True, exist_ok=True)
    draw(name, curves, {**singles, "federated": ppl[0.0]}, result["coherence"], taus, nothing, out / f"pctd_{name}.png")
    text = table(name, result, singles, taus, nothing)
    (out / f"pctd_{name}.md").write_text(text, encoding="utf-8")
    say(text)
    return result


def real_epsilons(train: Corpus) -> dict[str, dict[str, float]]:
    """Compute the real epsilon for each sigma, at a token and at the median document, and the paper's beside it."""
    tokens = int(np.median(train.lengths))
    return {
        f"{sigma:g}": {
            **real_levels(sigma, ROUNDS, DELTA, tokens)._asdict(),
            "moments": moments_epsilon(sigma, ROUNDS, DELTA),
            "claimed": theorem_epsilon(sigma, ROUNDS, DELTA),
            "document_tokens": tokens,
        }
        for sigma in SIGMAS
        if sigma
    }


def main() -> None:
    """Run the benchmark."""
    options = parser("PC-TD on articles of Reuters and 20 Newsgroups")
    options.add_argument("--epsilon", type=float, help="only say which sigma keeps this epsilon, for a token")
    options.add_argument("--out", type=Path, default=OUT, help="where plots and tables go")
    add_corpora(options)
    asked = options.parse_args()
    if asked.epsilon is not None:
        sigma = sigma_for(asked.epsilon, DELTA, ROUNDS)
        finish({"benchmark": "pctd", "sigma": sigma, "real_eps": real_levels(sigma, ROUNDS, DELTA, 100)._asdict()})
        return
    seeds, topics = (range(1), (10, 30, 50)) if asked.quick else (range(3), (10, 20, 30, 40, 50))
    benches = {name: Bench(articles(name), seeds, topics) for name in asked.corpora}
    found = {name: figures(name, bench, asked.out) for name, bench in benches.items()}
    first = found.pop("reuters", {})
    if first:
        first["noise_speedup"] = call("benchmarks.pctd.noise")["noise_speedup"]
    finish({"benchmark": "pctd", **first, **found})


if __name__ == "__main__":
    main()
