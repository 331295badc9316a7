"""How benchmarks are measured: both sides in turn, in one process and one run, so that a noisy machine is fair to both.

A benchmark has cases, a case has two sides. Each round measures one side and then the other, in an order that changes
from round to round, and gives one ratio; what is reported is the median over the rounds and the middle half around it.
Short work is repeated within a measurement until it lasts long enough for the clock. Before a measurement the garbage
collector runs; during it the collector is as the plan says, and by default on, as in a user's program.

Work is timed in processor time of its thread, so that other programs on the machine count as little as they can;
what waits is timed by the wall.

Nothing here knows what is measured, and nothing judges a figure.
"""

from __future__ import annotations

import gc
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import trio

__all__ = [
    "Benchmark",
    "Case",
    "Clock",
    "Measure",
    "Plan",
    "Row",
    "Spread",
    "Unit",
    "fresh_process",
    "growth",
    "in_trio",
    "run_benchmark",
    "timed",
]

Measure: TypeAlias = Callable[[int], float]
"""Does the work so many times, and returns what that cost in all, in seconds or in what the benchmark's unit says."""


Clock: TypeAlias = Callable[[], float]
"""Gives seconds: of the wall, or of this thread on a processor, which other programs on the machine disturb less."""


_ROOT = Path(__file__).parent.parent

# Where the processor's clock is too coarse for short work, the wall's has to do.
_FINE_CLOCK: Clock = time.thread_time if time.get_clock_info("thread_time").resolution < 1e-6 else time.perf_counter


@dataclass(frozen=True, slots=True)
class Unit:
    """What the figures count.

    Attributes:
        name: such as ``us a call``.
        factor: from what a side returns, such as seconds, to the unit.
    """

    name: str
    factor: float = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of a table.

    Attributes:
        series: cases of one series differ in their size only.
        size: how much is done at once.
        ours: the library's side.
        bare: the same by hand; ``None`` where nothing compares.
        per: what a cost is divided by, such as the number of calls.
        repeatable: whether the work can be warmed up and repeated within a measurement; not so for a fresh process.
    """

    series: str
    size: int
    ours: Measure
    bare: Measure | None
    per: float = 1
    repeatable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How thoroughly to measure.

    Attributes:
        rounds: how often each side is measured.
        seconds: how long a measurement of short work should last at least.
        max_size: bound on the sizes of the cases.
        collect: whether the garbage collector is on while measuring.
        clock: what work is timed with; waiting, memory and imports are not work.
    """

    rounds: int = 11
    seconds: float = 0.05
    max_size: int = 10_000
    collect: bool = True
    clock: Clock = _FINE_CLOCK

    def sizes(self, *sizes: int) -> list[int]:
        """The sizes within the bound; what is larger becomes the bound itself."""
        return sorted({min(size, self.max_size) for size in sizes})


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """One question; the docstring of its module says which, in what unit, and what it does not show.

    Attributes:
        name: by which it is selected.
        unit: of its figures.
        cases: makes them for a plan.
        growth_from: smallest size that counts for the growth exponent; ``None`` if there is none to tell.
    """

    name: str
    unit: Unit
    cases: Callable[[Plan], Iterable[Case]]
    growth_from: int | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some rounds, and the quartiles around it."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of measured values."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, low, high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What came out for a case.

    Attributes:
        benchmark: its name.
        series: of the case.
        size: of the case.
        unit: of ``ours`` and ``bare``.
        rounds: that were measured.
        ours: the library's cost.
        bare: the cost by hand.
        ratio: of the two, taken round by round.
    """

    benchmark: str
    series: str
    size: int
    unit: str
    rounds: int
    ours: Spread
    bare: Spread | None
    ratio: Spread | None


def in_trio(side: Callable[[], Awaitable[float]]) -> Measure:
    """A side that needs Trio: an async function that does the work once and returns the seconds that count."""

    async def repeat(times: int) -> float:
        return sum([await side() for _ in range(times)])

    return lambda times: trio.run(repeat, times)


def timed(work: Callable[[], object], clock: Clock) -> Measure:
    """A side that is a plain function, timed as a whole."""

    def measure(times: int) -> float:
        started = clock()
        for _ in range(times):
            work()
        return clock() - started

    return measure


def fresh_process(*arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Run Python with arguments in a process of its own.

    Args:
        *arguments: of the interpreter.
        environment: of the process; ``None`` for ours.

    Returns:
        What it printed.

    Raises:
        RuntimeError: it failed; the text is what it said.
    """
    done = subprocess.run(  # noqa: S603
        [sys.executable, *arguments], cwd=_ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"python {' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout


def run_benchmark(benchmark: Benchmark, plan: Plan, progress: Callable[[str], None]) -> Iterator[Row]:
    """Measure a benchmark, case by case.

    Args:
        benchmark: what to measure.
        plan: how thoroughly.
        progress: is told what is being measured, before each round.
    """
    for case in benchmark.cases(plan):
        label = f"{benchmark.name} {case.series} {case.size}"
        progress(label)
        sides = [case.ours] if case.bare is None else [case.ours, case.bare]
        repeats = [_repeats(side, plan) if case.repeatable else 1 for side in sides]
        costs: list[list[float]] = [[] for _ in sides]
        for number in range(plan.rounds):
            progress(f"{label}, round {number + 1} of {plan.rounds}")
            order = range(len(sides)) if number % 2 == 0 else range(len(sides) - 1, -1, -1)
            for index in order:
                with _collector(on=plan.collect):
                    cost = sides[index](repeats[index])
                costs[index].append(cost * benchmark.unit.factor / repeats[index] / case.per)
        ours, *others = costs
        yield Row(
            benchmark=benchmark.name,
            series=case.series,
            size=case.size,
            unit=benchmark.unit.name,
            rounds=plan.rounds,
            ours=Spread.of(ours),
            bare=Spread.of(others[0]) if others else None,
            ratio=Spread.of([a / b for a, b in zip(ours, others[0], strict=True)]) if others else None,
        )


def _repeats(side: Measure, plan: Plan) -> int:
    # The first time warms up, and says how often the work fits into the time.
    started = time.perf_counter()
    side(1)
    if time.perf_counter() - started >= plan.seconds:
        return 1
    cost = side(1)
    return max(1, min(10_000, math.ceil(plan.seconds / max(cost, 1e-7))))


@contextmanager
def _collector(*, on: bool) -> Generator[None]:
    gc.collect()
    was_on = gc.isenabled()
    (gc.enable if on else gc.disable)()
    try:
        yield
    finally:
        (gc.enable if was_on else gc.disable)()


def growth(points: Sequence[tuple[int, float]]) -> float:
    """The exponent with which a whole grows: 1 when the cost of a unit does not depend on the size.

    Args:
        points: sizes, and the cost of one unit at each.
    """
    slope, _ = statistics.linear_regression(
        [math.log(size) for size, _ in points], [math.log(cost) for _, cost in points]
    )
    return 1 + slope
