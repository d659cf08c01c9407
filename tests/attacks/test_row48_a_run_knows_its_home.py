"""Key and ledger are both lost, and the same run goes on with new ones: fresh noise, a fresh budget, not a word."""

import json
import shutil

import pytest

from helpers.attacks import LIST, PUBLIC, STRICT, Attacked, method_of, says_nothing
from helpers.attacks_noise import ask, corpus_of, count, party, report
from tertulia.errors import FormatError
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.ftm.method import LocalTask, train_local
from tertulia.privacy.home import KEY, LEDGER, open_home

CORPUS = corpus_of(["ache burn cold", "dose fever"])


def lose(home):
    for file in [*home.glob(KEY + "*"), *home.glob(LEDGER + "*")]:
        file.unlink()


def begin(tmp_path, **config):
    host = party(tmp_path / "first", CORPUS, **config)
    assert ask(host, count).kind == "ok"
    host.ledger.close()
    return host


def test_a_run_does_not_go_on_from_an_empty_home_and_makes_none(tmp_path):
    begin(tmp_path)
    lose(tmp_path / "home")
    for _ in range(2):
        again = party(tmp_path / "first", CORPUS)
        answer = ask(again, report, place=(1, 0), previous=(0, 0))
        assert answer.kind == "failed"
        assert answer.reply is None
        assert not (tmp_path / "home" / KEY).exists()


def test_nor_from_another_home(tmp_path):
    begin(tmp_path)
    shutil.rmtree(tmp_path / "home")
    open_home(tmp_path / "home").ledger.close()
    answer = ask(party(tmp_path / "first", CORPUS), report, place=(1, 0), previous=(0, 0))
    assert answer.kind == "failed"
    with pytest.raises(FormatError, match="not the home that this run began with"):
        _ = party(tmp_path / "first", CORPUS).ledger
    assert ask(party(tmp_path / "other", CORPUS, run="other"), report).kind == "ok"  # another run may begin there


def test_nor_where_a_runs_own_directory_is_the_home(tmp_path):
    begin(tmp_path, home=None)
    lose(tmp_path / "first")
    again = party(tmp_path / "first", CORPUS, home=None)
    assert ask(again, report, place=(1, 0), previous=(0, 0)).kind == "failed"


def test_the_same_home_goes_on_and_its_name_tells_nothing_about_the_key(tmp_path):
    host = begin(tmp_path)
    agreed = json.loads((tmp_path / "first" / "agreed.json").read_text())
    assert agreed["home"] == host.home.identity
    assert len(agreed["home"]) == 32
    assert agreed["home"] not in (host.noise_key.commitment, host.noise_key.key.hex())
    assert ask(party(tmp_path / "first", CORPUS), report, place=(1, 0), previous=(0, 0)).kind == "ok"


def test_between_owners_a_constant_crosses_and_the_log_has_the_sentence(tmp_path):
    method = {"name": "ftm", "mode": "sound", "epsilon": 4.0, "topics": 2, "sweeps": 2, "vocabulary": PUBLIC}
    attacked = Attacked(tmp_path, method, STRICT)
    task = LocalTask(LIST, method_of(attacked).part(Training), None, with_sizes=False)
    assert attacked.ask(train_local, task).kind == "ok"
    attacked.host.ledger.close()
    lose(tmp_path / "home")
    attacked.reopen()
    attacked.place, attacked.previous = (1, 0), (0, 0)
    answer = attacked.ask(train_local, task)
    assert answer.kind == "failed"
    assert says_nothing(answer.text)
    assert "is not the home that this run began with" in attacked.log
