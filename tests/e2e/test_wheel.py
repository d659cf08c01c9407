"""The wheel: built twice it is the same, and installed elsewhere it works, also where nothing can be written."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import tertulia
from deploy import release
from helpers.confined import confined
from tertulia.models import Topics

PACKAGE = Path(tertulia.__file__).parent
RUN = """
seed = 1
directory = "{directory}"
engine = "processes"
[method]
name = "consensus"
topics = 3
rounds = 2
sweeps = 5
[parties.north]
path = "{texts}"
[parties.south]
path = "{texts}"
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Wheel and sdist."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SOURCE_DATE_EPOCH", "1700000000")
        return release.build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """Where the wheel is, and nothing else of ours."""
    place = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--target", place, built[0]], check=True)
    return place


@pytest.fixture
def compiled(installed):
    """The installed wheel with the kernels that are compiled here so far, as in an image."""
    for kernel in PACKAGE.rglob("*.nb[ic]"):
        target = installed / "tertulia" / kernel.relative_to(PACKAGE)
        target.parent.mkdir(exist_ok=True)
        shutil.copy(kernel, target)
    return installed


def settings(folder):
    """A tiny run, whose directory is below the folder."""
    folder.mkdir(exist_ok=True)
    texts = folder / "texts.jsonl"
    lines = ["rain falls on rivers", "rivers rise and fall", "lakes fill with rain"] * 20
    texts.write_text("".join(json.dumps({"id": str(i), "text": text}) + "\n" for i, text in enumerate(lines)))
    path = folder / "run.toml"
    path.write_text(RUN.format(directory=folder / "work" / "run", texts=texts))
    return path


def command(place, *arguments, cwd):
    """What the installed command prints."""
    environment = {**os.environ, "PYTHONPATH": str(place)}
    line = [sys.executable, "-P", "-m", "tertulia", *map(str, arguments)]
    return subprocess.run(line, env=environment, cwd=cwd, capture_output=True, text=True, check=True).stdout


def test_the_version_is_said_in_one_place(built, installed, tmp_path):
    assert [path.name.removesuffix(".tar.gz").split("-")[1] for path in built] == [tertulia.__version__] * 2
    assert command(installed, "--version", cwd=tmp_path) == f"tertulia {tertulia.__version__}\n"
    assert "rehearse" in command(installed, "--help", cwd=tmp_path)


