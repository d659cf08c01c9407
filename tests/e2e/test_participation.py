"""Which rounds each party took part in: the same after a kill, and said wherever a run or its model is shown."""

import json

import pytest

import tertulia as tt
from e2e.test_fetching import served
from helpers.browser import PHONE, WIDE
from helpers.runs import prepared
from helpers.sites import Carried, Sites
from tertulia.federation import faults
from tertulia.federation.codec import encode
from tertulia.federation.messages import Answer
from tertulia.metrics.history import Participation
from tertulia.models import Topics
from tertulia.network.party.attendant import Attendant
from tertulia.network.server.run_registry import FINISHED
from tertulia.runs.directory import Run
from tertulia.runs.driver import finish
from tertulia.runs.results import AbsentPartyWarning
from tertulia.view.pages.live import live_page
from tertulia.view.pages.report import write_report
from tertulia.view.watch import monitor

METHOD = {"name": "consensus", "topics": 3, "rounds": 8, "sweeps": 2, "start_sweeps": 2}
AWAY = {"dropouts": {"script": {number: ["north"] for number in range(3, 10)}}}
SAID = "north in rounds 1-3 of 10"
WARNING = f"{SAID}: the model knows less of a party that missed more than a tenth of the rounds"
ABSENT = encode(Answer("absent", "", None))


def texts(worded):
    return {name: worded(number, 30) for number, name in enumerate(("east", "north", "south"))}


@pytest.fixture(scope="module")
def model(worded, tmp_path_factory):
    """Of ten rounds north took part in three."""
    run = prepared(tmp_path_factory.mktemp("away") / "run", texts(worded), METHOD, heldout=0.2, federation=AWAY)
    with pytest.warns(AbsentPartyWarning, match=f"^{WARNING}$"):
        return finish(run)


@pytest.fixture
def interrupted():
    """Break a run off when it passes a point for the nth time."""

    def aim(name, number):
        seen = []

        def passed(point):
            seen.append(point)
            if seen.count(name) == number:
                raise KeyboardInterrupt

        faults.arm(passed)

    yield aim
    faults.arm(lambda point: None)


def test_a_model_says_it(model, tmp_path):
    assert model.participation["north"] == Participation(((1, 3),), of=10)
    assert str(model.participation["south"]) == "all 10 rounds"
    assert model.provenance["participation"]["north"] == {"rounds": [[1, 3]], "of": 10}
    assert f"consensus, 3 parties; {SAID})" in repr(model).splitlines()[0]
    assert f"3 parties; {SAID}" in model._repr_html_()
    loaded = Topics.load(model.save(tmp_path / "model"))
    assert loaded == model
    assert SAID in repr(loaded)


def test_where_nobody_missed_a_round_nothing_is_said(worded, recwarn):
    model = tt.Consensus(topics=3, rounds=1, sweeps=3).fit({"a": worded(0, 30), "b": worded(1, 30)})
    assert {str(one) for one in model.participation.values()} == {"all 3 rounds"}
    assert "consensus, 2 parties)" in repr(model)
    assert not [one for one in recwarn if issubclass(one.category, AbsentPartyWarning)]


def test_a_model_of_an_earlier_version_still_loads(model, tmp_path):
    path = model.save(tmp_path / "model") / "model.json"
    about = json.loads(path.read_text())
    del about["provenance"]["participation"]
    path.write_text(json.dumps(about))
    assert "consensus, 3 parties)" in repr(Topics.load(tmp_path / "model"))


def test_a_policy_that_refuses_scores_misses_no_round(worded, tmp_path):
    (tmp_path / "policy.toml").write_text("allow_metrics = false\n")
    model = tt.Consensus(topics=3, rounds=3, sweeps=2).fit(
        texts(worded), heldout=0.2, party_settings={"north": {"policy": str(tmp_path / "policy.toml")}}
    )
    assert str(model.participation["north"]) == "all 5 rounds"


def test_late_joiners_and_leavers(worded):
    with pytest.warns(AbsentPartyWarning, match=r"^east in rounds 3-6 of 6, north in rounds 1-4 of 6: the model"):
        model = tt.FTM(topics=3, rounds=5, sweeps=2).fit(
            texts(worded), party_settings={"east": {"joins": 2}, "north": {"leaves": 4}}
        )
    assert {p: str(one) for p, one in model.participation.items()} == {
        "east": "rounds 3-6 of 6", "north": "rounds 1-4 of 6", "south": "all 6 rounds",
    }  # fmt: skip


@pytest.mark.parametrize(("point", "number"), [("server.after_ask", 12), ("server.before_commit", 5)])
def test_a_run_that_was_killed_says_the_same(model, worded, tmp_path, interrupted, point, number):
    again = prepared(tmp_path / "run", texts(worded), METHOD, heldout=0.2, federation=AWAY)
    interrupted(point, number)
    with pytest.raises(KeyboardInterrupt):
        finish(again)
    interrupted("nowhere", 1)
    assert finish(Run.open(again.directory)).provenance["participation"] == model.provenance["participation"]


