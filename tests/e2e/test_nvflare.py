"""A federation inside NVIDIA FLARE: what its kits and jobs hold, who is refused, and runs that end in the same bits.

Quick tests run FLARE's Collab API in this process, with the real party host. Whole systems, provisioned on loopback
and killed in the middle, are marked `slow`.
"""

import io
import json
import os
import sys
import zipfile
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_der_public_key
from nvflare.apis.fl_exception import UnsafeComponentError
from nvflare.app_common.widgets.component_path_authorizer import ComponentPathAuthorizer
from nvflare.collab import collab
from nvflare.collab.api.exceptions import CollabCallError
from nvflare.private.fed.server.job_meta_validator import JobMetaValidator

from helpers.collab import Job
from helpers.flare import ADMIN, MEMBERS, METHOD, SERVER, Flare
from helpers.texts import STEMS
from tertulia.errors import ConfigError, QuorumError
from tertulia.federation.engines.nvflare import server as engine
from tertulia.federation.engines.nvflare.kits import Kit
from tertulia.federation.identity.keys import fingerprint_of
from tertulia.federation.messages import Inquiry
from tertulia.federation.party.host import PartyHost
from tertulia.federation.server.answers import read_answer
from tertulia.federation.server.sum_journal import SumJournal
from tertulia.methods.common.shared_words import NAMES
from tertulia.models import Topics
from tertulia.network.flare import party as flare_party
from tertulia.network.flare.party import FlareParty
from tertulia.network.flare.server import FlareServer
from tertulia.network.server.run_registry import FINISHED
from tertulia.runs.directory import Run
from tertulia.runs.one_machine import begin
from tertulia.runs.settings import RunSettings

QUICK = METHOD.replace("rounds = 60", "rounds = 4")
WORDS = f'vocabulary = {{ mode = "listed", max_share = 1.0, words = {json.dumps(STEMS)} }}'
SECURE = f'name = "pctd"\ntopics = 2\nrounds = 3\n{WORDS}\n'


@pytest.fixture(scope="module")
def flare(tmp_path_factory):
    """Kits, and directories made from them; no process runs."""
    return Flare(tmp_path_factory.mktemp("flare"), method=QUICK)


@pytest.fixture
def quiet(monkeypatch):
    """The process of a site prints to its party's log, and keeps others out of its files; this one is pytest's."""
    monkeypatch.setattr(flare_party, "_print_to", lambda log: None)
    before = os.umask(0o022)
    yield
    os.umask(before)


def carry(flare, run, sites=None, cut=()):
    """Do in this process what a job does."""
    job = Job(flare.kits, SERVER, FlareServer(run), sites or {member: FlareParty() for member in MEMBERS})
    job.wires["server"].cut |= set(cut)
    try:
        with job.as_server():
            job.apps["server"].mains[0][1]()
    finally:
        job.close()


# --- kits and jobs ----------------------------------------------------------------------------------------------


def test_a_job_holds_no_code_and_no_path(flare, tmp_path, tertulia):
    code, out, err = tertulia("nvflare", "export", flare.server.directory, "--to", tmp_path / "job")
    assert code == 0, err
    assert "next: tertulia approve NAME" in out
    files = {path.relative_to(tmp_path).as_posix(): path for path in tmp_path.rglob("*") if path.is_file()}
    config = "job/app/config/config_fed"
    assert set(files) == {"job/meta.json", f"{config}_server.json", f"{config}_client.json"}
    run = flare.registry.current().run
    components = {name: json.loads(files[name].read_text()).get("components") for name in files}
    assert components[f"{config}_server.json"] == [
        {"id": "run", "path": "tertulia.network.flare.server.FlareServer", "args": {"run": run}}
    ]
    assert components[f"{config}_client.json"] == [
        {"id": "party", "path": "tertulia.network.flare.party.FlareParty", "args": {}}
    ]
    assert not [name for name, path in files.items() if "/" in path.read_text() or "note" in path.read_text()]
    assert validated(tmp_path / "job")["min_clients"] == 2  # the quorum


