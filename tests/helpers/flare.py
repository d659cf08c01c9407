"""A federation inside NVIDIA FLARE, provisioned in a folder and bound to loopback; its processes may be killed.

FLARE starts a process for each job at the server and at every site, in a session of its own. All processes have this
folder on their command lines; `down` finds and ends them by it.
"""

import dataclasses
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from helpers.runs import outcome
from helpers.texts import halves
from tertulia.federation.engines.local import LocalTransport
from tertulia.federation.engines.nvflare.jobs import write_job
from tertulia.federation.party.host import PartyConfig, PartyHost
from tertulia.network.flare.setup import found, join
from tertulia.network.flare.supervisor import files_of
from tertulia.network.party.approval import Review
from tertulia.network.server.run_registry import RunRegistry
from tertulia.privacy.home import LEDGER, open_home
from tertulia.privacy.policy_lines import write_lines
from tertulia.runs.directory import Run
from tertulia.runs.driver import finish

SERVER, MEMBERS, ADMIN = "localhost", ("north", "south", "east"), "admin@clinics.org"
METHOD = 'name = "consensus"\ntopics = 3\nrounds = 60\nsweeps = 2\nstart_sweeps = 3\n'
PATIENCE = 240.0  # seconds for a run
_MODULES = {  # keys: whether the process is the server's, and whether it is a job's
    (True, False): "server.server_train", (True, True): "server.runner_process",
    (False, False): "client.client_train", (False, True): "client.worker_process",
}  # fmt: skip
_PROJECT = """api_version: 3
name: oncology
participants:
  - {{name: localhost, type: server, org: clinics, fed_learn_port: {port}}}
{sites}
  - {{name: admin@clinics.org, type: admin, org: clinics, role: project_admin}}
builders:
  - path: nvflare.lighter.impl.workspace.WorkspaceBuilder
    args: {{template_file: [master_template.yml]}}
  - path: nvflare.lighter.impl.static_file.StaticFileBuilder
    args: {{config_folder: config, scheme: grpc}}
  - path: nvflare.lighter.impl.cert.CertBuilder
  - path: nvflare.lighter.impl.signature.SignatureBuilder
"""


