"""Fuzzing targets for loaders: each writes a valid file, damages it, loads it and uses the result."""

from __future__ import annotations

import json
import random
import sqlite3
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.door.mutations import Mutation, mutate, mutate_json, mutate_safetensors, mutate_tree
from tertulia._disk import with_checksum
from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import TertuliaError
from tertulia.federation.codec import decode, encode
from tertulia.federation.messages import Answer, Ask, Inquiry, Question, read_frame
from tertulia.federation.packed_arrays import compressor, section
from tertulia.federation.packing import Base, LackingBase, pack, unpack
from tertulia.federation.party.answer_log import AnswerLog
from tertulia.federation.party.host import PartyConfig
from tertulia.federation.server.answers import QuestionToAll, read_answer
from tertulia.federation.server.journal import Commit, Journal
from tertulia.federation.types import Nothing
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.common.local_lda import LocalModel
from tertulia.methods.common.vocabulary import ProposedWords, propose_words
from tertulia.methods.ftm.method import FTMState
from tertulia.models import Topics
from tertulia.models.neural.encoder import Encoder
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.mechanisms import Adjacency, Clear, DiscreteLaplace, Unit
from tertulia.privacy.policy import Policy
from tertulia.privacy.releases import Release
from tertulia.runs import settings as config
from tertulia.runs.directory import Run
from tertulia.runs.driver import settings_of

Case = Callable[[random.Random], str | None]
_TEXTS = ["Rain fell. Rivers rose.", "Bridges held for years.", "Ships sail, ships sink.", "Rain, rain and sun."] * 3
_POLICY = """allow_clear = false
declared_public = ["number of documents"]
max_bytes_per_round = 1000
[[budget]]
unit = "token"
adjacency = "substitute"
epsilon = 8.0
delta = 1e-6
"""
_CONFIG = """seed = 1
directory = "runs/x"
[method]
name = "ftm"
topics = 5
[parties.north]
path = "north.jsonl"
topics = 3
[federation]
quorum = 0.5
[federation.dropouts]
script = { 3 = ["north"] }
"""


def warm_up(target: str) -> None:
    """Make the allocations that last, before memory is limited."""
    warnings.simplefilter("ignore")
    import polars as pl

    pl.DataFrame({"id": ["a"]})
    if target in ("topics", "neural", "corpus"):
        Topics(np.array([[0.5, 0.5]]), Vocabulary(("rain", "sun"))).transform(["rain"])
    if target == "neural":
        import tertulia.models.neural.network  # noqa: F401


def prepare(target: str, folder: Path) -> Case:
    """Return a function that runs one case and returns the alien exception, or None."""
    act: Callable[[random.Random], Any] = _TARGETS[target](folder)

    def case(rng: random.Random) -> str | None:
        try:
            act(rng)
        except TertuliaError:
            return None
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)
            ours = [frame for frame in where if "tertulia" in frame.filename] or where
            return f"{type(error).__name__} at {Path(ours[-1].filename).name}:{ours[-1].lineno}: {error}"[:300]
        return None

    return case


def _codec(folder: Path) -> Any:
    model = LocalModel(np.full((2, 3), 1 / 3, np.float32), np.array(3))
    state = FTMState(1, ("a", "b", "ç"), {"north": model}, {"north": np.ones((2, 3))}, np.ones((2, 3)), None)
    values = (Answer("ok", "", model), state, Ask("each", "a:b", Training()), {"x": (1, 2.5)})
    samples = [encode(value) for value in values]
    return lambda rng: encode(decode(mutate_safetensors(rng.choice(samples), rng)))


def _packing(folder: Path) -> Any:
    draw = np.random.default_rng(0)
    counts, phi = draw.poisson(0.1, (5, 900)), draw.random((5, 100)).astype(np.float32)
    topics = (counts + 0.1) / (counts + 0.1).sum(axis=1, keepdims=True)  # packed by its most frequent numbers
    few = {"none": np.zeros((0, 3)), "one": np.array(7), "words": ("ab",) * 99}
    message = encode({"counts": counts, "phi": phi, "topics": topics, **few})
    base = Base.of(encode({"counts": counts + (phi[0, 0] < 2), "phi": phi * 2, "none": np.zeros((0, 3)), "one": phi}))
    samples = [pack(message), pack(message, base)]
    tree = message[: 8 + int.from_bytes(message[:8], "little")]
    arrays = samples[0].split(b"".join(section(tree, compressor())), 1)[1]

    def act(rng: random.Random) -> None:
        data = mutate(rng.choice(samples), rng)
        if rng.random() < 0.5:  # a well-compressed header of other arrays or sizes
            head = mutate_safetensors(message, rng)[: len(tree) + rng.randrange(40)]
            odd = (len(message), len(head), 0, 1, 2**30, 2**63, rng.randrange(10**6))
            sizes = [rng.choice(odd[:2] if rng.random() < 0.7 else odd).to_bytes(8, "little") for _ in range(2)]
            data = b"".join(
                [samples[0][:40], *sizes, *section(head, compressor()), arrays, bytes(rng.choice((0, 10**4, 10**6)))]
            )
        try:
            unpack(data, {base.name: base.data}.get)
        except LackingBase:
            return

    return act


