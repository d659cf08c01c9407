"""A party whose documents are rows of a database: neither its address nor its query leaves, in files or in frames."""

import json
from urllib.parse import quote

import pytest

from helpers.postgres import PASSWORD, anywhere, postgres
from helpers.sites import Sites
from helpers.texts import halves
from tertulia.corpus import Corpus
from tertulia.corpus.sources.sql import digest_of
from tertulia.errors import ConfigError, InputError
from tertulia.operations.doctor import check_documents
from tertulia.runs.settings import settings_from

QUERY = "SELECT note FROM clinic_notes WHERE note IS NOT NULL"
OURS = "clinic_notes"  # which only the query names
SECRETS = (PASSWORD, quote(PASSWORD, safe=""))


@pytest.fixture
def server(monkeypatch):
    with anywhere() as place, postgres(place) as running:
        rows = ", ".join(f"('{text}')" for text in halves(1, 40))
        running.execute("CREATE TABLE clinic_notes (note text)", f"INSERT INTO clinic_notes VALUES {rows}, (NULL)")
        monkeypatch.setenv("CLINIC_DATABASE", running.address())
        yield running


def files_with(place, *texts):
    """The files below a place that hold one of the texts."""
    wanted = [text.encode() for text in texts]
    return [p for p in place.rglob("*") if p.is_file() and any(text in p.read_bytes() for text in wanted)]


def test_a_federation_learns_from_a_database_and_never_hears_of_it(server, tmp_path):
    sites = Sites(tmp_path)
    sites.join(*sites.server.file.members)
    north = sites.parties["north"].directory
    file = north / "party.toml"
    path = next(line for line in file.read_text().splitlines() if line.startswith("path"))
    file.write_text(file.read_text().replace(path, f'query = "{QUERY}"\naddress_env = "CLINIC_DATABASE"'))
    assert check_documents(sites.parties["north"].file.documents.source()).state == "good"
    sites.approve(*sites.server.file.members)
    run = sites.registry.start()
    carried = sites.carried()
    assert sites.finish(run, transport=carried).n_topics == 2

    assert files_with(tmp_path, *SECRETS) == []
    assert not any(secret.encode() in frame for frame in carried.received for secret in (*SECRETS, OURS))
    assert {path for path in files_with(tmp_path, OURS) if not path.is_relative_to(north)} == set()
    report = Corpus.load(north / "runs" / run.id / "corpus").report
    assert report.queries == {digest_of(QUERY): 40}
    assert digest_of(QUERY) in json.loads((north / "runs" / run.id / "corpus" / "corpus.json").read_text())["report"][
        "queries"
    ]  # fmt: skip

    server.kill()
    with pytest.raises(InputError) as caught:
        sites.consider("north").corpus  # noqa: B018 - it reads
    assert not any(part in str(caught.value) for part in ("s3cret", OURS))
    assert "CLINIC_DATABASE" in str(caught.value)


def test_settings_refuse_an_address_in_place_of_a_name_without_showing_it(tmp_path):
    party = {"query": QUERY, "address_env": "postgresql://ana:s3cr3t@host/db"}
    with pytest.raises(
        ConfigError, match=r"parties\.north\.address_env: write the name of an environment variable"
    ) as caught:
        settings_from({"parties": {"north": party}}, tmp_path)
    assert "s3cr3t" not in str(caught.value)


def test_a_run_on_one_machine_reads_duckdb(tertulia, tmp_path):
    (tmp_path / "notes.csv").write_text("day,body\n" + "".join(f'2024,"{text}"\n' for text in halves(1, 60)))
    query = f"SELECT body AS text FROM '{tmp_path}/notes.csv'"
    config = tmp_path / "run.toml"
    config.write_text(
        f'directory = "run"\n[method]\nname = "consensus"\ntopics = 2\nrounds = 2\nsweeps = 2\n'
        f'[parties.north]\nquery = """{query}"""\n[parties.south]\nquery = """{query}"""\n'
    )
    code, out, _ = tertulia("check", config, "--json")
    assert code == 0
    assert all(f"60 rows are of the query {digest_of(query)[:23]}" in row["summary"] for row in json.loads(out)["read"])
    assert tertulia("run", config)[0] == 0
