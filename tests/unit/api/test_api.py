import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

import tertulia as tt
from tertulia.api.federated import as_corpus
from tertulia.errors import ConfigError, InputError
from tertulia.methods.common.lda_settings import Training
from tertulia.runs.results import FederatedTopics

SMALL = {"topics": 2, "rounds": 1, "sweeps": 3}


def test_the_public_names_are_these_and_no_others():
    assert tt.__all__ == [
        "Alone", "Centralised", "CombinedTM", "Consensus", "Corpus", "EmbeddingTopics", "FTM", "FedLDA",
        "FederatedTopics", "GFedNTM", "LDA", "NonCollaborative", "PCTD", "Pooled", "PrivateTopics", "ProdLDA",
        "TertuliaError", "TextOptions", "TopicFeatures", "Topics", "Vocabulary", "ZeroShotTM", "best_for",
        "choose_topics", "federate", "load", "read",
    ]  # fmt: skip
    assert dir(tt) == tt.__all__
    assert all(getattr(tt, name) is not None for name in tt.__all__)
    with pytest.raises(AttributeError, match="no attribute 'LSA'"):
        _ = tt.LSA


def test_what_is_compared_has_one_name_each_and_papers_names_are_aliases():
    assert (tt.Alone.__name__, tt.Pooled.__name__) == ("Alone", "Pooled")
    assert (tt.NonCollaborative, tt.Centralised) == (tt.Alone, tt.Pooled)
    assert (tt.Alone().name, tt.Pooled().name) == ("alone", "centralised")  # as TOML files write them


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, tertulia; print(sorted({'numpy', 'numba', 'polars', 'pydantic', 'torch'} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_lda_on_one_machine_loads_neither_runs_nor_views():
    code = """
import sys, tertulia as tt
tt.LDA(topics=2, sweeps=2).fit(["rain", "sun", "wind"] * 4, progress=False)
print(*sorted(name for name in sys.modules if name.split(".")[0] == "tertulia"))
"""
    loaded = subprocess.check_output([sys.executable, "-W", "ignore", "-c", code], text=True).split()
    rooms = {".".join(name.split(".")[:2]) for name in loaded}
    assert not rooms & {"tertulia.runs", "tertulia.view", "tertulia.operations.upgrades", "tertulia.cli"}
    assert len(loaded) <= 95


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
def test_data_frames_are_documents(frame):
    corpus = as_corpus("north", frame({"text": ["rivers rise", "bridges hold"], "id": [7, 8], "label": ["x", "y"]}))
    assert corpus.table.to_dict(as_series=False) == {"id": ["7", "8"], "label": ["x", "y"]}
    with pytest.raises(InputError, match=r"party 'north' has no column 'text', only \['body'\]: write column='body'"):
        as_corpus("north", frame({"body": ["x"]}))


def test_fit_gives_the_shared_and_the_local_models(worded, tmp_path):
    parties = {"north": worded(0, 30), "south": tt.Corpus.from_texts(worded(1, 30))}
    model = tt.FTM(topics=3, rounds=2, sweeps=5).fit(parties)
    assert isinstance(model, FederatedTopics)
    assert set(model.local) == {"north", "south"}
    assert model.local["north"].n_topics == 3
    assert model.transform(["winter letter"]).shape == (1, model.n_topics)
    assert model.provenance["method"] == "ftm"
    assert model.provenance["parties"] == ["north", "south"]
    assert set(model.provenance["ledgers"]) == {"north", "south"}
    assert all(down > 0 and up > 0 for facts in model.history for down, up in facts["bytes"].values())
    model.save(tmp_path / "model")
    loaded = tt.Topics.load(tmp_path / "model")
    assert type(loaded) is tt.Topics
    assert loaded.topic_word.tobytes() == model.topic_word.tobytes()
    assert not any("winter letter bridge" in path.read_text(errors="ignore") for path in tmp_path.rglob("*.json"))


def test_nothing_stays_behind_without_a_directory(worded, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    tt.FTM(**SMALL).fit({"a": worded(0, 20), "b": worded(1, 20)})
    assert list(tmp_path.iterdir()) == []


def test_each_party_keeps_its_composed_model(worded, tmp_path):
    tt.FTM(**SMALL).fit({"a": worded(0, 20), "b": worded(1, 20)}, directory=tmp_path / "run")
    assert (tmp_path / "run" / "parties" / "a" / "kept" / "composed.safetensors").exists()


def test_a_public_vocabulary_sends_nothing_about_the_data(worded, tmp_path):
    from tertulia.runs.directory import Run
    from tertulia.view.tables import disclosure_rows

    words = ("winter", "letter", "bridge", "market")
    method = tt.FTM(**SMALL, vocabulary={"mode": "public", "words": words}, evaluate=False)
    model = method.fit({"a": worded(0, 20), "b": worded(1, 20)}, directory=tmp_path / "run")
    assert model.vocabulary.words == words
    assert {row["what"] for row in disclosure_rows(Run.open(tmp_path / "run"))} == {
        "topic-word distributions",
        "topic sizes",
        "number of documents",
    }


def test_a_party_may_have_any_name_and_stays_below_its_run(worded, tmp_path):
    names = ["../outside", "a/b", ".", "Zürich & Genève"]
    tt.FTM(**SMALL).fit({name: worded(i, 20) for i, name in enumerate(names)}, directory=tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert len(list((tmp_path / "run" / "parties").iterdir())) == 4
    assert all((home / "ledger.sqlite").exists() for home in (tmp_path / "run" / "parties").iterdir())


def test_the_pooled_baseline_is_a_party_that_holds_everything(worded):
    parties = {"a": worded(0, 25), "b": worded(1, 25)}
    method = {"topics": 3, "sweeps": 5}
    alone = tt.Alone(**method).fit(parties)
    assert set(alone.local) == {"a", "b"}
    pooled = tt.Pooled(**method).fit(parties)
    everything = tt.Alone(**method).fit({"pooled": parties["a"] + parties["b"]})
    assert np.array_equal(pooled.topic_word, everything.local["pooled"].topic_word)


def test_a_federation_of_one_is_lda(worded):
    parties = {"a": worded(0, 40)}
    federated = tt.FTM(topics=3, rounds=1, sweeps=5, min_similarity=1.0).fit(parties)
    alone = tt.Alone(topics=3, sweeps=5).fit(parties)
    assert np.array_equal(federated.local["a"].topic_word, alone.local["a"].topic_word)
    assert np.allclose(np.sort(federated.topic_word, axis=0), np.sort(alone.topic_word, axis=0))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"topics": 0}, "topics = 0"),
        ({"topics": "many"}, "topics = 'many'"),
        ({"min_similarity": 2}, "min_similarity = 2"),
        ({"mode": "sound"}, "these need one"),
        ({"mode": "sound", "epsilon": 8}, "needs a public word list"),
        (
            {
                "mode": "sound",
                "epsilon": 8,
                "channel": "laplace",
                "sampler": "warp",
                "vocabulary": {"mode": "public", "words": ["a"]},
            },
            "one word each",
        ),
        ({"epsilon": 8}, "goes with mode"),
        ({"mode": "paper", "epsilon": 8, "learn_alpha": True}, "to the letter, and there alpha is fixed"),
        ({"tpoics": 3}, "unknown key 'tpoics'"),
        ({"vocabulary": {"mode": "public"}}, "go together"),
    ],
)
def test_wrong_settings_name_the_key(settings, says):
    with pytest.raises(ConfigError, match=says):
        tt.FTM(**settings)


