"""Draw a model: `python examples/plots.py pictures` trains one and writes a picture for each plot."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

import tertulia as tt
from tertulia.corpus.demo_corpus import demo_parties

plt.switch_backend("agg")  # draws into files; leave it out in a notebook
folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)

with TemporaryDirectory() as place:
    method = tt.Consensus(topics=20, vocabulary={"min_documents": 5, "max_share": 0.3})
    model = method.fit(demo_parties(), heldout=0.1, directory=Path(place) / "run")
    pictures = {
        "words": model.plot.words(),
        "weights": model.plot.weights(),
        "map": model.plot.map(),
        "similarity": model.plot.similarity(),
        "document": model.plot.document("Draw samples from a normal distribution, and sort the array along an axis."),
        "rounds": model.plot.rounds(),
        "privacy": model.plot.privacy(),  # read from the parties' ledgers, in the run's directory
    }
    for name, axes in pictures.items():
        plt.sca(axes)
        plt.savefig(folder / f"plots_{name}.png", dpi=80)
        print(folder / f"plots_{name}.png")
