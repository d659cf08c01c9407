"""Row 23: a server asks for steps that the run does not need, such as all words in clear."""

import numpy as np
import pytest

from helpers.attacks import LIST, OPEN, PUBLIC, Attacked
from tertulia.errors import ConfigError
from tertulia.federation.types import Nothing, step_name
from tertulia.methods.common.evaluation import Candidate, score
from tertulia.methods.common.vocabulary import propose_words
from tertulia.methods.ftm.method import ComposedModel, keep_composed
from tertulia.methods.pctd.method import keep_shares
from tertulia.methods.prevalence.method import measure

SOUND = {"name": "consensus", "topics": 2, "rounds": 2, "mode": "sound", "epsilon": 8.0, "vocabulary": PUBLIC}
PHI = np.full((2, len(LIST)), 0.1, np.float32)
MODEL = Candidate(LIST, PHI, np.ones(2), 0.0)


@pytest.mark.parametrize("owners", ["one", "several"])
@pytest.mark.parametrize(("step", "message", "verb"), [(propose_words, Nothing(), "each"), (score, MODEL, "sum")])
def test_what_the_plan_leaves_out_is_not_answered(step, message, verb, owners, tmp_path):
    party = Attacked(tmp_path, SOUND, OPEN, owners=owners)
    assert step_name(step) in party.host.steps  # the method has it, for other settings
    assert party.ask(step, message, verb).kind == "failed"
    assert party.host.ledger.releases() == []


def test_what_the_plan_has_is_answered(tmp_path):
    clear = {"name": "consensus", "topics": 2, "rounds": 2, "vocabulary": {"mode": "union"}}
    party = Attacked(tmp_path, clear, OPEN)
    assert party.ask(propose_words, Nothing(), "each").kind == "ok"
    assert party.ask(score, MODEL, "sum").kind == "ok"


@pytest.mark.parametrize("step", [keep_shares, measure, "os:system", "helpers.loud:count", "", "\ud800", None, 7])
def test_steps_of_other_methods_are_not_answered_though_imported(step, tmp_path):
    party = Attacked(tmp_path, SOUND, OPEN)
    frame = party.frame("placeholder-step", Nothing())
    if not callable(step):
        name = {"\ud800": rb"\\ud800", None: b"null", 7: b"7"}.get(step, str(step).encode("utf-8", "replace"))
        quoted = b'\\"placeholder-step\\"'
        frame = frame.replace(
            quoted if step in (None, 7) else b"placeholder-step", name.ljust(16) if name else b" " * 16
        )
    else:
        frame = party.frame(step, Nothing())
    assert party.send(frame).kind == "failed"


def test_steps_that_keep_something_may_be_asked(tmp_path):
    party = Attacked(tmp_path, {"name": "ftm", "topics": 2, "rounds": 1, "vocabulary": PUBLIC}, OPEN)
    assert party.ask(keep_composed, ComposedModel(PHI)).kind == "ok"
    assert party.ask(keep_composed, ComposedModel(PHI), "sum").kind == "failed"


def test_between_owners_a_method_needs_a_plan(tmp_path):
    with pytest.raises(ConfigError, match="has no `plan"):
        Attacked(tmp_path, {"name": "custom", "module": "helpers.toys"})
