"""PC-TD's equation (4) read in two ways, beside no noise; and what other units, another beta and LDA come to.

Corpora, perplexity and everything unsaid are those of `benchmarks.pctd`. Each number is a mean over seeds, beside the
lowest and the highest; `curves` are perplexities after each iteration. LDA is trained on the pooled articles, once with
as many passes over them as EM has, and once with 200 sweeps; each pair of priors is shown, none was chosen. Alpha is
fixed, as in PC-TD and the paper; the rows `alpha learned` begin at the smaller one. `--parts lda` is these alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from benchmarks.common import finish, parser, say
from benchmarks.pctd.bench import PAPER_SIGMA, ROUNDS, TOPICS, Bench, convergence, mean
from benchmarks.pctd.data import add_corpora, articles
from tertulia import LDA, Topics
from tertulia.metrics import completion, unigram

VARIANTS: dict[str, dict[str, Any]] = {
    "no noise": {},
    "noise on all words": {"sigma": PAPER_SIGMA},
    "noise on held words": {"sigma": PAPER_SIGMA, "paper": {"noise_on": "held"}},
    "one-word units": {"unit_words": 1},
    "beta 0.1": {"beta": 0.1},
    "one-word units, beta 0.1": {"unit_words": 1, "beta": 0.1},
    "noise on held words, one-word units": {"sigma": PAPER_SIGMA, "paper": {"noise_on": "held"}, "unit_words": 1},
}
ALPHAS, BETAS, SWEEPS = (5.0, 50.0), (0.01, 0.1), (ROUNDS, 200)


def scores(bench: Bench, models: list[Any]) -> dict[str, float]:
    """Return perplexity and coherence of a model for each seed."""
    return mean([{"perplexity": bench.perplexity(model), "npmi": bench.coherence(model)["npmi"]} for model in models])


def compare(bench: Bench, variants: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Compare some variants, and LDA, on one corpus."""
    found, curves, vocabulary = {}, {}, None
    for name, settings in variants.items():
        models = [bench.fit(seed, evaluate=True, **settings) for seed in bench.seeds]
        found[name], curves[name], vocabulary = scores(bench, models), convergence(models), models[0].vocabulary
        say(f"{name}: {found[name]}")
    assert vocabulary is not None
    public = {"mode": "public", "words": vocabulary.words}
    for (alpha, learned), beta, sweeps in product([*((alpha, False) for alpha in ALPHAS), (5.0, True)], BETAS, SWEEPS):
        lda = LDA(topics=TOPICS, alpha=alpha, learn_alpha=learned, beta=beta, sweeps=sweeps, vocabulary=public)
        name = f"LDA, alpha {'learned' if learned else f'{alpha:g}/{TOPICS}'}, beta {beta:g}, {sweeps} sweeps"
        found[name] = scores(bench, [lda.fit(bench.corpus.train, seed=seed).topics_ for seed in bench.seeds])
        say(f"{name}: {found[name]}")
    nothing = Topics(unigram(bench.corpus.train.encode(vocabulary)), vocabulary)
    test = bench.corpus.test.encode(vocabulary)
    unlearned = completion(nothing.topic_word, nothing.alpha, test).perplexity
    return {"scores": found, "curves": curves, "ppl_unigram": unlearned}


def main() -> None:
    """Run the benchmark."""
    options = parser("PC-TD's noise read in two ways")
    add_corpora(options)
    options.add_argument("--parts", choices=("all", "lda"), default="all")
    asked = options.parse_args()
    variants = VARIANTS if asked.parts == "all" else {"no noise": VARIANTS["no noise"]}
    seeds = range(1) if asked.quick else range(3)
    found = {name: compare(Bench(articles(name), seeds, (TOPICS,)), variants) for name in asked.corpora}
    finish({"benchmark": "pctd_readings", "seeds": len(seeds), **found})


if __name__ == "__main__":
    main()
