import json
import os
import shutil
import signal
import time
from contextlib import closing

import numpy as np
import pytest

from helpers import toys
from tertulia.errors import ConfigError, PartyFailure, PolicyRefusal, QuorumError
from tertulia.federation.codec import decode
from tertulia.federation.packing import unpack
from tertulia.federation.party.host import PartyHost
from tertulia.federation.server.handle import Handle, Terms
from tertulia.federation.server.membership import Dropouts, Membership
from tertulia.federation.types import Nothing
from tertulia.runs.directory import drive


@pytest.fixture
def handle(tmp_path, toy_run):
    """Open handles on the same run; its engines are closed at the end."""
    run = toy_run(tmp_path / "run")
    transports = []

    def open_handle(engine="local", workers=1, warnings=None, **terms):
        def observe(kind, facts):
            if kind == "warning" and warnings is not None:
                warnings.append(facts["text"])

        transports.append(run.transport(engine, workers))
        handle = Handle("run", transports[-1], run.journal(), Terms(**terms), observe)
        handle.test_run = run
        return handle

    yield open_handle
    for transport in transports:
        transport.close()


def kill_process(run, party):
    """Kill a party's process, which its lock names."""
    os.kill(json.loads((run.party_directory(party) / "lock").read_text())["pid"], signal.SIGKILL)


def test_sum_reveals_the_total_and_mean_weighs(handle):
    fed = handle()
    assert fed.parties == ["a", "b", "c"]
    mean = fed.mean(toys.weigh, Nothing())
    assert np.allclose(mean.value, (3 * 3 + 5 * 5 + 7 * 7) / 15)
    assert mean.weight == 15


def test_half_precision_travels_as_such_and_is_added_up_in_full(handle):
    fed = handle()
    mean = fed.mean(toys.weigh_narrow, Nothing())
    assert mean.value.dtype == np.float64
    assert np.all(mean.value == (3 * 3 + 5 * 5 + 7 * 7) / 15)
    answer = PartyHost(fed.test_run.party_directory("a")).answers._latest.answer
    assert decode(unpack(answer)).reply.value.dtype == np.float16


@pytest.mark.parametrize(("engine", "workers"), [("local", 1), ("local", 3), ("processes", 1)])
def test_engines_and_worker_counts_agree_bit_for_bit(handle, engine, workers, tmp_path, toy_run):
    reference = drive(handle(), toys.train, {"rounds": 3})
    other = toy_run(tmp_path / "other")
    with closing(other.transport(engine, workers)) as transport:
        found = drive(Handle("run", transport, other.journal()), toys.train, {"rounds": 3})
    assert np.array_equal(np.array(found.totals), np.array(reference.totals))
    for party in "abc":
        states = [PartyHost(r.party_directory(party)).answers.state for r in (other, handle().test_run)]
        assert states[0].seen == states[1].seen == 6
        assert np.array_equal(states[0].noise, states[1].noise)


def test_a_repeated_question_gets_the_stored_answer_and_no_second_charge(handle):
    fed = handle()
    fed.restore()
    first = fed.each(toys.accumulate, Nothing())
    fed.restore()  # the server forgot, the parties did not
    again = fed.each(toys.accumulate, Nothing())
    assert all(np.array_equal(first[p].value, again[p].value) for p in "abc")
    host = PartyHost(fed.test_run.party_directory("a"))
    assert len(host.ledger.releases()) == 1
    assert host.answers.state.seen == 1


def test_a_changed_question_is_a_new_charge_with_new_noise_from_the_state_before(handle):
    fed = handle()
    fed.restore()
    first = fed.each(toys.accumulate, toys.Number(np.array(0)))
    fed.restore()
    changed = fed.each(toys.accumulate, toys.Number(np.array(1)))
    assert any(not np.array_equal(first[p].value, changed[p].value) for p in "abc")
    host = PartyHost(fed.test_run.party_directory("a"))
    assert len(host.ledger.releases()) == 2
    assert host.answers.state.seen == 1


@pytest.mark.parametrize("step", [toys.leak, toys.leak_after])
def test_nothing_leaves_that_was_not_released(handle, step):
    with pytest.raises(PartyFailure, match="'value' of Number was not released"):
        handle().each(step, Nothing())


def test_what_goes_wrong_in_a_step_stays_at_the_party(handle):
    fed = handle()
    with pytest.raises(PartyFailure, match="ValueError in a step") as caught:
        fed.each(toys.crash, Nothing())
    assert "Mary" not in str(caught.value)
    assert "Mary" in (fed.test_run.party_directory("a") / "party.log").read_text()


