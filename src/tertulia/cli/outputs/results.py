"""What commands print about runs, models and the state of things."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from tertulia.cli.outputs.base import NO_BOUND, OpenOutput, Output


class Trained(OpenOutput):
    """And the method's measures of the last round, such as `perplexity`. A method of your own prints what it gives."""

    directory: str = Field(description="the run's")
    topics: int
    parties: list[str] = Field(description="those that took part")
    absent: dict[str, str] = Field(description="those that never answered, and why")
    round: int = Field(description="the last one")
    seconds: float = Field(description="of the last round")
    bytes: dict[str, list[int]] = Field(description="to and from each party, in the last round")


class Demo(Output):
    """What the demo compares."""

    documents: dict[str, int] = Field(description="of each team")
    topics: int
    perplexity: dict[str, dict[str, float]] = Field(description="by model, then by whose documents")
    words_of_one_document: dict[str, int] = Field(description="of each team, among the words that it sends")
    bytes: dict[str, int] = Field(description="`up` from the teams, `down` to them")
    model: str = Field(description="where it is saved")
    seconds: float


class Scenario(Output):
    """One way to train."""

    scenario: str
    method: str
    models: int = Field(description="over which the scores are means")
    topics: int
    perplexity: float
    diversity: float
    parties: dict[str, float] | None = Field(None, description="perplexity on each party's own held-out documents")


class Scenarios(Output):
    """All ways to train."""

    scenarios: list[Scenario]


class TopicsOutput(Output):
    """A model's topics."""

    topics: list[list[str]] = Field(description="the top words of each")
    weights: list[float] | None = Field(None, description="shares of tokens, where they are known")
    names: list[str] | None = Field(None, description="where some were given")
    hidden: list[int] | None = Field(None, description="where some are")
    provenance: dict[str, Any]


class Drift(Output):
    """What became of the topics of an earlier model."""

    continues: dict[str, Any] = Field(description="the earlier `run` and the hash of its `model`")
    drift: list[dict[str, Any]] = Field(
        description="`topic`, `state`; where known `distance`, `weight_before`, `weight`, `came`, `went`"
    )


class Shares(OpenOutput):
    """`topic0`, `topic1` ...: the share of each topic."""

    id: str


class Transformed(Output):
    """The topics of new documents."""

    documents: list[Shares]


class Evaluation(Output):
    """A model's scores."""

    perplexity: float
    log_likelihood: float
    tokens: int
    documents: int
    unigram_perplexity: float
    npmi: float
    c_v: float
    umass: float
    diversity: float


class Prevalence(Output):
    """One topic in all parties."""

    topic: int
    shares: dict[str, float | None] = Field(description="in each party's documents")
    effective_parties: float | None
    most_in: str
    its_share: float | None
    kind: str = Field(description="shared, private or between")
    words: list[str]


class Similarity(Output):
    """How like one party is to all."""

    party: str
    similarity: dict[str, float | None] = Field(description="from 0 to 1")


class Comparison(Output):
    """Which party works on what."""

    parties: list[str]
    epsilon: float | None = Field(description=NO_BOUND)
    prevalence: list[Prevalence]
    similarity: list[Similarity]
    over_time: list[dict[str, Any]] | None = Field(None, description="with --by: party, period, topic, share, weight")


class FindingLine(Output):
    """What one check found."""

    what: str
    state: str = Field(description="good, beware or bad; with any that is bad the exit code is 1")
    text: str


class Doctor(Output):
    """What keeps a server or a party from working."""

    findings: list[FindingLine]


class Status(OpenOutput):
    """Of a federation: `engine`, `serving`, `members`, `proposal`, `run`, `model`, `edited`; of a party: its own."""

    federation: str


class UpgradeLine(Output):
    """A thing that was found."""

    what: str
    where: str
    format: str
    change: bool
    becomes: str


class Upgraded(Output):
    """What is carried over."""

    upgrade: list[UpgradeLine]
    backup: str | None


class Warm(Output):
    """What was compiled."""

    kernels: int = Field(description="that there are")
    stored: int = Field(description="that are on disk now")
    compiled: int = Field(description="that were not before")
    seconds: float
    folder: str
