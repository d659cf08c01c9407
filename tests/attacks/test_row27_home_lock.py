"""Two runs answer from one home at the same time."""

import threading

from helpers.attacks_noise import ask, corpus_of, count, party
from tertulia._locks import directory_lock


def test_a_home_answers_one_question_at_a_time(tmp_path):
    host, answers = party(tmp_path / "north", corpus_of(["ache burn"])), []
    asking = threading.Thread(target=lambda: answers.append(ask(host, count)))
    with directory_lock(tmp_path / "home"):
        asking.start()
        asking.join(timeout=0.5)
        assert asking.is_alive()
    asking.join(timeout=60)
    assert [answer.kind for answer in answers] == ["ok"]
    assert "is in use by process" in (host.directory / "party.log").read_text()
