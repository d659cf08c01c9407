"""What the door costs clear runs, and whether it leaves them as they were: this version against the one before it.

    overhead     CPU time of training, by method: the median of interleaved runs, this version over the one before
    bytes_saved  share of the bytes from server to parties that word lists took, which travel only once now
    unchanged    whether both versions learn the same model to the last bit, given the same public word list

The version before is read from the history of this repository. One thing that clear runs depend on has changed beside
the door: how many tokens begin in their document's cluster (`_LIKE_NOW`). Both sides have it as it is now.
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.common import say
from tertulia.corpus.vocabulary import ENGLISH, public

BEFORE = "ed49657e325d20224b03320819e729145ea9425f"  # the last commit without any part of the door
_LIKE_NOW = "src/tertulia/kernels/lda/clusters.py"
_ROOT = Path(__file__).parents[2]
_WORDS = public(ENGLISH).words[:2_000]
_LISTED = {"mode": "public", "words": list(_WORDS)}
_LDA = {"topics": 20, "rounds": 20, "sweeps": 3, "vocabulary": _LISTED}
METHODS: dict[str, dict[str, Any]] = {
    "consensus": {"name": "consensus", **_LDA},
    "ftm": {"name": "ftm", **_LDA},
    "fedlda": {"name": "fedlda", **_LDA},
    "pctd": {"name": "pctd", "topics": 20, "rounds": 20, "vocabulary": _LISTED},
    "gfedntm": {"name": "gfedntm", "topics": 20, "epochs": 2, "vocabulary": _LISTED},
}


def run(quick: bool) -> dict[str, Any]:
    """`{"overhead": {method: ratio}, "bytes_saved": {method: share}, "unchanged": {method: bool}}`."""
    with tempfile.TemporaryDirectory() as folder:
        before = _version_before(Path(folder))
        if before is None:
            say(f"cost: commit {BEFORE[:7]} is not in this clone, so there is nothing to compare with")
            return {"overhead": {}, "bytes_saved": {}, "unchanged": {}}
        parties = {name: _texts(i, 1_000 if quick else 2_000) for i, name in enumerate(("north", "south", "west"))}
        found = {name: _compare(method, parties, before, 5 if quick else 9) for name, method in METHODS.items()}
    names = ("overhead", "bytes_saved", "unchanged")
    return {what: {name: one[place] for name, one in found.items()} for place, what in enumerate(names)}


def _compare(
    method: dict[str, Any], parties: dict[str, list[str]], before: Path, times: int
) -> tuple[float, float, bool]:
    """How much longer, how many fewer bytes, and whether it is the same model."""
    asked = json.dumps({"parties": parties, "method": method, "times": 2})
    pairs = []
    for turn in range(times):  # each goes first as often as the other: a machine is not always equally quick
        sources = [before / "src", _ROOT / "src"]
        found = {source: _run(source, asked) for source in (sources if turn % 2 else reversed(sources))}
        pairs.append([found[source] for source in sources])
    then, now = ([second for pair in pairs for second in pair[side]["seconds"]] for side in (0, 1))
    old, new = pairs[0]
    name, bytes_ = method["name"], f"{old['down']:,} and {new['down']:,} bytes down"
    say(f"{name}: {median(then):.2f} s before and {median(now):.2f} s now, {bytes_}")
    same = len({one["model"] for pair in pairs for one in pair}) == 1
    return round(median(now) / median(then), 3), round(1 - new["down"] / old["down"], 3), same


def _run(source: Path, asked: str) -> dict[str, Any]:
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).with_name("clear_run.py"))]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, env=environment, timeout=1800)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _version_before(folder: Path) -> Path | None:
    """The sources of the version before, in a folder of their own, if this clone has them."""
    archive = subprocess.run(["git", "archive", BEFORE, "src"], cwd=_ROOT, capture_output=True)
    if archive.returncode:
        return None
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    shutil.copyfile(_ROOT / _LIKE_NOW, folder / _LIKE_NOW)
    return folder


def _texts(party: int, documents: int) -> list[str]:
    """Documents of a few topics each, a hundred words of the list a topic."""
    rng = random.Random(f"door/cost/{party}")
    topics = [random.Random(f"topic/{k}").sample(_WORDS, 100) for k in range(20)]
    return [
        " ".join(rng.choice(rng.choice(mix)) for _ in range(rng.randrange(40, 120))) + "."
        for mix in (rng.sample(topics, 3) for _ in range(documents))
    ]
