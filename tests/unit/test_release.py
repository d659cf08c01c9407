"""What a release says of itself: its version in every file, its systems, its addresses, and how it is published."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import tertulia
from deploy import release

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def linted(path, schema):
    """Exit code of the linter."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, path]
    return subprocess.run(command, capture_output=True, check=False).returncode


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_are_linted(path, tmp_path):
    assert linted(path, "custom.github-workflows-require-timeout") == 0
    assert linted(path, "vendor.github-workflows") == 0
    (tmp_path / "broken.yml").write_text(path.read_text().replace("runs-on:", "runs-in:"))
    assert linted(tmp_path / "broken.yml", "vendor.github-workflows") == 1


def test_only_the_job_that_publishes_may_sign_and_none_has_a_token():
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    found = yaml.safe_load(text)
    assert found["permissions"] == {}
    rights = {name: job["permissions"] for name, job in found["jobs"].items()}
    assert rights["build"] == {"contents": "read"}
    assert rights["publish"] == {"contents": "read", "id-token": "write", "attestations": "write"}
    assert "secrets." not in text
    *_, last = found["jobs"]["publish"]["steps"]
    assert last["with"]["attestations"] is True


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == tertulia.__version__
    assert citation["license"] == PROJECT["project"]["license"]
    assert [author["name"] for author in citation["authors"]] == [a["name"] for a in PROJECT["project"]["authors"]]


def test_every_python_and_system_that_is_named_is_tried_by_the_workflow():
    matrix = yaml.safe_load((ROOT / ".github" / "workflows" / "platforms.yml").read_text())["jobs"]["fit"]["strategy"]
    classifiers = "\n".join(PROJECT["project"]["classifiers"])
    assert matrix["matrix"]["python"] == re.findall(r"Python :: (3\.\d+)", classifiers)
    assert matrix["matrix"]["python"][0] == PROJECT["project"]["requires-python"].removeprefix(">=")
    assert [name.split("-")[0] for name in matrix["matrix"]["os"]] == ["ubuntu", "macos", "windows"]
    for system in ("POSIX :: Linux", "MacOS", "Microsoft :: Windows"):
        assert f"Operating System :: {system}" in classifiers


def test_the_group_of_uv_is_the_extra_of_pip():
    assert PROJECT["dependency-groups"]["dev"] == ["tertulia[dev]"]
    assert "dev" in PROJECT["project"]["optional-dependencies"]


@pytest.mark.parametrize("repository", ["https://example.org/topics", None])
def test_addresses_are_those_of_the_repository_that_publishes(repository, tmp_path, monkeypatch):
    monkeypatch.setattr(release, "SOURCES", ("pyproject.toml",))
    if repository:
        monkeypatch.setenv(release.REPOSITORY, repository)
    else:
        monkeypatch.delenv(release.REPOSITORY, raising=False)
    release.copy_sources(ROOT, tmp_path)
    urls = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"].get("urls", {})
    assert all(url.startswith(f"{repository}/") or url == repository for url in urls.values())
    assert sorted(urls) == (["Changelog", "Documentation", "Issues", "Source"] if repository else [])


def test_a_release_runs_the_first_lines_of_the_readme():
    code = release.first_lines()
    compile(code, "README.md", "exec")
    assert 'model.save("shared-topics")' in code
    assert 'model.explore("topics.html")' in code
