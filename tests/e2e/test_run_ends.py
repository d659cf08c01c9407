"""A party learns how its run ended: when it is connected, when it was away, and after it was started again."""

import json
import signal

import pytest

from helpers.browser import PHONE, WIDE
from helpers.commands import Typist
from helpers.network import Network, eventually
from helpers.serving import attending, on_a_free_port, serving
from helpers.sites import METHOD, Sites
from tertulia.network.endings import ABANDONED, FINISHED, STOPPED, UNDER_WAY, Ending, to_bytes
from tertulia.network.party.attendant import status_of_party
from tertulia.view.pages.live import live_page
from tertulia.view.watch import monitor


@pytest.fixture
def sites(tmp_path):
    sites = Sites(tmp_path)
    on_a_free_port(sites)
    sites.edit("absent_after = 30.0", "absent_after = 0.3")
    sites.agree()
    return sites


@pytest.fixture
def typist(tmp_path):
    (tmp_path / "typed").mkdir()
    typist = Typist(tmp_path / "typed")
    yield typist
    typist.close()


def state(sites, member):
    return status_of_party(sites.parties[member])["runs"][-1]["state"]


@pytest.mark.filterwarnings("ignore::tertulia.runs.results.AbsentPartyWarning")
def test_a_party_that_was_away_learns_it_later(sites, typist, tertulia, browser):
    sites.registry.start()
    north = sites.parties["north"].directory
    look = monitor(north)
    with serving(sites):
        with attending(sites, "north", "south"):
            eventually(lambda: state(sites, "north") == state(sites, "south") == FINISHED)
            assert state(sites, "east") == "approved"
        assert state(sites, "north") == FINISHED  # it attends no more
        typed = typist.type("attend", sites.base / "east", cwd=sites.base)
        eventually(lambda: state(sites, "east") == FINISHED)
        eventually(lambda: "is finished: `tertulia fetch" in typed.err)
        typed.send_signal(signal.SIGTERM)
        assert typed.wait() == 0
        assert typed.err.count("is finished") == 1
        again = typist.type("attend", sites.base / "east", cwd=sites.base)
        eventually(lambda: "connected protocol" in again.err)
        again.send_signal(signal.SIGTERM)
        assert again.wait() == 0
        assert "is finished" not in again.err  # that is no news

        seen = look()
        assert (seen["state"], seen["round"], seen["rounds"]) == (FINISHED, 5, 5)
        assert seen["again"] == f"tertulia fetch {north}"
        with live_page(look, "0") as address:
            opened = browser.open(address, width=PHONE)
            opened.page.locator("h1 .pill.good", has_text="finished").wait_for()
            assert "tertulia fetch" in opened.page.locator("code").inner_text()
            opened.check("live-party-finished")
        code, out, _ = tertulia("status", north)
        assert "finished" in out
        assert "# the shared model\n" in out  # and not: once the run is finished
        code, out, _ = tertulia("fetch", sites.base / "east")
    assert code == 0
    assert "from 2 of 3 parties; east never answered" in out
    (row,) = json.loads(tertulia("status", sites.base / "east", "--json")[1])["runs"]
    assert (row["state"], row["round"], row["model"], row["took_part"]) == (FINISHED, 5, "fetched", "never")


def test_a_run_that_stops_goes_on_or_is_given_up(sites, browser):
    sites.write_method(METHOD.replace("rounds = 3", "rounds = 5000"))
    sites.approve("north", "south", "east")
    run = sites.registry.start()
    look = monitor(sites.parties["north"].directory)
    with serving(sites), attending(sites, "north", "south", "east"):
        eventually(lambda: look()["round"] > 2 and state(sites, "north") == UNDER_WAY)
        sites.registry.abandon()
        eventually(lambda: state(sites, "north") == ABANDONED)
        assert (look()["text"], look()["rounds"]) == ("the operator has given it up", 5000)
        sites.registry.end(run.id, STOPPED, "no space left on /dev/sda1")
        eventually(lambda: state(sites, "north") == STOPPED)
        with live_page(look, "0") as address:
            opened = browser.open(address, width=WIDE)
            opened.page.locator("h1 .pill.bad", has_text="stopped").wait_for()
            assert "sda1" not in opened.page.content()
            opened.check("live-party-stopped")
        seen = look()["round"]
        sites.registry.start()
        eventually(lambda: state(sites, "north") == UNDER_WAY and look()["round"] > seen)
        sites.registry.abandon()
        eventually(lambda: state(sites, "east") == ABANDONED)


def test_news_comes_by_the_stream_between_questions(tmp_path):
    network, heard = Network(tmp_path, ["north", "south"]), []
    try:
        network.backend.said = to_bytes({"f" * 16: Ending(STOPPED, 1)})
        party = network.attend("north", hear=heard.append)
        network.attend("south")  # which does not listen
        eventually(lambda: heard == [network.backend.said])
        transport = network.service.transport(["north", "south"])
        assert transport.ask({"north": b"a", "south": b"b"}, None) == {"north": b"a", "south": b"b"}
        network.backend.said = to_bytes({"f" * 16: Ending(FINISHED, 2)})
        eventually(lambda: heard[1:] == [network.backend.said])
        network.backend.said = b"x" * (1 << 21)  # beyond a chunk: not said
        assert transport.ask({"north": b"c", "south": b"d"}, None) == {"north": b"c", "south": b"d"}
        assert party.count("disconnected") == 0
    finally:
        network.close()
