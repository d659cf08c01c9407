"""Recipient, purpose, legal basis and retention: asked for, approved with the plan, and read on the officer's page."""

import html
import io
import json
import math
import re

import pytest

from helpers.attacks import edit_json
from helpers.browser import WIDE
from helpers.hostile import SCRIPT
from helpers.serving import on_a_free_port, serving
from helpers.sites import MEMBERS, Sites
from tertulia.errors import ConfigError
from tertulia.network.server.federation_directory import FederationDirectory
from tertulia.privacy.policy import Policy
from tertulia.runs.plan import plan_of
from tertulia.runs.settings import RunSettings
from tertulia.view.pages.report import report
from tertulia.view.verdicts import MEANING, hosts_in, summary_of

OPERATOR = {"organisation": "University of Südstadt", "purpose": "topics of nursing notes", "legal_basis":
            "Art. 6(1)(e) GDPR", "retention": "the model for ten years, the rest for one"}  # fmt: skip
OWN = {
    "organisation": "North Hospital",
    "controller": "dpo@north.example",
    "legal_basis": "consent",
    "retention": "1 a",
}


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    made = Sites(tmp_path_factory.mktemp("stated"))
    lines = "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in OPERATOR.items())
    file = made.server.directory / "federation.toml"
    head, _, rest = file.read_text().partition("[operator]")
    file.write_text(f"{head}[operator]\n{lines}\n[terms]{rest.partition('[terms]')[2]}")
    made.join(*MEMBERS)
    with made.parties["north"].policy_path.open("a") as policy:
        policy.write("[record]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in OWN.items()))
    made.approve(*MEMBERS)
    made.run()
    return made


def test_the_page_names_them_all(sites):
    page = html.unescape(report(sites.parties["north"].directory))
    for value in (*OPERATOR.values(), *OWN.values()):
        assert value in page, value
    assert "training of one shared topic model with 2 topics by the method “consensus”, without noise" in page
    said = html.unescape(report(sites.parties["south"].directory))
    assert said.count("not stated") == 5  # its own, and the reason of the run
    assert MEANING in said
    (host,) = hosts_in(sites.parties["north"].directory)
    assert f"to {OPERATOR['organisation']}" in summary_of(host, 1e-6).lines(host.config.run)[0]


def test_they_are_part_of_what_is_approved(sites):
    (host,) = hosts_in(sites.parties["north"].directory)
    assert host.door.plan.operator == OPERATOR
    settings = RunSettings(method={"name": "consensus"}, operator=OPERATOR)
    other = settings.replace(operator={**OPERATOR, "purpose": "advertising"})
    without = settings.replace(operator={})
    assert len({plan_of(one, ("north",)).hash for one in (settings, other, without)}) == 3


def test_what_a_server_states_is_text(sites):
    (host,) = hosts_in(sites.parties["east"].directory)
    edit_json(host.directory / "party.json", plan={**host.config.plan, "operator": {"organisation": SCRIPT}})
    assert SCRIPT not in report(sites.parties["east"].directory)


def test_epsilon_is_explained_and_the_numbers_are_right():
    numbers = re.search(r"\(([\d.,]+) for epsilon 1, ([\d.,]+) for 3, ([\d.,]+) for 8\)", MEANING)
    assert numbers is not None
    for epsilon, said in zip((1, 3, 8), numbers.groups(), strict=True):
        assert math.exp(epsilon) == pytest.approx(float(said.replace(",", "")), rel=0.01)


def test_init_writes_what_is_stated(tertulia, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = [part for key, value in OPERATOR.items() for part in ("--state", f"{key}={value}")]
    assert tertulia("init", "oncology", "--members", "north,south", *said)[0] == 0
    assert FederationDirectory(tmp_path / "oncology").file.operator.stated() == OPERATOR
    assert tertulia("init", "silent", "--members", "north,south", "--yes")[0] == 0
    assert FederationDirectory(tmp_path / "silent").file.operator.stated() == {}
    with pytest.MonkeyPatch.context() as patch:  # the answers on a terminal
        patch.setattr("sys.stdin", io.StringIO("".join(f"{value}\n" for value in OPERATOR.values())))
        patch.setattr("sys.stdin.isatty", lambda: True, raising=False)
        assert tertulia("init", "asked", "--members", "north,south")[0] == 0
    assert FederationDirectory(tmp_path / "asked").file.operator.stated() == OPERATOR
    code, _, err = tertulia("init", "odd", "--members", "north", "--state", "aim=x")
    assert (code, "organisation, purpose, legal_basis, retention" in err) == (1, True)


def test_join_writes_what_is_stated(tertulia, tmp_path):
    made = Sites(tmp_path)
    on_a_free_port(made)
    said = [part for key, value in OWN.items() for part in ("--state", f"{key}={value}")]
    invitation = made.server.directory / "invitations" / "north.invite"
    with serving(made):
        code, _, err = tertulia("join", invitation, "--directory", tmp_path / "north", "--state", "aim=x")
        assert (code, "organisation, controller, legal_basis, retention" in err) == (1, True)
        assert not (tmp_path / "north").exists()  # an invitation is good once: it was not used
        code, _, err = tertulia("join", invitation, "--directory", tmp_path / "north", *said)
        assert code == 0, err
    assert Policy.load(tmp_path / "north" / "policy.toml").record.model_dump() == OWN


def test_join_and_init_by_kits_write_what_is_stated(tertulia, tmp_path):
    pytest.importorskip("nvflare")
    from helpers.flare import SERVER, provision

    kits = provision(tmp_path)
    said = [part for key, value in OPERATOR.items() for part in ("--state", f"{key}={value}")]
    code, _, err = tertulia("nvflare", "init", tmp_path / "oncology", "--kit", kits / SERVER, *said)
    assert code == 0, err
    assert FederationDirectory(tmp_path / "oncology").file.operator.stated() == OPERATOR
    own = [part for key, value in OWN.items() for part in ("--state", f"{key}={value}")]
    code, _, err = tertulia("nvflare", "join", kits / "north", "--directory", tmp_path / "north", *own)
    assert code == 0, err
    assert Policy.load(tmp_path / "north" / "policy.toml").record.model_dump() == OWN
    for command, place, file in (
        (("join", kits / "north", "--directory"), "north", "[record] in"),
        (("init", "--kit", kits / SERVER), "oncology", "[operator] in"),
    ):
        code, _, err = tertulia("nvflare", *command, tmp_path / place, "--state", "retention=ever")
        assert (code, file in err) == (1, True), err


def test_a_policy_takes_a_record_and_says_what_is_wrong():
    assert Policy.parse('[record]\norganisation = "North"\n').record.organisation == "North"
    with pytest.raises(ConfigError, match=r"no key 'record.organization'.*did you mean 'organisation'"):
        Policy.parse('[record]\norganization = "North"\n')


def test_it_looks_right(sites, browser, tmp_path):
    (tmp_path / "officer.html").write_text(report(sites.parties["north"].directory), encoding="utf-8")
    opened = browser.open(tmp_path / "officer.html", width=WIDE)
    opened.check("officer-stated")
    assert opened.page.get_by_text(OPERATOR["organisation"]).is_visible()
