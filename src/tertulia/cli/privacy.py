"""`tertulia privacy`: a page for each party; with `--all` everything behind it."""

from __future__ import annotations

import json
from pathlib import Path

from tertulia.view import console


def print_privacy(directory: Path, delta: float, every: bool, as_json: bool) -> None:
    """Print what left the parties of a run, and what that costs."""
    from tertulia.view.officer import hosts_in, page_of
    from tertulia.view.tables import disclosures_of_hosts, privacy_of_hosts
    from tertulia.view.totals import totals_of_host

    hosts = hosts_in(directory)
    found = [page_of(host, delta) for host in hosts]
    totals = [row for host in hosts for row in totals_of_host(host, delta)]
    if as_json:
        known = {"delta": delta, "totals": totals, "privacy": privacy_of_hosts(hosts, delta)}
        facts = [
            {"party": page.party, "verdict": page.verdict, "rare words": page.rare_words, "refused": page.refused}
            for page in found
        ]
        print(json.dumps({**known, "verdicts": facts}, ensure_ascii=False, default=str))
        return
    for page in found:
        console.output.print(
            "\n".join(page.lines(hosts[0].config.run)) + "\n", markup=False, highlight=False, soft_wrap=True
        )
    if every:
        console.print_totals(f"Cost of {directory} at delta {delta:g}", totals)
        console.records("Thing by thing (what is derived adds nothing to its source)", privacy_of_hosts(hosts, delta))
        console.records("Every release", disclosures_of_hosts(hosts))
