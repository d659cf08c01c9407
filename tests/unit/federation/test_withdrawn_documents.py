"""Withdrawn documents at a party: out of every part, never reported again, and a run under way is answered no more."""

import json

import numpy as np
import pytest

from helpers.attacks import LIST, OPEN, PUBLIC, Attacked, method_of
from helpers.attacks_noise import BUDGET, STRICT, WORDS, ask, corpus_of, count, party, report
from tertulia.corpus import Corpus, TextOptions
from tertulia.errors import FormatError
from tertulia.federation.party import failures
from tertulia.federation.party.reader import PartyReader
from tertulia.federation.party.withdrawn_documents import ALIKE, LEFT_OUT, contents_of, remaining
from tertulia.methods.pctd.method import UnitSettings, UnitTask, expect
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.noise import NoiseKey
from tertulia.privacy.withdrawals import Withdrawal, Withdrawals, mac_of_user

KEY = NoiseKey.fixed(bytes(range(32)))
TEXTS = ["ache burn cold", "dose fever", "ache ache", "cold dose burn"]
PCTD = {"name": "pctd", "topics": 2, "rounds": 3, "unit": "sentence", "vocabulary": PUBLIC}
IDS, USERS = ["a1", "b1", "a2", "c1"], ["ann", "ben", "ann", "cleo"]


def corpus(texts=TEXTS, ids=IDS, users=USERS):
    return corpus_of(texts, ids, users)


def withdraw(host, kind, name, corpus=None):
    entry = Withdrawal.of(host.noise_key, kind, name)
    known = () if corpus is None else filter(None, contents_of(corpus, host.noise_key))
    host.ledger.withdraw([entry._replace(contents=frozenset(known))])


def test_withdrawn_documents_are_in_no_part(tmp_path):
    texts, ids = [f"{w} ache burn" for w in WORDS] * 20, [f"d{i}" for i in range(100)]
    host = party(tmp_path / "run", corpus(texts, ids, ["ann", "ben", "cleo", "dan"] * 25), heldout=0.3, validation=0.2)
    withdraw(host, "user", "ann")
    withdraw(host, "document", "d1")
    found = [(row["id"], row["user"]) for part in host.parts.values() for row in part.table.iter_rows(named=True)]
    assert sorted(found) == sorted((f"d{i}", ("ann", "ben", "cleo", "dan")[i % 4]) for i in range(2, 100) if i % 4)
    assert all(part.n_documents for part in host.parts.values())


def test_the_split_of_the_others_does_not_change(tmp_path):
    texts, ids = ["ache burn"] * 60, [f"d{i}" for i in range(60)]
    before = party(tmp_path / "before", corpus(texts, ids, ["ann", "ben", "cleo"] * 20), heldout=0.3).parts
    host = party(tmp_path / "after", corpus(texts, ids, ["ann", "ben", "cleo"] * 20), heldout=0.3)
    withdraw(host, "user", "ann")
    for name, part in host.parts.items():
        assert part.table["id"].to_list() == [i for i in before[name].table["id"] if int(i[1:]) % 3]


def test_later_runs_have_the_reports_of_the_others_and_pay_nothing_for_them(tmp_path):
    policy = STRICT + BUDGET.format(1.0)
    first = party(tmp_path / "first", corpus(), policy=policy, run="first")
    whole = ask(first, report).reply.values.tolist()
    withdraw(first, "user", "ann")
    second = party(tmp_path / "second", corpus(), policy=policy, run="second")
    kept = ask(second, report).reply.values.tolist()
    assert kept == [*whole[3:5], *whole[7:]]  # of ben and cleo, as before
    assert second.ledger.cost(Unit.TOKEN, Adjacency.SUBSTITUTE, 0.0).epsilon == pytest.approx(1.0)
    third = party(
        tmp_path / "third", corpus(["ache", "burn"], ["new", "b1"], ["ann", "ben"]), policy=policy, run="third"
    )
    assert third.parts["train"].table["id"].to_list() == ["b1"]  # nor new documents of hers


def test_a_run_that_has_begun_with_them_is_answered_no_more_and_a_constant_leaves(tmp_path):
    host = party(tmp_path / "run", corpus())
    assert ask(host, count).kind == "ok"
    withdraw(host, "user", "ann")
    digest = host.ledger.digest()
    for again in (host, party(tmp_path / "run", corpus())):
        answer = ask(again, count, place=(1, 0), previous=(0, 0))
        assert answer.kind == "refused"
        assert "withdrawal" in answer.text  # one owner has all parties
    assert host.ledger.digest() == digest
    assert host.refusals() == ["withdrawal"] * 2


def test_between_owners_the_server_does_not_hear_why(tmp_path):
    party = Attacked(tmp_path, PCTD, OPEN)
    phi = np.full((2, len(LIST)), 1 / len(LIST))
    task = UnitTask(LIST, method_of(party).part(UnitSettings), None, phi)
    assert party.ask(expect, task, "sum").kind == "ok"
    withdraw(party.host, "document", party.host.parts["train"].table["id"][0])
    answer = party.ask(expect, task, "sum")
    assert (answer.kind, answer.text) == ("refused", failures.REFUSED)
    assert "documents of this run were withdrawn since it began" in party.log
    assert party.host.refusals() == ["withdrawal"]


