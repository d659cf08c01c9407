"""Build a release: wheel and sdist, tested in a clean environment, with a bill of materials and hashes. `make dist`.

dist/tertulia-VERSION-py3-none-any.whl   the same bytes from the same commit (SOURCE_DATE_EPOCH, pinned tools)
dist/tertulia-VERSION.tar.gz
dist/tertulia-VERSION.cdx.json           CycloneDX: all packages that the wheel was tested with, licences, hashes
dist/SHA256SUMS

`make wheelhouse` puts that wheel and its dependencies into one folder, for sites without internet access.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
SOURCES = (
    *("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff"),
    *(
        "CONTRIBUTING.md",
        "SECURITY.md",
        "Makefile",
        "constraints.txt",
        "mkdocs.yml",
        "deploy",
        "docs",
        "examples",
        "src",
        "tests",
    ),
)
NOT_SOURCES = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*")
SUMS = "SHA256SUMS"
REPOSITORY = "TERTULIA_REPOSITORY"  # address of the repository that publishes; a fork's wheel names the fork
URLS = """
[project.urls]
Source = "{0}"
Documentation = "{0}/tree/main/docs"
Changelog = "{0}/blob/main/CHANGELOG.md"
Issues = "{0}/issues"
"""
VALIDATE = """
import pathlib, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(pathlib.Path(sys.argv[1]).read_text())
sys.exit(str(wrong)[:2000] if wrong else 0)
"""
PACKAGE_DATA = (
    "py.typed",
    "__init__.pyi",
    "corpus/english.txt.gz",
    "models/vectors/english.npz",
    "privacy/policy.example.toml",
)


def main() -> None:
    """Build the distribution or the wheelhouse."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("dist", "wheelhouse"))
    parser.add_argument("--extras", default="network", help="extras that the wheel is tested with: network,neural")
    given = parser.parse_args()
    if given.what == "dist":
        make_dist(ROOT / "dist", given.extras)
    else:
        make_wheelhouse(ROOT / "dist", ROOT / "wheelhouse", given.extras)


def make_dist(folder: Path, extras: str) -> None:
    """Build, test, list and hash; a release that fails leaves no hashes behind."""
    shutil.rmtree(folder, ignore_errors=True)
    wheel, _ = build(folder)
    with tempfile.TemporaryDirectory() as place:
        report = install(Path(place) / "clean", wheel, extras)
        try_wheel(Path(place) / "clean", wheel)
        bill = bill_of_materials(Path(place), report)
    (folder / f"{wheel.name.split('-py3')[0]}.cdx.json").write_text(json.dumps(bill, indent=2) + "\n")
    write_sums(folder)
    print((folder / SUMS).read_text(), end="")


def make_wheelhouse(dist: Path, folder: Path, extras: str) -> None:
    """Collect the released wheel and pinned wheels of its dependencies, for this Python and this system."""
    (wheel,) = dist.glob("*.whl")
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "pip", "wheel", "-q", "-c", CONSTRAINTS, "-w", folder, f"{wheel}[{extras}]")
    write_sums(folder)
    print(f"{folder.name}: {len(list(folder.glob('*.whl')))} wheels. Copy the folder to the site, then run:")
    print(f"  (cd {folder.name} && sha256sum --check --quiet {SUMS})")
    print(f"  python3 -m venv tertulia && tertulia/bin/pip install --no-index --find-links {folder.name} ", end="")
    print(f"'tertulia[{extras}]'")


# --- building ---------------------------------------------------------------------------------------------------------


def build(folder: Path, root: Path = ROOT) -> tuple[Path, Path]:
    """Build sdist and wheel, the wheel from the sdist, in a copy of the tree: remains of earlier builds are ignored."""
    moment = commit_time(root)
    with tempfile.TemporaryDirectory() as place:
        copy_sources(root, Path(place))
        build_both = (sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, place)
        run(*build_both, SOURCE_DATE_EPOCH=str(moment))
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    normalise(sdist, moment)
    return wheel, sdist


