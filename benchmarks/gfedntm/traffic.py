"""What smaller gradients save of a SyncOpt step: bytes up (gradients, statistics) and down (weights).

Three parties, ProdLDA with 50 topics over 2,000 words; bytes as they are encoded do not depend on documents. Only what
goes up is compressed.
"""

from __future__ import annotations

from typing import Any

from benchmarks.common import arguments, finish, say
from benchmarks.gfedntm.corpora import Setting, synthetic
from tertulia import GFedNTM
from tertulia.corpus import Corpus

STEPS = 10
WAYS: dict[str, dict[str, Any]] = {
    "none": {},
    "fp16": {"compression": "fp16"},
    "topk": {"paper": {"keep": 0.1}},
}


def traffic(parties: dict[str, Corpus], **settings: Any) -> dict[str, float]:
    """Return megabytes of one step, all parties together, without what comes before the first."""
    words = {"mode": "public", "words": next(iter(parties.values())).vocabulary.words}
    sent = []
    for rounds in (1, 1 + STEPS):
        model = GFedNTM(topics=50, vocabulary=words, rounds=rounds, **settings).fit(parties, heldout=0.0)
        sent.append((model.communication.bytes_up, model.communication.bytes_down))
    up, down = ((last - first) / STEPS / 1e6 for first, last in zip(*sent, strict=True))
    return {"up": round(up, 3), "down": round(down, 3), "all": round(up + down, 3)}


def main() -> None:
    """Run the benchmark."""
    arguments("What compression saves of a SyncOpt step")
    parties = synthetic(
        Setting(nodes=3, words=2000, topics=20, shared=5, eta=0.05, training=60, validation=1), 0
    ).parties
    found: dict[str, dict[str, float]] = {}
    for normalisation in ("sync", "batch"):
        for name, way in WAYS.items():
            result = traffic(parties, normalisation=normalisation, **way)
            plain = found.get(f"{normalisation} none", result)
            found[f"{normalisation} {name}"] = {**result, "saved": round(1 - result["all"] / plain["all"], 3)}
            say(f"{normalisation} {name}: {found[f'{normalisation} {name}']}")
    finish({"benchmark": "gfedntm_traffic", "megabytes_per_step": found})


if __name__ == "__main__":
    main()
