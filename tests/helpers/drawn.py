"""Models to draw, and what stands in a plot that was really drawn."""

import io
from itertools import combinations

import numpy as np
from matplotlib.text import Text

import tertulia as tt
from tertulia.runs.results import FederatedTopics

TEXT = "word0 word1 word2 word3 unheard word4 word5 word0 word7"
ROUNDS = tuple(
    {
        "round": n,
        "seconds": 1.5 * n,
        "perplexity": 900.0 / n,
        "bytes": {"north": [2048 * n, 1024], "south": [4096, 512]},
    }
    for n in (1, 2, 3)
)
SCENARIOS = [
    {"scenario": "federated", "method": "ftm", "models": 1, "topics": 12, "perplexity": 713.0},
    {"scenario": "pooled", "method": "lda", "models": 1, "topics": 10, "perplexity": 690.0},
    {"scenario": "alone, side by side", "method": "lda", "models": 1, "topics": 1, "perplexity": 990.0},
    {"scenario": "nothing learned", "method": "unigram", "models": 1, "topics": 1, "perplexity": 2390.0},
]


def model(K, V=60, words=None, **others):
    """K topics of skew words and weights."""
    random = np.random.default_rng(K)
    words = words or [f"word{v}" for v in range(V)]
    topic_word = random.dirichlet(np.full(len(words), 0.1), K)
    return tt.Topics(topic_word, tt.Vocabulary(tuple(words)), weights=random.dirichlet(np.ones(K)), **others)


def result(K, parties=("north", "south"), words=None, directory=None):
    """What a federation would return; each party holds all topics but one."""
    shared = model(K, words=words)
    local = {
        party: tt.Topics(np.delete(shared.topic_word, n % K, axis=0) if K > 1 else shared.topic_word, shared.vocabulary)
        for n, party in enumerate(parties)
    }
    return FederatedTopics(
        shared.topic_word, shared.vocabulary, weights=shared.weights, local=local, history=ROUNDS, directory=directory
    )


def documents(n=60):
    """Rows with dates over two years."""
    return [
        {"text": f"word{i % 7} word{i % 5} word{i % 11}", "date": f"{2024 + i % 2}-{i % 12 + 1:02d}-03"}
        for i in range(n)
    ]


def every_plot(shown):
    """Name -> what draws it, for a result; but for `privacy`, which needs a run."""
    plot, words = shown.plot, shown.vocabulary.words
    return {
        "words": plot.words,
        "weights": plot.weights,
        "map": plot.map,
        "similarity": plot.similarity,
        "similarity of two": lambda **at: plot.similarity(model(5, words=list(words)), **at),
        "parties": plot.parties,
        "rounds": plot.rounds,
        "bytes": lambda **at: plot.rounds("bytes", **at),
        "scenarios": lambda **at: plot.scenarios(SCENARIOS, **at),
        "tradeoff": lambda **at: plot.tradeoff([(1, 900.0, "a"), (2, 800.0, "b"), (None, 700.0, "a")], **at),
        "over time": lambda **at: plot.over_time([{**row, "text": " ".join(words[:9])} for row in documents()], **at),
        "document": lambda **at: plot.document(list(words[:9]) * 5, **at),
    }


def draw(axes):
    """Draw a plot for good, as `savefig` does."""
    picture = io.BytesIO()
    axes.get_figure(root=True).savefig(picture, format="png")
    return picture.getvalue()


def texts(axes):
    """All texts that are drawn, legends and colour bars of the figure included."""
    found = [text for part in axes.get_figure(root=True).axes for text in part.findobj(Text)]
    return [text for text in found if text.get_visible() and text.get_text().strip()]


def overlapping(axes):
    """Pairs of texts that overlap by more than a pixel; what is turned has no upright box."""
    boxes = [
        (text.get_text(), text.get_window_extent().padded(-1.0))
        for text in texts(axes)
        if text.get_rotation() in (0, 90)
    ]
    return [(a, b) for (a, one), (b, other) in combinations(boxes, 2) if one.overlaps(other)]


def bars(axes):
    """The lengths of lying bars, from the top down, group by group."""
    return [[bar.get_width() for bar in group] for group in axes.containers]


def labels(axis):
    return [tick.get_text() for tick in axis.get_ticklabels()]
