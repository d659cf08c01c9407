"""A party that refuses everything is not counted among those that took part."""

import json

import pytest

import tertulia as tt
from tertulia.runs.results import AbsentPartyWarning, reason_of


@pytest.fixture
def strict(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text("allow_clear = false\n")
    return str(path)


def test_the_result_says_who_took_part(worded, strict, tmp_path):
    parties = {name: worded(number, 30) for number, name in enumerate(("east", "north", "south"))}
    warnings = []
    with pytest.warns(AbsentPartyWarning, match=r"^2 of 3 parties; north refused \(allow_clear\): the model knows"):
        model = tt.Consensus(topics=3, rounds=6, sweeps=3).fit(
            parties,
            party_settings={"north": {"policy": strict}},
            observe=lambda kind, facts: warnings.append(facts["text"]) if kind == "warning" else None,
        )
    assert model.provenance["parties"] == ["east", "south"]
    assert model.provenance["absent"] == {"north": "refused (allow_clear)"}
    assert "consensus, 2 of 3 parties; north refused (allow_clear))" in repr(model).splitlines()[0]
    assert "2 of 3 parties; north refused (allow_clear)" in model._repr_html_()
    assert len(warnings) == len(set(warnings)) < 8  # not one for each question, of which there are more
    model.save(tmp_path / "model")
    assert "2 of 3 parties" in repr(tt.Topics.load(tmp_path / "model"))


@pytest.mark.filterwarnings("default::tertulia.runs.results.AbsentPartyWarning")
def test_the_command_line_says_it_too(worded, strict, tmp_path, tertulia):
    for number, name in enumerate(("east", "north", "south")):
        lines = [json.dumps({"text": text}) for text in worded(number, 30)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    (tmp_path / "run.toml").write_text(f"""
directory = "{tmp_path / "run"}"
[method]
name = "consensus"
topics = 3
rounds = 2
sweeps = 3
[parties.east]
path = "east.jsonl"
[parties.north]
path = "north.jsonl"
policy = "{strict}"
[parties.south]
path = "south.jsonl"
""")
    code, out, err = tertulia("run", tmp_path / "run.toml")
    assert code == 0
    assert "warning: 2 of 3 parties; north refused (allow_clear): the model knows nothing of the others" in err
    assert "2 of 3 parties; north refused (allow_clear)" in out


def test_reasons_hold_the_name_of_a_rule_alone():
    assert reason_of("refused by rule 'allow_single': a word of a document") == "refused (allow_single)"
    assert reason_of("refused by rule 'a note of mine': x") == reason_of("") == "never answered"


def test_a_whole_federation_has_nobody_absent(worded):
    model = tt.Consensus(topics=3, rounds=1, sweeps=3).fit({"a": worded(0, 30), "b": worded(1, 30)})
    assert "absent" not in model.provenance
    assert "consensus, 2 parties)" in repr(model)
