"""Every command, end to end, in a temporary directory."""

import json

import numpy as np
import polars as pl
import pytest

from helpers.marks import slow
from tertulia.corpus import Vocabulary
from tertulia.models import Topics

CONFIG = """
seed = 1
directory = "runs/two"
engine = "{engine}"

[method]
name = "ftm"
topics = 4
rounds = 2
sweeps = 10

[parties.north]
path = "north.jsonl"

[parties.south]
path = "south.csv"
id = "number"
topics = 3
policy = "south.toml"
"""


@pytest.fixture
def project(tmp_path, worded):
    def make(engine="local", policy="allow_clear = true\n"):
        (tmp_path / "north.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in worded(0, 40)))
        rows = "".join(f"{i},{text}\n" for i, text in enumerate(worded(1, 30)))
        (tmp_path / "south.csv").write_text("number,text\n" + rows)
        (tmp_path / "south.toml").write_text(policy)
        (tmp_path / "run.toml").write_text(CONFIG.format(engine=engine))
        return tmp_path

    return make


@pytest.mark.filterwarnings("default::tertulia.models.display.FewDocumentsWarning")
@pytest.mark.parametrize("engine", ["local", slow("processes")])
def test_run_then_everything_else(tertulia, project, engine):
    base = project(engine)
    code, out, err = tertulia("run", base / "run.toml", "--json")
    assert code == 0, err
    facts = json.loads(out)
    assert facts["round"] == 3
    assert facts["perplexity"] > 1
    run = base / "runs" / "two"

    code, out, _ = tertulia("topics", run, "-n", 3, "--json")
    assert code == 0
    assert all(len(words) == 3 for words in json.loads(out)["topics"])
    assert "harbour" in tertulia("topics", run)[1]

    code, out, _ = tertulia("transform", run, base / "north.jsonl", "--json")
    assert len(json.loads(out)["documents"]) == 40
    for name in ("theta.parquet", "theta.csv", "theta.jsonl"):
        assert tertulia("transform", run / "model", base / "south.csv", "-o", base / name)[0] == 0
    theta = pl.read_parquet(base / "theta.parquet")
    assert theta.height == 30
    assert theta.select(pl.sum_horizontal(pl.exclude("id"))).to_series().to_list() == pytest.approx([1.0] * 30)

    code, out, err = tertulia("evaluate", run, base / "north.jsonl", "--json")
    assert "says more about these than about the topics: use 1,000 or more" in err
    scores = json.loads(out)
    assert scores["perplexity"] < scores["unigram_perplexity"]
    assert -1 <= scores["npmi"] <= 1
    assert 0 < scores["diversity"] <= 1

    code, out, _ = tertulia("disclosures", run, "--json")
    rows = json.loads(out)["disclosures"]
    pushed = [row for row in rows if row["what"] == "topic-word distributions"]
    assert [(row["party"], row["round"]) for row in pushed] == [("north", 1), ("north", 2), ("south", 1), ("south", 2)]
    assert all(row["mechanism"] == "clear" and row["bytes"] > 0 for row in pushed)
    assert "words with document counts" in tertulia("disclosures", run)[1]

    code, out, _ = tertulia("privacy", run, "--json")
    assert list(json.loads(out)) == ["delta", "totals", "privacy", "verdicts"]
    assert {row["real_epsilon"] for row in json.loads(out)["totals"]} == {None}  # no bound
    real = {row["what"]: row["real_epsilon"] for row in json.loads(out)["privacy"]}
    assert real["topic-word distributions"] is None
    assert real["number of documents"] == 0
    assert tertulia("privacy", run)[0] == 0

    before = (run / "model" / "topics.safetensors").read_bytes()
    assert tertulia("resume", run)[0] == 0  # a finished run: nothing to do, the same model
    assert (run / "model" / "topics.safetensors").read_bytes() == before
    local = json.loads((run / "parties" / "south" / "party.json").read_text())
    assert local["settings"] == {"topics": 3}


@pytest.mark.filterwarnings("ignore:3 of 5 documents hold no word")
def test_transform_keeps_ids_and_gives_a_row_for_each_row(tertulia, tmp_path):
    Topics(np.array([[0.9, 0.1], [0.1, 0.9]]), Vocabulary(("rain", "money")), np.array([0.1, 0.3])).save(tmp_path / "m")
    (tmp_path / "new.csv").write_text("number,text\n17,rain rain\n4,\n23,unheard of\n8,money\n99\n")
    out = tmp_path / "theta.csv"
    code, _, err = tertulia("transform", tmp_path / "m", tmp_path / "new.csv", "--id", "number", "-o", out)
    assert code == 0, err
    theta = pl.read_csv(out)
    assert theta["id"].to_list() == ["17", "4", "23", "8", "new.csv:6"]
    assert theta["topic0"].to_list()[1:3] == pytest.approx([0.25, 0.25])  # the prior mean
    assert theta["topic0"][0] > 0.8 > 0.2 > theta["topic0"][3]
    assert theta["topic0"][4] == pytest.approx(0.25)  # a broken row
    assert "kept 1: empty text" in err
    code, printed, _ = tertulia("transform", tmp_path / "m", tmp_path / "new.csv", "--id", "number", "--json", "-j", 2)
    assert [row["id"] for row in json.loads(printed)["documents"]] == theta["id"].to_list()


def test_engines_give_the_same_model(tertulia, project):
    base = project()
    for engine in ("local", "processes"):
        assert tertulia("run", base / "run.toml", "--engine", engine, "--directory", base / engine)[0] == 0
    one, other = (Topics.load(base / engine / "model") for engine in ("local", "processes"))
    assert one.topic_word.tobytes() == other.topic_word.tobytes()


def test_check_tells_what_would_happen_and_does_nothing(tertulia, project):
    base = project()
    code, out, err = tertulia("check", base / "run.toml", "--json")
    assert code == 0, err
    report = json.loads(out)
    assert {row["party"]: row["documents"] for row in report["read"]} == {"north": 40, "south": 30}
    assert report["train"]["topics"] == 4
    assert {row["what"] for row in report["disclosed"]} >= {"topic-word distributions", "number of documents"}
    assert not (base / "runs").exists()
    assert "Would be disclosed" in tertulia("check", base / "run.toml")[1]


@pytest.mark.parametrize("engine", ["local", slow("processes")])
def test_words_of_one_document_are_counted_before_they_leave(tertulia, project, engine):
    base = project(engine)
    rows = (base / "south.csv").read_text()
    (base / "south.csv").write_text(rows + "77,zebra quagga harbourb\n78,zebra okapi\n")
    (base / "run.toml").write_text((base / "run.toml").read_text().replace("seed = 1", "seed = 1\nheldout = 0.0"))
    code, out, _ = tertulia("check", base / "run.toml", "--json")
    assert code == 0
    assert {row["party"]: row["words_of_one_document"] for row in json.loads(out)["read"]} == {"north": 0, "south": 2}
    assert "quagga" not in out
    assert tertulia("run", base / "run.toml")[0] == 0
    logs = {path.parent.name: path.read_text() for path in (base / "runs" / "two" / "parties").glob("*/party.log")}
    assert list(logs) == ["south"]
    assert "2 of the 11 words that leave now are in only one of its documents" in logs["south"]
    assert "quagga" not in logs["south"]


def test_with_a_public_list_no_word_leaves(tertulia, project):
    base = project()
    public = '[method.vocabulary]\nmode = "public"\nwords = ["winter"]\n\n[parties.north]'
    (base / "run.toml").write_text((base / "run.toml").read_text().replace("[parties.north]", public))
    _, out, _ = tertulia("check", base / "run.toml", "--json")
    assert {row["words_of_one_document"] for row in json.loads(out)["read"]} == {0}


def test_check_says_who_reads_single_replies(tertulia, project):
    _, out, _ = tertulia("check", project() / "run.toml", "--json")
    seen = {row["what"]: row["seen"] for row in json.loads(out)["disclosed"]}
    assert seen["topic-word distributions"] == "singly by the server"
    assert seen["held-out log likelihood"] == "singly by the server's machine, as a sum by the method"


def test_check_names_the_rule_that_forbids(tertulia, project):
    base = project(policy="allow_clear = false\n")
    code, out, _ = tertulia("check", base / "run.toml", "--json")
    assert code == 3
    refused = {row["party"] for row in json.loads(out)["disclosed"] if "allow_clear" in row["verdict"]}
    assert refused == {"south"}


@pytest.mark.filterwarnings("default::tertulia.runs.results.AbsentPartyWarning")
def test_a_party_that_refuses_is_left_out_with_a_warning(tertulia, project):
    base = project(policy="allow_clear = false\n")
    code, _, err = tertulia("run", base / "run.toml")
    assert code == 0
    assert "allow_clear" in err
    rows = json.loads(tertulia("disclosures", base / "runs" / "two", "--json")[1])["disclosures"]
    assert {row["party"] for row in rows} == {"north"}


def test_a_single_source_can_be_split(tertulia, tmp_path, worded):
    rows = [{"text": t, "ward": "ab"[i % 2]} for i, t in enumerate(worded(0, 40))]
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for split in (
        'split = "column"\nparty = "ward"',
        'split = "random"\nsizes = {a = 1, b = 2}',
        'split = "dirichlet"\nlabel = "ward"\nparties = ["a", "b"]\nconcentration = 5.0',
    ):
        config = f'[data]\npath = "all.jsonl"\n{split}\n[method]\nname = "ftm"\ntopics = 2\nrounds = 1\nsweeps = 3\n'
        (tmp_path / "run.toml").write_text(config)
        code, out, err = tertulia("check", tmp_path / "run.toml", "--json")
        assert code == 0, err
        assert [row["party"] for row in json.loads(out)["read"]] == ["a", "b"]
        assert sum(row["documents"] for row in json.loads(out)["read"]) == 40


def test_a_single_source_can_be_cut_into_shards_of_users(tertulia, tmp_path, worded):
    rows = [{"text": f"{t} {i}", "patient": str(i % 10)} for i, t in enumerate(worded(0, 40))]
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = '[data]\npath = "all.jsonl"\nuser = "patient"\nshards = 3\n{}[method]\nname = "consensus"\ntopics = 2\n'
    (tmp_path / "run.toml").write_text(config.format(""))
    code, out, err = tertulia("check", tmp_path / "run.toml", "--json")
    assert code == 0, err
    documents = {row["party"]: row["documents"] for row in json.loads(out)["read"]}
    assert list(documents) == ["shard-01", "shard-02", "shard-03"]
    assert sum(documents.values()) == 40
    assert all(number % 4 == 0 for number in documents.values())  # each patient has four, and they stay together
    (tmp_path / "run.toml").write_text(config.format('split = "file"\n'))
    code, _, err = tertulia("check", tmp_path / "run.toml", "--json")
    assert code != 0
    assert "leave out split = 'file'" in err


@pytest.mark.parametrize("name", ["alone", "centralised"])
def test_baselines_run_from_a_config(tertulia, project, name):
    base = project()
    text = (base / "run.toml").read_text().replace('name = "ftm"', f'name = "{name}"').replace("rounds = 2\n", "")
    (base / "run.toml").write_text(text)
    code, _, err = tertulia("run", base / "run.toml")
    assert code == 0, err
