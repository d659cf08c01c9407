"""Masked totals are exact: bit for bit those of the integers, with any dropouts, at any width, also after a resume."""

from contextlib import closing

import numpy as np
import pytest

from helpers import masked_toys as toys
from tertulia.errors import ConfigError, InputError, PartyFailure, QuorumError
from tertulia.federation.codec import decode
from tertulia.federation.secure.lists import threshold
from tertulia.federation.server.journal import Journal
from tertulia.federation.types import Nothing
from tertulia.runs.directory import drive
from tertulia.runs.driver import settings_of


def expected(members, round_):
    """The totals of the integers that parties hold, without masks."""
    parts = [toys.numbers_of(name, round_) for name in members]
    grid = [np.rint(shares * 2**20).astype(np.int64) for _, shares, _ in parts]
    return sum(counts for counts, _, _ in parts), sum(grid) * 2.0**-20, sum(one for _, _, one in parts)


def mean_of(members, round_):
    weights = [2.0 + len(name) for name in members]
    sums = [np.rint(toys.numbers_of(n, round_)[0] / 8 * w * 2**14) for n, w in zip(members, weights, strict=True)]
    return np.sum(sums, axis=0) / 2**14 / sum(weights)


def check_totals(state, members_by_round):
    for round_, (counts, shares, one, mean, _, answered) in enumerate(state.totals):
        members = members_by_round[round_]
        wanted = expected(members, round_)
        assert list(answered) == members
        assert np.array_equal(counts, wanted[0])
        assert counts.dtype == np.int64
        assert np.array_equal(shares, wanted[1])
        assert one == wanted[2]
        assert np.array_equal(mean, mean_of(members, round_))


@pytest.mark.parametrize("n", [3, 4, 5, 10])
def test_totals_are_those_of_the_integers(n, tmp_path):
    state = toys.finished(toys.begun(tmp_path / "run", n))
    check_totals(state, [toys.names(n)] * 3)
    assert np.array_equal(state.counts, sum(np.abs(toys.numbers_of(name, 2)[0]) for name in toys.names(n)))


@pytest.mark.parametrize("n", [4, 5, 10])
def test_dropouts_are_repaired(n, tmp_path):
    away = toys.names(n)[: n - threshold(n)]
    script = {"dropouts": {"script": {2: away, 3: away[:1]}}}  # the first round ends before the first commit
    state = toys.finished(toys.begun(tmp_path / "run", n, rounds=4, federation=script))
    everybody = toys.names(n)
    there = [[p for p in everybody if p not in gone] for gone in ([], away, away[:1], [])]
    check_totals(state, there)
    assert np.array_equal(state.counts, sum(np.abs(toys.numbers_of(name, 3)[0]) for name in everybody))
    scores = [score for *_, score, _ in state.totals]  # the last score of an absent party stands
    stale = dict.fromkeys(away, 1)
    assert scores[1] == sum(toys.numbers_of(name, 0 if name in stale else 1)[2] for name in everybody)


def test_with_one_more_dropout_the_round_waits(tmp_path):
    n = 5
    away = toys.names(n)[: n - threshold(n) + 1]
    run = toys.begun(tmp_path / "run", n, federation={"dropouts": {"script": {2: away}}})
    with pytest.raises(QuorumError, match="3 of 5 members answered contribute in round 2, and a masked sum needs 4"):
        toys.finished(run)


def test_large_numbers_take_a_wider_ring_and_the_ledger_has_the_bit(tmp_path):
    run = toys.begun(tmp_path / "run", 4)
    with closing(run.transport("local", 1)) as transport:
        fed = toys.handle_of(run, transport)
        for size in (10**3, 10**9, 10**15, 5):
            total = fed.sum(toys.contribute, toys.Task(7, size))
            assert np.array_equal(total.counts, sum(toys.numbers_of(n, 7, size)[0] for n in run.parties))
        releases = transport.hosts[run.parties[0]].ledger.releases()
        bits = [release for release in releases if release.verb == "wider"]
        assert 1 <= len(bits) <= 3
        assert {release.what for release in bits} == {"whether a masked number needs a wider ring"}
        assert all(release.parents for release in bits)


