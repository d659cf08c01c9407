"""The model that a run starts from: found, checked against the settings, copied and named by its hash."""

import numpy as np
import pytest

from tertulia.corpus import TextOptions, Vocabulary
from tertulia.errors import ConfigError
from tertulia.models import Topics, storage
from tertulia.runs.settings import RunSettings
from tertulia.runs.start_model import copy_start, find_model, go_on, hash_of_start, load_start, train_from

PUBLIC = {"mode": "public", "words": ("snow", "rain", "wind")}


@pytest.fixture
def model():
    return Topics(np.full((2, 2), 0.5), Vocabulary(("rain", "sun")), options=TextOptions.from_dict({}))


def test_a_saved_model_or_that_of_a_finished_run(tmp_path, model):
    with pytest.raises(ConfigError, match="there is nothing to go on from"):
        find_model(tmp_path)
    model.save(tmp_path / "saved")
    assert find_model(tmp_path / "saved") == tmp_path / "saved"
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"is not finished: `tertulia resume .*run` first"):
        find_model(tmp_path / "run")
    model.save(tmp_path / "run" / "model")
    assert find_model(tmp_path / "run") == tmp_path / "run" / "model"


def test_the_copy_is_the_model_and_has_its_hash(tmp_path, model):
    assert hash_of_start(tmp_path) == ""
    model.save(tmp_path / "saved")
    for _ in range(2):  # also over the remains of a crash
        copy_start(tmp_path / "saved", tmp_path)
    assert hash_of_start(tmp_path) == storage.fingerprint(tmp_path / "saved")
    assert load_start(tmp_path).vocabulary.words == ("rain", "sun")


def test_the_models_words_come_first_and_new_ones_follow(model):
    settings = RunSettings(start_from="saved", method={"name": "consensus", "topics": 2, "vocabulary": PUBLIC})
    assert go_on(settings, model).method.vocabulary.words == ("rain", "sun", "snow", "wind")


def test_texts_that_are_cut_in_another_way_do_not_fit(model):
    settings = RunSettings(start_from="saved", method={"name": "consensus", "topics": 2}, text={"min_length": 5})
    with pytest.raises(ConfigError, match=r"cuts texts in another way \(min_length 2, here 5\)"):
        go_on(settings, model)


def test_only_a_run_without_a_commit_starts_from_the_model(model):
    class Committing:
        committed = ()

        def commit(self, state):
            self.committed += (state,)
            return state

    train = train_from(model, lambda fed, method, state: state, lambda fed, method, last: ("from", last))
    fed = Committing()
    assert train(fed, None, "resumed") == "resumed"
    assert fed.committed == ()
    assert train(fed, None, None) == ("from", model)
    assert fed.committed == (("from", model),)
