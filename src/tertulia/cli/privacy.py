"""`tertulia privacy`: a page for each party; with `--all` everything behind it."""

from __future__ import annotations

from pathlib import Path

from tertulia.view import console


def print_privacy(directory: Path, delta: float, every: bool, as_json: bool) -> None:
    """Print what left the parties of a run, and what that costs."""
    from tertulia.cli.machine import rows_of, verdicts_of
    from tertulia.view.officer import hosts_in, page_of
    from tertulia.view.tables import disclosures_of_hosts, privacy_of_hosts
    from tertulia.view.totals import totals_of_host

    hosts = hosts_in(directory)
    found = [page_of(host, delta) for host in hosts]
    totals = [row for host in hosts for row in totals_of_host(host, delta)]
    if as_json:
        known = {"delta": delta, "totals": rows_of(totals), "privacy": rows_of(privacy_of_hosts(hosts, delta))}
        console.print_json({**known, "verdicts": verdicts_of(found)})
        return
    for page in found:
        console.output.print(
            "\n".join(page.lines(hosts[0].config.run)) + "\n", markup=False, highlight=False, soft_wrap=True
        )
    if every:
        console.print_totals(f"Cost of {directory} at delta {delta:g}", totals)
        console.records("Thing by thing (what is derived adds nothing to its source)", privacy_of_hosts(hosts, delta))
        console.records("Every release", disclosures_of_hosts(hosts))