def test_documents_that_were_looked_at_before_the_first_question_are_not_used_after_a_withdrawal(tmp_path):
    host = party(tmp_path / "run", corpus())
    assert host.parts["train"].n_documents == 4
    withdraw(host, "user", "ann")
    assert ask(host, count).kind == "refused"
    assert host.ledger.releases() == []
    assert ask(party(tmp_path / "run", corpus()), count).kind == "ok"  # opened again, it takes part without them


def test_a_copy_that_a_run_makes_has_neither_withdrawn_documents_nor_their_words(tmp_path):
    rows = [{"text": text, "id": id_, "who": who} for text, id_, who in zip(TEXTS, IDS, USERS, strict=True)]
    file = tmp_path / "documents.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"text": "xylophone", "id": "a3", "who": "ann"}]))
    source = {"path": str(file), "text": "text", "id": "id", "user": "who", "options": TextOptions().to_dict()}
    withdraw(party(tmp_path / "first", corpus()), "user", "ann")
    host = party(tmp_path / "run", None, source=source)
    assert ask(host, count).kind == "ok"
    copied = Corpus.load(tmp_path / "run" / "corpus")
    assert (copied.table["id"].to_list(), copied.table["user"].to_list()) == (["b1", "c1"], ["ben", "cleo"])
    assert set(copied.vocabulary.words) == set(" ".join(TEXTS[1::2]).split())
    assert f"dropped 3: {LEFT_OUT}" in copied.report.summary()
    log = (tmp_path / "run" / failures.LOG).read_text()
    assert log.count("withdrawn and left out: 3 documents") == 1


def test_a_run_that_does_not_have_them_goes_on_bit_for_bit(tmp_path):
    def run(name, disturbed):
        host = party(tmp_path / name / "run", corpus(), noise_key=KEY.key.hex())
        first = ask(host, count).reply.values.tolist()
        if disturbed:
            withdraw(host, "user", "somebody else")
            host = party(tmp_path / name / "run", corpus(), noise_key=KEY.key.hex())
        return first, ask(host, count, place=(1, 0), previous=(0, 0)).reply.values.tolist()

    assert run("calm", disturbed=False) == run("disturbed", disturbed=True)


def test_a_run_that_was_approved_and_has_not_begun_begins_without_them(tmp_path):
    host = party(tmp_path / "run", corpus())
    withdraw(host, "user", "ann")
    assert ask(host, count).kind == "ok"
    assert ask(host, count, place=(1, 0), previous=(0, 0)).kind == "ok"
    assert sorted(host.parts["train"].table["id"]) == ["b1", "c1"]


def test_pages_of_an_earlier_run_still_show_its_documents(tmp_path):
    host = party(tmp_path / "run", corpus())
    corpus().save(tmp_path / "run" / "corpus")
    ask(host, count)
    withdraw(host, "user", "ann")
    assert PartyReader(tmp_path / "run").parts["train"].n_documents == 4
    corpus().save(tmp_path / "next" / "corpus")
    ask(party(tmp_path / "next", corpus(), run="next"), count)
    assert PartyReader(tmp_path / "next").parts["train"].n_documents == 2


def test_the_same_words_under_another_name_are_noticed_and_not_left_out(tmp_path):
    long = " ".join(WORDS * 5)
    host = party(tmp_path / "run", corpus([long, "dose"], ["a1", "b1"], ["ann", "ben"]))
    withdraw(host, "document", "a1", corpus([long], ["a1"], ["ann"]))
    same = corpus(["dose fever", long, "ache burn"], ["n1", "n2", "n3"], ["x", "y", "z"])
    found = remaining(same, host.ledger.withdrawals())
    assert (found.left_out, found.alike, found.corpus.n_documents) == (0, 1, 3)
    assert f"kept 1: {ALIKE}" in found.corpus.report.summary()
    again = remaining(corpus([long, "dose"], ["a1", "b1"], ["ann", "ben"]), host.ledger.withdrawals())
    assert (again.left_out, again.alike) == (1, 0)
    assert f"dropped 1: {LEFT_OUT}" in again.corpus.report.summary()


def test_contents_do_not_depend_on_the_numbers_of_words():
    one, other = Corpus.from_texts([" ".join(WORDS * 5)]), Corpus.from_texts(["fever dose", " ".join(WORDS * 5)])
    assert contents_of(one, KEY)[0] == contents_of(other, KEY)[1] != b""
    assert contents_of(other, KEY)[0] == b""  # short texts are equal by chance
    assert contents_of(Corpus.from_texts([" ".join(reversed(WORDS * 5))]), KEY) != contents_of(one, KEY)


def test_all_documents_withdrawn_leaves_nothing_to_answer_with(tmp_path):
    host = party(tmp_path / "run", corpus(["ache burn"], ["a1"], ["ann"]))
    withdraw(host, "user", "ann")
    assert host.parts["train"].n_documents == 0
    answer = ask(host, report)
    assert (answer.kind, np.size(answer.reply.values)) == ("ok", 0)
    assert '"withdrawn and left out: 1 document"' in (tmp_path / "run" / failures.LOG).read_text()


def test_without_the_key_withdrawals_can_be_counted_only():
    found = Withdrawals(users=frozenset({mac_of_user(KEY, "ann")}))
    with pytest.raises(FormatError, match="noise key"):
        remaining(corpus(), found)
