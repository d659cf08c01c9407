"""Settings of every method in each of its modes, and of what else makes it send something else."""

from helpers.texts import PUBLIC, halves

PARTIES = {"north": halves(1), "south": halves(2, 40)}
FOUR = {name: halves(seed, 30) for seed, name in enumerate(("north", "south", "east", "west"))}  # `robust` needs them
LDA = {"topics": 2, "rounds": 2, "sweeps": 2}
FTM, CONSENSUS, FEDLDA = (
    {"name": "ftm", **LDA},
    {"name": "consensus", **LDA},
    {"name": "fedlda", "topics": 2, "rounds": 2},
)
PCTD = {"name": "pctd", "topics": 2, "rounds": 2}
NEURAL = {"name": "gfedntm", "topics": 2, "hidden": (4,), "rounds": 2, "epochs": 2, "batch_size": 60}
SOUND, PAPER = ({"mode": mode, "epsilon": 5.0, "vocabulary": PUBLIC} for mode in ("sound", "paper"))
DOCUMENTS = {
    "mode": "doc",
    "epsilon": 2.0,
    "declared_documents": 5000,
    "sampling_rate": 0.5,
    "rounds": 4,
    "epochs": None,
    "vocabulary": PUBLIC,
}
CASES = {
    "ftm": FTM,
    "ftm-public-words": {**FTM, "vocabulary": PUBLIC},
    "ftm-unscored": {**FTM, "evaluate": False},
    **{
        f"ftm-{settings['mode']}-{model}": {**FTM, **settings, "model": model}
        for settings in (SOUND, PAPER)
        for model in ("lda", "sentence")
    },
    **{f"ftm-sound-{channel}": {**FTM, **SOUND, "channel": channel} for channel in ("krr", "subset", "laplace")},
    "ftm-fixed-alpha": {**FTM, "learn_alpha": False},
    "ftm-sound-fixed-alpha": {**FTM, **SOUND, "learn_alpha": False},
    "consensus": CONSENSUS,
    "consensus-sound": {**CONSENSUS, **SOUND},
    "consensus-fixed-alpha": {**CONSENSUS, "learn_alpha": False},
    "consensus-robust": {**CONSENSUS, "robust": True},
    "consensus-sound-robust": {**CONSENSUS, **SOUND, "robust": True},
    "consensus-sound-fixed-alpha": {**CONSENSUS, **SOUND, "learn_alpha": False},
    "fedlda": FEDLDA,
    **{f"fedlda-{how}": {**FEDLDA, **PAPER, "mechanism": how} for how in ("rrp", "krr", "tkrr", "hm")},
    "fedlda-sound": {**FEDLDA, **SOUND},
    "fedlda-user": {**FEDLDA, "mode": "sound", "user_epsilon": 20.0, "vocabulary": SOUND["vocabulary"]},
    "pctd": PCTD,
    "pctd-private-words": {**PCTD, "vocabulary": {"mode": "private", "epsilon": 60.0}},
    "pctd-paper": {**PCTD, "mode": "paper", "vocabulary": PUBLIC},
    "pctd-sound": {**PCTD, **SOUND},
    "gfedntm": NEURAL,
    "gfedntm-batch": {**NEURAL, "normalisation": "batch"},
    "gfedntm-layer-validation": {**NEURAL, "normalisation": "layer", "validation": 0.25},
    "gfedntm-validation": {**NEURAL, "validation": 0.25},
    "gfedntm-topk": {**NEURAL, "paper": {"keep": 0.1}},
    "gfedntm-fedavg": {**NEURAL, "averaging": "fedavg", "epochs": 20, "validation": 0.25},
    "gfedntm-fresh-moments": {**NEURAL, "averaging": "fedavg", "epochs": 20, "local_moments": "fresh"},
    "gfedntm-alone": {**NEURAL, "scenario": "alone"},
    "gfedntm-doc": {**NEURAL, **DOCUMENTS},
    "private-topics": {  # a clip norm of 4, by which costs divide without rounding
        "name": "private_topics",
        "topics": 2,
        "rounds": 2,
        "adapt": False,
        "vocabulary": PUBLIC,
        "words_per_document": 64,
    },
    "private-topics-clear": {"name": "private_topics", "topics": 2, "mode": "clear", "vocabulary": PUBLIC},
    "embedding-topics": {"name": "embedding_topics", "topics": 2, "rounds": 3, "vocabulary": PUBLIC},
    "embedding-topics-doc": {
        "name": "embedding_topics",
        "topics": 2,
        "rounds": 2,
        "epsilon": 500.0,
        "vocabulary": PUBLIC,
    },
    "alone": {"name": "alone", "topics": 2, "sweeps": 2},
    "alone-fixed-alpha": {"name": "alone", "topics": 2, "sweeps": 2, "learn_alpha": False},
}