def test_a_failing_party_may_count_as_absent(handle):
    warnings = []
    fed = handle(on_failure="skip", warnings=warnings)
    with pytest.raises(QuorumError, match="no party answered"):
        fed.each(toys.crash, Nothing())
    assert len(warnings) == 3


def test_dropouts_follow_the_script_and_quorum_is_kept(handle):
    fed = handle(dropouts=Dropouts(script={0: ("b",), 1: ("a", "b")}))
    assert list(fed.each(toys.count_free, Nothing())) == ["a", "c"]
    fed.commit(Nothing())
    with pytest.raises(QuorumError, match="1 of 3 parties"):
        fed.sum(toys.count_free, Nothing())


def test_random_dropouts_hit_their_rate_and_repeat():
    dropouts = Dropouts(rate=0.3, seed=1)
    absent = [dropouts.absent(r, p) for r in range(500) for p in "abcd"]
    assert 0.27 < np.mean(absent) < 0.33
    assert absent == [Dropouts(rate=0.3, seed=1).absent(r, p) for r in range(500) for p in "abcd"]


def test_parties_join_late_and_leave(handle):
    fed = handle(membership={"b": Membership(joins=1), "c": Membership(leaves=2)})
    seen = []
    for _ in range(3):
        seen.append({p: int(r.value) for p, r in fed.each(toys.count_free, Nothing()).items()})
        fed.commit(Nothing())
    assert seen == [{"a": 1, "c": 1}, {"a": 2, "b": 1, "c": 2}, {"a": 3, "b": 2}]


def test_messages_may_differ_by_party(handle):
    fed = handle()
    assert list(fed.each(toys.count_free, {"c": Nothing(), "a": Nothing()})) == ["a", "c"]


@pytest.mark.parametrize("engine", ["local", "processes"])
def test_a_late_answer_is_voided(handle, engine):
    fed = handle(engine=engine, workers=3)
    fed.each(toys.count_free, Nothing())  # processes have started
    fed.terms = Terms(timeout=2.0)
    assert list(fed.each(toys.dawdle, toys.Late("b", 4.0))) == ["a", "c"]
    fed.terms = Terms()
    counts = {p: int(r.value) for p, r in fed.each(toys.count_free, Nothing()).items()}
    assert counts == {"a": 3, "b": 2, "c": 3}


def test_a_party_that_lost_its_directory_goes_on_without_state(handle):
    warnings = []
    fed = handle(warnings=warnings)
    fed.each(toys.count_free, Nothing())
    fed.commit(Nothing())
    shutil.rmtree(fed.test_run.party_directory("b") / "answers")
    fed = handle(warnings=warnings)
    fed.restore()
    counts = {p: int(r.value) for p, r in fed.each(toys.count_free, Nothing()).items()}
    assert counts == {"a": 2, "b": 1, "c": 2}
    assert warnings == ["party 'b' has lost its state"]


def test_rare_durable_commits_roll_back_when_a_party_dies(handle):
    fed = handle(engine="processes")
    config = {"rounds": 12, "durable": 5, "die_at": 8, "deaths": 1}
    config["kill"] = lambda: kill_process(fed.test_run, "b")
    state = drive(fed, toys.train_free, config)
    assert [int(t) for t in state.totals] == [3 * (i + 1) for i in range(12)]


def test_a_party_that_dies_again_and_again_is_left_out_until_the_next_durable_commit(handle):
    warnings = []
    fed = handle(engine="processes", warnings=warnings)
    config = {"rounds": 12, "durable": 5, "die_at": 7, "deaths": 20}
    config["kill"] = lambda: kill_process(fed.test_run, "b")
    state = drive(fed, toys.train_free, config)
    # The commits on disk are those of rounds 5 and 10, when 4 and 9 totals are known: b is absent in between.
    both, absent = [3 * (i + 1) for i in range(4)], [2 * (i + 1) for i in range(4, 9)]
    assert [int(t) for t in state.totals] == [*both, *absent, *(2 * (i + 1) + i - 4 for i in range(9, 12))]
    assert config["deaths"] == 17  # the run, and two that began again
    assert len(warnings) == 2
    assert "left out until the next durable commit" in warnings[1]


