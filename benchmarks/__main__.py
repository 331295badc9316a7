"""``python -m benchmarks``: measure, and print tables; ``--help`` says how."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from benchmarks._harness import Benchmark, Plan, Row, run_benchmark
from benchmarks._report import Progress, environment, growth_lines, table, to_json

__all__ = ["NAMES", "load", "main"]

NAMES: Final = (
    "fan_out",
    "fan_out_memory",
    "waiting_tools",
    "turns",
    "deltas",
    "arguments",
    "tool_arguments",
    "agents",
    "agent_memory",
    "import_time",
    "transcript",
    "abort",
    "decoders",
    "sse",
    "memory",
)
"""The benchmarks, in the order in which they run."""


def load(name: str) -> tuple[Benchmark, str]:
    """The benchmark of a name, and what it says about itself."""
    module = import_module(f"benchmarks.{name}")
    benchmark = module.BENCHMARK
    assert isinstance(benchmark, Benchmark)
    return benchmark, (module.__doc__ or "").strip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    plan = _plan(options)
    names: Sequence[str] = options.names or NAMES
    for name in names:
        if name not in (*NAMES, "peers"):
            parser.error(f"there is no benchmark {name!r}; there are: {', '.join(NAMES)}, peers")
    progress = Progress(len(names))
    _print_environment(plan)
    rows: list[Row] = []
    for name in names:
        measure = _peers if name == "peers" else _benchmark
        rows += measure(name, plan, progress)
        progress.step()
    if options.json is not None:
        options.json.write_bytes(to_json(rows, plan))
    if options.plot is not None:
        from benchmarks._plot import plot

        for path in plot(rows, options.plot):
            print(f"wrote {path}")
    return 0


def _benchmark(name: str, plan: Plan, progress: Progress) -> list[Row]:
    benchmark, about = load(name)
    rows = list(run_benchmark(benchmark, plan, progress))
    progress.clear()
    print(f"\n{name}: {about}\n\n{table(rows)}")
    for line in growth_lines(benchmark, rows):
        print(line)
    return rows


def _peers(name: str, plan: Plan, progress: Progress) -> list[Row]:
    from benchmarks.peers import _race

    rows, notes = _race.race(plan, progress)
    progress.clear()
    print(f"\n{name}: {_race.__doc__}")
    for question in dict.fromkeys(row.benchmark for row in rows):
        print(f"{question}\n{table([row for row in rows if row.benchmark == question], 'cost')}\n")
    for note in notes:
        print(note)
    return rows


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure trio_agent beside the same work written by hand on bare Trio, in turn and in one process.",
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"what to measure, or else all: {', '.join(NAMES)}; or: peers"
    )
    parser.add_argument("--quick", action="store_true", help="3 short rounds, sizes of at most 1000")
    parser.add_argument("--rounds", type=_positive, help="how often each side is measured")
    parser.add_argument(
        "--max-size", type=_positive, help="bound on the sizes; with 100000, some go beyond the usual 10000"
    )
    parser.add_argument("--no-gc", action="store_true", help="measure with the garbage collector off")
    parser.add_argument("--wall", action="store_true", help="time work by the clock on the wall, not the processor's")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="write pictures; needs the extra 'bench'")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is less than 1")
    return value


def _plan(options: argparse.Namespace) -> Plan:
    quick = Plan(rounds=3, seconds=0.02, max_size=1000) if options.quick else Plan()
    return Plan(
        rounds=options.rounds or quick.rounds,
        seconds=quick.seconds,
        max_size=options.max_size or quick.max_size,
        collect=not options.no_gc,
        clock=time.perf_counter if options.wall else Plan().clock,
    )


def _print_environment(plan: Plan) -> None:
    facts = environment(plan)
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items() if number)
    print(f"{facts['implementation']} {facts['python']}, {versions}")
    print(f"{facts['platform']}, {facts['cores']} cores; {facts['date']}")
    print(f"{plan.rounds} rounds, medians, {facts['clock']} time; garbage collector {facts['gc']}, run before each")


if __name__ == "__main__":
    sys.exit(main())
