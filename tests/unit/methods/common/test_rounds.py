from dataclasses import dataclass, replace

from tertulia.methods.common.rounds import run_rounds, run_until
from tertulia.methods.pctd.settings import PCTDSettings


@dataclass(frozen=True)
class Counter:
    round: int
    stopped: bool = False


class Commits:
    """The one verb that rounds use of a federation."""

    def __init__(self):
        self.seen = []

    def commit(self, state, *, durable=1, **metrics):
        self.seen.append((state.round, durable, metrics))
        return state


def one_round(state):
    return replace(state, round=state.round + 1), {"loss": 10 - state.round}


def test_callbacks_come_after_each_round_in_their_order_and_before_the_commit():
    def first(fed, state):
        return state, {"seen": len(fed.seen)}

    def second(fed, state):
        return replace(state, stopped=state.round == 3), {"loss": -1}

    fed = Commits()
    end = run_until(fed, lambda state: state.stopped, Counter(0), one_round, [first, second], durable=5)
    assert end == Counter(3, stopped=True)
    assert fed.seen == [(n, 5, {"loss": -1, "seen": n - 1}) for n in (1, 2, 3)]


def test_a_run_goes_on_where_it_was():
    fed = Commits()
    assert run_rounds(fed, PCTDSettings(rounds=4), Counter(2), one_round).round == 4
    assert fed.seen == [(3, 1, {"loss": 8}), (4, 1, {"loss": 7})]
    assert run_rounds(fed, PCTDSettings(rounds=4), Counter(4), one_round).round == 4
