"""Figure 3 of gFedNTM, and its numbers as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

Rows = list[dict[str, Any]]
STYLES = {
    "federated": "o-", "centralised": "x--", "non_collaborative": "s-", "equal_epochs": "s:", "pooled_lda": "^-",
    "pooled_lda_fixed": "v:",
    "random": ".:",
}  # fmt: skip


def plot(by_k: Rows, by_eta: Rows, path: Path) -> None:
    """Draw DSS and TSS over K' and over eta."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    swept = [s for s in ((by_k, "shared", "shared topics K'"), (by_eta, "eta", "eta")) if s[0]]
    size = (10, 3.5 * len(swept))
    figure, axes = plt.subplots(len(swept), 2, figsize=size, squeeze=False, constrained_layout=True)
    for row, (rows, key, label) in enumerate(swept):
        for column, (score, better) in enumerate((("dss", "lower is better"), ("tss", "higher is better"))):
            axis = axes[row][column]
            for name, style in STYLES.items():
                if score in rows[0].get(name, ()):
                    values = [r[name][score] for r in rows]
                    axis.plot([r[key] for r in rows], values, style, label=name.replace("_", "-"))
            axis.set(xlabel=label, ylabel=f"{score.upper()} ({better})")
            if key == "eta":
                axis.set_xscale("log")
            axis.legend(fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def table(by_k: Rows, by_eta: Rows) -> str:
    """Return a Markdown table of all scores, with their standard deviations over runs."""
    names = [name for name in STYLES if name in (*by_k, *by_eta)[0]]
    lines = [
        f"| K' | eta | score | runs | {' | '.join(name.replace('_', ' ') for name in names)} |",
        "|---" * (4 + len(names)) + "|",
    ]
    for row in (*by_k, *by_eta):
        for score in ("tss", "dss"):
            cells = [f"{row[n][score]:.2f} ± {row[n][f'{score}_sd']:.2f}" if score in row[n] else "" for n in names]
            head = f"| {row['shared']} | {row['eta']} | {score.upper()} | {row['runs']} "
            lines.append(f"{head}| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
