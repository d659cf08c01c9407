"""A backup of a home, key and ledger, is put back, so that a budget begins again: the other members know better."""

import dataclasses
import itertools
import shutil
from contextlib import closing

import numpy as np
import pytest

from helpers import masked_toys as toys
from helpers.attacks_secure import Members, refused
from helpers.sites import Sites
from tertulia.errors import QuorumError
from tertulia.federation import faults
from tertulia.federation.identity.keys import fingerprint, new_key
from tertulia.federation.party.failures import OLDER_LEDGER
from tertulia.federation.party.host import PartyHost
from tertulia.federation.party.reader import PartyReader
from tertulia.federation.secure.messages import AskChallenge, Challenges, HeldHeads
from tertulia.federation.server.handle import Handle
from tertulia.privacy.head_store import FILE, HEAD_BYTES, HeadStore
from tertulia.privacy.snapshots import read_ledger
from tertulia.runs import one_machine
from tertulia.runs.driver import settings_of, terms_of
from tertulia.runs.plan import plan_of
from tertulia.view.pages.officer import officer_sections

N = 4
TARGET, *OTHERS = toys.names(N)


class Direct:
    """A transport that calls the hosts at once, in the order in which they are named."""

    def __init__(self, run):
        self.hosts = {party: PartyHost(run.party_directory(party)) for party in run.parties}
        self.parties = list(self.hosts)

    def ask(self, frames, timeout, enough=None):
        return {party: self.hosts[party].answer(frame) for party, frame in frames.items()}

    def close(self):
        for host in self.hosts.values():
            host.ledger.close()


