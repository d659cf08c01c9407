import json
from pathlib import Path

import numpy as np
import pytest

from tertulia.corpus import TextOptions, Vocabulary
from tertulia.errors import FormatError, InputError, JournalError
from tertulia.models import Topics, storage


def model(seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return Topics(
        rng.dirichlet(np.full(4, 0.3), size=3).astype(dtype),
        Vocabulary(("naïve", "雨", "a'b", 'quo"te')),
        alpha=rng.gamma(1.0, size=3),
        beta=0.1 + 0.2,
        weights=rng.dirichlet(np.ones(3)),
        options=TextOptions(stop_words=("the", "of"), lowercase=False),
        provenance={"method": "ftm", "parties": ("north", "süd"), "config": {"topics": 3}},
    )


def names(directory):
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_loaded_model_equals_the_saved_one_bit_for_bit(tmp_path, dtype):
    saved = model(dtype=dtype)
    assert saved.save(tmp_path / "deep" / "model") == tmp_path / "deep" / "model"
    loaded = Topics.load(str(tmp_path / "deep" / "model"))
    assert loaded == saved
    assert loaded.topic_word.dtype == dtype
    assert names(tmp_path / "deep") == ["model"]
    assert names(tmp_path / "deep" / "model") == ["model.json", "topics.safetensors"]
    assert json.loads((tmp_path / "deep" / "model" / "model.json").read_text("utf-8"))["format"] == 1


def test_saving_again_replaces_the_model(tmp_path):
    model(0).save(tmp_path / "model")
    model(1).save(tmp_path / "model")
    assert Topics.load(tmp_path / "model") == model(1)
    assert names(tmp_path) == ["model"]


@pytest.mark.parametrize("failing", ["write", "sync_directory", "_swap"])
def test_a_failed_save_leaves_the_former_model(tmp_path, monkeypatch, failing):
    model(0).save(tmp_path / "model")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage, failing, full)
    with pytest.raises(JournalError, match=r"No space left on device\. What was there is intact"):
        model(1).save(tmp_path / "model")
    assert Topics.load(tmp_path / "model") == model(0)
    assert names(tmp_path) == ["model"]


def test_a_failed_last_rename_puts_the_former_model_back(tmp_path, monkeypatch):
    model(0).save(tmp_path / "model")
    rename = Path.rename

    def only_aside(self, target):
        if self.name.endswith(".new"):
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", only_aside)
    with pytest.raises(JournalError):
        model(1).save(tmp_path / "model")
    assert Topics.load(tmp_path / "model") == model(0)


def test_a_crash_between_the_renames_loses_neither_model(tmp_path):
    model(0).save(tmp_path / "model")
    (tmp_path / "model").rename(tmp_path / ".model.before")  # where a crash would have left it
    assert Topics.load(tmp_path / "model") == model(0)
    model(1).save(tmp_path / "model")
    assert Topics.load(tmp_path / "model") == model(1)
    assert names(tmp_path) == ["model"]


def test_what_is_no_model_is_never_overwritten(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"no part of a model \(notes.txt\)"):
        model().save(tmp_path)
    with pytest.raises(InputError, match="is a file"):
        model().save(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_newer_format_is_refused_with_both_versions(tmp_path):
    model().save(tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    path.write_text(path.read_text("utf-8").replace('"format": 1', '"format": 7'), "utf-8")
    with pytest.raises(FormatError, match=r"model.json has format 7, but this Tertulia reads format 1: upgrade"):
        Topics.load(tmp_path / "model")


@pytest.mark.parametrize("name", ["model.json", "topics.safetensors"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.95])
def test_a_truncated_file_is_named(tmp_path, name, share):
    model().save(tmp_path / "model")
    path = tmp_path / "model" / name
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(FormatError, match=f"{name} is damaged"):
        Topics.load(tmp_path / "model")


@pytest.mark.parametrize("name", ["model.json", "topics.safetensors"])
def test_a_missing_file_is_named(tmp_path, name):
    model().save(tmp_path / "model")
    (tmp_path / "model" / name).unlink()
    with pytest.raises(FormatError, match=f"cannot read .*{name}"):
        Topics.load(tmp_path / "model")


def test_files_of_two_models_do_not_make_one(tmp_path):
    model().save(tmp_path / "model")
    Topics(np.eye(2), Vocabulary(("a", "b"))).save(tmp_path / "other")
    (tmp_path / "other" / "topics.safetensors").replace(tmp_path / "model" / "topics.safetensors")
    with pytest.raises(FormatError, match="do not fit together"):
        Topics.load(tmp_path / "model")


def test_a_model_without_a_part_is_refused(tmp_path):
    model().save(tmp_path / "model")
    (tmp_path / "model" / "model.json").write_text('{"format": 1, "beta": 0.1}')
    with pytest.raises(FormatError, match="lacks 'vocabulary'"):
        Topics.load(tmp_path / "model")
