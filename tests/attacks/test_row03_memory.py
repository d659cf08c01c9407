"""Row 3: counts narrower than their words, or states of more topics than a message has: kernels write elsewhere."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from helpers.attacks import LIST, OPEN, PUBLIC, Attacked, method_of
from tertulia.federation.messages import BEFORE_ALL
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.consensus.method import Shared, count_together
from tertulia.methods.fedlda.method import Broadcast, count_reports, local_sampling
from tertulia.methods.fedlda.settings import UserSettings

V = len(LIST)
CONSENSUS = {"name": "consensus", "topics": 6, "rounds": 4, "sweeps": 1, "vocabulary": PUBLIC}
SOUND = {"mode": "sound", "epsilon": 3.0}
FEDLDA = {"name": "fedlda", "topics": 6, "rounds": 8, "vocabulary": PUBLIC}


def shared(party: Attacked, K: int, round_: int = 0, **changes) -> Shared:
    counts = np.full((K, V), 20)
    ask = Shared(LIST, method_of(party).part(Training), counts, np.full(K, 0.5), round_, adds_up=False)
    return dataclasses.replace(ask, **changes)


def broadcast(party: Attacked, K: int, round_: int = 0, **changes) -> Broadcast:
    ask = Broadcast(LIST, method_of(party).part(UserSettings), np.full((K, V), 20.0), round_)
    return dataclasses.replace(ask, **changes)


NARROW = [
    {"counts": np.full((6, 3), 20)},
    {"counts": np.full((6, V + 1), 20)},
    {"counts": np.full((6, V), 2**40)},
    {"counts": np.full((6, V), -1)},
    {"counts": np.full((6, V), np.inf)},
    {"counts": np.full(6 * V, 20)},
    {"counts": np.zeros((0, V))},
    {"alpha": np.full(5, 0.5)},
    {"alpha": np.full(6, np.nan)},
    {"alpha": np.array([0.5, 1e300, 0.5, 0.5, 0.5, 0.5])},  # infinite in 32 bits: draws were indices out of range
    {"alpha": np.full(6, 1e-300)},  # nothing in 32 bits
    {"alpha": np.zeros(6)},
]


@pytest.mark.parametrize("owners", ["one", "several"])
@pytest.mark.parametrize("mode", [{}, SOUND])
def test_counts_must_fit_their_words(mode, owners, tmp_path):
    party = Attacked(tmp_path, CONSENSUS | mode, OPEN, owners=owners)
    for changes in NARROW:
        assert party.ask(count_together, shared(party, 6, **changes), "sum").kind == "failed"
    assert party.ask(count_together, shared(party, 6), "sum").kind == "ok"


@pytest.mark.parametrize("owners", ["one", "several"])
@pytest.mark.parametrize("mode", [{}, SOUND])
def test_a_state_of_more_topics_reaches_no_kernel(mode, owners, tmp_path):
    party = Attacked(tmp_path, CONSENSUS | mode, OPEN, owners=owners)
    assert party.ask(count_together, shared(party, 6), "sum").kind == "ok"
    assert party.host.answers.state.latest.z.max() >= 2
    for counted in ((0, 0), BEFORE_ALL):  # with its own counts in the sum, and without
        assert party.ask(count_together, shared(party, 2, 1), "sum", counted=counted).kind == "failed"
    too_few = shared(party, 6, 1, counts=np.zeros((6, V), int))  # the party's own counts cannot be in there
    assert party.ask(count_together, too_few, "sum", counted=(0, 0)).kind == "ok"
    whole = shared(party, 6, 2, counts=np.zeros((6, V), int), singly=True)
    assert party.ask(count_together, whole, "sum").kind == "failed"


@pytest.mark.parametrize(("mode", "step"), [({}, local_sampling), (SOUND, count_reports)])
def test_users_of_fedlda_are_checked_too(mode, step, tmp_path):
    party = Attacked(tmp_path, FEDLDA | mode, OPEN, owners="one")
    for counts in (np.full((6, 3), 20.0), np.full((6, V), np.nan), np.full((6, V), 1e300)):
        assert party.ask(step, broadcast(party, 6, counts=counts), "sum").kind == "failed"
    assert party.ask(step, broadcast(party, 6), "sum").kind == "ok"
    fewer_words = broadcast(party, 6, 1, words=LIST[:3], counts=np.full((6, 3), 20.0))
    for ask in (broadcast(party, 2, 1), fewer_words):
        answer = party.ask(step, ask, "sum")
        assert (answer.kind, answer.text.split(":")[0]) == ("failed", "InputError")  # it was thought of
    assert party.ask(step, broadcast(party, 6, 1), "sum").kind == "ok"


def test_what_users_have_reported_is_checked_where_their_topics_fit(tmp_path):
    """The server steers topics below 2, but what was not sent since is still reported under more."""
    party = Attacked(tmp_path, {**FEDLDA, "sample_ratio": 0.1, "max_words": 10}, OPEN, owners="one")
    steered = np.full((6, V), 20.0)
    steered[2:] = np.where(np.array(LIST) == "stroke", 1e6, 0.0)  # a word that no document has
    for round_ in range(6):
        counts = steered if round_ > 3 else np.full((6, V), 20.0)
        assert party.ask(local_sampling, broadcast(party, 6, round_, counts=counts), "sum").kind == "ok"
    users = party.host.answers.state
    assert (users.z.max() < 2, users.reported.max() >= 2) == (True, True)
    assert party.ask(local_sampling, broadcast(party, 2, 6), "sum").kind == "failed"


PLANTED = """
import numpy as np
from tertulia.kernels.core.jit import kernel

@kernel
def read(x, i):
    return x[i]

try:
    read(np.zeros(3), 5)
except IndexError:
    print("raised")
"""


@pytest.mark.slow
def test_steps_stay_within_their_arrays(tmp_path):
    """numba's cache ignores the switch: without a cache of its own, unchecked code would be loaded silently."""
    (tmp_path / "planted.py").write_text(PLANTED)
    switched = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    planted = [sys.executable, str(tmp_path / "planted.py")]
    assert subprocess.run(planted, env=switched, capture_output=True, text=True, check=True).stdout == "raised\n"
    tests = Path(__file__).parents[1]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-m", "not slow"]
    here = [str(Path(__file__)), str(tests / "attacks" / "test_row02_error_texts.py")]
    done = subprocess.run([*command, *here], env=switched, capture_output=True, text=True, cwd=tests.parent)
    assert done.returncode == 0, done.stdout[-3000:]