def test_thousands_of_rounds_take_little_room(worded):
    model = tt.GFedNTM(topics=2, rounds=40, hidden=(4,), checkpoint_every=8).fit(
        {"a": worded(0, 30), "b": worded(1, 30), "c": worded(2, 30)},
        federation={"dropouts": {"script": {20: ["b"], 21: ["b"]}}},
    )
    assert str(model.participation["b"]) == "rounds 1-20, 23-41 of 41"
    assert sum("took_part" in facts for facts in model.history) == 3  # at first, and where it changed


@pytest.mark.filterwarnings("default::tertulia.runs.results.AbsentPartyWarning")
def test_the_command_line_says_it(model, worded, tmp_path, tertulia):
    code, out, err = tertulia("topics", model.directory)
    assert code == 0
    assert f"from 3 parties; {SAID}" in out
    assert f"warning: {WARNING}" in err
    code, out, err = tertulia("topics", model.directory, "--json")
    assert json.loads(out)["provenance"]["participation"]["north"] == {"rounds": [[1, 3]], "of": 10}
    assert f"warning: {WARNING}" in err
    code, out, _ = tertulia("status", model.directory)
    assert "north took part in rounds 1-3 of 10" in out
    cards = {card["name"]: card for card in json.loads(tertulia("status", model.directory, "--json")[1])["parties"]}
    assert cards["north"]["took_part"] == "took part in rounds 1-3 of 10"
    assert (cards["north"]["missed_many"], cards["south"]["took_part"]) == (True, "")
    again = prepared(tmp_path / "run", texts(worded), METHOD, federation=AWAY)
    code, out, err = tertulia("resume", again.directory)
    assert SAID in out.replace("\n", " ")
    assert f"warning: {WARNING}" in err


@pytest.mark.parametrize(("width", "dark"), [(PHONE, True), (WIDE, False)])
def test_the_report_says_it(model, browser, tmp_path, width, dark):
    write_report(model.directory, tmp_path / "report.html")
    opened = browser.open(tmp_path / "report.html", width=width, dark=dark)
    assert f"3 parties; {SAID}" in opened.page.locator("dl.facts").first.inner_text()
    assert WARNING in opened.page.locator("p.verdict.weak").inner_text()
    assert opened.page.get_by_role("heading", name="Who took part").is_visible()
    assert opened.page.locator("td .weak", has_text="rounds 1-3 of 10").is_visible()
    assert opened.page.get_by_text(f"of the parties that took part in it: {SAID}").is_visible()
    assert opened.page.get_by_text("all parties together").count() == 0
    opened.check(f"report-missed-{width}")
    write_report(model.directory, tmp_path / "north.html", "north")
    opened = browser.open(tmp_path / "north.html", width=width, dark=dark)
    assert opened.page.locator("dd .weak", has_text="in rounds 1-3 of 10").is_visible()
    opened.check(f"report-missed-party-{width}")


def test_the_live_page_says_it(model, browser):
    with live_page(monitor(model.directory), "0") as address:
        opened = browser.open(address, width=WIDE)
        north = opened.page.locator("[data-party='north']")
        assert north.locator(".weak", has_text="took part in rounds 1-3 of 10").is_visible()
        assert "took part" not in opened.page.locator("[data-party='south']").inner_text()
        assert opened.page.get_by_text("The parties of each round:").is_visible()
        assert opened.page.locator("#scores rect.bad").count() == 7
        opened.check("live-missed")


class Away(Carried):
    """North answers in the first rounds alone."""

    def ask(self, frames, timeout):
        answers = super().ask(frames, timeout)
        return {**answers, "north": ABSENT} if "north" in frames and len(self.received) > 36 else answers


def test_a_federation_and_its_parties_say_it(tmp_path, tertulia):
    sites = Sites(tmp_path, method="\n".join(f"{name} = {json.dumps(value)}" for name, value in METHOD.items()))
    sites.agree()
    run = sites.registry.start()
    carried = Away({name: Attendant(party) for name, party in sites.parties.items()})
    with pytest.warns(AbsentPartyWarning, match="^north in rounds? "):
        model = sites.finish(run, transport=carried)
    said = str(model.participation["north"])
    code, out, err = tertulia("status", sites.server.directory)
    assert code == 0
    assert said in out
    assert f"warning: north in {said}: the model knows less" in err
    facts = json.loads(tertulia("status", sites.server.directory, "--json")[1])
    assert facts["run"]["participation"] == model.provenance["participation"]
    assert {row["member"]: row["took_part"] for row in facts["members"]}["north"] == said
    sites.registry.end(run.id, FINISHED)
    with served(sites):
        code, out, err = tertulia("fetch", tmp_path / "north")
    assert code == 0
    assert f"from 3 parties; north in {said}" in out
    assert f"warning: north in {said}: the model knows less" in err
    code, out, err = tertulia("status", tmp_path / "north")
    assert code == 0
    assert said in out
    assert f"warning: north in {said}: the model knows less" in err
    (row,) = json.loads(tertulia("status", tmp_path / "north", "--json")[1])["runs"]
    assert row["participation"] == model.provenance["participation"]["north"]
    (card,) = monitor(tmp_path / "north")()["parties"]
    assert (card["took_part"], card["missed_many"]) == (f"took part in {said}", True)
    write_report(tmp_path / "north", tmp_path / "north.html")
    assert f'<span class="weak">in {said}</span>' in (tmp_path / "north.html").read_text()