class Federation:
    """Parties whose homes and roster keys outlast runs, as those of organisations do."""

    def __init__(self, base, keys, monkeypatch):
        self.base, self.runs = base, itertools.count()
        self.keys, following = keys, itertools.cycle(keys)
        monkeypatch.setattr(one_machine, "new_key", lambda: next(following))

    def home(self, party):
        return self.base / "homes" / party

    @property
    def homes(self):
        return {party: {"home": str(self.home(party))} for party in toys.names(N)}

    def begin(self):
        run = toys.begun(self.base / f"run{next(self.runs)}", N, rounds=1, parties=self.homes)
        for party in run.parties:  # each has a key of its own
            place = run.party_directory(party)
            dataclasses.replace(toys.PartyConfig.load(place), noise_key=None).save(place)
        return run

    def run(self):
        run = self.begin()
        return toys.finished(run, Direct(run))

    def put_back(self):
        shutil.rmtree(self.home(TARGET))
        shutil.copytree(self.base / "backup", self.home(TARGET))

    def forget(self, *parties):
        """Let parties lose what they hold of the others."""
        for party in parties:
            (self.home(party) / FILE).unlink()

    def ledger(self):
        return read_ledger(self.home(TARGET))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Homes after two runs, with a backup from between them, and the roster keys of their parties."""
    base, keys = tmp_path_factory.mktemp("prepared"), [new_key() for _ in range(N)]
    with pytest.MonkeyPatch.context() as patched:
        made = Federation(base, keys, patched)
        made.run()
        shutil.copytree(made.home(TARGET), base / "backup")
        made.run()
    return base, keys


@pytest.fixture
def federation(prepared, tmp_path, monkeypatch):
    base, keys = prepared
    for name in ("homes", "backup"):
        shutil.copytree(base / name, tmp_path / name)
    return Federation(tmp_path, keys, monkeypatch)


def refusal(run):
    """Why the parties of a run refuse to begin it, as the server hears it in a simulation."""
    said, settings = [], settings_of(run)
    observe, plan = (lambda kind, facts: said.append(facts["text"])), plan_of(settings, run.parties, run.keys)
    with closing(run.transport("local", 1)) as transport:
        handle = Handle(run.id, transport, run.journal(), terms_of(settings), observe, plan)
        with pytest.raises(QuorumError, match=f"{TARGET} did not take part"):
            handle.prepare()
    return " ".join(said)


def test_a_party_whose_home_was_put_back_refuses_and_charges_nothing(federation):
    later = federation.ledger().digest()
    shutil.copytree(federation.home(TARGET), federation.base / "newest")
    federation.put_back()
    before = federation.ledger().digest()
    assert int(before.split(":")[0]) < int(later.split(":")[0])
    run = federation.begin()
    for _ in range(6):  # refusals do not push out what the members hold
        said = refusal(run)
    assert f"rule '{OLDER_LEDGER}'" in said
    assert f"{', '.join(OTHERS)} hold the head of entry {later.split(':')[0]}" in said
    assert f"tertulia ledger accept-loss {federation.home(TARGET)}" in said
    assert federation.ledger().digest() == before
    federation.forget(TARGET)
    assert f"rule '{OLDER_LEDGER}'" in refusal(run)  # whatever becomes of its own files
    shutil.copytree(federation.base / "newest", federation.home(TARGET), dirs_exist_ok=True)
    assert toys.finished(run).round == 1  # the newest backup was restored, and the very same run goes on


def test_without_the_heads_of_others_nobody_notices(federation):
    """The control: the check is what refuses, and not something else about a home that was put back."""
    federation.put_back()
    federation.forget(*OTHERS)
    assert federation.run().round == 1


def test_one_member_with_the_head_is_enough(federation):
    federation.put_back()
    federation.forget(*OTHERS[1:])
    assert f"{OTHERS[0]} holds the head of entry" in refusal(federation.begin())


def test_an_accepted_loss_is_recorded_and_shown_and_the_party_answers_again(federation, tertulia):
    home = federation.home(TARGET)
    code, _, err = tertulia("ledger", "accept-loss", home, "--yes")
    assert (code, "no loss to accept" in err) == (1, True)
    federation.put_back()
    run = federation.begin()
    assert OLDER_LEDGER in refusal(run)
    before = int(federation.ledger().digest().split(":")[0])
    code, out, _ = tertulia("ledger", "accept-loss", run.party_directory(TARGET), "--yes")
    assert (code, f"entry {before + 1} of {home}" in out, "lower the budget" in out) == (0, True, True)
    assert toys.finished(run).round == 1
    assert federation.run().round == 1  # the others still hold the lost heads
    ledger = federation.ledger()
    ledger.verify()
    assert [loss.missing[0].holders for loss in ledger.losses()] == [tuple(OTHERS)]
    code, out, _ = tertulia("ledger", "show", home)
    assert f"{before + 1}: lost entries, whose cost is not counted" in " ".join(out.split())
    page = str(officer_sections(PartyReader(run.party_directory(TARGET)), 1e-6))
    assert f"Not in these numbers: {ledger.losses()[0].text}" in page
    federation.put_back()  # to before the loss was accepted: that is another loss
    assert OLDER_LEDGER in refusal(federation.begin())


# --- members that lie -------------------------------------------------------------------------------------------------


def lie(federation, *liars):
    """Let members hold heads of the target that nobody with its key has made."""
    target = fingerprint(federation.keys[0].public_key())
    for liar in liars:
        HeadStore(federation.home(liar)).keep({target: bytes(range(HEAD_BYTES))})


def test_one_member_that_lies_cannot_block_a_party(federation):
    lie(federation, OTHERS[0])
    assert federation.run().round == 1


def test_more_members_than_may_collude_are_believed_that_the_home_is_another_one(federation, tertulia):
    lie(federation, *OTHERS[:2])
    run = federation.begin()
    assert f"{', '.join(OTHERS[:2])} hold heads that were made with another noise key" in refusal(run)
    assert tertulia("ledger", "accept-loss", run.party_directory(TARGET), "--yes")[0] == 0
    assert toys.finished(run).round == 1


def test_a_home_that_was_begun_again_is_noticed(federation):
    """Key and ledger are lost together, and a new home would begin with a whole budget."""
    shutil.rmtree(federation.home(TARGET))
    assert f"{', '.join(OTHERS)} hold heads that were made with another noise key" in refusal(federation.begin())


# --- a server that helps to put it back -------------------------------------------------------------------------------


@pytest.fixture
def members(federation):
    for party in toys.names(N):  # `Members` has a fixed key
        shutil.rmtree(federation.home(party))
    made = Members(federation.base / "members", N, rounds=1, parties=federation.homes)
    yield made
    made.close()


def exchanged(members):
    """Challenge all members, and return what each holds of the others."""
    challenges = np.stack([members.exchange(p, AskChallenge()).reply.challenge for p in members.names])
    return {p: members.exchange(p, Challenges(challenges)).reply.boxes for p in members.names}


def held_of(members, boxes, party):
    place = members.names.index(party)
    return HeldHeads(np.stack([boxes[sender][place] for sender in members.names]))


def test_boxes_of_an_earlier_exchange_cannot_be_opened(members):
    old = held_of(members, exchanged(members), TARGET)
    assert members.exchange(TARGET, old).kind == "ok"
    new = held_of(members, exchanged(members), TARGET)
    assert members.exchange(TARGET, old).kind == "failed"
    assert members.exchange(TARGET, new).kind == "ok"
    swapped = HeldHeads(new.boxes[[0, 2, 1, 3]])
    assert members.exchange(TARGET, swapped).kind == "failed"
    assert members.exchange(TARGET, HeldHeads(new.boxes[:, :-1])).kind == "failed"


def test_no_exchange_no_answer_and_at_the_start_all_members_are_needed(members):
    (members.run.party_directory(TARGET) / "secure" / "heads").unlink()  # as before the first exchange
    assert refused(members.ask(TARGET, toys.contribute, toys.Task(3)), "secure")
    all_there = held_of(members, exchanged(members), TARGET)
    some = all_there.boxes.copy()
    some[1] = 0
    assert members.exchange(TARGET, HeldHeads(some)).kind == "failed"
    assert refused(members.ask(TARGET, toys.contribute, toys.Task(3)), "secure")
    assert members.exchange(TARGET, all_there).kind == "ok"
    assert members.ask(TARGET, toys.contribute, toys.Task(3)).kind == "ok"


def test_a_ledger_that_is_put_back_during_a_run_ends_its_answers(federation, members):
    """The server does not look; the other members have new heads after the first round, and at the end."""
    host = members.transport.hosts[TARGET]
    for ordinal in range(2):
        assert members.ask(TARGET, toys.contribute, toys.Task(ordinal), (0, ordinal)).kind == "ok"
        if ordinal == 0:
            host.ledger.close()
            del host.home
            shutil.rmtree(federation.base / "backup")
            shutil.copytree(federation.home(TARGET), federation.base / "backup")
    members.fed.finish()
    host.ledger.close()
    del host.home
    federation.put_back()
    answer = members.exchange(TARGET, held_of(members, exchanged(members), TARGET))
    assert refused(answer, OLDER_LEDGER)
    assert refused(members.ask(TARGET, toys.contribute, toys.Task(9), (0, 9)), OLDER_LEDGER)
    assert members.ask(OTHERS[0], toys.contribute, toys.Task(9), (0, 9)).kind == "ok"


def test_boxes_have_the_same_size_with_and_without_heads(members, tmp_path):
    fresh = Members(tmp_path / "fresh", N, rounds=1)  # whose members know nothing of each other
    try:
        assert {b.shape for b in exchanged(fresh).values()} == {b.shape for b in exchanged(members).values()}
    finally:
        fresh.close()


# --- crashes ----------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """Stands for `kill -9`: no code of the product handles it."""


KILLS = [("party.before_heads", 1), ("party.before_heads", 6), ("party.after_heads", 6), ("party.after_mask", 1)]


@pytest.mark.parametrize(("point", "number"), KILLS)
def test_no_crash_makes_an_honest_party_refuse(point, number, federation, monkeypatch):
    run, passed = federation.begin(), itertools.count(1)

    def kill(name):
        if name == point and next(passed) == number:
            raise Killed

    monkeypatch.setattr(faults, "_armed", [kill])
    with pytest.raises(Killed):
        toys.finished(run, Direct(run))
    monkeypatch.setattr(faults, "_armed", [])
    assert toys.finished(run).round == 1
    assert federation.run().round == 1


def test_a_party_that_is_restarted_during_the_first_exchange_is_asked_again(federation):
    """It has forgotten its challenge, and the run must not stop for that."""
    run = federation.begin()
    carried, seen = Direct(run), itertools.count(1)
    ask = carried.ask

    def restart(frames, timeout, enough=None):
        if next(seen) == 7:  # after four messages about keys, a challenge and what others hold
            carried.hosts[TARGET] = PartyHost(run.party_directory(TARGET))
        return ask(frames, timeout, enough)

    carried.ask = restart
    assert toys.finished(run, carried).round == 1


# --- between organisations --------------------------------------------------------------------------------------------

NOISY = """name = "pctd"
topics = 2
rounds = 1
vocabulary = { mode = "common", max_share = 1.0, epsilon = 3.0 }
"""


def again(sites, seed):
    """Let all approve another run."""
    sites.edit(f"seed = {seed - 1}", f"seed = {seed}")
    sites.approve(*sites.parties)
    return sites


@pytest.mark.slow
def test_between_organisations_with_noise(tmp_path, tertulia):
    sites = Sites(tmp_path, method=NOISY, secure=True).agree()
    sites.run()
    north = sites.parties["north"]
    home = north.home  # the whole directory, which is what a backup holds
    shutil.copytree(home, tmp_path / "backup")
    again(sites, 1).run()
    charged = read_ledger(home).digest()
    shutil.rmtree(home)
    shutil.copytree(tmp_path / "backup", home)
    put_back = read_ledger(home).digest()
    assert put_back != charged
    run = again(sites, 2).registry.start()
    with pytest.raises(QuorumError, match="north did not take part"):
        sites.finish(run)
    assert read_ledger(home).digest() == put_back
    log = (north.runs / run.id / "party.log").read_text()
    assert f"south, east hold the head of entry {charged.split(':')[0]}" in log
    assert f"tertulia ledger accept-loss {home}" in log
    assert tertulia("ledger", "accept-loss", home, "--yes")[0] == 0
    sites.finish(run)
    assert tertulia("report", north.directory, "-o", tmp_path / "page.html")[0] == 0
    assert "Not in these numbers: entries of this ledger, up to number" in (tmp_path / "page.html").read_text()
