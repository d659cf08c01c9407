"""FTM and iFTM: the papers' figures on 20 Newsgroups, BBC news and IMDB, and what noise on tokens really costs.

Writes the figures as PNG and one Markdown table, "paper / ours", to `benchmarks/out/ftm`; ends with one JSON line.
Three parties of 20 Newsgroups are unbalanced and not alike: religion and for sale, politics and recreation, computing
and science; 15 % of their documents are held out. All models are scored by document completion. `--quick` takes a
share of the documents and fewer sweeps; all figures are measured, on smaller corpora.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.common import OUT, finish, parser, say
from benchmarks.ftm.newsgroups import consensus, likelihoods, rounds_needed
from benchmarks.ftm.parties import groups
from benchmarks.ftm.plot import draw, table
from benchmarks.ftm.speed import speeds
from benchmarks.ftm.tokens import news, scale, settings

PICTURES = OUT / "ftm"
PARTS: dict[str, Callable[[Any, bool], dict[str, Any]]] = {
    "likelihoods": likelihoods,
    "rounds": rounds_needed,
    "consensus": consensus,
    "news": lambda _, quick: news(quick),
    "settings": lambda _, quick: settings(quick),
    "scale": lambda _, quick: scale(quick),
    "speed": lambda _, quick: speeds(quick),
}
NEWSGROUPS = {"likelihoods", "rounds", "consensus"}


def main() -> None:
    """Run the benchmark, or some parts of it."""
    command = parser("FTM: the papers' figures, and what noise costs")
    default = ",".join(part for part in PARTS if part != "settings")
    command.add_argument("--parts", default=default, help=f"a list from {','.join(PARTS)}; by default all but settings")
    arguments = command.parse_args()
    parts = arguments.parts.split(",")
    unknown = set(parts) - set(PARTS)
    if unknown:
        raise SystemExit(f"--parts {sorted(unknown)}: choose from {','.join(PARTS)}")
    corpus = groups() if NEWSGROUPS & set(parts) else None
    result: dict[str, Any] = {"benchmark": "ftm", "quick": arguments.quick}
    for part in parts:
        result |= PARTS[part](corpus, arguments.quick)
    for path in [*draw(result, PICTURES), *table(result, PICTURES)]:
        say(f"wrote {path}")
    finish({key: value for key, value in result.items() if key != "curves"})


if __name__ == "__main__":
    main()
