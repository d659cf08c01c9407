"""gFedNTM with parties that are late, lost or diverging: a step is of one set of parties, or it is not taken."""

import shutil

import pytest
import torch

import tertulia as tt
from helpers.marks import slow
from tertulia.federation.messages import read_frame
from tertulia.runs.directory import Run

torch.set_num_threads(1)
SETTINGS = {"topics": 3, "hidden": (8, 6), "batch_size": 16, "rounds": 6, "vocabulary": {"max_share": 1.0}}
ROUND = 4  # in which something happens; round 1 is that of the first step


class Road:
    """A transport on which something happens before, or to, party c's answer to one question."""

    def __init__(self, open_transport, run, place, happens):
        self.open_transport, self.run, self.place, self.happens = open_transport, run, place, happens
        self.transport = open_transport()
        self.asked = []

    @property
    def parties(self):
        return self.transport.parties

    def ask(self, frames, timeout):
        places = {getattr(read_frame(frame), "place", None) for frame in frames.values()}  # an inquiry has none
        place = places.pop() if places else None
        if place is not None:
            self.asked.append((place, list(frames)))
        if place == self.place and self.happens == "lost":
            self.transport.close()
            shutil.rmtree(self.run.party_directory("c") / "answers")
            self.transport = self.open_transport()
        answers = self.transport.ask(frames, timeout)
        if place == self.place and self.happens == "late":  # the party has done its step; the server does not know
            answers.pop("c")
        return answers

    def close(self):
        self.transport.close()


@pytest.fixture
def parties(worded):
    return {name: [f"{text} n{i}x" for i, text in enumerate(worded(n, 20 + n))] for n, name in enumerate("abc")}


def fit(parties, settings, **options):
    return tt.GFedNTM(**{**SETTINGS, **settings}).fit(parties, heldout=0.0, **options)


def with_road(monkeypatch, place, happens):
    roads, transport = [], Run.transport

    def laid(run, *arguments):
        roads.append(Road(lambda: transport(run, *arguments), run, place, happens))
        return roads[-1]

    monkeypatch.setattr(Run, "transport", laid)
    return roads


def absent(round_):
    return {"dropouts": {"script": {round_: ("c",)}}}


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"checkpoint_every": 1}, (1, 0)),  # in the very first step there is no earlier task
        slow({"checkpoint_every": 1}, (ROUND, 0)),
        ({"checkpoint_every": 50}, (ROUND, 2)),
        slow({"checkpoint_every": 50}, (ROUND, 4)),
        slow({"paper": {"keep": 0.1}}, (ROUND, 0)),
        ({"paper": {"keep": 0.1}}, (ROUND, 5)),  # the others have already let go of what they sent
    ],
)
def test_who_is_late_anywhere_in_a_step_is_absent_from_all_of_it(settings, place, parties, monkeypatch):
    round_, ordinal = place
    expected = fit(parties, settings, federation=absent(round_))
    roads = with_road(monkeypatch, place, "late")
    found = fit(parties, settings)
    (road,) = roads
    assert found.encoder.weights.tobytes() == expected.encoder.weights.tobytes()
    assert found.history[round_]["loss"] == expected.history[round_]["loss"]
    assert all(who == ["a", "b"] for (r, o), who in road.asked if r == round_ and o > ordinal)
    assert all(who == ["a", "b", "c"] for (r, _), who in road.asked if r > round_)


def test_a_party_that_loses_everything_within_a_step_waits_for_the_next(parties, monkeypatch, tmp_path):
    settings = {"checkpoint_every": 1}
    expected = fit(parties, settings, federation=absent(ROUND))
    with_road(monkeypatch, (ROUND, 2), "lost")
    warnings = []
    found = fit(parties, settings, directory=tmp_path, observe=lambda kind, facts: warnings.append(facts.get("text")))
    assert found.encoder.weights.tobytes() == expected.encoder.weights.tobytes()
    assert [text for text in warnings if text] == [
        "party 'c' has lost its state",
        "party 'c' did not answer: it lacks this step's weights, as it missed the step's first question: it waits for "
        "the next",
    ]


@pytest.mark.parametrize(
    "settings",
    [{"learning_rate": 1000.0}, {"learning_rate": 1e5, "averaging": "fedavg", "local_steps": 5}],
    ids=["syncopt", "fedavg"],
)
def test_divergence_is_an_error_that_names_the_remedy(settings, parties):
    with pytest.raises(tt.TertuliaError, match=r"diverged .* lower `learning_rate`"):
        fit(parties, {**settings, "rounds": 40, "epochs": 100})