def _frame(folder: Path) -> Any:
    body = encode(Ask("each", "a:b", Nothing()))
    frames = [Question("run", (1, 0), (0, 1), 0, True, body).to_bytes(), Inquiry("run", "disclosures").to_bytes()]

    def act(rng: random.Random) -> None:
        frame = rng.choice(frames)
        if rng.random() < 0.7:
            size = int.from_bytes(frame[:4], "little")
            head = json.dumps(mutate_tree(json.loads(frame[4 : 4 + size]), rng)).encode()
            frame = len(head).to_bytes(4, "little") + head + frame[4 + size :]
        else:
            frame = mutate(frame, rng)
        asked = read_frame(frame)
        if isinstance(asked, Question):
            asked.content.ask()

    return act


def _answer(folder: Path) -> Any:
    words = ProposedWords(np.frombuffer(b"rainsun", np.uint8), np.array([0, 4, 7]), np.array([2, 1]), np.array(3))
    data = encode(Answer("ok", "", words))
    asked = QuestionToAll("each", propose_words, {"north": Nothing()})

    def act(rng: random.Random) -> None:
        asked.judge({"north": read_answer(mutate_safetensors(data, rng))})  # must not raise at all

    return act


def _resealed(sealed: bytes, rng: random.Random) -> bytes:
    """Damage a file at random, or deliberately, with a matching checksum."""
    return with_checksum(mutate_safetensors(sealed[32:], rng)) if rng.random() < 0.8 else mutate(sealed, rng)


def _journal(folder: Path) -> Any:
    journal = Journal(folder / "server", durable=False)
    commit = Commit(3, Nothing(), {"north": (2, 1)}, ({"round": 1, "bytes": {"north": [1, 2]}},))
    journal.write(commit)
    path = folder / "server" / "commit-00000003.safetensors"
    sealed = path.read_bytes()

    def act(rng: random.Random) -> None:
        path.write_bytes(
            with_checksum(mutate_safetensors(sealed[32:], rng)) if rng.random() < 0.8 else mutate(sealed, rng)
        )
        found, _ = journal.last()
        if found is not None:
            {p: (r, o) for p, (r, o) in found.answered.items()}
            [facts.get("bytes") for facts in found.history]

    return act


def _answers(folder: Path) -> Any:
    log = AnswerLog(folder / "answers", durable=False)
    log.add((0, 0), "hash", Nothing(), b"answer", durable=True)
    log.add((0, 1), "hash", log.state, b"answer", durable=True)
    paths = sorted((folder / "answers").iterdir())
    sealed = {path: path.read_bytes() for path in paths}

    def act(rng: random.Random) -> None:
        for path, data in sealed.items():
            path.write_bytes(data)
        path = rng.choice(paths)
        path.write_bytes(_resealed(sealed[path], rng))
        found = AnswerLog(folder / "answers", durable=False)
        found.find_or_none((0, 1), "hash")
        found.forget_after((0, 0))
        found.forget_before(0)

    return act


def _files(folder: Path, use: Callable[[], Any], mutations: dict[str, Mutation]) -> Any:
    """Damage one file of a directory; restore the others."""
    sound = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    kinds = {path: mutations[path.suffix] for path in sound if path.suffix in mutations}

    def act(rng: random.Random) -> None:
        for path, data in sound.items():
            path.write_bytes(data)
        path = rng.choice(list(kinds))
        path.write_bytes(kinds[path](sound[path], rng))
        use()

    return act


_MUTATIONS: dict[str, Mutation] = {
    ".json": mutate_json, ".safetensors": mutate_safetensors, ".npy": mutate, ".parquet": mutate, ".sqlite": mutate,
}  # fmt: skip


def _topics(folder: Path) -> Any:
    phi = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    Topics(phi, Vocabulary(("rain", "sun", "money")), weights=np.array([0.5, 0.5])).save(folder / "model")

    def use() -> None:
        model = Topics.load(folder / "model")
        repr(model)
        model.transform(["Rain and sun", "money"])

    return _files(folder / "model", use, _MUTATIONS)


