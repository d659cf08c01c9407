"""A malicious server: it hands frames to a party exactly as an engine does, and reads the answers."""

import dataclasses
import json
from pathlib import Path

from tertulia.corpus import Corpus
from tertulia.errors import LOST_CONTRIBUTION
from tertulia.federation.codec import decode, encode
from tertulia.federation.messages import BEFORE_ALL, Ask, Question
from tertulia.federation.party import failures
from tertulia.federation.party.host import PartyConfig, PartyHost
from tertulia.federation.types import step_name
from tertulia.runs.directory import Run
from tertulia.runs.one_machine import begin
from tertulia.runs.settings import RunSettings

NOTES = [
    "fever cough asthma garcia ward fever",
    "cough asthma lopez ward clinic cough fever",
    "diabetes insulin garcia clinic insulin ward",
    "insulin diabetes lopez ward fever clinic",
    "asthma inhaler garcia cough clinic ward fever",
] * 3
PRESENT = ("asthma", "cough", "diabetes", "garcia", "lopez")
ABSENT = ("cancer", "stroke", "sepsis", "moreno", "vargas")
LIST = ("asthma", "clinic", "cough", "diabetes", "fever", "inhaler", "insulin", "ward", "stroke", "sepsis")
PUBLIC = {"mode": "public", "words": list(LIST)}
STRICT = "allow_clear = false\nallow_metrics = false\n"
OPEN = "allow_clear = true\n"
BUDGET = '[[budget]]\nunit = "token"\nadjacency = "substitute"\nepsilon = 8.0\n'
CONSTANTS = {failures.FAILED, failures.REFUSED, failures.ABSENT, LOST_CONTRIBUTION, ""}


class Attacked:
    """A party, and the server that attacks it; `owners="one"` is a simulation, where nothing fails closed."""

    def __init__(self, directory: Path, method: dict, policy: str | None = STRICT, *, owners="several", **own) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        home = own.pop("home", str(directory / "home"))
        settings = {"home": home, **own}
        if policy is not None:
            (directory / "own-policy.toml").write_text(policy)
            settings["policy"] = str(directory / "own-policy.toml")
        whole = RunSettings(
            directory=str(directory / "run"), method=method, heldout=0.2, parties={"north": settings},
            federation={"owners": owners},
        )  # fmt: skip
        corpora = {name: Corpus.from_texts(NOTES) for name in ("north", "south")}
        self.run = begin(whole, corpora)
        self.directory = self.run.party_directory("north")
        self.reopen()

    def reopen(self, **changes) -> None:
        """Start the party again, as its process would after a crash, perhaps with another party.json."""
        if changes:
            dataclasses.replace(PartyConfig.load(self.directory), **changes).save(self.directory)
        self.host = PartyHost(self.directory)
        self.place, self.previous = (0, 0), BEFORE_ALL

    def adopt(self, policy: str) -> None:
        """Give the party another policy, in a run that it has agreed to already."""
        (self.directory / "policy.toml").write_text(policy)
        self.reopen()

    @property
    def plan(self) -> str:
        return self.host.door.plan.hash if self.host.door.plan else ""

    @property
    def log(self) -> str:
        path = self.directory / "party.log"
        return path.read_text() if path.exists() else ""

    def frame(self, step, message, verb="each", **envelope) -> bytes:
        name = step if isinstance(step, str) else step_name(step)
        facts = {"run": self.run.id, "place": self.place, "previous": self.previous, "safe": 0, "durable": True}
        facts |= {"plan": self.plan} | envelope
        return Question(body=encode(Ask(verb, name, message)), **facts).to_bytes()

    def send(self, frame: bytes):
        """Hand over a frame; what is answered is known to go on from."""
        answer = decode(self.host.answer(frame))
        if answer.kind == "ok":
            self.previous = self.place
        self.place = (self.place[0], self.place[1] + 1)
        return answer

    def ask(self, step, message, verb="each", **envelope):
        return self.send(self.frame(step, message, verb, **envelope))


def method_of(attacked: Attacked):
    """The settings of the run's method, as the server has them."""
    return RunSettings(**Run.open(attacked.run.directory).config).method


def edit_json(path: Path, **changes) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def says_nothing(text: str) -> bool:
    """Whether a text is a constant, or names a rule and nothing else."""
    return text in CONSTANTS or (text.startswith("refused by rule '") and text.endswith("'") and ":" not in text)
