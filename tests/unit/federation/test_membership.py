"""Who took part in which round, as the server notes it: also after a resume, and after the run went back."""

import pytest

from helpers import toys
from tertulia.federation.messages import Answer
from tertulia.federation.server.handle import Handle, Terms
from tertulia.federation.server.membership import Dropouts, Membership, Presence
from tertulia.federation.types import Nothing, is_metric, step
from tertulia.methods.common.evaluation import score
from tertulia.methods.gfedntm.early_stopping import sum_validation, validate
from tertulia.metrics.history import participation

OK, REFUSED, ABSENT = (Answer(kind, "", None) for kind in ("ok", "refused", "absent"))


@step
def train(party, state, ask: Nothing):
    return state, Nothing()


@step(metric=True)
def measure(party, state, ask: Nothing):
    return state, Nothing()


def test_a_step_declares_that_it_only_scores():
    assert is_metric(measure)
    assert not is_metric(train)
    assert all(map(is_metric, (score, validate, sum_validation)))


@pytest.mark.parametrize(
    ("questions", "here"),
    [
        ([(train, {"a": OK, "b": OK})], ["a", "b"]),
        ([(train, {"a": OK, "b": REFUSED})], ["a"]),
        ([(train, {"a": OK})], ["a"]),  # no word from b
        ([(train, {"a": OK, "b": OK}), (measure, {"a": OK, "b": REFUSED})], ["a", "b"]),
        ([(train, {"a": OK, "b": OK}), (measure, {"a": OK, "b": ABSENT})], ["a"]),
        ([(train, {"a": OK, "b": OK}), (measure, {"a": OK})], ["a"]),
        ([(train, {"a": OK, "b": ABSENT}), (train, {"a": OK, "b": OK})], ["a"]),
        ([], ["a", "b"]),  # nothing was asked of anybody
    ],
)
def test_who_answers_all_that_counts_takes_part(questions, here):
    presence = Presence()
    for asked, answers in questions:
        presence.ask(asked, ["a", "b"])
        presence.hear(answers)
    assert presence.close(["a", "b"]) == {"took_part": here}


def test_who_is_asked_nothing_while_others_are_does_not_take_part():
    presence = Presence()
    presence.ask(train, ["a"])
    presence.hear({"a": OK})
    assert presence.close(["a", "b"]) == {"took_part": ["a"]}


def test_parties_are_named_only_when_they_change():
    presence, said = Presence(), []
    for answers in ({"a": OK, "b": OK}, {"a": OK, "b": OK}, {"a": OK}, {"a": OK}, {"a": OK, "b": OK}):
        presence.ask(train, ["a", "b"])
        presence.hear(answers)
        said.append(presence.close(["a", "b"]))
    assert said == [{"took_part": ["a", "b"]}, {}, {"took_part": ["a"]}, {}, {"took_part": ["a", "b"]}]


@pytest.fixture
def open_handle(tmp_path, toy_run):
    run = toy_run(tmp_path / "run")

    def make(**terms):
        return Handle("run", run.transport("local", 1), run.journal(), Terms(quorum=0.1, **terms))

    return make


def train_to(fed, rounds, durable=1):
    fed.restore()
    while fed.round < rounds:
        fed.sum(toys.count_free, Nothing())
        fed.commit(Nothing(), durable=durable)
    fed.flush()
    return {party: str(one) for party, one in participation(fed.history, ["a", "b", "c"]).items()}


def test_a_resumed_run_says_the_same(open_handle):
    away = Dropouts(script={2: ("a",), 3: ("a",), 4: ("a", "b"), 5: ("a",)})
    late = {"c": Membership(joins=1, leaves=5)}
    expected = {"a": "rounds 1-2 of 6", "b": "rounds 1-4, 6 of 6", "c": "rounds 2-5 of 6"}
    for rounds in (1, 3, 4, 6):  # each time by another server
        found = train_to(open_handle(dropouts=away, membership=late), rounds)
    assert found == expected


def test_rounds_that_are_taken_again_count_once(open_handle):
    fed = open_handle(dropouts=Dropouts(script={1: ("a",)}))
    for _ in range(3):  # nothing of it is durable
        fed.sum(toys.count_free, Nothing())
        fed.commit(Nothing(), durable=10)
    fed.each(toys.count_free, {"a": Nothing()})  # a question of a round that never ends
    fed.restore()
    assert fed.history == ()
    assert train_to(fed, 3) == {"a": "rounds 1, 3 of 3", "b": "all 3 rounds", "c": "all 3 rounds"}