def validated(job):
    """Validate a job as FLARE's server does when it is submitted."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in job.rglob("*"):
            archive.write(path, path.relative_to(job.parent))
    fine, reason, meta = JobMetaValidator().validate(job.name, packed.getvalue())
    assert fine, reason
    return meta


def test_a_folder_with_something_else_is_left_alone(flare, tmp_path, tertulia):
    (tmp_path / "thesis.txt").write_text("mine")
    code, _, err = tertulia("nvflare", "export", flare.server.directory, "--to", tmp_path)
    assert code == 1
    assert "thesis.txt, which is no file of a job" in err


def test_a_job_of_another_run_is_not_submitted(flare, tmp_path, tertulia):
    assert tertulia("nvflare", "export", flare.server.directory, "--to", tmp_path / "job")[0] == 0
    arguments = (
        "nvflare",
        "supervise",
        flare.server.directory,
        "--job",
        tmp_path / "job",
        "--admin",
        flare.kits / ADMIN,
    )
    config = tmp_path / "job" / "app" / "config" / "config_fed_client.json"
    config.write_text(config.read_text().replace("tertulia.network.flare.party.FlareParty", "os.system"))
    code, _, err = tertulia(*arguments)
    assert code == 1
    assert "is not the job of the run that is proposed now" in err


@pytest.mark.parametrize("name", [SERVER, *MEMBERS])
def test_kits_let_jobs_name_our_classes_and_no_others(flare, name):
    authorizer = ComponentPathAuthorizer()
    resources = flare.kits / name / "local" / "resources.json"
    ours = "tertulia.network.flare.server.FlareServer" if name == SERVER else "tertulia.network.flare.party.FlareParty"
    allowed, mode, _ = authorizer._get_policy_from_file(str(resources))
    authorizer._get_policy = lambda **_: (allowed, mode, "")
    for path in (ours, "nvflare.collab.runtime.controller.CollabController"):
        authorizer.authorize_component_config({"path": path})
    for path in ("tertulia.cli.main.main", "subprocess.Popen"):
        with pytest.raises(UnsafeComponentError):
            authorizer.authorize_component_config({"path": path})


def test_logs_stay_at_sites_and_jobs_in_the_kit(flare):
    site = json.loads((flare.kits / "north" / "local" / "resources.json").read_text())
    assert site["allow_log_streaming"] is False
    assert "site_log_streamer" not in [one["id"] for one in site["components"]]
    text = (flare.kits / SERVER / "local" / "resources.json").read_text()
    assert "/tmp/nvflare" not in text
    assert str(flare.kits / SERVER / "jobs-storage") in text


def test_kits_of_another_role_and_folders_without_kits(flare, tmp_path, tertulia):
    for arguments, reason in (
        (("join", flare.kits / SERVER), "is the kit of a server, and one of a client is needed"),
        (("join", tmp_path), "is no startup kit"),
        (("init", tmp_path / "new", "--kit", flare.kits / SERVER, "--sites", tmp_path), "holds no kit of a site"),
        (("join", flare.kits / "north", "--directory", flare.base / "south"), "holds a party already, 'south'"),
    ):
        code, _, err = tertulia("nvflare", *arguments)
        assert code == 1
        assert reason in err


def test_the_commands_of_another_carrier_say_which_are_meant(flare, tertulia):
    for arguments, reason in (
        (("serve", flare.server.directory), "`tertulia nvflare supervise` its runs"),
        (("start", flare.server.directory), "`tertulia nvflare supervise` its runs"),
        (("attend", flare.base / "north"), "startup/start.sh"),
    ):
        code, _, err = tertulia(*arguments)
        assert code == 1
        assert reason in err
    with pytest.raises(ConfigError, match=r"carries runs between organisations, see docs/nvflare\.md"):
        begin(RunSettings(engine="nvflare", method={"name": "ftm"}), {})


def test_the_extra_that_is_missing_is_named(flare, monkeypatch, tertulia):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for module in [module for module in sys.modules if module.startswith("tertulia.federation.engines.nvflare")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delitem(sys.modules, "tertulia.network.flare.setup")
    code, _, err = tertulia("nvflare", "join", flare.kits / "north")
    assert code == 1
    assert "pip install 'tertulia[nvflare]'" in err


# --- runs, in this process --------------------------------------------------------------------------------------


def test_a_run_ends_as_without_flare_and_every_site_has_the_model(flare, quiet):
    flare.write(QUICK, seed=1)
    run = flare.agree()
    expected = flare.alone(run)
    flare.registry.start()
    carry(flare, run)
    assert flare.outcome(run) == expected
    assert flare.registry.state(run).state == FINISHED
    for member in MEMBERS:
        assert Topics.load(flare.base / member / "runs" / run / "model").provenance["run"] == run


def test_a_run_with_secure_sums_signs_by_the_keys_of_kits(flare, quiet):
    flare.write(SECURE, seed=6, secure=True)
    run = flare.agree()
    expected = flare.alone(run)
    flare.registry.start()
    carry(flare, run)
    assert flare.outcome(run) == expected
    check_masked(flare, run)


def check_masked(flare, run):
    """Hold a finished run against what secure sums promise."""
    journal = Run.open(flare.server.runs / run).journal()
    cards = SumJournal(journal.directory / "sums", durable=False).cards_or_none()
    assert [card.member for card in cards] == list(flare.server.roster)
    for card in cards:
        assert isinstance(load_der_public_key(card.roster_key.tobytes()), rsa.RSAPublicKey)
        assert fingerprint_of(card.roster_key.tobytes()) == Kit.open(flare.kits / card.member, "client").fingerprint
        ledger = PartyHost(flare.parties[card.member].runs / run).ledger
        releases = [release for release in ledger.releases() if release.run == run]
        assert {release.masked for release in releases if release.verb == "sum"} == {True}
        assert {release.what for release in releases if release.verb == "each"} == {NAMES.what}


def test_a_site_with_another_plan_refuses_and_says_no_more(flare, quiet):
    """The operator changes what was approved: two rounds more."""
    flare.write(QUICK, seed=2)
    run = flare.agree()
    flare.registry.start()
    file = flare.server.runs / run / "run.json"
    facts = json.loads(file.read_text())
    facts["config"]["method"]["rounds"] += 2
    file.write_text(json.dumps(facts))
    with pytest.raises(QuorumError, match="refused by rule 'plan'"):
        carry(flare, run)
    flare.registry.abandon()


def test_a_site_that_has_not_approved_refuses(flare, quiet):
    flare.write(QUICK, seed=3)
    run = flare.registry.current().run
    flare.registry.start()
    with pytest.raises(QuorumError, match="refused by rule 'run'"):
        carry(flare, run)
    assert "waiting" in (flare.server.directory / "server.log").read_text()
    flare.registry.abandon()


def test_a_lost_site_ends_the_job_and_the_next_job_goes_on(flare, quiet, monkeypatch):
    monkeypatch.setattr(engine, "LOST_AFTER", 0.0)
    monkeypatch.setattr(engine, "_PAUSE", 0.01)
    flare.write(QUICK, seed=4)
    run = flare.agree()
    expected = flare.alone(run)
    flare.registry.start()
    for member in MEMBERS:
        with pytest.raises(engine.PartyLost, match=f"site '{member}' has fallen out"):
            carry(flare, run, cut=[member])
    carry(flare, run)
    assert flare.outcome(run) == expected


def test_a_site_answers_the_server_alone(flare, quiet):
    """Every participant of a job can call a published method."""
    flare.write(QUICK, seed=5)
    run = flare.agree()
    question = Inquiry(run, "ledger digest").to_bytes()
    job = Job(flare.kits, SERVER, FlareServer(run), {member: FlareParty() for member in MEMBERS})
    kinds = {}
    for caller in ("server", "south"):
        with job.as_server(caller):
            north = next(client for client in collab.clients if client.name == "north")
            kinds[caller] = read_answer(north(timeout=30.0).exchange(7, question)).kind
            assert north.take(run, b"no model") is False
    job.close()
    assert kinds == {"server": "ok", "south": "failed"}


def test_whatever_goes_wrong_at_a_site_no_reason_leaves(flare, quiet):
    """FLARE would send an exception's text and traceback to the caller."""
    job = Job(flare.kits, SERVER, FlareServer("x"), {name: FlareParty() for name in ("north", "south", "east")})
    place = flare.kits / "north" / "local" / "tertulia.json"
    before = place.read_text()
    place.write_text(json.dumps({"directory": str(flare.base / "south")}))  # the party of another site
    try:
        with job.as_server():
            north = next(client for client in collab.clients if client.name == "north")
            answer = read_answer(north.exchange(1, Inquiry("x", "ledger digest").to_bytes()))
            with pytest.raises(CollabCallError) as error:
                north.exchange("not", "as", "published")
    finally:
        place.write_text(before)
        job.close()
    assert (answer.kind, answer.text) == ("failed", "failed: the reason is in the party's own log")
    assert str(flare.base) not in str(error.value)
    assert "FLARE calls this site 'north'" in (flare.base / "south" / "party.log").read_text()


