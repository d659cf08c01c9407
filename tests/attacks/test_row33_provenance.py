"""A model that is passed on tells where parties keep their documents, homes and policies: it says nothing of these."""

import json

from tertulia.corpus import Corpus
from tertulia.runs.one_machine import run_on_one_machine
from tertulia.runs.results import public_settings
from tertulia.runs.settings import RunSettings


def test_a_saved_model_names_no_place(worded, tmp_path):
    policy = tmp_path / "secret-policy.toml"
    policy.write_text("allow_clear = true\n")
    own = {"policy": str(policy), "home": str(tmp_path / "secret-home")}
    settings = RunSettings(
        directory=str(tmp_path / "secret-run"),
        method={"name": "alone", "topics": 2, "sweeps": 2, "vocabulary": {"min_documents": 1, "max_share": 1.0}},
        parties={"a": own},
    )
    model = run_on_one_machine(settings, {"a": Corpus.from_texts(worded(0, 12))})
    saved = (tmp_path / "secret-run" / "model" / "model.json").read_text()
    assert str(tmp_path) not in saved
    assert "secret" not in saved
    assert model.provenance["config"]["method"]["topics"] == 2  # how it was trained stays
    assert model.provenance["parties"] == ["a"]


def test_paths_of_methods_and_data_stay_out_too():
    method = {"name": "pctd", "relations": {"pairs": "/secret/pairs.tsv"}} if _has_relations() else {"name": "pctd"}
    settings = RunSettings(directory="/secret/run", method=method, data={"path": "/secret/notes.jsonl"})
    assert "secret" not in json.dumps(public_settings(settings))


def _has_relations():
    from tertulia.methods.pctd.settings import PCTDSettings

    section = PCTDSettings.model_fields.get("relations")
    return section is not None and hasattr(section.annotation, "model_fields")
