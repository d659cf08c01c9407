"""What is in deploy/: each file passes its own kind's linter, is hardened, and starts commands that there are."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer
import yaml

import tertulia
from tertulia.cli.main import app

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted(DEPLOY.glob("systemd/*.service"))
DOCKERFILE = DEPLOY / "docker" / "Dockerfile"
COMPOSE = DEPLOY / "docker" / "compose.yaml"
MANIFESTS = sorted(DEPLOY.glob("kubernetes/*.yaml"))
METRICS = "9100"
MOST_EXPOSED = (
    20  # of 100, by `systemd-analyze security`; 10 and more are for what a server on the network cannot do without
)


def tool(name):
    """A linter that the extra `dev` installs."""
    found = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert found, f"{name} is missing: pip install -c constraints.txt -e '.[dev]'"
    return found


def output(*command):
    """Exit code, and all that was said."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def is_understood(line):
    """Raise unless the command line takes these words."""
    name, *arguments = line
    typer.main.get_command(app).commands[name].make_context(name, list(arguments))


# --- systemd ----------------------------------------------------------------------------------------------------------


def settings(unit):
    """Key -> values, in order."""
    found = {}
    for line in unit.read_text().splitlines():
        if line and line[0] not in "#[":
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


@pytest.fixture
def verified(tmp_path):
    """What `systemd-analyze` says of a unit, with an executable that exists in place of the one in /opt."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("there is no systemd-analyze on this machine")

    def verify(unit, text=None):
        command = re.sub(r"/opt/tertulia/bin/tertulia", sys.executable, text or unit.read_text())
        (tmp_path / unit.name).write_text(command)
        return output("systemd-analyze", "verify", tmp_path / unit.name)

    return verify


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_units_are_verified_by_systemd(unit, verified):
    assert verified(unit) == (0, "")
    assert "PrivateTemp" in verified(unit, unit.read_text().replace("PrivateTmp", "PrivateTemp"))[1]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_units_are_little_exposed(unit):
    if not shutil.which("systemd-analyze"):
        pytest.skip("there is no systemd-analyze on this machine")
    code, said = output("systemd-analyze", "security", "--offline=yes", f"--threshold={MOST_EXPOSED}", unit)
    assert code == 0, said.splitlines()[-1]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_units_are_hardened_and_say_why_kernels_may_run(unit):
    found = settings(unit)
    for key in ("NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectHome", "RestrictNamespaces"):
        assert found[key] == ["yes"], key
    assert found["ProtectSystem"] == ["strict"]
    assert found["CapabilityBoundingSet"] == [""]
    assert found["User"] == ["tertulia"]
    assert found["ReadWritePaths"] == found["WorkingDirectory"] == ["/var/lib/tertulia/%i"]
    assert found["MemoryDenyWriteExecute"] == ["no"]
    assert re.search(r"^# .*numba.*\nMemoryDenyWriteExecute=no$", unit.read_text(), re.M)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_units_start_a_command_and_follow_its_exit_codes(unit):
    found = settings(unit)
    program, command, directory, options = found["ExecStart"][0].split()
    assert (program, directory, options) == ("/opt/tertulia/bin/tertulia", "/var/lib/tertulia/%i", "$OPTIONS")
    assert unit.stem == f"tertulia-{command}@"
    is_understood([command, directory, "--metrics", METRICS])
    assert found["Restart"] == ["on-failure"]  # 0 is SIGTERM
    assert found["RestartPreventExitStatus"] == ["2"]  # a wrong command line
    assert found["KillMode"] == ["mixed"]


def test_the_user_of_the_units_is_made():
    line = (DEPLOY / "systemd" / "tertulia.sysusers.conf").read_text().splitlines()[-1]
    assert shlex.split(line)[:2] == ["u", "tertulia"]


# --- the image --------------------------------------------------------------------------------------------------------


def instructions():
    """The Dockerfile's instructions, a list of (name, rest) for each stage."""
    joined = DOCKERFILE.read_text().replace("\\\n", " ")
    stages = [[]]
    for line in joined.splitlines():
        if line and not line.startswith("#"):
            name, _, rest = line.partition(" ")
            stages += [[]] if name == "FROM" else []
            stages[-1].append((name, rest.strip()))
    return stages[1:]


