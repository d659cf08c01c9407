"""What every earlier version wrote is read or carried over; a repeat changes nothing, what was spent stays spent."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from helpers.commands import Typist
from helpers.formats import NAMES, OLD_LEDGERS, entries, homes, settled, tree, unpack
from tertulia.errors import ConfigError, DirectoryInUse, FormatError, PolicyRefusal
from tertulia.federation.party.host import PartyConfig
from tertulia.models import Topics
from tertulia.privacy.home import KEY, LEDGER, open_home
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.policy import Policy
from tertulia.privacy.snapshots import copy_whole
from tertulia.runs import config, driver
from tertulia.runs.layout import Run
from tertulia.runs.rehearsal import best_for
from tertulia.upgrades import applying
from tertulia.upgrades.looking import look

every = pytest.mark.parametrize("name", NAMES)
with_old_ledgers = pytest.mark.parametrize("name", OLD_LEDGERS)


def upgrade(root):
    return applying.upgrade(root, look(root))


def spent(ledger):
    guarantee = ledger.cost(Unit.TOKEN, Adjacency.SUBSTITUTE, 1e-6)
    ledger.close()
    return guarantee


def a_further_charge(ledger):
    """The same again, about other contents."""
    charge = next(release for release in ledger.releases() if release.charges and not release.non_private)
    return replace(charge, id="charged after the upgrade", message_hash="another question")


@every
def test_a_dry_run_touches_nothing(tmp_path, name, tertulia):
    root = unpack(name, tmp_path)
    before = tree(tmp_path)
    code, out, _ = tertulia("upgrade", root, "--dry-run", "--json")
    assert code == 0
    assert {row["what"] for row in json.loads(out)["upgrade"]} >= {
        "ledger and key",
        "run",
        "party",
        "model",
        "settings",
    }
    assert tree(tmp_path) == before


@every
def test_all_is_read_or_carried_over_and_a_repeat_changes_nothing(tmp_path, name):
    root = unpack(name, tmp_path)
    found = look(root)
    assert not [item for item in found if item.wrong]
    backup = applying.upgrade(root, found)
    assert (backup is None) == (name == "houses")  # plans of the others lack settings that came later
    for path in root.rglob("run.json"):
        driver.settings_of(Run.open(path.parent))
    for path in root.rglob("party.json"):
        PartyConfig.load(path.parent)
    for path in root.rglob("model.json"):
        model = Topics.load(path.parent)
        assert model.transform([" ".join(model.vocabulary.words)]).sum() == pytest.approx(1)
    for path in root.rglob("best.safetensors"):
        assert best_for(path.parents[3], path.parents[1].name).provenance["chosen"]
    for path in (*root.glob("*.toml"), *root.glob("settings/*.toml")):
        config.load(path) if path.name != "policy.toml" else Policy.load(path)
    for home in homes(root):
        ledger = open_home(home).ledger
        ledger.verify()
        ledger.close()
    after = tree(tmp_path)
    assert upgrade(root) is None
    assert tree(tmp_path) == after


@every
def test_what_was_spent_is_spent(tmp_path, name):
    root = unpack(name, tmp_path)
    said = {home: entries(home) for home in homes(root)}
    before = {home: spent(Ledger(copy_whole(home / LEDGER, tmp_path / f"{i}"))) for i, home in enumerate(said)}
    upgrade(root)
    assert {home: entries(home) for home in said} == said
    assert {home: spent(open_home(home).ledger) for home in said} == before
    if (root / "homes").exists():
        assert before[root / "homes" / "north"].epsilon == pytest.approx(8.0)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "houses"])
@pytest.mark.parametrize("by", ["command", "opening"])
def test_a_full_budget_stays_full(tmp_path, name, by):
    root = unpack(name, tmp_path)
    home = root / "homes" / "north"
    if by == "command":
        upgrade(home)
    ledger = open_home(home).ledger
    with pytest.raises(PolicyRefusal, match=r"budget\.token\.substitute"):
        ledger.record(a_further_charge(ledger), Policy.load(root / "policy.toml"))
    ledger.close()


@with_old_ledgers
def test_undo_brings_back_every_byte(tmp_path, name, tertulia):
    root = unpack(name, tmp_path)
    before = settled(root, tmp_path.parent / f"{tmp_path.name}-copy")
    backup = upgrade(root)
    assert settled(root, tmp_path.parent / f"{tmp_path.name}-copy") != before
    assert backup.directory.parent == tmp_path
    assert {path.stat().st_mode & 0o777 for path in backup.directory.iterdir()} == {0o600}
    assert backup.directory.stat().st_mode & 0o777 == 0o700
    code, _, _ = tertulia("upgrade", root, "--undo")
    assert code == 0
    assert settled(root, tmp_path.parent / f"{tmp_path.name}-copy") == before
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert upgrade(root) is not None  # and once more


@with_old_ledgers
def test_a_ledger_that_was_charged_since_is_never_brought_back(tmp_path, name):
    root = unpack(name, tmp_path)
    upgrade(root)
    ledger = open_home(root / "homes" / "south").ledger
    ledger.record(a_further_charge(ledger))
    ledger.close()
    before = settled(root, tmp_path / "copy")
    with pytest.raises(FormatError, match="charged 1 times since the upgrade, and what was spent stays spent"):
        applying.undo(root)
    assert settled(root, tmp_path / "copy") == before
    ledger = open_home(root / "homes" / "south").ledger
    assert ledger.releases()[-1].id == "charged after the upgrade"
    ledger.close()


def test_a_file_that_was_edited_since_is_not_thrown_away(tmp_path):
    root = unpack("methods", tmp_path)
    upgrade(root / "clear.toml")
    assert "[method.paper]\nliteral_compose = true    # line 7" in (root / "clear.toml").read_text()
    with (root / "clear.toml").open("a") as file:
        file.write("# mine\n")
    with pytest.raises(ConfigError, match=r"clear\.toml was changed since the upgrade"):
        applying.undo(root / "clear.toml")
    assert (root / "clear.toml").read_text().endswith("# mine\n")
    with pytest.raises(ConfigError, match="no backup"):
        applying.undo(root / "neural.toml")


@pytest.fixture(scope="module")
def typist(tmp_path_factory):
    typist = Typist(tmp_path_factory.mktemp("typed"))
    yield typist
    typist.close()


POINTS = ("after_backup:1", "after_change:1", "after_change:4", "after_change:8", "after_change:11")


@pytest.mark.parametrize("point", POINTS)
def test_killed_in_the_middle(tmp_path, typist, point):
    root = unpack("first", tmp_path)
    before, said = settled(root, tmp_path / "copy"), {home: entries(home) for home in homes(root)}
    killed = typist.type("upgrade", root, cwd=tmp_path, fault=f"upgrade.{point}:{tmp_path / 'killed'}")
    assert killed.wait() == -9
    assert {home: entries(home) for home in homes(root)} == said
    again = typist.type("upgrade", root, cwd=tmp_path)
    assert again.wait() == 0, again.err
    assert not [item for item in look(root) if item.changes]
    assert {home: entries(home) for home in homes(root)} == said
    assert len(list(tmp_path.glob("first.before-upgrade-*"))) == 1
    applying.undo(root)
    assert settled(root, tmp_path / "copy") == before


@pytest.mark.parametrize("count", [1, 5, 9])
def test_killed_while_undoing(tmp_path, typist, count):
    root = unpack("first", tmp_path)
    before = settled(root, tmp_path / "copy")
    upgrade(root)
    fault = f"upgrade.after_restore:{count}:{tmp_path / 'killed'}"
    assert typist.type("upgrade", root, "--undo", cwd=tmp_path, fault=fault).wait() == -9
    again = typist.type("upgrade", root, "--undo", cwd=tmp_path)
    assert again.wait() == 0, again.err
    assert settled(root, tmp_path / "copy") == before


def as_newer(root, what):
    if what == "ledger":
        with closing(sqlite3.connect(root / "homes" / "north" / LEDGER)) as db:
            db.execute("PRAGMA user_version=99")
        return
    file = {"run": "runs/sound/run.json", "model": "runs/sound/model/model.json",
            "corpus": "runs/sound/parties/north/corpus/corpus.json"}[what]  # fmt: skip
    facts = json.loads((root / file).read_text())
    (root / file).write_text(json.dumps(facts | {"format": 99}))


@pytest.mark.parametrize("what", ["ledger", "run", "model", "corpus"])
def test_what_is_newer_is_left_alone(tmp_path, what, tertulia):
    root = unpack("first", tmp_path)
    as_newer(root, what)
    before = tree(tmp_path)
    code, _, err = tertulia("upgrade", root)
    assert code == 1
    assert "was made by a newer version: it has format 99" in err
    assert len(err.strip().splitlines()) == 1
    assert tree(tmp_path) == before


def test_who_has_a_ledger_open_is_not_disturbed(tmp_path):
    root = unpack("ledger-2", tmp_path)
    home = root / "homes" / "north"
    with closing(sqlite3.connect(home / LEDGER)) as db:
        db.execute("SELECT count(*) FROM entries").fetchone()
        items = look(root)
        with pytest.raises(DirectoryInUse, match="end all runs of this party first"):
            applying.upgrade(root, items)
    assert [path.name for path in tmp_path.iterdir()] == ["ledger-2"]


def test_a_key_that_the_upgrade_made_goes_with_it(tmp_path):
    party = unpack("ledger-2", tmp_path) / "runs" / "clear" / "parties" / "north"
    (party / KEY).unlink()  # in clear, a run of that version needed none
    before = settled(party, tmp_path / "copy")
    upgrade(party)
    assert (party / KEY).exists()
    applying.undo(party)
    assert settled(party, tmp_path / "copy") == before


def test_a_ledger_whose_key_is_lost_is_left_alone(tmp_path, tertulia):
    root = unpack("ledger-2", tmp_path)
    (root / "homes" / "north" / KEY).unlink()
    before = settled(root / "homes" / "north", tmp_path / "copy")
    code, out, _ = tertulia("upgrade", root, "--json")
    rows = {row["where"]: row for row in json.loads(out)["upgrade"]}
    assert code == 1
    assert "noise.key is missing" in rows[str(root / "homes" / "north")]["becomes"]
    assert rows[str(root / "homes" / "south")]["change"] is True
    assert settled(root / "homes" / "north", tmp_path / "copy") == before


def test_lines_that_cannot_be_moved_are_named(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text('method.name = "ftm"\nmethod.literal_compose = true\n')
    (item,) = look(file)
    assert item.wrong
    assert 'write method = { name = "ftm", paper = { literal_compose = true } } yourself' in item.becomes
    with pytest.raises(ConfigError, match=r"`tertulia upgrade .*run\.toml` carries over what an earlier version had"):
        config.load(file)


def test_a_path_without_anything_of_ours(tmp_path):
    (tmp_path / "notes.toml").write_text("a = 1\n")
    with pytest.raises(ConfigError, match="holds nothing that Tertulia has written"):
        look(tmp_path)
    with pytest.raises(ConfigError, match="there is no"):
        look(tmp_path / "nowhere")