@pytest.mark.parametrize("method", [tt.FTM, tt.Consensus, tt.Alone, tt.Pooled])
def test_alpha_is_learned_unless_it_is_given(method, worded):
    small = {"topics": 3, "sweeps": 5, **({"rounds": 2} if "rounds" in method.model_fields else {})}
    parties = {"a": worded(0, 40), "b": worded(1, 30)}
    assert np.ptp(method(**small).fit(parties).alpha) > 0
    fixed = method(**small, alpha=0.6, learn_alpha=False).fit(parties)
    assert np.array_equal(fixed.alpha, np.full(fixed.n_topics, 0.6 / fixed.n_topics))


@pytest.mark.parametrize("sweeps", [1, 20])
def test_lda_learns_alpha_however_few_its_sweeps(sweeps, worded):
    assert np.ptp(tt.LDA(topics=3, sweeps=sweeps).fit(worded(0, 40)).alpha) > 0
    fixed = tt.LDA(topics=3, sweeps=sweeps, learn_alpha=False).fit(worded(0, 40))
    assert np.array_equal(fixed.alpha, np.full(3, 5 / 3))


def test_alpha_is_fixed_where_it_cannot_be_learned():
    paper = tt.FTM(mode="paper", epsilon=8)
    assert not paper.learn_alpha
    assert not paper.part(Training).learn_alpha
    assert not paper.for_one_party().learn_alpha
    assert not tt.FedLDA().learn_alpha
    with pytest.raises(ConfigError, match="learn_alpha = True: users' topics would have to leave without noise"):
        tt.FedLDA(learn_alpha=True)


def test_settings_for_a_party_that_is_not_there(worded):
    with pytest.raises(ConfigError, match=r"settings for \['west'\]"):
        tt.FTM(**SMALL).fit({"a": worded(0, 9), "b": worded(1, 9)}, party_settings={"west": {"topics": 3}})


def test_a_method_of_ones_own_must_live_in_a_module(worded):
    def train(fed, config, state):
        return None

    train.__module__ = "__main__"
    with pytest.raises(ConfigError, match="module of their own"):
        tt.federate(train, {"a": worded(0, 9)})


MISSING = [float("nan"), None, pd.NA, pd.NaT]


@pytest.mark.parametrize("missing", MISSING, ids=str)
def test_a_missing_text_is_an_empty_one_and_never_a_word(missing):
    texts = ["rivers rise", missing, "bridges hold"]
    frame = pd.DataFrame(
        {"text": pd.Series(texts, dtype=object), "id": ["a", missing, "c"], "label": [missing, "x", "y"]}
    )
    for documents in (frame, frame["text"], texts):
        corpus = as_corpus(None, documents)
        assert corpus.lengths.tolist() == [2, 0, 2]
        assert not {"nan", "none", "nat", "na"} & {word.lower() for word in corpus.vocabulary.words}
    table = as_corpus(None, frame).table
    assert table["label"].to_list() == [None, "x", "y"]
    assert table["id"].to_list()[::2] == ["a", "c"]
    assert table["id"][1] not in ("nan", "None", "<NA>", "NaT")


def test_null_in_polars_is_an_empty_text():
    frame = pl.DataFrame({"text": ["rivers rise", None], "date": ["2020-01-01", None]})
    corpus = as_corpus(None, frame)
    assert corpus.lengths.tolist() == [2, 0]
    assert corpus.table["date"].to_list() == ["2020-01-01", None]


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
def test_a_missing_text_takes_no_part_in_training(frame, worded):
    texts = [text for pair in zip(worded(0, 20), [None] * 20, strict=True) for text in pair]
    model = tt.LDA(topics=2, sweeps=3, vocabulary={"max_share": 1.0}).fit(frame({"text": texts}))
    federated = tt.FTM(**SMALL, vocabulary={"max_share": 1.0}).fit({"a": frame({"text": texts}), "b": worded(0, 20)})
    assert not {"nan", "none"} & {*model.vocabulary.words, *federated.vocabulary.words}
