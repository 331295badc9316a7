"""What is shown of measured rows: tables, growth, a progress line, and JSON with what the figures depend on."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TextIO

import msgspec

from benchmarks._harness import Benchmark, Plan, Row, growth
from trio_agent import JsonObject

__all__ = ["Progress", "environment", "growth_lines", "package_version", "table", "to_json"]

_PACKAGES = ("trio-agent", "trio", "msgspec", "httpx", "jsonschema")


def environment(plan: Plan) -> JsonObject:
    """What the figures depend on: date, machine, versions and plan."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "versions": {name: package_version(name) for name in _PACKAGES},
        "rounds": plan.rounds,
        "clock": "processor" if plan.clock is time.thread_time else "wall",
        "gc": "on" if plan.collect else "off",
    }


def package_version(name: str) -> str | None:
    """The version of an installed package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def table(rows: Iterable[Row], ours: str = "ours") -> str:
    """A table of the rows of one benchmark; the last column is the quartiles of the ratio.

    Args:
        rows: to show.
        ours: whose cost is beside that of bare Trio.
    """
    lines = [("", "size", ours, "bare", "ratio", "middle half")]
    unit = ""
    for row in rows:
        unit = row.unit
        bare, ratio, middle = "", "", ""
        if row.bare is not None and row.ratio is not None:
            bare, ratio = _figure(row.bare.median), f"{row.ratio.median:.2f}"
            middle = f"{row.ratio.low:.2f}-{row.ratio.high:.2f}"
        lines.append((row.series, f"{row.size:,}".replace(",", " "), _figure(row.ours.median), bare, ratio, middle))
    lines[0] = (unit, *lines[0][1:])
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    cells = [[line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])] for line in lines]
    return "\n".join("  ".join(line).rstrip() for line in cells)


def _figure(value: float) -> str:
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.3g}" if value >= 1 else f"{value:.2g}"


def growth_lines(benchmark: Benchmark, rows: Iterable[Row]) -> list[str]:
    """How the whole grows with its size, for each series that has at least two sizes that count."""
    if benchmark.growth_from is None:
        return []
    series: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.size >= benchmark.growth_from:
            series[row.series].append(row)
    lines: list[str] = []
    for name, members in series.items():
        if len(members) < 2:
            continue
        ours = growth([(row.size, row.ours.median) for row in members])
        line = f"{name}: grows as N^{ours:.2f} from {members[0].size} to {members[-1].size}"
        bares = [(row.size, row.bare.median) for row in members if row.bare is not None]
        if len(bares) == len(members):
            line += f" (bare: N^{growth(bares):.2f})"
        lines.append(line)
    return lines


def to_json(rows: Sequence[Row], plan: Plan) -> bytes:
    """All rows, and the environment, as JSON."""
    document: dict[str, Any] = {"environment": environment(plan), "rows": rows}
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


class Progress:
    """A line on a terminal that says what is being measured; nothing where there is no terminal."""

    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self._total = total
        self._done = 0
        self._stream = stream or sys.stderr
        self._shown = self._stream.isatty()

    def __call__(self, text: str) -> None:
        """Say what is being measured."""
        if self._shown:
            filled = 20 * self._done // max(self._total, 1)
            self._stream.write(f"\r\x1b[K[{'#' * filled}{'.' * (20 - filled)}] {text}")
            self._stream.flush()

    def step(self) -> None:
        """One of the total is done."""
        self._done += 1

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
