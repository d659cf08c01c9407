"""Bad input gets a clear error that names the thing and the remedy, and loses nothing."""

import errno
import json
import os
import warnings

import numpy as np
import pytest

import tertulia as tt
from tertulia import _disk
from tertulia.errors import ConfigError, FormatError, InputError, JournalError, PartyFailure
from tertulia.models import UnknownWordsWarning
from tertulia.runs import settings as config
from tertulia.runs.directory import Run
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin

SMALL = {"topics": 2, "rounds": 2, "sweeps": 3}


def fit(parties, **options):
    method = {**SMALL, **options.pop("method", {})}
    return tt.FTM(**method).fit(parties, **options)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("empty.jsonl", b"", "is empty"),
        ("empty.csv", b"", "is empty"),
        ("other.csv", b"title,body\na,b\n", "no column 'text'.*columns are: title, body"),
        ("russian.csv", "text\nчёрный кофе\nснова\n".encode("cp1251"), "encoding="),
        ("words.docx", b"PK", "of no known kind"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=says):
        tt.read(tmp_path / name)


def test_a_broken_row_is_dropped_and_reported(tmp_path):
    (tmp_path / "notes.csv").write_text('id,text\n1,rivers rise\n2,one,too,many\n3,"bridges hold"\n')
    corpus = tt.read(tmp_path / "notes.csv", id="id")
    assert corpus.table["id"].to_list() == ["1", "3"]
    assert "notes.csv:3" in corpus.report.summary()


def test_a_missing_file_and_a_missing_path(tmp_path):
    with pytest.raises(InputError, match=r"there is no file .*absent\.csv"):
        tt.read(tmp_path / "absent.csv")
    with pytest.raises(ConfigError, match=r"parties\.north has no `path`"):
        begin(config.RunSettings(directory=str(tmp_path / "run"), parties={"north": {}}))


def test_a_document_with_no_known_word(worded):
    model = fit({"a": worded(0, 20), "b": worded(1, 20)})
    with pytest.warns(UnknownWordsWarning, match="1 of 2 documents"):
        theta = model.transform(["zzz qqq", "harboura winter"])
    assert np.allclose(theta[0], model.alpha / model.alpha.sum())


def test_a_party_with_one_document_takes_part(worded):
    single = [" ".join([*worded(0, 1), *worded(1, 1)])]
    model = fit({"a": worded(0, 30), "b": single}, heldout=0.5, method={"vocabulary": {"max_share": 1.0}})
    assert set(model.local) == {"a", "b"}


def test_a_party_without_documents_or_words(worded):
    with pytest.raises(PartyFailure, match="no word of party 'b'"), pytest.warns(UserWarning, match="shares no word"):
        fit({"a": worded(0, 20), "b": ["the and of"]})
    with pytest.raises(InputError, match="no parties"):
        fit({})
    with pytest.raises(InputError, match="texts of party 'a' are one string"):
        fit({"a": "just a text"})


def test_more_topics_than_words(worded):
    with (
        pytest.raises(ConfigError, match="topics = 500, but the agreed vocabulary has only"),
        pytest.warns(UserWarning, match="500 topics for 40 documents"),
    ):
        fit({"a": worded(0, 20), "b": worded(1, 20)}, method={"topics": 500})


def test_a_party_of_another_language(worded):
    parties = {"a": worded(0, 20), "b": worded(1, 20), "c": ["soleil montagne fleuve"] * 20}
    with pytest.warns(UserWarning, match="party 'c' shares no word"):
        fit(parties, method={"vocabulary": {"max_share": 1.0}})
    with pytest.raises(InputError, match=r"party 'c' shares no word.*union"):
        fit(parties, method={"vocabulary": {"mode": "min_parties", "max_share": 1.0}})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("seed = ", "not valid TOML"),
        ("[method]\nname = 'ftm'\ntopics = 0", r"method\.topics = 0: input should be greater than or equal to 1"),
        ("[method]\nname = 'ftm'\nrunds = 3", r"unknown key 'method\.runds'"),
        ("[method]\nname = 'ftm'\nmode = 'sound'", "these need one"),
        ("[method]\nname = 'lsa'", "lsa"),
        ("[text]\nlanguage = 'xx'", "no stop words are known"),
        ("[method.vocabulary]\nmode = 'public'", "go together"),
    ],
)
def test_a_wrong_config_names_the_key(tmp_path, text, says):
    (tmp_path / "run.toml").write_text(text)
    with pytest.raises(ConfigError, match=says):
        config.load(tmp_path / "run.toml")


def test_parties_read_in_different_ways(worded):
    french = tt.Corpus.from_texts(worded(0, 9), options=tt.TextOptions(language="fr"))
    with pytest.raises(ConfigError, match="different text options"):
        fit({"a": french, "b": worded(1, 9)})


@pytest.fixture
def prepared(tmp_path, worded):
    corpora = {name: tt.Corpus.from_texts(worded(i, 15)) for i, name in enumerate("ab")}
    method = {"name": "ftm", **SMALL}
    return begin(config.RunSettings(directory=str(tmp_path / "run"), method=method), corpora)


def test_a_full_disk_at_commit_loses_nothing(prepared, monkeypatch):
    really_write = _disk.write
    full = [True]

    def write_to_a_full_disk(path, *arguments, **options):
        if full[0] and path.name == "commit-00000002.safetensors.part":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return really_write(path, *arguments, **options)

    monkeypatch.setattr(_disk, "write", write_to_a_full_disk)
    with pytest.raises(JournalError, match=r"No space left on device.*tertulia resume"):
        finish(prepared)
    assert prepared.journal().rounds() == [1]
    full[0] = False
    assert finish(prepared).history[-1]["round"] == 3


def test_truncated_checkpoints(prepared):
    finish(prepared)
    for path in (prepared.directory / "server").glob("commit-*"):
        path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(FormatError, match=r"no sound commit is left: .*commit-00000003.safetensors is truncated"):
        finish(prepared)


def test_a_newer_format_and_other_directories(prepared, tmp_path):
    with pytest.raises(ConfigError, match="not a run's directory"):
        Run.open(tmp_path)
    model = finish(prepared)
    facts = json.loads((prepared.directory / "model" / "model.json").read_text())
    (prepared.directory / "model" / "model.json").write_text(json.dumps({**facts, "format": 99}))
    with pytest.raises(FormatError, match="99"):
        tt.Topics.load(prepared.directory / "model")
    facts = json.loads((prepared.directory / "run.json").read_text())
    (prepared.directory / "run.json").write_text(json.dumps({**facts, "format": 99}))
    with pytest.raises(FormatError, match="format 99, this version reads up to 1"):
        Run.open(prepared.directory)
    assert model.n_topics >= 2


def test_a_run_is_never_overwritten(prepared, worded):
    finish(prepared)
    with pytest.raises(ConfigError, match="holds a run already: `tertulia resume"), warnings.catch_warnings():
        fit({"a": worded(0, 9), "b": worded(1, 9)}, directory=prepared.directory)
