"""The benchmarks run and measure what they say; how long anything takes is not for a test to say."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.__main__ import NAMES, load, main
from benchmarks._harness import Benchmark, Case, Plan, Spread, Unit, growth, run_benchmark
from benchmarks._report import Progress, growth_lines, table
from benchmarks.peers._race import CONTENDERS, race

TINY = Plan(rounds=1, seconds=0, max_size=3)


def silent(text: str) -> None:
    pass


@pytest.mark.parametrize("name", NAMES)
def test_benchmark_gives_rows(name: str) -> None:
    benchmark, about = load(name)

    rows = list(run_benchmark(benchmark, TINY, silent))

    assert benchmark.name == name
    assert rows
    for row in rows:
        assert row.benchmark == name
        assert 1 <= row.size <= 3
        assert (row.bare is None) == (row.ratio is None)
    assert table(rows).count("\n") == len(rows)
    question, _, rest = about.partition("\n")
    assert question.endswith("?")
    assert "\nUnit: " in rest
    assert "\nNot shown: " in rest


def test_race_has_a_row_for_each_question_and_says_who_is_missing() -> None:
    rows, notes = race(TINY, silent)

    ours = [row for row in rows if row.series.startswith("trio-agent")]
    assert [row.benchmark for row in ours] == [
        "peers fan_out",
        "peers turns",
        "peers deltas",
        "peers agents",
        "peers sse",
    ]
    taking_part = {row.series.split()[0] for row in rows}
    for contender in CONTENDERS:
        assert (contender.package in taking_part) != any(contender.package in note for note in notes)


def test_command_prints_a_table_and_writes_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "figures.json"

    status = main(["turns", "--quick", "--rounds", "1", "--max-size", "2", "--json", str(file)])

    assert status == 0
    printed = capsys.readouterr().out
    assert "turns: What does a turn cost" in printed
    assert "us a turn" in printed
    document = json.loads(file.read_bytes())
    assert document["environment"]["versions"]["trio"]
    assert [(row["benchmark"], row["size"]) for row in document["rows"]] == [("turns", 2)]


def test_unknown_name_is_refused_with_those_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["fan_in"])

    assert caught.value.code == 2
    assert "there is no benchmark 'fan_in'; there are: fan_out," in capsys.readouterr().err


def test_plot_writes_a_picture_of_what_has_several_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")

    main(["turns", "transcript", "--rounds", "1", "--max-size", "200", "--plot", str(tmp_path)])

    assert sorted(path.name for path in tmp_path.iterdir()) == ["turns.png", "turns.svg"]
    assert "wrote" in capsys.readouterr().out


def sides(log: list[str], costs: dict[str, float]) -> Callable[[str], Callable[[int], float]]:
    def side(name: str) -> Callable[[int], float]:
        def measure(times: int) -> float:
            log.append(name)
            return costs[name] * times

        return measure

    return side


def test_sides_are_measured_in_turn_and_neither_is_always_first() -> None:
    log: list[str] = []
    side = sides(log, {"ours": 30e-6, "bare": 10e-6})
    case = Case(series="s", size=10, per=10, ours=side("ours"), bare=side("bare"), repeatable=False)
    benchmark = Benchmark(name="b", unit=Unit("us"), cases=lambda plan: [case])

    [row] = run_benchmark(benchmark, Plan(rounds=3), silent)

    assert log == ["ours", "bare", "bare", "ours", "ours", "bare"]
    assert row.ours.median == pytest.approx(3.0)
    assert row.ratio is not None
    assert row.ratio.median == pytest.approx(3.0)


def test_short_work_is_repeated_until_the_clock_can_see_it() -> None:
    repeats: list[int] = []

    def measure(times: int) -> float:
        repeats.append(times)
        return times * 0.001

    case = Case(series="s", size=1, ours=measure, bare=None)
    benchmark = Benchmark(name="b", unit=Unit("ms", 1e3), cases=lambda plan: [case])

    [row] = run_benchmark(benchmark, Plan(rounds=1, seconds=0.05), silent)

    assert repeats == [1, 1, 50]
    assert row.ours == Spread(pytest.approx(1.0), pytest.approx(1.0), pytest.approx(1.0))  # type: ignore[arg-type]


def test_sizes_are_bounded_by_the_plan() -> None:
    assert Plan().sizes(1, 100, 1000) == [1, 100, 1000]
    assert Plan(max_size=50).sizes(1, 100, 1000) == [1, 50]


def test_growth_is_the_exponent_of_the_whole() -> None:
    assert growth([(100, 5.0), (1000, 5.0)]) == pytest.approx(1.0)
    assert growth([(10, 1.0), (100, 10.0), (1000, 100.0)]) == pytest.approx(2.0)


def test_growth_is_told_from_the_sizes_that_count() -> None:
    benchmark = Benchmark(name="b", unit=Unit("us"), cases=lambda plan: [], growth_from=100)
    costs = {1: 90.0, 100: 2.0, 10_000: 2.0}

    def rows_of(size: int) -> Benchmark:
        case = Case(series="s", size=size, ours=lambda times: costs[size] * 1e-6 * times, bare=None, repeatable=False)
        return Benchmark(name="b", unit=Unit("us"), cases=lambda plan: [case])

    rows = [row for size in costs for row in run_benchmark(rows_of(size), Plan(rounds=1), silent)]

    assert growth_lines(benchmark, rows) == ["s: grows as N^1.00 from 100 to 10000"]
    assert growth_lines(benchmark, rows[:2]) == []


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_shows_on_a_terminal_only() -> None:
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        progress = Progress(2, stream)
        progress.step()
        progress("turns, round 1 of 3")
        progress.clear()

    assert "[##########..........] turns, round 1 of 3" in terminal.getvalue()
    assert pipe.getvalue() == ""
