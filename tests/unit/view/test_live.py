"""Who may read the live page, and what is seen of a run: without a browser."""

import asyncio
import http.client
import io
import json
import logging
import sys
from urllib.parse import urlsplit

import pytest
from rich.console import Console

from helpers.hostile import NAMES, STEERING
from helpers.runs import prepared
from helpers.texts import halves
from tertulia.errors import ConfigError
from tertulia.privacy.snapshots import releases_after
from tertulia.runs.driver import finish
from tertulia.runs.scenarios import keep_rows
from tertulia.view.pages.live import Guard, SnapshotStream, app_of, live_page, page_of
from tertulia.view.watch import monitor
from tertulia.view.watch.snapshot import new_party, new_snapshot
from tertulia.view.watch.terminal import WIDTH, view

METHOD = {"name": "consensus", "topics": 2, "rounds": 2, "sweeps": 1, "start_sweeps": 1}
LOOK = new_snapshot("ward", round=1, rounds=3, state="under way")


def asked(app, path="/", query="", method="GET", **headers):
    """Status, headers and body of an answer, without a network."""
    sent = []
    scope = {
        "type": "http", "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode(),
        "query_string": query.encode(), "root_path": "", "scheme": "http", "server": ("127.0.0.1", 1),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    found = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, b"".join(one.get("body", b"") for one in sent)


def guarded(token):
    return app_of(SnapshotStream(lambda: LOOK), Guard(frozenset({"127.0.0.1", "ward.example"}), token))


@pytest.mark.parametrize("host", ["evil.example", "", "127.0.0.1.evil.example", "ward.example.evil"])
def test_a_page_under_another_name_is_refused(host):
    status, _, body = asked(guarded(None), host=host)
    assert status == 421
    assert b"ward" not in body


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:7434", "WARD.example:80"])
def test_its_own_names_are_known_at_any_port(host):
    status, headers, body = asked(guarded(None), host=host)
    assert status == 200
    assert b"ward" in body
    assert headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in headers
    assert headers["content-security-policy"] == "frame-ancestors 'none'"


def test_a_token_is_shown_once_and_then_a_cookie_does():
    app = guarded("secret")
    assert asked(app, host="127.0.0.1")[0] == 403
    assert asked(app, query="token=wrong", host="127.0.0.1")[0] == 403
    assert asked(app, "/events", host="127.0.0.1")[0] == 403
    status, headers, _ = asked(app, query="token=secret", host="127.0.0.1")
    assert (status, headers["location"]) == (303, "/")
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert asked(app, host="127.0.0.1", cookie=cookie.split(";")[0])[0] == 200
    assert asked(app, host="127.0.0.1", cookie="tertulia=wrong")[0] == 403


@pytest.mark.parametrize(
    ("method", "path", "status"), [("POST", "/", 405), ("PUT", "/events", 405), ("GET", "/x", 404)]
)
def test_it_can_only_be_read(method, path, status):
    assert asked(guarded(None), path, method=method, host="127.0.0.1")[0] == status


def test_a_stream_says_what_changes_and_how_it_ended():
    looks = iter([LOOK, {**LOOK, "round": 2}])
    now = {}

    def look():
        now.update(next(looks, now))
        return dict(now)

    with live_page(look, "0") as address:
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=90)
        connection.request("GET", "/events")
        answer = connection.getresponse()
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        seen = [_event(answer)]
        while seen[-1]["round"] < 2:
            seen.append(_event(answer))
        assert not seen[-1]["ended"]
    assert _event(answer)["ended"]
    connection.close()


def _event(answer):
    while not (line := answer.readline()).startswith(b"data: "):
        assert line, "the stream has ended"
    return json.loads(line.removeprefix(b"data: "))


def test_a_look_that_fails_is_said_and_stops_nothing():
    looks = iter([LOOK])

    def look():
        if (found := next(looks, None)) is None:
            raise OSError("no such file")
        return found

    shown = SnapshotStream(look)
    shown._over.set()  # so that one more look is taken
    shown.poll()
    assert json.loads(shown.text)["text"] == "cannot be read just now (OSError)"
    assert json.loads(shown.text)["title"] == "ward"
    assert json.loads(shown.text)["ended"]


@pytest.mark.parametrize("_", range(8))
def test_the_last_state_is_always_sent(_):
    now = dict(LOOK)
    with live_page(lambda: dict(now), "0") as address:
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=90)
        connection.request("GET", "/events")
        answer = connection.getresponse()
        _event(answer)
        now["state"] = "finished"
    event = _event(answer)
    while not event["ended"]:
        event = _event(answer)
    assert event["state"] == "finished"
    connection.close()


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ConfigError, match=r"pip install 'tertulia\[live\]'"), live_page(lambda: LOOK, "0"):
        pass


@pytest.mark.parametrize("at", ["nowhere", "127.0.0.1:99999", "127.0.0.1:"])
def test_an_address_that_is_none_is_named(at):
    with pytest.raises(ConfigError, match="no address for the live page"), live_page(lambda: LOOK, at):
        pass