def test_numbers_beyond_every_ring_stop_the_run_and_nothing_leaves(tmp_path):
    run = toys.begun(tmp_path / "run", 10)
    with closing(run.transport("local", 1)) as transport:
        fed = toys.handle_of(run, transport)
        with pytest.raises(InputError, match="beyond every ring"):
            fed.sum(toys.contribute, toys.Task(1, 1 << 61))
        assert not list((run.directory / "server" / "sums").glob("*.list"))


def test_narrow_rings_are_used_once_totals_are_small(tmp_path):
    run = toys.begun(tmp_path / "run", 4)
    with closing(run.transport("local", 1)) as transport:
        fed = toys.handle_of(run, transport)
        widths = []
        for round_ in range(3):
            fed.sum(toys.change, toys.Task(round_))
            found = toys.sums_of(run).find_or_none((0, round_))[0]
            widths.append(found.masked[1].dtype.itemsize * 8)
        assert widths == [32, 16, 16]


def test_a_few_new_parties_wait_with_their_first_contribution(tmp_path):
    """Three differences and one whole contribution would show the whole one."""
    everybody, warnings = toys.names(9), []
    late = everybody[:2]
    run = toys.begun(tmp_path / "run", 9, parties={name: {"joins": 1} for name in late} | {everybody[2]: {"joins": 2}})
    total = np.zeros(toys.CELLS, np.int64)
    with closing(run.transport("local", 1)) as transport:
        fed = toys.handle_of(run, transport)
        fed.observe = lambda kind, facts: warnings.append(facts["text"]) if kind == "warning" else None
        for round_, there in enumerate((everybody[3:], everybody[3:], everybody)):
            total += fed.sum(toys.change, toys.Task(round_)).counts
            assert fed.answered == there  # in the last round three are new
            assert np.array_equal(total, sum(np.abs(toys.numbers_of(name, round_)[0]) for name in there))
            fed.commit(toys.State(round_ + 1, (), total))
    assert sum("waits for those of at least 3 parties" in text for text in warnings) == 2


def test_a_resumed_run_sums_nothing_again(tmp_path, monkeypatch):
    run = toys.begun(tmp_path / "run", 4, durable=10)  # only the journal of sums is on disk
    transport = run.transport("local", 1)
    asked = []
    with closing(transport):
        stopped = _stops_after(transport, 40)
        with pytest.raises(KeyboardInterrupt):
            toys.finished(run, stopped)
        real = transport.ask
        monkeypatch.setattr(transport, "ask", lambda frames, *a: asked.append(len(frames)) or real(frames, *a))
        state = drive(toys.handle_of(run, transport), toys.train, settings_of(run).method.config)
    check_totals(state, [toys.names(4)] * 3)
    assert len(asked) < 40  # a whole run has about fifty exchanges


class _stops_after:
    """A transport whose server dies after some exchanges."""

    def __init__(self, inner, exchanges):
        self.inner, self.left = inner, exchanges

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def ask(self, frames, timeout, enough=None):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return self.inner.ask(frames, timeout, enough)

    def close(self):
        pass


@pytest.mark.parametrize("stop", range(1, 56, 6))
def test_a_server_may_stop_at_any_exchange(stop, tmp_path):
    run = toys.begun(tmp_path / "run", 4, durable=2)
    with closing(run.transport("local", 1)) as transport:
        try:
            state = toys.finished(run, _stops_after(transport, stop))
        except KeyboardInterrupt:
            state = drive(toys.handle_of(run, transport), toys.train, settings_of(run).method.config)
    check_totals(state, [toys.names(4)] * 3)