def commit_time(root: Path) -> int:
    """Return SOURCE_DATE_EPOCH, or the time of the last commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return int(given or run("git", "-C", root, "log", "-1", "--format=%ct"))


def copy_sources(root: Path, place: Path) -> None:
    """Copy the files of a release; add the addresses of its repository, if they are known."""
    for name in SOURCES:
        if (root / name).is_dir():
            shutil.copytree(root / name, place / name, ignore=NOT_SOURCES)
        else:
            shutil.copy(root / name, place)
    if repository := os.environ.get(REPOSITORY):
        with (place / "pyproject.toml").open("a") as project:
            project.write(URLS.format(repository))


def normalise(sdist: Path, moment: int) -> None:
    """Rewrite an archive in sorted order, with one time and no owner: setuptools takes these from the disk."""
    with tarfile.open(sdist) as old:
        held = [(entry, old.extractfile(entry).read()) for entry in old if entry.isfile()]  # type: ignore[union-attr]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new:
        for entry, data in sorted(held, key=lambda pair: pair[0].name):
            plain = tarfile.TarInfo(entry.name)
            plain.size, plain.mtime, plain.mode = len(data), moment, 0o755 if entry.mode & 0o100 else 0o644
            new.addfile(plain, io.BytesIO(data))
    sdist.write_bytes(gzip.compress(packed.getvalue(), mtime=moment))


# --- testing ----------------------------------------------------------------------------------------------------------


def install(place: Path, wheel: Path, extras: str) -> dict[str, Any]:
    """Install the wheel into a new environment; return pip's report of what it installed."""
    venv.create(place, with_pip=True)
    report = place / "report.json"
    pip = (place / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "-q")
    run(*pip, "-c", CONSTRAINTS, "--report", report, f"{wheel}[{extras}]")
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def try_wheel(place: Path, wheel: Path) -> None:
    """Test a first use outside the source tree: version, help, the package's own files, the README, the demo."""
    with tempfile.TemporaryDirectory() as elsewhere:
        tertulia, python = place / "bin" / "tertulia", place / "bin" / "python"
        version = run(tertulia, "--version", cwd=elsewhere).split()[-1]
        if f"-{version}-" not in wheel.name:
            raise SystemExit(f"{wheel.name} says that it is version {version}")
        run(tertulia, "--help", cwd=elsewhere)
        code = "import tertulia, pathlib; print(pathlib.Path(tertulia.__file__).parent)"
        package = Path(run(python, "-I", "-c", code, cwd=elsewhere).strip())
        missing = [name for name in PACKAGE_DATA if not (package / name).is_file()]
        if missing or not package.is_relative_to(place):
            raise SystemExit(f"the wheel lacks {missing}, or another tertulia was found: {package}")
        run(python, "-P", "-c", first_lines(), cwd=elsewhere)
        if not (Path(elsewhere) / "shared-topics").is_dir() or not (Path(elsewhere) / "topics.html").is_file():
            raise SystemExit("the README's first lines left no model and no page")
        facts = json.loads(run(tertulia, "demo", "--json", cwd=elsewhere))
        print(f"{wheel.name}: the demo found {facts['topics']} topics in {facts['seconds']} s")


def first_lines() -> str:
    """Return the first Python block of the README."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    if found is None:
        raise SystemExit("the README has no block of Python")
    return found[1]


# --- bill of materials ------------------------------------------------------------------------------------------------


def bill_of_materials(place: Path, report: Mapping[str, Any]) -> dict[str, Any]:
    """Run CycloneDX's tool in a separate environment; add the hashes of the archives that pip installed."""
    tools, listed = place / "tools", place / "bill.json"
    venv.create(tools, with_pip=True)
    run(tools / "bin" / "pip", "--disable-pip-version-check", "install", "-q", "-c", CONSTRAINTS, "cyclonedx-bom")
    command = (tools / "bin" / "cyclonedx-py", "environment", "--output-reproducible", "--spec-version", "1.6")
    run(*command, "--output-file", listed, place / "clean" / "bin" / "python")
    bill = with_hashes(json.loads(listed.read_text()), report)
    listed.write_text(json.dumps(bill))
    run(tools / "bin" / "python", "-c", VALIDATE, listed)
    return bill


def with_hashes(bill: dict[str, Any], report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bill of the packages that pip installed, with the SHA-256 of each archive and Tertulia as its subject.

    pip itself belongs to the environment and is left out, and so are the local paths of wheels.
    """
    hashes = {}
    for item in report["install"]:
        given = item["download_info"].get("archive_info", {}).get("hashes", {})
        hashes[_plain(item["metadata"]["name"])] = given.get("sha256")
    components = []
    for component in bill["components"]:
        if (name := _plain(component["name"])) in hashes:
            links = [link for link in component.get("externalReferences", ()) if not link["url"].startswith("file:")]
            digest = [{"alg": "SHA-256", "content": hashes[name]}] if hashes[name] else []
            components.append({**component, "externalReferences": links, "hashes": digest})
    known = {component["bom-ref"] for component in components}
    dependencies = [
        {"ref": link["ref"], "dependsOn": [ref for ref in link.get("dependsOn", ()) if ref in known]}
        for link in bill.get("dependencies", ())
        if link["ref"] in known
    ]
    (own,) = [component for component in components if component["name"] == "tertulia"]
    return {
        **bill,
        "metadata": {**bill.get("metadata", {}), "component": {**own, "type": "application"}},
        "components": [component for component in components if component is not own],
        "dependencies": dependencies,
    }


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def write_sums(folder: Path) -> None:
    """Write `SHA256SUMS` for `sha256sum --check`."""
    files = sorted(path for path in folder.iterdir() if path.name != SUMS)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / SUMS).write_text("".join(lines))


def run(*command: object, cwd: Path | str | None = None, **environment: str) -> str:
    """Run a command and return its output, or exit. PYTHON* variables, which lead to the source tree, are removed."""
    words = [str(word) for word in command]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(words, env=plain | environment, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
