"""A release: wheel and sdist, tried in a clean environment, with a bill of materials and hashes. `make dist`.

dist/tertulia-VERSION-py3-none-any.whl   the same bytes from the same commit (SOURCE_DATE_EPOCH, pinned tools)
dist/tertulia-VERSION.tar.gz
dist/tertulia-VERSION.cdx.json           CycloneDX: all packages that the wheel was tried with, licences, hashes
dist/SHA256SUMS

`make wheelhouse` puts that wheel, and all that it needs, into one folder for houses without internet.
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
    *("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
    *("Makefile", "constraints.txt", "mkdocs.yml", "deploy", "docs", "examples", "src", "tests"),
)
NOT_SOURCES = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*")
SUMS = "SHA256SUMS"
VALIDATE = """
import pathlib, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(pathlib.Path(sys.argv[1]).read_text())
sys.exit(str(wrong)[:2000] if wrong else 0)
"""
PACKAGE_DATA = ("py.typed", "__init__.pyi", "corpus/english.txt.gz", "privacy/policy.example.toml")


def main() -> None:
    """Make what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("dist", "wheelhouse"))
    parser.add_argument("--extras", default="network", help="what else the wheel is tried with: network,neural")
    given = parser.parse_args()
    if given.what == "dist":
        make_dist(ROOT / "dist", given.extras)
    else:
        make_wheelhouse(ROOT / "dist", ROOT / "wheelhouse", given.extras)


def make_dist(folder: Path, extras: str) -> None:
    """Build, try, list and hash; a release that does not work leaves no hashes behind."""
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
    """Collect the released wheel and the pinned wheels of all that it needs, for this Python and this system."""
    (wheel,) = dist.glob("*.whl")
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "pip", "wheel", "-q", "-c", CONSTRAINTS, "-w", folder, f"{wheel}[{extras}]")
    write_sums(folder)
    print(f"{folder.name}: {len(list(folder.glob('*.whl')))} wheels. Take the folder into the house, and there:")
    print(f"  (cd {folder.name} && sha256sum --check --quiet {SUMS})")
    print(f"  python3 -m venv tertulia && tertulia/bin/pip install --no-index --find-links {folder.name} ", end="")
    print(f"'tertulia[{extras}]'")


# --- building ---------------------------------------------------------------------------------------------------------


def build(folder: Path, root: Path = ROOT) -> tuple[Path, Path]:
    """The wheel, built from the sdist, and the sdist. From a copy: what lies in the tree of earlier builds is left."""
    moment = commit_time(root)
    with tempfile.TemporaryDirectory() as place:
        copy_sources(root, Path(place))
        build_both = (sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, place)
        run(*build_both, SOURCE_DATE_EPOCH=str(moment))
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    normalise(sdist, moment)
    return wheel, sdist


def commit_time(root: Path) -> int:
    """SOURCE_DATE_EPOCH, or when the last commit was made."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return int(given or run("git", "-C", root, "log", "-1", "--format=%ct"))


def copy_sources(root: Path, place: Path) -> None:
    """What a release is made of."""
    for name in SOURCES:
        if (root / name).is_dir():
            shutil.copytree(root / name, place / name, ignore=NOT_SOURCES)
        else:
            shutil.copy(root / name, place)


def normalise(sdist: Path, moment: int) -> None:
    """Write an archive anew, in order, with one time and no owner: setuptools takes these from the disk."""
    with tarfile.open(sdist) as old:
        held = [(entry, old.extractfile(entry).read()) for entry in old if entry.isfile()]  # type: ignore[union-attr]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new:
        for entry, data in sorted(held, key=lambda pair: pair[0].name):
            plain = tarfile.TarInfo(entry.name)
            plain.size, plain.mtime, plain.mode = len(data), moment, 0o755 if entry.mode & 0o100 else 0o644
            new.addfile(plain, io.BytesIO(data))
    sdist.write_bytes(gzip.compress(packed.getvalue(), mtime=moment))


# --- trying -----------------------------------------------------------------------------------------------------------


def install(place: Path, wheel: Path, extras: str) -> dict[str, Any]:
    """A new environment with the wheel in it; returns pip's report of what it installed."""
    venv.create(place, with_pip=True)
    report = place / "report.json"
    pip = (place / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "-q")
    run(*pip, "-c", CONSTRAINTS, "--report", report, f"{wheel}[{extras}]")
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def try_wheel(place: Path, wheel: Path) -> None:
    """What a newcomer does, outside the source tree: the version, help, the package's own files, the demo."""
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
        facts = json.loads(run(tertulia, "demo", "--json", cwd=elsewhere))
        print(f"{wheel.name}: the demo found {facts['topics']} topics in {facts['seconds']} s")


# --- what is in it ----------------------------------------------------------------------------------------------------


def bill_of_materials(place: Path, report: Mapping[str, Any]) -> dict[str, Any]:
    """CycloneDX by its own tool, from an environment of its own, and the hashes of the archives that pip installed."""
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
    """The bill of what pip has installed, with the SHA-256 of each archive, and Tertulia as what it is the bill of.

    pip itself is the environment's, not ours; where a wheel lay when it was installed is nobody's business.
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
    """`SHA256SUMS`, as `sha256sum --check` reads it."""
    files = sorted(path for path in folder.iterdir() if path.name != SUMS)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / SUMS).write_text("".join(lines))


def run(*command: object, cwd: Path | str | None = None, **environment: str) -> str:
    """What a command prints; if it fails, the end of that. PYTHONPATH and the like would lead it to the source tree."""
    words = [str(word) for word in command]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(words, env=plain | environment, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
