"""Sums that tell the same of documents: from totals over parties that differ by one, that party's numbers follow."""

from contextlib import closing

import numpy as np
import pytest

from helpers import masked_toys as toys
from tertulia.corpus import Corpus
from tertulia.errors import QuorumError
from tertulia.federation import types
from tertulia.federation.server.handle import Handle
from tertulia.federation.server.secure_sums import SecureSums
from tertulia.models.neural import sync_batch_norm
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin
from tertulia.runs.settings import RunSettings

WORDS = [f"{theme}{letter}" for theme in ("fever", "river", "violin") for letter in "abcdefgh"]
PARTIES = ("east", "north", "south", "west")
CONSENSUS = {"name": "consensus", "topics": 3, "rounds": 1, "start_rounds": 2, "sweeps": 1, "evaluate": False}
PCTD = {"name": "pctd", "topics": 3, "rounds": 1, "evaluate": False}


def corpora():
    rng = np.random.default_rng(4)
    return {p: Corpus.from_texts([" ".join(rng.choice(WORDS, 12)) for _ in range(12)]) for p in PARTIES}


def started(directory, method, **terms):
    vocabulary = {"mode": "listed", "words": WORDS, "max_share": 1.0}
    method = {**method, "vocabulary": vocabulary}
    settings = RunSettings(directory=str(directory), heldout=0.0, federation={"secure": True, **terms}, method=method)
    return begin(settings, corpora())


def trained(run):
    return finish(run, transport=run.transport("local", 1))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    base = tmp_path_factory.mktemp("undisturbed")
    return {method["name"]: trained(started(base / method["name"], method)) for method in (CONSENSUS, PCTD)}


@pytest.fixture
def lose(monkeypatch):
    """Lose the answer of `west` to the first question of a step on its way to the server."""
    real, lost = Handle._send, []

    def lose(wanted):
        def send(self, step, *more):
            answers = real(self, step, *more)
            if step.endswith(f":{wanted}") and not lost:
                lost.append(answers.pop("west"))
            return answers

        monkeypatch.setattr(Handle, "_send", send)

    return lose


@pytest.mark.parametrize(
    ("method", "step"),
    [
        (CONSENSUS, "count_tokens"),  # documents by word, as count_words has asked before
        (CONSENSUS, "profile_words"),
        (CONSENSUS, "expect"),  # added up over topics, these are the tokens by word that count_tokens asks
        (CONSENSUS, "count_together"),
        (PCTD, "expect"),
    ],
)
def test_an_honest_server_never_gets_the_same_numbers_with_and_without_one_party(
    method, step, tmp_path, monkeypatch, lose, undisturbed
):
    lists, real = {}, SecureSums.total

    def total(self, place, found, seeds):
        lists[found.step.rpartition(":")[2]] = set(found.survivors)
        return real(self, place, found, seeds)

    monkeypatch.setattr(SecureSums, "total", total)
    run = started(tmp_path / "run", method)
    lose(step)
    with pytest.raises(QuorumError, match="wait for those of 'west', with which they are in an earlier total"):
        trained(run)
    assert lists["count_words"] == set(PARTIES)
    assert step not in lists
    resumed = trained(run)
    assert np.array_equal(resumed.topic_word, undisturbed[method["name"]].topic_word)
    assert all(names == set(PARTIES) for names in lists.values())


def test_parties_that_come_later_together_enter_every_sum_together(tmp_path, monkeypatch):
    monkeypatch.setattr(toys.contribute, types._ONE_LIST, True, raising=False)
    everybody = toys.names(9)
    late, there = everybody[:3], everybody[3:]
    run = toys.begun(tmp_path / "run", 9, parties={name: {"joins": 1} for name in late})
    with closing(run.transport("local", 1)) as transport:
        fed = toys.handle_of(run, transport)
        fed.sum(toys.change, toys.Task(0))
        fed.commit(toys.State(1, (), np.zeros(1)))
        fed.sum(toys.change, toys.Task(1))
        assert fed.answered == everybody
        task = toys.Task(1)
        fed.sum(toys.contribute, dict.fromkeys(everybody[1:], task))  # the first of those that were late is away
        assert fed.answered == there  # so the two that came with it wait
        fed.sum(toys.contribute, toys.Task(2))
        assert fed.answered == everybody


def test_a_step_of_syncopt_that_begins_again_takes_another_batch(tmp_path, monkeypatch, lose):
    """Its first total is over four parties, then one drops out: the second, of three, must be of other documents."""
    totals, parts, total, moments = [], [], SecureSums.total, sync_batch_norm.sum_moments

    def unmask(self, place, found, seeds):
        reply = total(self, place, found, seeds)
        if found.step.endswith(":sum_moments"):
            totals.append((list(found.survivors), reply.values))
        return reply

    def compute(*arguments):
        parts.append(moments(*arguments))
        return parts[-1]

    monkeypatch.setattr(SecureSums, "total", unmask)
    monkeypatch.setattr(sync_batch_norm, "sum_moments", compute)
    method = {"name": "gfedntm", "topics": 3, "hidden": (8, 6), "batch_size": 24, "rounds": 2}
    lose("sum_slopes")
    model = trained(started(tmp_path / "run", method))
    assert [who for who, _ in totals[:4]] == [list(PARTIES)] * 2 + [list(PARTIES[:3])] * 2
    assert np.allclose(totals[0][1], sum(parts[:4]))  # the first norm, of the first attempt
    assert not np.allclose(totals[0][1] - totals[2][1], parts[3], atol=1e-3)  # what the party sent that dropped out
    assert model.n_topics == 3


def test_totals_of_fedlda_tell_no_number_of_users_of_one_party(tmp_path, monkeypatch, lose):
    totals, real = [], SecureSums.total

    def total(self, place, found, seeds):
        reply = real(self, place, found, seeds)
        if found.step.endswith(":local_sampling"):
            totals.append((len(found.survivors), int(reply.users)))
        return reply

    monkeypatch.setattr(SecureSums, "total", total)
    method = {"name": "fedlda", "topics": 3, "rounds": 3, "evaluate": False}
    away = {"script": {2: ["west"]}}  # in the second of three rounds
    trained(started(tmp_path / "run", method, dropouts=away))
    assert totals == [(4, 48), (3, 0), (4, 0)]  # absolute numbers would be 48, 36, 48