def provision(base: Path) -> Path:
    """Run `nvflare provision` for a project with three sites; return the folder of kits."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    sites = "\n".join(f"  - {{name: {name}, type: client, org: clinics}}" for name in MEMBERS)
    (base / "project.yml").write_text(_PROJECT.format(port=port, sites=sites))
    command = [sys.executable, "-m", "nvflare.cli", "provision", "-p", "project.yml", "-w", "kits"]
    subprocess.run(command, cwd=base, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
    return base / "kits" / "oncology" / "prod_00"


class Flare:
    """The directories of server and parties, their kits, and the kits' processes."""

    def __init__(self, base, texts=None, method=METHOD):
        self.base, self.kits, self.job = Path(base), provision(Path(base)), Path(base) / "job"
        self.server = found(self.base / "oncology", self.kits / SERVER, self.kits)
        self.registry, self.parties, self._children = RunRegistry(self.server), {}, {}
        self.write(method)
        for i, member in enumerate(MEMBERS):
            documents = self.base / f"{member}.jsonl"
            rows = [json.dumps({"note": text}) for text in (texts or {}).get(member) or halves(i + 1, 60)]
            documents.write_text("\n".join(rows) + "\n")
            self.parties[member] = join(self.kits / member, self.base / member, documents, "note")

    def write(self, method, seed=0, *, secure=False):
        """Change the operator's file to ask for another run."""
        file = self.server.directory / "federation.toml"
        head, _, rest = file.read_text().partition("[method]")
        head = "".join(f"seed = {seed}\n" if line.startswith("seed") else line for line in head.splitlines(True))
        rest = rest.partition("[text]")[2].replace("absent_after = 30.0", "absent_after = 90.0")
        rest = re.sub(r"^secure = \w+", f"secure = {str(secure).lower()}", rest, flags=re.MULTILINE)
        file.write_text(f"{head}[method]\n{method}\n[text]{rest}")

    def agree(self) -> str:
        """Do what `export` and `approve --yes` do; return the run."""
        proposal = self.registry.current()
        write_job(self.job, files_of(self.server, proposal))
        for party in self.parties.values():
            (party.directory / "proposal.json").write_bytes(proposal.to_bytes())
            seen = Review.of(party, party.sent_proposal())
            seen.check()
            write_lines(party.policy_path, seen.lines_needed())
            open_home(party.home).ledger.close()  # its key is the same in copies
            seen.lay_out()
        return proposal.run

    def alone(self, run: str) -> dict:
        """Return the outcome of the run without FLARE: on copies of all directories, in this process."""
        place, directories = self.base / f"alone-{run}", {}
        for member, party in self.parties.items():
            directories[member] = place / member
            shutil.copytree(party.runs / run, place / member)
            for path in party.home.iterdir():  # the policy, and a ledger in which earlier runs may be
                if path.name == LEDGER:  # by SQLite: this process may have it open, and would lose its locks
                    with closing(sqlite3.connect(path)) as own, closing(sqlite3.connect(place / member / LEDGER)) as to:
                        own.backup(to)
                elif path.is_file() and path.name not in ("lock", "party.log", f"{LEDGER}-wal", f"{LEDGER}-shm"):
                    shutil.copy(path, place / member / path.name)  # a key that others may read is refused
            dataclasses.replace(PartyConfig.load(place / member), home=str(place / member)).save(place / member)
        settings = self.server.file.run_settings(place / "server")
        keys, roster = self.registry.current().keys, self.server.roster
        begun = Run(place / "server", run, roster, settings.model_dump(mode="json"), keys=keys)
        begun.save()
        finish(begun, transport=LocalTransport([PartyHost(directories[member]) for member in roster]))
        return outcome(begun, directories)

    def outcome(self, run: str) -> dict:
        """Return the outcome of the run."""
        directories = {member: party.runs / run for member, party in self.parties.items()}
        return outcome(Run.open(self.server.runs / run), directories)

    # --- processes ------------------------------------------------------------------------------------------------

    def up(self, *names, fault=None):
        """Start kits; `fault` kills the first of their processes that passes a fault point."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        search = os.pathsep.join(dict.fromkeys(entry for entry in sys.path if entry and Path(entry).is_dir()))
        env = {**os.environ, "PATH": path, "PYTHONPATH": search, **({"TERTULIA_FAULT": fault} if fault else {})}
        for name in names or (SERVER, *MEMBERS):
            with (self.base / f"{name}.out").open("ab") as out:
                command = ["bash", str(self.kits / name / "startup" / "sub_start.sh"), "--once"]
                self._children[name] = subprocess.Popen(
                    command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=env, start_new_session=True
                )

    def kill(self, name, job=False):
        """Kill a kit's process, or only that of its job; return whether there was one."""
        module = _MODULES[name == SERVER, job]
        wanted = [pid for pid, text in self._own().items() if module in text and f"-m {self.kits / name} " in text]
        for pid in wanted:
            os.kill(pid, signal.SIGKILL)
        if not job:
            self._children[name].wait(10)
        return bool(wanted)

    def supervise(self, *more):
        """Start `tertulia nvflare supervise` as a process."""
        command = [sys.executable, "-P", "-m", "tertulia", "nvflare", "supervise", self.server.directory]
        command += ["--job", self.job, "--admin", self.kits / ADMIN, *more]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
        return subprocess.Popen(
            [str(a) for a in command], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )

    def rounds(self, run: str) -> int:
        """Return the number of finished rounds of a run."""
        log = self.server.directory / "server.log"
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return max((line.get("round", 0) for line in lines if line.get("run") == run), default=0)

    def wait_for_round(self, run: str, number: int, patience=PATIENCE):
        """Wait until this number of rounds is finished."""
        until = time.monotonic() + patience
        while self.rounds(run) < number:
            assert time.monotonic() < until, f"run {run} is in round {self.rounds(run)}"
            time.sleep(0.1)

    def _own(self) -> dict[int, str]:
        """Return the processes of FLARE that have this folder on their command lines."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                text = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(self.kits) in text and "nvflare.private" in text:
                found[int(entry.parent.name)] = text
        return found

    def down(self):
        """Kill all processes, and wait until none is left."""
        until = time.monotonic() + 30
        while own := self._own():
            assert time.monotonic() < until, own
            for pid in own:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            for child in self._children.values():
                child.poll()
            time.sleep(0.1)
        for child in self._children.values():
            child.wait(10)
