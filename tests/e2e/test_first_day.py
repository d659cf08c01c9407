"""The first day of three people: what a data scientist, an operator and an officer do first, on texts as they come."""

import json
import re
import warnings

import pytest

import tertulia as tt
from tertulia.corpus.advice import LanguageWarning

SUBJECTS = {
    "weather": "The rain fell on the river and the café by the bridge, and the wind blew over the meadows. ",
    "money": "The bank lent money for the house, and interest on the loan rose with the market again. ",
    "health": "The patient had pain in the chest, and the doctor examined the heart and the artery at once. ",
}


def write_notes(path, n=40):
    """A CSV file as an office exports it: semicolons, HTML, broken characters, copies and empty cells."""
    rows = ["note_id;body;ward;day;who"]
    for number in range(n):
        for subject, text in SUBJECTS.items():
            word = f"item{'abcdefghij'[number % 10]} "
            body = text + word * 2
            body = f"<p>{body}</p>" if number % 4 == 0 else body
            body = body.replace("é", "Ã©") if number % 3 == 0 else body
            rows.append(f'{number}-{subject};"{body}";{subject};2026-0{1 + number % 3}-05;{"ns"[number % 2]}')
    rows += [f'copy;"{SUBJECTS["money"]}";money;2026-01-05;n'] * 3 + ["empty;;money;2026-01-05;s"]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    return write_notes(tmp_path_factory.mktemp("office") / "notes.csv")


def test_the_first_day_of_a_data_scientist(notes, tmp_path):
    corpus = tt.read(notes, column="body", id="note_id", label="ward", date="day", options=tt.TextOptions(clean=True))
    said = corpus.report.summary()
    for part in ("dropped 1: empty text", "tags of HTML left out", "repaired", "the same words", "English 100%"):
        assert part in said
    assert corpus.n_documents == 123
    assert "café" in corpus.vocabulary.words
    assert "cafã" not in corpus.vocabulary.words

    seeds = {"health": ["patient", "doctor"], "money": ["bank", "loan"]}
    model = tt.LDA(topics=3, seeds=seeds, sweeps=30, n_jobs=2).fit(corpus)
    assert model.names[:2] == ["health", "money"]
    assert {"documents", "representative", "by_label", "over_time", "card", "merge"} <= set(dir(model))
    assert model.transform(corpus, n_jobs=2).shape == (123, 3)

    by_ward = model.by_label(corpus, label="label").filter((column_of("topic") == 0) & (column_of("label") == "health"))
    assert by_ward["share"].item() > 0.6
    assert model.over_time(corpus)["period"].n_unique() == 3
    found = model.documents("health", corpus).head(5)
    assert all(name.endswith("-health") for name in found["id"])
    assert model.representative("money", corpus, n=2).height == 2
    loaded = tt.load(model.save(tmp_path / "topics"))
    assert loaded == model
    assert "| 0 health |" in loaded.card()
    assert model.explore(tmp_path / "topics.html").stat().st_size > 10_000


def column_of(name):
    import polars as pl

    return pl.col(name)


def test_one_table_becomes_parties_and_another_language_is_noticed(notes):
    import polars as pl

    table = pl.read_csv(notes, separator=";").filter(pl.col("body").is_not_null())
    settings = tt.Consensus(topics=3, rounds=2, sweeps=2, start_sweeps=2, start_rounds=1)
    shared = settings.fit(table, party="who", column="body", progress=False)
    assert shared.provenance["parties"] == ["n", "s"]
    german = [f"Der Regen fiel auf die Wiese, und der Wind war nicht mehr so stark wie am Tag davor {n}" for n in "abc"]
    parties = {"n": table["body"].to_list(), "s": table["body"].to_list(), "west": german}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", LanguageWarning)
        with pytest.raises(LanguageWarning, match="party 'west' are mostly German"):
            settings.fit(parties, progress=False)


def test_the_first_day_of_an_operator(notes, tertulia, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = tertulia(
        "train", notes, "--column", "body", "-k", "3", "--seeds", "money=bank,loan", "-o", "model"
    )
    assert code == 0, err
    assert "tags of HTML left out" in err
    assert "saved in model" in out
    code, out, err = tertulia("topics", "model")
    assert code == 0
    assert "money" in out
    assert tertulia("explore", "model", "--data", notes, "--column", "body")[0] == 0
    code, _, err = tertulia("train", notes, "--column", "text", "-o", "another")
    assert code == 1
    assert "has no column 'text'" in err
    assert "Traceback" not in err

    made = ("init", "office", "--party", f"north={notes}", "--party", f"south={notes}", "--set", "column=body", "--yes")
    code, out, err = tertulia(*made, "--set", "topics=3")
    assert code == 0, err
    assert "clean" in (tmp_path / "office" / "run.toml").read_text()
    code, out, err = tertulia("check", "office/run.toml", "--json")
    assert code == 0, err
    assert json.loads(out)
    code, out, err = tertulia("run", "office/run.toml")
    assert code == 0, err
    code, out, err = tertulia("report", "office/runs/office", "-o", "report.html")
    assert code == 0, err
    assert (tmp_path / "report.html").is_file()


def test_the_first_day_of_an_officer(notes, tertulia, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.txt").write_text("rain\nriver\nbank\nmoney\nloan\npatient\nheart\ndoctor\n")
    private = ("--set", "private=yes", "--set", "words=words.txt", "--set", "topics=3", "--set", "column=body")
    made = tertulia("init", "clinic", "--party", f"north={notes}", "--party", f"south={notes}", *private, "--yes")
    assert made[0] == 0, made[2]
    config = tmp_path / "clinic" / "run.toml"
    config.write_text(config.read_text().replace("[method]", "[operator]\nreason = 'A pilot on notes'\n\n[method]", 1))
    code, out, err = tertulia("check", config)
    assert code == 0, err
    assert "A pilot on notes" in out + err
    code, out, err = tertulia("run", config)
    assert code == 0, err

    run = "clinic/runs/clinic"
    code, out, err = tertulia("privacy", run)
    assert code == 0, err
    assert re.search(r"PROTECTED|HARDLY", out)
    assert "NOT PROTECTED" not in out
    code, out, err = tertulia("disclosures", run, "--json")
    assert code == 0, err
    assert "item" not in json.dumps(json.loads(out)).replace("items", "")
    code, out, err = tertulia("report", run, "--party", "north", "-o", "north.html")
    assert code == 0, err
    assert "A pilot on notes" in (tmp_path / "north.html").read_text()
    code, out, err = tertulia("ledger", "verify", f"{run}/parties/north", "--model", run, "--party", "north")
    assert code == 0, err
    loaded = tt.load(run)
    assert "north" not in loaded.card(run=run)
    assert "PROTECTED" in loaded.card(run=run)