def _neural(folder: Path) -> Any:
    from tertulia.models.neural.architecture import Sizes, architecture_of
    from tertulia.models.neural.network import Network

    network = Network("prodlda", Sizes(3, 2, hidden=(4, 4)))
    weights, statistics = network.initial_weights(1), network.initial_statistics()
    encoder = Encoder(architecture_of(network), weights, statistics)
    phi = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    Topics(phi, Vocabulary(("rain", "sun", "money")), encoder=encoder).save(folder / "model")
    return _files(folder / "model", lambda: Topics.load(folder / "model").transform(["Rain and sun"]), _MUTATIONS)


def _corpus(folder: Path) -> Any:
    Corpus.from_texts(_TEXTS).save(folder / "corpus")

    def use() -> None:
        corpus = Corpus.load(folder / "corpus")
        corpus.split(0.3)
        corpus.document_frequency()
        corpus.encode(Vocabulary(("rain", "ships"))).units("sentence")
        corpus.report.summary()

    return _files(folder / "corpus", use, _MUTATIONS)


def _run(folder: Path) -> Any:
    settings = config.RunSettings(directory=str(folder), parties={"north": {"path": "x"}, "south": {"path": "y"}})
    Run(folder, "id", ("north", "south"), settings.model_dump(mode="json"), durable=False).save()

    def use() -> None:
        run = Run.open(folder)
        settings_of(run)
        [run.party_directory(party) for party in run.parties]

    return _files(folder, use, _MUTATIONS)


def _party(folder: Path) -> Any:
    source = {"path": "x.jsonl", "text": "text", "options": {}}
    PartyConfig("north", "run", 1, ("tertulia.methods.ftm.method",), 0.1, 0.1, {"topics": 3}, source).save(folder)
    return _files(folder, lambda: PartyConfig.load(folder).home_in(folder), _MUTATIONS)


def _toml(text: str, rng: random.Random) -> str:
    lines = text.splitlines()
    if rng.random() < 0.6:
        at = rng.randrange(len(lines))
        name = lines[at].split("=")[0] if "=" in lines[at] else "x"
        odd = ("-1", "1e400", "nan", '"\\u0000"', "[]", "{}", "true", "9" * 400, "[" * 3000, '"x"', "1979-05-27", "0.5")
        lines[at] = f"{name} = {rng.choice(odd)}"
        return "\n".join(lines)
    return mutate(text.encode(), rng).decode("utf-8", "replace")


def _policy(folder: Path) -> Any:
    return lambda rng: Policy.parse(_toml(_POLICY, rng))


def _config(folder: Path) -> Any:
    path = folder / "run.toml"

    def act(rng: random.Random) -> None:
        path.write_text(_toml(_CONFIG, rng), encoding="utf-8")
        config.load(path)

    return act


def _ledger(folder: Path) -> Any:
    path, copy = folder / "ledger.sqlite", folder / "copy.sqlite"
    ledger = Ledger(path, durable=False)
    for i, how in enumerate([Clear("words"), DiscreteLaplace("counts", sensitivity=1, epsilon=0.5)]):
        release = Release.of(
            how, x=np.zeros(3), id=f"r{i}", party="north", round=i, step="s", verb="each", message_hash="h", run="run"
        )
        ledger.record(release)
    ledger.close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.execute("PRAGMA journal_mode=DELETE")
    database.close()
    sound = path.read_bytes()
    policy = Policy.parse(_POLICY)

    def act(rng: random.Random) -> None:
        for leftover in folder.glob("copy.sqlite*"):
            leftover.unlink()
        copy.write_bytes(sound if rng.random() < 0.6 else mutate(sound, rng))
        if copy.read_bytes() == sound:
            _edit_row(copy, rng)
        found = Ledger(copy, durable=False)
        try:
            found.releases()
            found.digest()
            found.cost(Unit.TOKEN, Adjacency.SUBSTITUTE, 1e-6)
            release = Release.of(
                Clear("x"), x=np.zeros(1), id="new", party="p", round=0, step="s", verb="each", message_hash="h"
            )
            found.record(release, policy)
        finally:
            found.close()

    return act


def _edit_row(path: Path, rng: random.Random) -> None:
    """Change a row's body as JSON, as anyone with the file could."""
    database = sqlite3.connect(path)
    with database:
        (body,) = database.execute("SELECT body FROM entries WHERE seq = 2").fetchone()
        changed = json.dumps(mutate_tree(json.loads(body), rng))
        database.execute("UPDATE entries SET body = ? WHERE seq = 2", (changed,))
    database.close()


_TARGETS: dict[str, Callable[[Path], Any]] = {
    "codec": _codec, "packing": _packing, "frame": _frame, "answer": _answer, "journal": _journal, "answers": _answers,
    "topics": _topics, "neural": _neural, "corpus": _corpus, "run": _run, "party": _party, "policy": _policy,
    "config": _config, "ledger": _ledger,
}  # fmt: skip