def test_the_logging_of_the_process_stays_as_it_is():
    handler = logging.StreamHandler(io.StringIO())
    closed = []
    handler.close = lambda: closed.append(handler)
    with live_page(dict, "0"):
        pass
    assert not closed


def test_no_page_unless_asked_for():
    with live_page(lambda: LOOK, None) as address:
        assert address is None


def test_a_run_is_seen_as_it_goes(tmp_path):
    run = prepared(tmp_path / "ward", {"north": halves(1), "south": halves(2)}, METHOD, heldout=0.2)
    look, seen = monitor(tmp_path / "ward"), []
    assert monitor(tmp_path / "nothing")()["state"] == "waiting"
    finish(run, observe=lambda kind, facts: seen.append(look()))
    assert [one["round"] for one in seen] == [1, 2, 3, 4]
    assert [one["state"] for one in seen] == ["under way"] * 4
    last = look()
    assert (last["state"], last["round"], last["rounds"]) == ("finished", 4, 4)
    assert [party["state"] for party in last["parties"]] == ["here", "here"]
    assert all(party["up"] > 0 < party["down"] for party in last["parties"])
    assert len(last["scores"]) == 2
    # What parties scored by themselves lies on both sides of what all of them did together, round by round.
    for (round_, every), north, south in zip(last["scores"], last["own"]["north"], last["own"]["south"], strict=True):
        assert north[0] == south[0] == round_
        assert min(north[1], south[1]) < every < max(north[1], south[1])
    assert last["verdict"]["level"] == "bad"
    assert {one["party"] for one in last["releases"]} == {"north", "south"}
    assert {one["level"] for one in last["releases"]} == {"clear", "free"}
    assert len(last["topics"]) == 2
    assert json.dumps(last, allow_nan=False)
    keep_rows(tmp_path / "ward", [{"scenario": "alone", "perplexity": 9.0}])
    assert look()["levels"] == {"alone": 9.0}


def test_a_run_has_a_status_in_a_terminal(tmp_path, tertulia):
    finish(prepared(tmp_path / "ward", {"north": halves(1), "south": halves(2)}, METHOD, heldout=0.2))
    for arguments in ([], ["--watch"]):
        code, out, _ = tertulia("status", tmp_path / "ward", *arguments)
        assert code == 0
        assert "round 4 of 4" in out
        assert "north" in out
    code, out, _ = tertulia("status", tmp_path / "ward", "--watch", "--json")
    assert json.loads(out)["state"] == "finished"
    code, _, err = tertulia("status", tmp_path)
    assert code == 0  # the newest run below it
    code, _, err = tertulia("status", tmp_path / "nothing", "--watch")
    assert code == 1
    assert "is not a federation's directory" in err


def test_a_party_that_refuses_and_one_that_joins_later_are_told_apart(tmp_path):
    (tmp_path / "policy.toml").write_text("allow_clear = false\n")
    own = {"south": {"policy": str(tmp_path / "policy.toml")}, "west": {"joins": 3}}
    texts = {name: halves(i) for i, name in enumerate(("north", "south", "west", "east"))}
    run = prepared(tmp_path / "ward", texts, METHOD, parties=own)
    look, seen = monitor(tmp_path / "ward"), []
    with pytest.warns(UserWarning, match="south"):
        finish(run, observe=lambda kind, facts: seen.append(look()) if kind == "round" else None)
    states = {party["name"]: party["state"] for party in seen[0]["parties"]}
    assert "south" not in seen[-1]["own"]
    assert states == {"north": "here", "south": "refused", "west": "joining", "east": "here"}


def test_a_ledger_that_is_not_there_is_not_made(tmp_path):
    assert releases_after(tmp_path / "ledger.sqlite") == []
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_of_eighty_columns_is_wide_enough_whatever_names_are():
    parties = [new_party(name, state="here", phase="training", up=10**9) for name in NAMES]
    topics = [{"number": 1, "share": 0.5, "words": [[word[:60], 0.1, True] for word in NAMES if word.isascii()]}]
    left = [{"at": 0.0, "party": "north", "what": "words", "bytes": 10, "level": "clear", "round": 0}]
    look = new_snapshot(
        NAMES[-1],
        parties=parties * 5,
        topics=topics,
        releases=left,
        scores=[[1, 9.0], [2, 8.0]],
        again="tertulia resume",
    )
    console = Console(width=WIDTH, record=True, file=io.StringIO())
    console.print(view(look))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert any("and 8 more" in line for line in lines)


def test_a_page_with_hostile_names_holds_no_markup_of_theirs():
    parties = [new_party(name) for name in NAMES]
    whole = page_of(json.dumps({**new_snapshot("ward", parties=parties), "ended": False}))
    assert not STEERING.search(whole)
    assert "<script>document" not in whole
    assert "<img" not in whole