def test_the_wheel_holds_the_package_and_nothing_else(built):
    names = set(zipfile.ZipFile(built[0]).namelist())
    assert {f"tertulia/{name}" for name in release.PACKAGE_DATA} <= names
    assert {name.split("/")[0] for name in names} == {"tertulia", f"tertulia-{tertulia.__version__}.dist-info"}
    sources = {f"tertulia/{path.relative_to(PACKAGE)}" for path in PACKAGE.rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == sources


def test_the_sdist_holds_what_an_organisation_reads_tests_and_deploys(built):
    with tarfile.open(built[1]) as archive:
        names = {entry.name.partition("/")[2] for entry in archive}
        assert {entry.mtime for entry in archive} == {1700000000}
        assert {(entry.uid, entry.uname) for entry in archive} == {(0, "")}
    for name in ("CHANGELOG.md", "Makefile", "constraints.txt", "deploy/docker/Dockerfile", "docs/deploy.md"):
        assert name in names
    assert "tests/e2e/test_wheel.py" in names
    assert not [name for name in names if "__pycache__" in name]


@pytest.mark.slow
def test_two_builds_are_the_same(built, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    again = release.build(tmp_path)
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in built]


def test_an_archive_written_again_says_nothing_of_who_packed_it(tmp_path):
    """The quick sibling of two builds: two archives of the same files, packed at other times, in another order."""
    for name in ("b", "a"):
        (tmp_path / name).write_text(name)
    made = []
    for order, moment in (("ab", 1), ("ba", 2)):
        os.utime(tmp_path / "a", (moment, moment))
        archive = tmp_path / f"{order}.tar.gz"
        with tarfile.open(archive, "w:gz") as packed:
            for name in order:
                packed.add(tmp_path / name, f"top/{name}")
        release.normalise(archive, 1700000000)
        made.append(archive.read_bytes())
    assert made[0] == made[1]


def test_a_bill_of_materials_has_the_hashes_of_what_was_installed():
    def component(name, url="https://example.org"):
        links = [{"type": "distribution", "url": url}]
        return {"bom-ref": f"{name}==1", "name": name, "version": "1", "type": "library", "externalReferences": links}

    def archive(name, digest):
        return {"metadata": {"name": name}, "download_info": {"archive_info": {"hashes": {"sha256": digest}}}}

    bill = {
        "metadata": {"tools": {}},
        "components": [component("tertulia", "file:///home/ana/x.whl"), component("Some.Package"), component("pip")],
        "dependencies": [{"ref": "Some.Package==1", "dependsOn": ["pip==1"]}, {"ref": "pip==1"}],
    }
    report = {"install": [archive("some-package", "ab" * 32), archive("tertulia", "cd" * 32)]}
    found = release.with_hashes(bill, report)
    assert [part["name"] for part in found["components"]] == ["Some.Package"]  # pip is the environment's
    assert found["components"][0]["hashes"] == [{"alg": "SHA-256", "content": "ab" * 32}]
    assert found["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": "cd" * 32}]
    assert found["dependencies"] == [{"ref": "Some.Package==1", "dependsOn": []}]
    assert "/home/ana" not in json.dumps(found)


def test_sums_are_what_sha256sum_checks(tmp_path):
    (tmp_path / "one.whl").write_bytes(b"1")
    release.write_sums(tmp_path)
    check = ["sha256sum", "--check", "--strict", "--quiet", release.SUMS]
    assert subprocess.run(check, cwd=tmp_path).returncode == 0
    (tmp_path / "one.whl").write_bytes(b"2")
    assert subprocess.run(check, cwd=tmp_path, capture_output=True).returncode == 1


@pytest.fixture
def model_here(tertulia, tmp_path):
    """The digest of a model that is trained here, by which its kernels are compiled, too."""
    run = tmp_path / "model-here"
    assert tertulia("run", settings(tmp_path / "here"), "--directory", run, "--engine", "local")[0] == 0
    assert Topics.load(run / "model").n_topics == 3
    return digest_of(run)


def digest_of(run):
    (weights,) = (run / "model").glob("*.safetensors")
    return hashlib.sha256(weights.read_bytes()).hexdigest()


def test_a_read_only_wheel_without_network_trains_the_same_model(model_here, compiled, tmp_path):
    """As in an image: kernels that were compiled before are found, and nothing is compiled again."""
    there = settings(tmp_path / "there")
    work = tmp_path / "there" / "work"
    work.mkdir()
    script = f"{sys.executable} -P -m tertulia run {there} && sha256sum {work}/run/model/*.safetensors"
    done = confined(work, "sh", "-c", script, PYTHONPATH=str(compiled), PYTHONDONTWRITEBYTECODE="1")
    if done is None:
        pytest.skip("this machine gives us no namespaces, in which a read-only root could be shown")
    assert done.returncode == 0, done.stderr
    assert "compiling" not in done.stderr
    assert done.stdout.splitlines()[-1].split()[0] == model_here


@pytest.mark.slow
def test_a_federation_of_organisations_lives_where_nothing_else_can_be_written(compiled, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    words = (sys.executable, "-P", "-m", "tertulia", "rehearse", "2", "--documents", "60")
    done = confined(work, *words, PYTHONPATH=str(compiled))
    if done is None:
        pytest.skip("this machine gives us no namespaces, in which a read-only root could be shown")
    assert done.returncode == 0, done.stderr
    assert "everything is in rehearsal" in done.stdout