# --- a whole system ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_provisioned_run_that_loses_sites_and_servers_ends_as_if_nothing_had_been(tmp_path):
    flare = Flare(tmp_path, method=METHOD.replace("rounds = 60", "rounds = 120"))
    try:
        flare.up()
        run = flare.agree()
        expected = flare.alone(run)
        supervisor = flare.supervise()
        flare.wait_for_round(run, 10)
        assert flare.kill("south", job=True)
        flare.wait_for_round(run, flare.rounds(run) + 15)
        assert flare.kill(SERVER, job=True)
        flare.wait_for_round(run, flare.rounds(run) + 15)
        assert flare.kill(SERVER)
        flare.up(SERVER)
        out, err = supervisor.communicate(timeout=300)
    finally:
        flare.down()
    assert supervisor.returncode == 0, err
    assert "next: tertulia topics" in out
    assert err.count("is submitted") == 4
    assert flare.outcome(run) == expected
    assert all((flare.base / member / "runs" / run / "model").exists() for member in MEMBERS)
    assert not flare._own()


@pytest.mark.slow
def test_a_provisioned_run_with_secure_sums_survives_a_killed_site(tmp_path):
    flare = Flare(tmp_path)
    flare.write(SECURE.replace("rounds = 3", "rounds = 40"), secure=True)
    try:
        flare.up()
        run = flare.agree()
        expected = flare.alone(run)
        supervisor = flare.supervise()
        flare.wait_for_round(run, 5)
        assert flare.kill("south", job=True)
        _, err = supervisor.communicate(timeout=300)
    finally:
        flare.down()
    assert supervisor.returncode == 0, err
    assert flare.outcome(run) == expected
    check_masked(flare, run)


def test_a_kit_says_who_it_is_for(flare):
    kit = Kit.open(flare.kits / "north", "client")
    assert (kit.name, kit.project, kit.address) == ("north", "oncology", flare.server.file.address)
    assert flare.registry.current().keys["north"] == kit.fingerprint
    assert Path(flare.parties["north"].file.kit) == kit.directory