def values(stage, name):
    return [rest for key, rest in stage if key == name]


def test_dockerfile_is_linted(tmp_path):
    assert output(tool("hadolint"), DOCKERFILE) == (0, "")
    (tmp_path / "Dockerfile").write_text("FROM python\nRUN cd /tmp && pip install numpy\n")
    assert output(tool("hadolint"), tmp_path / "Dockerfile")[0] == 1


def test_the_image_runs_as_a_numbered_user_a_command_that_there_is():
    _, last = instructions()
    assert values(last, "USER") == ["10001:10001"]
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    (entry,) = yaml.safe_load(values(last, "ENTRYPOINT")[0])
    assert entry in scripts
    (*options, module, port) = yaml.safe_load(values(last, "HEALTHCHECK")[0].partition("CMD ")[2])
    assert options == ["python", "-P", "-m"]
    assert find_spec(module)
    assert port == METRICS
    assert values(last, "VOLUME") == ["/data"]


def test_the_image_is_built_of_pinned_packages_and_files_of_ours():
    build, last = instructions()
    assert not values(build, "ADD") + values(last, "ADD")
    installs = [run for run in values(build, "RUN") if "pip install" in run]
    assert installs
    assert all("-c constraints.txt" in run for run in installs)
    assert not any("pip install" in run for run in values(last, "RUN"))
    assert any("-m tertulia warm" in run for run in values(build, "RUN"))
    ignored = (DOCKERFILE.with_name("Dockerfile.dockerignore")).read_text().splitlines()
    for source in [word for copy in values(build, "COPY") for word in copy.split()[:-1]]:
        assert (ROOT / source).exists()
        assert f"!{source}" in ignored
    assert values(last, "COPY") == ["--from=build /opt/tertulia /opt/tertulia"]


def test_kernels_are_compiled_for_the_processors_that_the_image_says_it_runs_on():
    build, last = instructions()
    cpu = 'NUMBA_CPU_NAME=${CPU} NUMBA_CPU_FEATURES=""'
    assert all(any(cpu in line for line in values(stage, "ENV")) for stage in (build, last))
    assert [line for line in values(build, "ARG") if "CPU" in line] == values(last, "ARG")


# --- compose ----------------------------------------------------------------------------------------------------------


def services():
    return yaml.safe_load(COMPOSE.read_text())["services"]


