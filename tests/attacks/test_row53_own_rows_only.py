"""Inquiries reported other federations' releases at the same home to a server, and the length of their chain."""

from helpers.texts import PUBLIC, halves
from tertulia.corpus import Corpus
from tertulia.federation.codec import decode
from tertulia.federation.messages import DISCLOSURES, LEDGER_DIGEST, Inquiry
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin, open_party
from tertulia.runs.settings import RunSettings


def run(place, epsilon, rounds=1):
    method = {"name": "consensus", "topics": 2, "rounds": rounds, "sweeps": 1, "start_sweeps": 1, "mode": "sound",
              "epsilon": epsilon, "vocabulary": PUBLIC}  # fmt: skip
    settings = RunSettings(
        directory=str(place), method=method, heldout=0.0, parties={"north": {"home": str(place.parent / "home")}}
    )
    corpora = {"north": Corpus.from_texts(halves(1)), "south": Corpus.from_texts(halves(2))}
    made = begin(settings, corpora)
    finish(made, corpora)
    return made


def asked(run, about, entry=None):
    host = open_party(run, "north")
    return decode(host.answer(Inquiry(run.id, about, entry).to_bytes())).reply


def test_a_server_learns_of_its_own_run(tmp_path):
    alone = run(tmp_path / "alone" / "run", 3.0)
    rows, digest = asked(alone, DISCLOSURES), asked(alone, LEDGER_DIGEST)
    first = run(tmp_path / "both" / "first", 5.0, rounds=4)
    before = asked(first, LEDGER_DIGEST)
    second = run(tmp_path / "both" / "second", 3.0)
    assert asked(second, DISCLOSURES) == rows  # as if there were no other run
    assert asked(second, LEDGER_DIGEST).split(":")[0] == digest.split(":")[0]
    assert asked(first, LEDGER_DIGEST) == before  # nor does it hear that another run came after it
    number = int(before.split(":")[0])
    assert asked(first, LEDGER_DIGEST, number) == before
    assert asked(first, LEDGER_DIGEST, number + 1) == ""


def test_reports_that_a_run_uses_are_named_though_another_paid_for_them(tmp_path):
    run(tmp_path / "both" / "first", 3.0)
    again = run(tmp_path / "both" / "second", 3.0)
    assert [row["what"] for row in asked(again, DISCLOSURES) if row["verb"] == "reports"] == ["reports of tokens"]