@pytest.mark.parametrize("engine", ["local", "processes"])
def test_a_late_answer_does_not_send_the_run_back(tmp_path, toy_run, engine):
    run = toy_run(tmp_path / "late")
    rounds = []

    def observe(kind, facts):
        assert kind == "round", facts
        rounds.append(facts["round"])
        assert len(rounds) < 30, "the run goes back for ever"

    with closing(run.transport(engine, 3)) as transport:
        fed = Handle("run", transport, run.journal(), Terms(), observe)
        fed.each(toys.weigh, Nothing())  # processes have started
        fed.terms = Terms(timeout=2.0)
        state = drive(fed, toys.train_free, {"rounds": 12, "durable": 50, "late": (4, 8)})
    assert rounds == list(range(1, 14))
    assert [int(t) for t in state.totals[:5]] == [3, 6, 9, 12, 10]  # in the fifth b is late
    assert 2 * 12 < state.totals[-1] <= 3 * 12 - 2  # it goes on from its last answer that counted


def test_a_busy_party_does_not_hold_up_long_messages(handle):
    fed = handle(engine="processes")
    fed.each(toys.count_free, Nothing())  # processes have started
    fed.terms = Terms(timeout=2.0)
    fed.each(toys.dawdle, toys.Late("b", 7.0))
    started = time.monotonic()
    fed.each(toys.count_free, toys.Number(np.zeros(100_000)))  # more than a pipe holds
    assert time.monotonic() - started < 4.0  # b sleeps for five
    fed.terms = Terms()
    assert {p: int(r.value) for p, r in fed.each(toys.count_free, Nothing()).items()} == {"a": 4, "b": 2, "c": 4}


def test_who_missed_what_a_question_builds_on_counts_as_absent(handle):
    warnings = []
    fed = handle(warnings=warnings)
    fed.each(toys.count_free, {"a": Nothing(), "c": Nothing()})
    assert fed.answered == ["a", "c"]
    assert int(fed.sum(toys.build_on, toys.Number(np.array(1))).value) == 2
    assert fed.answered == ["a", "c"]
    assert warnings == ["party 'b' did not answer: it has not seen so much"]
    assert int(fed.sum(toys.build_on, dict.fromkeys(fed.answered, toys.Number(np.array(1)))).value) == 2
    assert len(warnings) == 1


def test_bytes_are_counted_by_party_and_direction(handle):
    fed = handle()
    fed.each(toys.count_free, {"a": Nothing(), "b": toys.Number(np.random.default_rng(0).random(1000))})
    fed.commit(Nothing(), score=2.0)
    (facts,) = fed.history
    assert facts["score"] == 2.0
    assert 6500 < facts["bytes"]["b"][0] - facts["bytes"]["a"][0] < 8500  # random numbers can hardly be packed
    assert 0 < facts["bytes"]["a"][1] < 1000


def test_kept_arrays_stay_at_the_party(handle):
    fed = handle()
    replies = fed.each(toys.keep_secret, Nothing())
    assert all(isinstance(r, Nothing) for r in replies.values())
    kept = fed.test_run.party_directory("a") / "kept" / "diary.safetensors"
    assert np.array_equal(decode(kept.read_bytes()[32:])["x"], np.arange(3))


def test_old_answers_are_forgotten_but_state_remains(handle):
    fed = handle()
    for _ in range(6):
        fed.each(toys.count_free, Nothing())
        fed.each(toys.weigh, Nothing())
        fed.commit(Nothing())
    answers = fed.test_run.party_directory("a") / "answers"
    assert len(list(answers.glob("*.safetensors"))) <= 6
    assert len(list(answers.iterdir())) <= 8  # and two whose space is used again
    assert PartyHost(fed.test_run.party_directory("a")).answers.state.seen == 6


@pytest.mark.parametrize("engine", ["local", "processes"])
def test_a_broken_policy_is_reported(handle, engine):
    run = handle().test_run
    (run.party_directory("b") / "policy.toml").write_text("allow_claer = false\n")
    with pytest.raises((ConfigError, PartyFailure), match="allow_clear"):
        handle(engine).each(toys.count_free, Nothing())


def test_policy_is_enforced_at_the_party(handle):
    fed = handle()
    home = fed.test_run.party_directory("b")
    (home / "policy.toml").write_text("allow_clear = false\n")
    warnings = []
    fed = handle(warnings=warnings)
    assert list(fed.each(toys.count_free, Nothing())) == ["a", "c"]
    assert "allow_clear" in warnings[0]
    assert PolicyRefusal("x", "y").rule == "x"
    assert PartyHost(home).ledger.releases() == []