def test_compose_file_keeps_to_the_schema(tmp_path):
    command = (tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec")
    assert output(*command, COMPOSE)[0] == 0
    (tmp_path / "compose.yaml").write_text(COMPOSE.read_text().replace("read_only: true", "read_only: [much]"))
    assert output(*command, tmp_path / "compose.yaml")[0] == 1


@pytest.mark.parametrize("name", services())
def test_services_are_hardened_and_apart(name):
    service = services()[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert [place.partition(":")[0] for place in service["tmpfs"]] == ["/tmp"]
    assert not {"privileged", "cap_add", "ports", "network_mode", "user", "pid"} & set(service)
    assert service["restart"] == "unless-stopped"
    own, *documents = service["volumes"]
    assert own == f"{name}:/data"
    assert all(place.endswith(":/documents:ro") and f"/{name}:" in place for place in documents)
    is_understood(service["command"])
    assert service["command"][-2:] == ["--metrics", METRICS]


def test_there_are_a_server_and_three_parties_who_reach_nobody_else():
    assert [service["command"][0] for service in services().values()] == ["serve", "attend", "attend", "attend"]
    assert yaml.safe_load(COMPOSE.read_text())["networks"]["federation"]["internal"] is True


# --- Kubernetes -------------------------------------------------------------------------------------------------------


def objects(path):
    return {thing["kind"]: thing for thing in yaml.safe_load_all(path.read_text())}


def pod(path):
    return objects(path)["StatefulSet"]["spec"]["template"]["spec"]


def containers(path):
    return [*pod(path)["initContainers"], *pod(path)["containers"]]


def test_manifests_keep_to_the_schema(tmp_path):
    assert output(tool("kubernetes-validate"), "--strict", *MANIFESTS)[0] == 0
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(MANIFESTS[0].read_text().replace("readOnlyRootFilesystem", "readOnlyRoot"))
    assert output(tool("kubernetes-validate"), "--strict", wrong)[0] == 1


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_pods_are_locked_up(path):
    spec = pod(path)
    context = spec["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] == context["runAsGroup"] == context["fsGroup"] == 10001
    assert context["fsGroupChangePolicy"] == "OnRootMismatch"
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    labels = objects(path)["Namespace"]["metadata"]["labels"]
    assert labels == {"pod-security.kubernetes.io/enforce": "restricted"}
    for container in containers(path):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert "memory" in container["resources"]["limits"]
        assert {"name": "data", "mountPath": "/data"} in container["volumeMounts"]
        assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_pods_run_this_version_and_commands_that_there_are(path):
    for container in containers(path):
        assert container["image"] == f"tertulia:{tertulia.__version__}"
        line = container["args"] if "command" not in container else shlex.split(container["args"][0])
        is_understood(line[line.index("tertulia") + 1 :] if "tertulia" in line else line)
    probes = [probe for name, probe in containers(path)[-1].items() if name.endswith("Probe")]
    asked = [probe["exec"]["command"] for probe in probes if "exec" in probe]
    assert len(probes) == 3
    assert asked
    assert all(command[:4] == ["python", "-P", "-m", "tertulia.cli.healthy"] for command in asked)
    assert all(command[-1] == METRICS == containers(path)[-1]["args"][-1] for command in asked)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_a_directory_has_one_pod(path):
    spec = objects(path)["StatefulSet"]["spec"]
    assert spec["replicas"] == 1
    assert [claim["spec"]["accessModes"] for claim in spec["volumeClaimTemplates"]] == [["ReadWriteOncePod"]]


def test_a_party_only_dials_out_and_the_server_only_listens():
    server, party = DEPLOY / "kubernetes" / "server.yaml", DEPLOY / "kubernetes" / "party.yaml"
    assert not any("ports" in container for container in containers(party))
    assert "ports" not in objects(party)["Service"]["spec"]
    rules = {path: objects(path)["NetworkPolicy"]["spec"] for path in (server, party)}
    assert all(rule["policyTypes"] == ["Ingress", "Egress"] for rule in rules.values())
    assert rules[party]["ingress"] == []
    assert {port["port"] for rule in rules[party]["egress"] for port in rule["ports"]} == {53, 7433}
    assert rules[server]["egress"] == []
    assert [port["port"] for rule in rules[server]["ingress"] for port in rule["ports"]] == [7433]


# --- the page ---------------------------------------------------------------------------------------------------------


def commands_of_the_page():
    """What docs/deploy.md has people type at tertulia: by itself, through sudo or kubectl, or in a service."""
    text = (ROOT / "docs" / "deploy.md").read_text()
    blocks = "\n".join(re.findall(r"```\n(.*?)```", text, re.S))
    typed = re.findall(r"(?:^|bin/|-- |server |north )tertulia ([a-z]+ .*?)(?: +#.*)?$", blocks, re.M)
    in_services = re.findall(r"compose run --rm (?:server|north) (.*?)(?: +#.*)?$", blocks, re.M)
    return [*typed, *in_services]


@pytest.mark.parametrize("line", commands_of_the_page())
def test_commands_of_the_page_are_understood(line):
    is_understood(shlex.split(line))


def test_the_page_goes_the_whole_way():
    assert {line.split()[0] for line in commands_of_the_page()} >= {
        *("init", "join", "check", "approve", "start", "status", "fetch", "doctor")
    }


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))], ids=lambda page: page.name)
def test_nothing_of_ours_is_installed_from_an_index(page):
    """Where there is no package of ours, anybody can put one."""
    lines = [line for line in page.read_text().splitlines() if re.search(r"pip install.*\btertulia\b(?!-)", line)]
    assert [line for line in lines if "--no-index" not in line and "/opt/tertulia/bin/pip install -c" not in line] == []
