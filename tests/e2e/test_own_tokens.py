"""Own tokenisers, n-grams, separators and encodings, from Python and from files: all parties cut texts in one way."""

import json
import sys
from pathlib import Path

import pytest

import tertulia as tt
from helpers.attacks_noise import ask, party, report
from tertulia.errors import ConfigError, InputError, QuorumError
from tertulia.models import Topics

ROOT = Path(__file__).parents[2]
NOTES = ["Acute heart attack. The ward was closed.", "Heart attack again. The river rose."]
PARTIES = dict.fromkeys(("north", "south"), NOTES * 10)
QUICK = {"topics": 2, "rounds": 2, "sweeps": 3, "start_sweeps": 3}
EVERY_WORD = {"max_share": 1.0}


def cut(sentence):
    return sentence.strip(".").upper().split()


def test_phrases_are_words_of_the_federation():
    text = tt.TextOptions(ngrams=2)
    model = tt.Consensus(**QUICK, vocabulary=EVERY_WORD).fit(PARTIES, text=text)
    assert {"heart", "heart_attack", "ward_closed"} <= set(model.vocabulary.words)
    assert "attack_ward" not in model.vocabulary.index  # they are of two sentences
    listed = {"mode": "public", "words": ("heart_attack", "river")}
    model = tt.Consensus(**QUICK, vocabulary=listed).fit(PARTIES, text=text)
    assert model.encode(NOTES).lengths.tolist() == [1, 2]


def test_noise_for_words_and_n_grams_exclude_each_other():
    listed = {"mode": "public", "words": ("heart_attack", "river")}
    method = tt.Consensus(**QUICK, mode="sound", epsilon=8, beta=0.1, vocabulary=listed)
    with pytest.raises(ConfigError, match=r"ngrams = 2 puts a word into up to 3 tokens, and in mode 'sound' epsilon"):
        method.fit(PARTIES, text=tt.TextOptions(ngrams=2))


def test_a_party_refuses_noise_for_tokens_where_words_are_in_several(tmp_path, monkeypatch):
    """It holds for any settings of the server: the method of CONTRIBUTING has no mode that settings could check."""
    block = (ROOT / "CONTRIBUTING.md").read_text().split("runs this very block -->\n```python\n")[1].split("```")[0]
    (tmp_path / "noisy_counts.py").write_text(block)
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("noisy_counts", None)
    import noisy_counts

    with pytest.raises(
        QuorumError, match=r"refused by rule 'ngrams': a word is in up to 3 tokens, and noise is for one"
    ):
        tt.federate(noisy_counts.train, PARTIES, config={"words": ["heart"]}, text=tt.TextOptions(ngrams=2))


def test_a_party_reports_no_tokens_of_n_grams_and_charges_nothing(tmp_path):
    corpus = tt.Corpus.from_texts(NOTES, options=tt.TextOptions(ngrams=2))
    host = party(tmp_path / "north", corpus)
    answer = ask(host, report)
    assert answer.kind == "refused"
    assert "ngrams" in answer.text
    assert host.ledger.releases() == []


def test_an_own_tokeniser_from_texts_to_a_saved_model(tmp_path):
    model = tt.Consensus(**QUICK, vocabulary=EVERY_WORD).fit(
        PARTIES, text=tt.TextOptions(tokenizer=cut), validation=0.2
    )
    assert {"THE", "HEART"} <= set(model.vocabulary.words)
    for own in (model, model.best_for("north")):
        assert own.encode(["Heart attack."]).n_tokens == 2
    loaded = Topics.load(model.save(tmp_path / "model"))
    with pytest.raises(InputError, match=r"cut', and that function is not here"):
        loaded.transform(["Heart attack."])
    assert loaded.encode([["HEART", "ATTACK"]]).n_tokens == 2
    assert loaded.with_tokenizer(cut).encode(["Heart attack."]).n_tokens == 2


def config(folder, text, files):
    parties = "".join(f'[parties.{name}]\npath = "{file}"\n{keys}\n' for name, (file, keys) in files.items())
    (folder / "run.toml").write_text(f"""
directory = "run"
[method]
name = "consensus"
topics = 2
rounds = 2
sweeps = 3
start_sweeps = 3
[method.vocabulary]
max_share = 1.0
[text]
{text}
{parties}""")
    return folder / "run.toml"


def test_tokens_in_files_under_an_agreed_name(tmp_path, tertulia):
    rows = [{"text": cut(note.replace(".", ""))} for note in NOTES * 10]
    (tmp_path / "north.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "south.csv").write_text("text\n" + "\n".join(NOTES * 10))
    both = {"north": ("north.jsonl", ""), "south": ("south.csv", "")}
    code, _, err = tertulia("run", config(tmp_path, 'tokenizer = "upper case"', both))
    assert code != 0
    assert "texts are cut into tokens by 'upper case'" in err
    (tmp_path / "south.jsonl").write_text((tmp_path / "north.jsonl").read_text())
    both["south"] = ("south.jsonl", "")
    file = config(tmp_path, 'tokenizer = "upper case"\nngrams = 2', both)
    file.write_text(file.read_text().replace('"run"', '"again"'))
    assert tertulia("run", file)[0] == 0
    model = Topics.load(tmp_path / "again" / "model")
    assert "HEART_ATTACK" in model.vocabulary.index
    assert model.options == tt.TextOptions(tokenizer="upper case", ngrams=2)


@pytest.mark.filterwarnings("ignore:a score, and coherence")
def test_separators_and_encodings_in_files_and_on_the_command_line(tmp_path, tertulia):
    rows = "text|id\n" + "".join(f"{note} Café.|{number}\n" for number, note in enumerate(NOTES * 10))
    (tmp_path / "north.csv").write_bytes(rows.encode("cp1252"))  # guessed
    (tmp_path / "south.csv").write_bytes(rows.encode("koi8-r", "ignore"))
    files = {"north": ("north.csv", ""), "south": ("south.csv", 'encoding = "koi8-r"\nseparator = "|"')}
    assert tertulia("run", config(tmp_path, "", files))[0] == 0
    assert "café" in Topics.load(tmp_path / "run" / "model").vocabulary.index
    code, out, err = tertulia("transform", tmp_path / "run", tmp_path / "north.csv", "--id", "id", "--json")
    assert code == 0
    assert len(json.loads(out)["documents"]) == 20
    assert "guessed for 1 file: encoding = 'cp1252'" in err
    said = ("--encoding", "cp1252", "--separator", "|")
    code, _, err = tertulia("evaluate", tmp_path / "run", tmp_path / "north.csv", *said)
    assert code == 0
    assert "guessed" not in err
