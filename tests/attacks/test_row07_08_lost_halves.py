"""Key or ledger is lost, by accident or by hand, and the party would go on with fresh noise or a fresh budget."""

import pytest

from helpers.attacks_noise import BUDGET, STRICT, ask, corpus_of, party, report
from tertulia.errors import ConfigError

CORPUS = corpus_of(["ache burn cold", "dose fever"])


@pytest.mark.parametrize("lost", ["noise.key", "ledger.sqlite"])
def test_nothing_leaves_when_a_half_is_lost(tmp_path, lost):
    host = party(tmp_path / "first", CORPUS, policy=STRICT + BUDGET.format(1.0))
    assert ask(host, report).kind == "ok"
    host.ledger.close()
    for file in (tmp_path / "home").glob(lost + "*"):
        file.unlink()
    for i in range(2):  # the first failure must not make the second opening a fresh start
        again = party(tmp_path / f"again{i}", CORPUS, policy=STRICT + BUDGET.format(1.0), run=f"run{i}")
        answer = ask(again, report)
        assert answer.kind == "failed"
        assert answer.reply is None


def test_a_budget_without_a_home_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="has a budget but no `home`"):
        party(tmp_path / "north", CORPUS, policy=STRICT + BUDGET.format(1.0), home=None)


def test_the_budget_goes_on_from_run_to_run(tmp_path):
    policy = STRICT + BUDGET.format(1.5)
    assert ask(party(tmp_path / "first", CORPUS, policy=policy), report).kind == "ok"
    (tmp_path / "home" / "ledger.sqlite").touch()
    other = party(tmp_path / "second", CORPUS, policy=policy.replace("1.5", "0.5"), run="other")
    assert ask(other, report).kind == "ok"  # the same reports: nothing new leaves
    assert len([r for r in other.ledger.releases() if r.charges]) == 1
