"""Outputs about runs, models, installations and federations."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from tertulia.cli.outputs.base import NO_BOUND, OpenOutput, Output


class TrainedHere(Output):
    """Result of `tertulia train`."""

    directory: str = Field(description="of the model")
    topics: int
    words: int = Field(description="that are modelled")
    documents: int
    sweeps: int


class Trained(OpenOutput):
    """Result of a run, with the method's measures of the last round, such as `perplexity`."""

    directory: str = Field(description="of the run")
    topics: int
    parties: list[str] = Field(description="parties that took part")
    absent: dict[str, str] = Field(description="parties that never answered, and the reason")
    participation: dict[str, Any] = Field(
        description="for each party the ranges of `rounds` in which it took part, and the number of rounds, `of`"
    )
    round: int = Field(description="last round")
    seconds: float = Field(description="of the last round")
    bytes: dict[str, list[int]] = Field(description="to and from each party, in the last round")


class Demo(Output):
    """Comparison of the demo."""

    documents: dict[str, int] = Field(description="of each team")
    topics: int
    perplexity: dict[str, dict[str, float]] = Field(
        description="by model (alone, federated, pooled, and pooled until converged), then by team"
    )
    sweeps: dict[str, int] = Field(description="of each model")
    bytes: dict[str, int] = Field(description="`up` from the teams, `down` to them")
    model: str = Field(description="directory of the model")
    seconds: float


class Scenario(Output):
    """One scenario."""

    scenario: str
    method: str
    models: int = Field(description="number of models; scores are their means")
    topics: int
    perplexity: float
    diversity: float
    parties: dict[str, float] | None = Field(None, description="perplexity on each party's own held-out documents")


class Scenarios(Output):
    """All scenarios."""

    scenarios: list[Scenario]


class TopicsOutput(Output):
    """A model's topics."""

    topics: list[list[str]] = Field(description="the top words of each")
    weights: list[float] | None = Field(None, description="shares of tokens, if known")
    names: list[str] | None = Field(None, description="if some were given")
    hidden: list[int] | None = Field(None, description="if some are hidden")
    provenance: dict[str, Any]


class Drift(Output):
    """Changes since the model that this one continues."""

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
    """Similarity of one party to all."""

    party: str
    similarity: dict[str, float | None] = Field(description="from 0 to 1")


class Comparison(Output):
    """Comparison of parties."""

    parties: list[str]
    epsilon: float | None = Field(description=NO_BOUND)
    prevalence: list[Prevalence]
    similarity: list[Similarity]
    over_time: list[dict[str, Any]] | None = Field(None, description="with --by: party, period, topic, share, weight")


class FindingLine(Output):
    """Result of one check."""

    what: str
    state: str = Field(description="good, beware or bad; if one is bad, the exit code is 1")
    text: str


class Doctor(Output):
    """Results of all checks."""

    findings: list[FindingLine]


class Status(OpenOutput):
    """Status of a federation (`engine`, `serving`, `members`, `proposal`, `run`, `model`, `edited`) or of a party."""

    federation: str


class UpgradeLine(Output):
    """A file or directory that was found."""

    what: str
    where: str
    format: str
    change: bool
    becomes: str


class Upgraded(Output):
    """Formats that were found, and conversions."""

    upgrade: list[UpgradeLine]
    backup: str | None


class Warm(Output):
    """Result of the compilation."""

    kernels: int = Field(description="number of kernels")
    stored: int = Field(description="number of kernels on disk")
    compiled: int = Field(description="number of kernels compiled now")
    seconds: float
    folder: str
