"""Row 41: a FLARE site keeps the authorization that was provisioned, by which administrators may submit code."""

import json
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

pytest.importorskip("nvflare")

from nvflare.fuel.sec.authz import AuthorizationService, AuthzContext, Person
from nvflare.private.fed.utils.app_authz import AppAuthzService
from nvflare.security.security import FLAuthorizer

from helpers.flare import provision
from tertulia.errors import ConfigError
from tertulia.federation.engines.nvflare.authorization import loose_rights
from tertulia.federation.engines.nvflare.kits import Kit
from tertulia.network.flare.setup import join

ROLES = ("project_admin", "org_admin", "lead", "member")
SHELL = ("cat", "grep", "head", "ls", "pwd", "tail")


@pytest.fixture(scope="module")
def kits(tmp_path_factory):
    return provision(tmp_path_factory.mktemp("kits"))


@pytest.fixture
def site(kits, tmp_path):
    """A fresh copy of a site's kit, and a place for its party."""
    shutil.copytree(kits / "north", tmp_path / "kit")
    (tmp_path / "notes.txt").write_text("fever\ncough\n")
    local = tmp_path / "kit" / "local"

    def joined(**how):
        return join(tmp_path / "kit", tmp_path / "north", tmp_path / "notes.txt", "text", **how)

    return SimpleNamespace(
        join=joined, kit=tmp_path / "kit", place=tmp_path / "north", own=local / "authorization.json"
    )


def allows(site, role, right, monkeypatch):
    """What FLARE itself decides by the file that it reads."""
    path = site.own if site.own.exists() else site.own.with_name("authorization.json.default")
    authorizer = FLAuthorizer("clinics", json.loads(path.read_text()))
    monkeypatch.setattr(AuthorizationService, "the_authorizer", authorizer)
    person = Person("admin@clinics.org", "clinics", role)
    if right == "byoc":
        return AppAuthzService.authorize_app_info({"byoc": True}, person.name, person.org, person.role)[0]
    return authorizer.authorize(AuthzContext(right, person, person))[0]


def test_code_is_let_in_before_and_not_after_joining(site, monkeypatch):
    assert allows(site, "lead", "byoc", monkeypatch)
    assert allows(site, "project_admin", "byoc", monkeypatch)
    site.join()
    for role in ROLES:
        granted = [right for right in ("byoc", "restart", "shutdown", *SHELL) if allows(site, role, right, monkeypatch)]
        assert granted == [], role
    for role in ("project_admin", "lead"):  # our job has no code
        assert allows(site, role, "submit_job", monkeypatch)
        assert allows(site, role, "abort_job", monkeypatch)
    assert allows(site, "project_admin", "check_status", monkeypatch)
    assert loose_rights(Kit.open(site.kit, "client")) == []


def test_a_sites_own_authorization_is_kept_or_refused(site):
    shutil.copyfile(site.own.with_name("authorization.json.default"), site.own)
    before = site.own.read_text()
    with pytest.raises(ConfigError, match=r"project_admin: everything, .*lead: byoc.*--keep-authorization"):
        site.join()
    assert not site.place.exists()
    site.join(keep_authorization=True)
    assert site.own.read_text() == before
    site.own.unlink()
    site.join()
    strict = site.own.read_text()
    site.join()  # again: nothing changes
    assert site.own.read_text() == strict


@pytest.mark.parametrize(
    "permissions",
    [
        {"lead": {"byoc": ["none", "o:site"]}},
        {"lead": {"cat": "any"}},
        {"lead": ["any"]},
        {"x": {"new right": "n:a"}},
        None,
    ],
)
def test_rights_that_are_granted_in_other_words(site, permissions):
    site.own.write_text(json.dumps({"format_version": "1.0", "permissions": permissions}))
    with pytest.raises(ConfigError, match="grants more than a run needs"):
        site.join()


def test_the_doctor_looks_at_it(site):
    def findings():
        command = [sys.executable, "-m", "tertulia", "doctor", str(site.place), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        found = {row["what"]: row for row in json.loads(done.stdout)["findings"]}
        return done.returncode, found["authorization"]

    site.join(keep_authorization=True)
    code, row = findings()
    assert (code, row["state"]) == (1, "bad")
    assert "lead: byoc" in row["text"]
    site.join()
    code, row = findings()
    assert (code, row["state"]) == (0, "good")
