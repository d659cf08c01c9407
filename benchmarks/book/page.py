"""The page docs/reproduction.md: all panels with their pictures, numbers and verdicts, made from the stored results."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.book.panels import PAPERS, Found, Panel
from benchmarks.book.results import Verdict
from benchmarks.book.tables import table

HEAD = """# The papers' figures and tables, measured again

Every experimental figure, table and numeric claim of the five papers is a *panel* here: what the paper says, what we
measured, and whether it holds. The sentences that decide were written before the numbers. The papers' own corpora were
not published, or only in part, so most corpora here are others: order and shape can be compared, values hardly.

```
make figures                                  # measure what is missing; continues after an interruption
make figures-quick                            # measure small sizes again, and compare: is any result stale?
python -m benchmarks.book --only fedlda-5a    # one panel; with --again it is measured again
python -m benchmarks.book --list              # all panels and their states
```

{counts}

Numbers are means over seeds, in brackets the smallest and largest. A panel *differs* if one of the sentences below it
does not hold; those after *beside* concern another reading or setting, and do not count. *Smaller* panels were measured
at a smaller size than the paper's, or with fewer settings or seeds, as each says. *Stale* panels have small sizes that
no longer give the stored numbers. [How to read results](../benchmarks/RESULTS.md#how-to-read-them) applies here, too;
[how to add a panel](../benchmarks/README.md#the-book).

This page is generated from `benchmarks/results/book` by `python -m benchmarks.book --pages`.
"""
WIDTH = 120
Results = Mapping[str, Mapping[str, Any]]
Verdicts = Mapping[str, Verdict]


def page(panels: Sequence[Panel], results: Results, verdicts: Verdicts) -> str:
    """Return the whole page."""
    parts = [HEAD.format(counts=_wrap(_counts(panels, verdicts))), *_overview(panels, verdicts)]
    for paper, title in PAPERS.items():
        measured = [p for p in panels if p.paper == paper and verdicts[p.name].state != "not_run"]
        if measured:
            parts += [f"\n## {title}"] + [_section(p, results[p.name], verdicts[p.name]) for p in measured]
    parts += _not_reproduced(panels, verdicts)
    parts += _budget(panels, results)
    return "\n".join(parts).rstrip() + "\n"


def counts(panels: Sequence[Panel], verdicts: Verdicts) -> dict[str, int]:
    """Count the panels by verdict; `partly` (smaller) and `stale` ones are counted beside their verdict."""
    states = [verdicts[panel.name].state for panel in panels]
    run = [panel for panel in panels if verdicts[panel.name].state != "not_run"]
    return {
        "holds": states.count("holds"),
        "differs": states.count("differs"),
        "partly": sum(bool(panel.reduced) for panel in run),
        "not_run": states.count("not_run"),
        "stale": sum(bool(verdicts[panel.name].stale) for panel in panels),
    }


def _counts(panels: Sequence[Panel], verdicts: Verdicts) -> str:
    found = counts(panels, verdicts)
    numbered = sum(bool(panel.number) for panel in panels)
    return (
        f"**{len(panels)} panels**, {numbered} of them with the number of a figure, table, theorem or section: "
        f"{found['holds']} hold, {found['differs']} differ, {found['not_run']} are not measured. {found['partly']} "
        f"were measured at a smaller size; {found['stale']} are stale."
    )


def _wrap(text: str, indent: str = "") -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _overview(panels: Sequence[Panel], verdicts: Verdicts) -> list[str]:
    rows = ["\n| panel | paper | what | does it hold? |", "|---|---|---|---|"]
    for panel in panels:
        found = verdicts[panel.name]
        where = f"{panel.paper}, {panel.number}" if panel.number else panel.paper
        name = f"[{panel.name}](#{_anchor(panel)})" if found.state != "not_run" else panel.name
        rows.append(f"| {name} | {where} | {panel.title} | {_state(panel, found)} |")
    return rows


def _state(panel: Panel, found: Verdict) -> str:
    if found.state == "not_run":
        return "not measured"
    held = [holds for _, holds, counts in found.checks if counts]
    words = "yes" if found.state == "holds" else f"**no**: {sum(held)} of {len(held)}"
    return words + (", smaller" if panel.reduced else "") + (", stale" if found.stale else "")


def _heading(panel: Panel) -> str:
    return f"{panel.name}: {panel.title}"


def _anchor(panel: Panel) -> str:
    kept = "".join(c for c in _heading(panel).lower() if c.isalnum() or c in "-_ ")
    return kept.replace(" ", "-")


def _section(panel: Panel, result: Mapping[str, Any], found: Verdict) -> str:
    where = f"{panel.paper}, {panel.number}. " if panel.number else ""
    says = "The paper says" if panel.number else "The question"
    lines = [
        f"\n### {_heading(panel)}\n",
        _wrap(f"{where}**{says}:** {panel.claim}"),
        f"\n![{panel.title}](figures/book/{panel.name}.svg)\n",
        *table(panel, Found(result["numbers"])),
        "",
    ]
    for sentence, holds, matters in found.checks:
        lines.append(_wrap(f"- {'' if matters else 'beside: '}{'yes' if holds else '**no**'}: {sentence}", "  "))
    size = panel.reduced or "as the paper's"
    command = f"`python -m benchmarks.book --only {panel.name}`"
    lines.append("")
    numbers = Found(result["numbers"])
    if remarks := " ".join([panel.remark, *(sentence(numbers) for sentence in panel.computed)]).strip():
        lines.append(_wrap(remarks) + "\n")
    lines.append(_wrap(f"*Control*: {panel.control}. *Size*: {size}; {_seeds(len(result['seeds']))}."))
    lines.append(f"{command}: {result['cpu_seconds'] / 60:.1f} CPU minutes, {result['date']}.")
    if found.stale:
        lines.append(f"\n**Stale**: {found.stale}.")
    return "\n".join(lines)


def _seeds(number: int) -> str:
    return "one seed" if number == 1 else f"{number} seeds"


def _not_reproduced(panels: Sequence[Panel], verdicts: Verdicts) -> list[str]:
    lines = ["\n## Not reproduced, and why"]
    waiting = [panel for panel in panels if verdicts[panel.name].state == "not_run"]
    if waiting:
        lines += ["\nNot measured:\n", "| panel | why | CPU minutes | command |", "|---|---|---|---|"]
        for panel in waiting:
            why, command = _why(panel, verdicts[panel.name]), f"python -m benchmarks.book --only {panel.name}"
            lines.append(f"| {panel.name}: {panel.title} | {why} | {panel.minutes:g} | `{command}` |")
    smaller = [panel for panel in panels if panel.reduced and panel not in waiting]
    if smaller:
        lines += ["\nMeasured at a smaller size:\n", "| panel | size |", "|---|---|"]
        lines += [f"| {panel.name} | {panel.reduced} |" for panel in smaller]
    failed = [
        (panel.name, sentence)
        for panel in panels
        for sentence, holds, matters in verdicts[panel.name].checks
        if matters and not holds
    ]
    if failed:
        lines += ["\nMeasured, and these sentences do not hold:\n"]
        lines += [_wrap(f"- {name}: {sentence}", "  ") for name, sentence in failed]
    return lines


def _why(panel: Panel, found: Verdict) -> str:
    if found.stale:
        return found.stale
    if panel.packages:
        return f"not run yet; it needs {', '.join(panel.packages)}"
    return "not run yet"


def _budget(panels: Sequence[Panel], results: Results) -> list[str]:
    lines = [
        "\n## CPU budget\n",
        "Minutes of CPU: the share that a panel was given, what it used, and what its small size used, which",
        "`make figures-quick` measures again. Calls that panels share are run once, and counted for each of them.\n",
        "| panel | share | used | small |",
        "|---|---|---|---|",
    ]
    total = [0.0, 0.0, 0.0]
    for panel in panels:
        result = results.get(panel.name)
        used = (result["cpu_seconds"] / 60, result["quick"]["cpu_seconds"] / 60) if result else (0.0, 0.0)
        total = [a + b for a, b in zip(total, (panel.minutes, *used), strict=True)]
        shown = (f"{used[0]:.1f}", f"{used[1]:.2f}") if result else ("", "")
        lines.append(f"| {panel.name} | {panel.minutes:g} | {shown[0]} | {shown[1]} |")
    lines.append(f"| in all | {total[0]:.0f} | {total[1]:.0f} | {total[2]:.1f} |")
    return lines


def write(path: Path, text: str) -> bool:
    """Write a page if it has changed; return whether it has."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.write_text(text, encoding="utf-8")
    return True
