"""The server's stop words leave one word of each note: lengths are public, so they would count that word."""

import json

import numpy as np
import pytest

from helpers.attacks_words import ask
from helpers.sites import Sites
from tertulia.corpus.recipes import read_recipe
from tertulia.corpus.vocabulary import UNKNOWN
from tertulia.federation.codec import encode
from tertulia.federation.party.host import PartyConfig, PartyHost
from tertulia.federation.types import Nothing
from tertulia.kernels.reports import reports
from tertulia.methods.common import local_lda as local
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.common.vocabulary import propose_words
from tertulia.methods.fedlda import method as fedlda
from tertulia.methods.fedlda.settings import UserSettings
from tertulia.methods.ftm import method as ftm
from tertulia.runs.plan import plan_of
from tertulia.runs.settings import RunSettings
from tertulia.view import console
from tertulia.view.dry_run import dry_run

TARGET, WORDS = "diabetes", ("diabetes", "insulin")
NOTES = ["Fever and diabetes. A cough.", "Fever, cough, pain in the knee.", "The pain of diabetes; diabetes!"]
OTHER = [note.replace(TARGET, "plum").replace("pain", TARGET) for note in NOTES]  # the word elsewhere, less often
EVERYTHING_ELSE = ("fever", "cough", "pain", "knee", "plum", "the", "and", "of", "in", "a")
CHOICES = {
    "stop_words": {"stop_words": EVERYTHING_ELSE},
    "min_length": {"min_length": len(TARGET)},
    "both": {"stop_words": ("fever", "plum"), "min_length": 6},
    "cased": {"stop_words": EVERYTHING_ELSE, "lowercase": False},
}


def write(path, notes):
    path.write_text("\n".join(json.dumps({"text": note, "id": f"note-{i}"}) for i, note in enumerate(notes)) + "\n")
    return str(path)


def documents(folder, notes, **text):
    """The documents as a party of a federation with these options reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    return read_recipe({"path": write(folder / "notes.jsonl", notes), "id": "id", "options": text})


def make_party(folder, notes, *methods, **text):
    corpus = documents(folder, notes, **text)
    names = tuple(method.__name__ for method in methods)
    config = PartyConfig(id="north", run="run", seed=5, methods=names, durable=False, noise_key="42" * 32)
    config.save(folder / "party")
    return PartyHost(folder / "party", corpus)


@pytest.mark.parametrize("name", CHOICES)
def test_lengths_do_not_depend_on_the_word_that_the_server_leaves(name, tmp_path):
    with_word, without = (
        documents(tmp_path / f"{i}", notes, **CHOICES[name]) for i, notes in enumerate((NOTES, OTHER))
    )
    assert TARGET in with_word.vocabulary.index
    assert with_word.lengths.tolist() == without.lengths.tolist()
    assert with_word.sentences.tolist() == without.sentences.tolist()
    listed = isinstance(CHOICES[name].get("stop_words"), tuple)  # then the list of the language removes nothing either
    plain = documents(tmp_path / "plain", NOTES, stop_words="none" if listed else "language")
    assert with_word.lengths.tolist() == plain.lengths.tolist()


@pytest.mark.parametrize("method", ["ftm", "fedlda"])
def test_answers_are_a_function_of_reports_whichever_words_the_server_removes(method, tmp_path, monkeypatch):
    def fixed(words, documents, channel, keys, first=0, last=None, threads=1):
        return reports(np.arange(len(words)) % channel.V, channel, b"k" * 32, "fixed", first, last, threads)

    monkeypatch.setattr(local, "reports_of_documents", fixed)
    monkeypatch.setattr(fedlda, "reports_of_documents", fixed)
    if method == "ftm":
        training = Training(mode="sound", epsilon=1.0, topics=2, sweeps=4)
        module, step, message = ftm, ftm.train_local, ftm.LocalTask(WORDS, training, None, with_sizes=True)
    else:
        settings = UserSettings(mode="sound", epsilon=1.0)
        module, step = fedlda, fedlda.count_reports
        message = fedlda.Broadcast(WORDS, settings, np.zeros((2, len(WORDS))), 0)
    hosts = [make_party(tmp_path / f"{i}", notes, module, **CHOICES["both"]) for i, notes in enumerate((NOTES, OTHER))]
    answers = [ask(host, step, message) for host in hosts]
    assert [answer.kind for answer in answers] == ["ok", "ok"]
    assert encode(answers[0].reply) == encode(answers[1].reply)


def test_in_clear_such_words_leave_the_vocabulary(tmp_path):
    host = make_party(tmp_path, NOTES, ftm, stop_words=("fever", "cough", "the", "and", "of", "in"))
    proposed = ask(host, propose_words, Nothing()).reply.unpacked
    assert proposed == ["diabetes", "knee", "pain"]
    assert UNKNOWN in host.corpus.vocabulary.index


def test_a_plan_holds_what_the_server_sets_of_texts_documents_and_terms():
    plain = plan_of(RunSettings(), ("north", "south"))
    changes = [
        {"text": {"stop_words": ["fever"]}}, {"text": {"min_length": 8}}, {"text": {"language": "sv"}},
        {"text": {"tokenizer": "another"}}, {"text": {"numbers": True}}, {"heldout": 0.9}, {"validation": 0.2},
        {"seed": 8}, {"federation": {"quorum": 0.1}},
    ]  # fmt: skip
    plans = [plan_of(RunSettings(**change), ("north", "south")) for change in changes]
    assert len({plan.hash for plan in (plain, *plans)}) == len(changes) + 1
    assert [plan.terms for plan in plans].count(plain.terms) == 0


def test_a_party_sees_them_before_it_approves_and_another_list_needs_another_approval(tmp_path, capsys):
    sites = Sites(tmp_path)
    sites.edit('language = "en"', 'language = "en"\nstop_words = ["fever", "cough"]')
    sites.edit("heldout = 0.1 ", "heldout = 0.25 ")
    sites.join(*sites.server.file.members)
    seen = sites.consider("north")
    report = dry_run(seen.settings)
    assert report["terms"]["text.stop_words"] == ("fever", "cough")
    shown = {name: report["terms"][name] for name in ("heldout", "validation", "seed", "federation.quorum")}
    assert shown == {"heldout": 0.25, "validation": 0.0, "seed": 0, "federation.quorum": 0.5}
    console.print_dry_run(report)
    assert "2: fever, cough" in capsys.readouterr().out
    before = seen.proposal.own_plan.hash
    sites.edit('"cough"]', '"cough", "pain"]')
    assert sites.consider("north").proposal.own_plan.hash != before
