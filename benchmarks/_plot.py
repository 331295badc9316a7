"""Pictures of measured rows: cost against size for each benchmark that has several sizes, as SVG and PNG.

Both axes are logarithmic, so that a cost per unit that does not depend on the size is a level line, and one that grows
with it is seen at once. Needs matplotlib, which the extra ``bench`` brings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks._harness import Row, Spread

__all__ = ["plot"]

# Okabe and Ito's palette, which those who see colours differently can tell apart.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
_BARE = "#666666"


def plot(rows: Iterable[Row], directory: Path) -> list[Path]:
    """Write the pictures.

    Returns:
        Their paths.
    """
    benchmarks: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        benchmarks[row.benchmark][row.series].append(row)
    directory.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for name, series in benchmarks.items():
        lines = {label: members for label, members in series.items() if len(members) > 1}
        if lines:
            figure = _figure(name, lines)
            for suffix in ("svg", "png"):
                path = directory / f"{name}.{suffix}"
                with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
                    figure.savefig(path, dpi=150, metadata={"Date": None} if suffix == "svg" else None)
                written.append(path)
    return written


def _figure(name: str, series: dict[str, list[Row]]) -> Figure:
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.set_title(name.replace("_", " "))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("size")
    drawn: list[list[float]] = []
    for colour, (label, rows) in zip(_COLOURS, series.items(), strict=False):
        axes.set_ylabel(rows[0].unit)
        _line(axes, rows, [row.ours for row in rows], colour, label, "o-")
        # Series that have the same work by hand beside them need only one line for it.
        bare = [row.bare.median for row in rows if row.bare is not None]
        if len(bare) == len(rows) and not any(_close(bare, other) for other in drawn):
            drawn.append(bare)
            by_hand = [row.bare for row in rows if row.bare is not None]
            _line(axes, rows, by_hand, _BARE, f"bare Trio, {label}", "s--" if len(drawn) == 1 else "^:")
    sizes = sorted({row.size for rows in series.values() for row in rows})
    axes.set_xticks(sizes, [f"{size:,}".replace(",", " ") for size in sizes])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylim(*_limits(series))
    axes.grid(visible=True, alpha=0.4)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure


def _line(axes: Axes, rows: Sequence[Row], spreads: Sequence[Spread], colour: str, label: str, style: str) -> None:
    sizes = [row.size for row in rows]
    axes.plot(sizes, [spread.median for spread in spreads], style, color=colour, label=label)
    axes.fill_between(
        sizes, [spread.low for spread in spreads], [spread.high for spread in spreads], color=colour, alpha=0.15
    )


def _close(ours: Sequence[float], others: Sequence[float]) -> bool:
    return len(ours) == len(others) and all(0.5 < a / b < 2 for a, b in zip(ours, others, strict=True))


def _limits(series: dict[str, list[Row]]) -> tuple[float, float]:
    values = [
        value
        for rows in series.values()
        for row in rows
        for spread in (row.ours, row.bare)
        if spread is not None
        for value in (spread.low, spread.high)
    ]
    return min(values) / 3, max(values) * 3
