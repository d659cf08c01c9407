"""A party and a server that asks it what it likes, by frames as an engine hands them over."""

from tertulia.corpus import Corpus
from tertulia.federation.codec import decode, encode
from tertulia.federation.messages import BEFORE_ALL, Ask, Question
from tertulia.federation.party.host import PartyConfig, PartyHost
from tertulia.federation.types import step_name


def make_party(directory, texts, *methods, policy="", **config) -> PartyHost:
    """A party with these documents, which offers the steps of some modules."""
    names = tuple(method.__name__ for method in methods)
    PartyConfig(id="north", run="run", seed=5, methods=names, durable=False, **config).save(directory)
    if policy:
        (directory / "policy.toml").write_text(policy)
    return PartyHost(directory, Corpus.from_texts(texts, ids=[f"note-{i}" for i in range(len(texts))]))


def ask(host, step, message, verb="each", place=(0, 0), previous=BEFORE_ALL):
    """What the party answers to a question."""
    body = encode(Ask(verb, step_name(step), message))
    plan = host.door.plan.hash if host.door.plan else ""
    return decode(host.answer(Question("run", place, previous, 0, False, body, plan).to_bytes()))
