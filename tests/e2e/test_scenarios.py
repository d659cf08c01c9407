"""`tertulia scenarios`: one command; alone, federated and pooled, each score beside its controls."""

import json

import numpy as np
import pytest

from tertulia.corpus import Vocabulary
from tertulia.models import Topics
from tertulia.runs.scenarios import own_method, pooled_lda, side_by_side
from tertulia.runs.settings import load

METHODS = {
    "ftm": "name = 'ftm'\ntopics = 4\nrounds = 2\nsweeps = 10\nmin_similarity = 0.05",
    "consensus": "name = 'consensus'\ntopics = 4\nrounds = 2\nsweeps = 5",
    "fedlda": "name = 'fedlda'\ntopics = 4\nrounds = 4\nsampler = 'mh'",
    "pctd": "name = 'pctd'\ntopics = 4\nrounds = 5",
    "gfedntm": "name = 'gfedntm'\ntopics = 3\nhidden = [8, 6]\nepochs = 3\nbatch_size = 16",
}
WORDS = {"mode": "public", "words": ("winter", "letter")}


def write(directory, method, worded):
    for number, name in enumerate(("north", "south")):
        rows = [{"text": f"{text} n{i}x"} for i, text in enumerate(worded(number, 30))]
        (directory / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    parties = "".join(f"[parties.{name}]\npath = '{name}.jsonl'\n" for name in ("north", "south"))
    parties += "topics = 6\n" if method == "ftm" else ""  # in the south
    words = "[method.vocabulary]\nmax_share = 1.0\n"
    config = f"directory = 'runs'\nheldout = 0.2\n[method]\n{METHODS.get(method, method)}\n{words}{parties}"
    (directory / "run.toml").write_text(config)
    return directory / "run.toml"


@pytest.mark.parametrize("method", ["ftm", "consensus", "fedlda", "pctd", "gfedntm"])
def test_every_score_stands_beside_its_controls(method, worded, tmp_path, tertulia):
    code, out, err = tertulia("scenarios", write(tmp_path, method, worded), "--json")
    assert code == 0, err
    rows = json.loads(out)["scenarios"]
    own = "lda" if method == "ftm" else method
    K, own_K = {"gfedntm": (3, 3), "ftm": (4, 5)}.get(method, (4, 4))
    T = rows[0]["topics"]
    expected = [
        ("federated", method, 1, T), ("federated, another seed", method, 1, rows[1]["topics"]),
        ("pooled", own, 1, K), ("alone", own, 2, own_K), ("alone, side by side", own, 1, 2 * own_K),
    ]  # fmt: skip
    if method == "ftm":  # which finds its own number of topics
        assert T != K
        expected += [(f"pooled, {T} topics", "lda", 1, T), (f"alone, {T} topics", "lda", 2, T)]
    elif method != "consensus":
        expected += [("pooled", "lda", 1, K)]
    expected += [("nothing learned", "unigram", 1, 1)]
    assert [(row["scenario"], row["method"], row["models"], row["topics"]) for row in rows] == expected
    assert all(1 < row["perplexity"] < 100 for row in rows)  # there are some 70 words
    scores = {(row["scenario"], row["method"]): row["perplexity"] for row in rows}
    assert scores["federated", method] != scores["federated, another seed", method]
    # A party alone has not seen the other's words.
    assert scores["alone", own] > max(scores["federated", method], scores["pooled", own])
    assert (tmp_path / "runs" / "federated" / "model").is_dir()


@pytest.mark.parametrize("method", ["fedlda", "pctd", "consensus"])
def test_a_party_alone_uses_the_same_method(method, worded, tmp_path):
    settings = load(write(tmp_path, method, worded))
    alone = settings.replace(method=own_method(settings, WORDS)).method
    assert alone == settings.method.model_copy(update={"vocabulary": alone.vocabulary})
    assert alone.vocabulary.words == WORDS["words"]


def test_lda_gets_as_many_sweeps_as_the_federation(worded, tmp_path):
    settings = load(write(tmp_path, "ftm", worded))
    alone = settings.replace(method=own_method(settings, WORDS)).method
    assert (alone.name, alone.topics, alone.sweeps) == ("alone", 4, 20)
    settings = load(write(tmp_path, "pctd", worded))
    pooled = settings.replace(method=pooled_lda(settings, WORDS)).method
    assert (pooled.name, pooled.topics, pooled.sweeps) == ("alone", 4, 5)


def test_topics_side_by_side_are_everybody_s_with_one_prior():
    words = Vocabulary(("sun", "rain"))
    one = Topics(np.array([[0.9, 0.1]]), words, np.array([2.0]))
    two = Topics(np.array([[0.2, 0.8], [0.5, 0.5]]), words, np.array([1.0, 1.0]))
    both = side_by_side([one, two])
    assert both.topic_word.tolist() == [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]
    assert both.alpha.tolist() == [1.0, 0.5, 0.5]


def test_controls_spend_nothing_of_a_party_s_own_ledger(worded, tmp_path, tertulia):
    path = write(tmp_path, "ftm", worded)
    (tmp_path / "policy.toml").write_text("allow_clear = true\n")
    own = f"[parties.north]\npolicy = '{tmp_path / 'policy.toml'}'\nhome = '{tmp_path / 'home'}'\ntopics = 3\n"
    path.write_text(path.read_text().replace("[parties.north]\n", own))
    code, out, err = tertulia("scenarios", path, "--json")
    assert code == 0, err
    rows = {row["scenario"]: row for row in json.loads(out)["scenarios"]}
    assert rows["alone, side by side"]["topics"] == 3 + 6
    assert rows[f"alone, {rows['federated']['topics']} topics"]["topics"] == rows["federated"]["topics"]
    from tertulia.privacy.ledger import Ledger

    runs = {release.run for release in Ledger(tmp_path / "home" / "ledger.sqlite").releases()}
    assert len(runs) == 1


def test_a_baseline_has_no_baselines(worded, tmp_path, tertulia):
    code, _, err = tertulia("scenarios", write(tmp_path, "name = 'alone'", worded))
    assert code == 1
    assert "give the federated method" in err


def test_the_table_is_for_people(worded, tmp_path, tertulia):
    code, said, _ = tertulia("scenarios", write(tmp_path, "pctd", worded))
    assert code == 0
    assert all(word in said for word in ("another seed", "side by side", "unigram", "perplexity"))
    assert max(map(len, said.splitlines())) < 100