def test_messages_by_party_and_single_replies_are_refused(tmp_path):
    run = toys.begun(tmp_path / "run", 4)
    with closing(run.transport("local", 1)) as transport:
        fed = toys.handle_of(run, transport)
        with pytest.raises(ConfigError, match="asks all parties the same"):
            fed.sum(toys.contribute, {name: toys.Task(i) for i, name in enumerate(run.parties)})
        with pytest.raises(ConfigError, match=r"secure = true hides single parties' replies.*masked_toys:show"):
            fed.each(toys.show, toys.Task(0))
        task = toys.Task(0)
        assert fed.sum(toys.contribute, dict.fromkeys(run.parties, task)) is not None


def test_all_members_are_needed_for_keys_and_for_notes(tmp_path):
    run = toys.begun(tmp_path / "run", 4)
    with closing(run.transport("local", 1)) as transport:
        away = {absent := run.parties[2]}

        class Without:
            parties = transport.parties

            def ask(self, frames, timeout, enough=None):
                return transport.ask({p: f for p, f in frames.items() if p not in away}, timeout)

        with pytest.raises(QuorumError, match=f"all 4 members at the start of a run, and {absent} did not answer"):
            toys.handle_of(run, Without())
        away.clear()
        fed = toys.handle_of(run, Without())
        away.add(absent)
        with pytest.raises(QuorumError, match=f"members exchange notes, and {absent} did not answer"):
            fed.relay(toys.tell, toys.Task(0))


def test_notes_reach_all_members_and_not_the_server(tmp_path):
    run = toys.begun(tmp_path / "run", 4)
    carried = []
    with closing(run.transport("local", 1)) as transport:
        real = transport.ask

        def ask(frames, *more):
            answers = real(frames, *more)
            carried.extend([*frames.values(), *answers.values()])
            return answers

        transport.ask = ask
        fed = toys.handle_of(run, transport)
        fed.relay(toys.tell, toys.Task(3))
        passed_on = b"".join(carried)
        notes = [np.abs(toys.numbers_of(name, 3)[0]) for name in run.parties]
        assert not any(note.tobytes() in passed_on for note in notes)
        replies = fed.each(toys.read_notes, Nothing())
        assert all(np.array_equal(reply.counts, sum(notes)) for reply in replies.values())


def test_a_commit_holds_totals_that_stand(tmp_path):
    run = toys.begun(tmp_path / "run", 4)
    toys.finished(run)
    commit, _ = Journal(run.directory / "server").last()
    (name,) = commit.standing
    assert name.endswith(":rate")
    assert float(commit.standing[name].value) == sum(toys.numbers_of(party, 2)[2] for party in run.parties)


def test_a_party_that_lost_its_directory_sits_out(tmp_path):
    run = toys.begun(tmp_path / "run", 5, rounds=2)
    transport = run.transport("local", 1)
    with closing(transport):
        fed = toys.handle_of(run, transport)
        first = fed.sum(toys.change, toys.Task(0)).counts
    lost = run.parties[1]
    (run.party_directory(lost) / "secure" / "keys.safetensors").unlink()
    (run.party_directory(lost) / "secure" / "agreed.safetensors").unlink()
    with closing(run.transport("local", 1)) as transport:
        fed = toys.handle_of(run, transport, on_failure="skip")
        assert np.array_equal(fed.sum(toys.change, toys.Task(0)).counts, first)  # from the journal
        fed.sum(toys.change, toys.Task(1))
        assert lost not in fed.answered
        refusal = decode(transport.hosts[lost].answer(b"")).kind
    assert refusal == "failed"


def test_too_few_members_are_refused_before_anything_is_made(tmp_path):
    with pytest.raises(ConfigError, match="secure = true needs 3 members or more, not 2"):
        toys.begun(tmp_path / "run", 2)
    assert not (tmp_path / "run" / "run.json").exists()


def test_an_unknown_failure_of_a_party_stops_the_run(tmp_path):
    run = toys.begun(tmp_path / "run", 4)
    with closing(run.transport("local", 1)) as transport:
        fed = toys.handle_of(run, transport)
        transport.hosts[run.parties[0]].secure.sums.mask = lambda *a: 1 / 0
        with pytest.raises(PartyFailure, match="ZeroDivisionError"):
            fed.sum(toys.contribute, toys.Task(0))
