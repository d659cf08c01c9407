"""The live page in a terminal of eighty columns: the same snapshot, as lines."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tertulia.view.console import output, print_json, size
from tertulia.view.watch.snapshot import Snapshot

WIDTH = 80
_STYLES = {"good": "green", "weak": "yellow", "bad": "red", "here": "green", "absent": "red", "refused": "yellow"}
_BLOCKS = "▁▂▃▄▅▆▇█"
_PROTECTED = {
    "clear": "in clear", "masked": "masked: totals only", "members": "for members only", "noise": "under noise",
    "free": "public",
}  # fmt: skip
_TOPICS, _PARTIES = 8, 12  # numbers that are shown
_PAUSE = 0.5  # seconds between two snapshots
ENDED = ("finished", "stopped", "abandoned")


def watch_until_end(take: Callable[[], Snapshot], as_json: bool) -> None:
    """Show each new snapshot until the run ends; print it again each time if the output is no terminal."""
    seen: Snapshot | None = None
    with Live(console=output, auto_refresh=False) as shown:
        while seen is None or seen["state"] not in ENDED:
            before, seen = seen, take()
            if seen == before:
                time.sleep(_PAUSE)
            elif as_json or not output.is_terminal:
                print_json(seen) if as_json else output.print(view(seen))
            else:
                shown.update(view(seen), refresh=True)


def view(now: Snapshot) -> RenderableType:
    """Render a snapshot for rich; texts of others are plain already, and never parsed as markup."""
    parts: list[RenderableType] = [_head(now)]
    if now["verdict"]:
        parts.append(_cut(now["verdict"]["text"], _STYLES[now["verdict"]["level"]]))
    parts.append(_progress(now))
    if now["parties"]:
        parts.append(_parties(now["parties"]))
    for one in [one for one in now["parties"] if one["took_part"]][:_PARTIES]:
        parts.append(_cut(f"{one['name']} {one['took_part']}", "yellow" if one["missed_many"] else ""))
    for name, scores in (
        ("perplexity", now["scores"]),
        *((f"on {name[:20]}'s", own) for name, own in list(now["own"].items())[:4]),
    ):
        parts += [_scores(name, scores)] if scores else []
    parts += [_topic(topic) for topic in now["topics"][:_TOPICS]]
    if now["releases"]:
        parts.append(_cut(f"left: {_left(now['releases'])} ({now['sizes']})"))
    if now["again"]:
        parts.append(Text(f"{'to go on' if now['state'] == 'stopped' else 'if it stops'}: {now['again']}"))
    return Group(*parts)


def _cut(text: str, style: str = "") -> Text:
    line = Text(text, style=style, no_wrap=True, overflow="ellipsis")
    line.truncate(WIDTH, overflow="ellipsis")
    return line


def _head(now: Snapshot) -> Text:
    facts = [f"run {now['run']}" if now["run"] else "", now["method"], now["doing"], now["text"]]
    return _cut(f"{now['title']}   {now['state']}   {', '.join(fact for fact in facts if fact)}", "bold")


def _progress(now: Snapshot) -> Text:
    share = now["round"] / now["rounds"] if now["rounds"] else 0.0
    done = round(30 * share)
    left = "" if now["left"] is None else f", about {now['left']:.0f} s left"
    return _cut(f"{'█' * done}{'░' * (30 - done)}  round {now['round']} of {now['rounds']}{left}")


def _parties(parties: list[dict[str, Any]]) -> Table:
    table = Table(box=None, width=WIDTH, pad_edge=False)
    for name, wide in (("party", 18), ("", 8), ("doing", 20), ("step", 7), ("sent", 9), ("received", 9)):
        side: Any = "right" if name in ("step", "sent", "received") else "left"
        table.add_column(Text(name), width=wide, no_wrap=True, overflow="ellipsis", justify=side)
    for one in parties[:_PARTIES]:
        seconds = "" if one["seconds"] is None else f"{one['seconds']:.1f} s"
        spent = "; ".join(f"{b['spent']:.3g} of {b['limit']:g} at delta {b['delta']:g}" for b in one["budgets"])
        doing = one["why"] or ", ".join(part for part in (one["phase"], spent) if part)
        table.add_row(
            Text(one["name"]), Text(one["state"], style=_STYLES.get(one["state"], "")), Text(doing), Text(seconds),
            Text(size(one["up"])), Text(size(one["down"])),
        )  # fmt: skip
    if len(parties) > _PARTIES:
        here = sum(one["state"] == "here" for one in parties)
        table.add_row(Text(f"and {len(parties) - _PARTIES} more"), Text(""), Text(f"{here} of {len(parties)} here"))
    return table


def _scores(name: str, scores: list[list[float]]) -> Text:
    last = [score for _, score in scores][-40:]
    low, high = min(last), max(last)
    drawn = "".join(_BLOCKS[round(7 * (score - low) / (high - low))] if high > low else _BLOCKS[0] for score in last)
    return _cut(f"{name} {drawn} {last[-1]:.1f} (lower is better)")


def _topic(topic: dict[str, Any]) -> Text:
    """Render the words of a topic; highlight those that are new since the last round."""
    share = "" if topic["share"] is None else f"{topic['share']:6.1%}"
    line = Text(f"{topic['number']:4d} {share:>6}  ", no_wrap=True, overflow="ellipsis")
    for word, _, is_new in topic["words"]:
        line.append(f"{'+' if is_new else ''}{word} ", style="bold yellow" if is_new else "")
    line.truncate(WIDTH, overflow="ellipsis")
    return line


def _left(releases: list[dict[str, Any]]) -> str:
    total: dict[str, int] = {}
    for one in releases:
        total[one["level"]] = total.get(one["level"], 0) + one["bytes"]
    return ", ".join(f"{size(n)} {_PROTECTED[level]}" for level, n in total.items())
