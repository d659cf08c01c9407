"""The live page in a real browser, beside a federation that runs: values change, parties go and come back."""

import re
import signal

import pytest

from helpers.browser import PHONE, WIDE
from helpers.commands import Typist
from helpers.hostile import CONTROL, IMAGE, LONG, NAMES, SCRIPT
from helpers.network import eventually
from helpers.serving import attending, on_a_free_port, serving
from helpers.sites import MEMBERS, METHOD, Sites
from tertulia.view.pages.live import live_page
from tertulia.view.watch import monitor
from tertulia.view.watch.snapshot import new_party, new_snapshot

LOOKS = [(PHONE, True), (WIDE, False)]


@pytest.fixture
def typist(tmp_path):
    (tmp_path / "typed").mkdir()
    typist = Typist(tmp_path / "typed")
    yield typist
    typist.close()


@pytest.fixture
def sites(tmp_path):
    """A federation whose run takes longer than any test."""
    sites = Sites(tmp_path, method=METHOD.replace("rounds = 3", "rounds = 5000"))
    on_a_free_port(sites)
    sites.edit("absent_after = 30.0", "absent_after = 0.3")
    sites.agree()
    return sites


def card(opened, party, state):
    """Wait until a party's card says so."""
    opened.page.locator(f"[data-party='{party}'][data-state='{state}']").wait_for()


def later_round(opened, than):
    """Wait for a later round; gives its number."""
    eventually(lambda: shown_round(opened) > than)  # the page's policy forbids what Playwright would poll with
    return shown_round(opened)


def shown_round(opened):
    return int(re.search(r"round (\d+) of", opened.page.locator("#round").inner_text())[1])


def test_a_federation_that_runs(sites, typist, browser):
    sites.registry.start()
    directory = sites.server.directory
    with serving(sites), attending(sites, "north", "south"), live_page(monitor(directory), "0") as address:
        first = typist.type("attend", sites.base / "east", cwd=sites.base)
        opened = browser.open(address, width=WIDE)
        for party in MEMBERS:
            card(opened, party, "here")
        seen = later_round(opened, 1)
        opened.page.locator("#scores circle").nth(1).wait_for()
        opened.page.locator("#topics li").nth(1).wait_for()
        opened.page.locator("#releases circle").first.wait_for()
        assert later_round(opened, seen) > seen
        first.send_signal(signal.SIGKILL)
        assert first.wait() == -signal.SIGKILL
        card(opened, "east", "absent")
        card(opened, "north", "here")
        seen = later_round(opened, seen)  # the others go on
        opened.picture("live-absent")
        again = typist.type("attend", sites.base / "east", cwd=sites.base)
        card(opened, "east", "here")
        later_round(opened, seen)
        opened.check("live-federation")
        again.send_signal(signal.SIGTERM)
        assert again.wait() == 0
        sites.registry.abandon()


def test_a_partys_own_page_shows_itself_alone(sites, typist, browser):
    sites.registry.start()
    with serving(sites), attending(sites, "south", "east"):
        attend = typist.type("attend", sites.base / "north", "--live=0", cwd=sites.base)
        eventually(lambda: "live page: http" in attend.err)
        opened = browser.open(re.search(r"live page: (\S+)", attend.err)[1], width=PHONE)
        card(opened, "north", "here")
        opened.page.locator("#releases circle").first.wait_for()
        opened.page.locator("#scores polyline").first.wait_for()  # its own scores
        assert "NOT PROTECTED" in opened.page.locator(".verdict.bad").inner_text()
        assert opened.page.locator("[data-party]").count() == 1
        assert "south" not in opened.page.locator("body").inner_text()
        opened.check("live-party")
        attend.send_signal(signal.SIGTERM)
        assert attend.wait() == 0
        sites.registry.abandon()


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_hostile_names_are_text(browser, width, dark):
    words = [[word if len(word) < 60 else word[:60], 0.1, True] for word in NAMES]
    spent = {"of": "a word", "spent": 9.0, "limit": 8.0}
    parties = [new_party(name, state="refused", why=SCRIPT, phase=IMAGE, budgets=[spent]) for name in NAMES]
    left = [{"at": float(i), "party": p["name"], "what": SCRIPT, "bytes": 10**i, "level": level, "round": i}
            for i, (p, level) in enumerate(zip(parties, ("clear", "noise", "free", "clear"), strict=True))]  # fmt: skip
    look = new_snapshot(
        SCRIPT, run="1", method=IMAGE, state="stopped", text=CONTROL, again=SCRIPT, round=2, rounds=4, left=100.0,
        verdict={"level": "weak", "text": SCRIPT}, parties=parties, scores=[[1, 9.0], [2, 8.0]], gone=[[2, SCRIPT]],
        own={SCRIPT: [[1, 9.5], [2, 8.5]]}, levels={SCRIPT: 8.7}, releases=left,
        topics=[{"number": 0, "share": 0.5, "words": words}],
    )  # fmt: skip
    with live_page(lambda: look, "0") as address:
        opened = browser.open(address, width=width, dark=dark)
        opened.page.locator("#topics li").wait_for()
        opened.check(f"live-hostile-{width}-{'dark' if dark else 'light'}")
        assert opened.page.title() != "taken"
        assert opened.page.locator("img").count() == 0
        said = opened.page.locator("body").inner_text()
        assert SCRIPT in said
        assert "\\x1b[31m" in said
        assert LONG not in said


def test_the_last_state_stays_when_the_run_has_ended(browser):
    now = new_snapshot("ward", state="under way", round=1, rounds=2)
    with live_page(lambda: dict(now), "0") as address:
        opened = browser.open(address)
        opened.page.get_by_text("round 1 of 2").wait_for()
        opened.page.locator("#foot[data-at]").wait_for()  # it is connected
        now.update(state="finished", round=2)
    opened.page.get_by_text("round 2 of 2").wait_for()
    opened.page.get_by_text("finished").wait_for()
    opened.page.get_by_text("The run has ended").wait_for()
    assert (opened.errors, opened.outside) == ([], [])
