"""The command, started as a user starts it: a process of its own, with pipes, signals and exit statuses."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

import msgspec
import pytest

from trio_agent import (
    AgentEnd,
    AgentEvent,
    AgentStart,
    AssistantMessage,
    MessageCodec,
    MessageEnd,
    MessageStart,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolResultMessage,
    TurnEnd,
    TurnStart,
)
from trio_agent._demo import SHIPPED_CATALOGUE
from trio_agent._demo._catalogue import load_catalogue, stock_of

COMMAND = [sys.executable, "-m", "trio_agent"]


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603


def start(*arguments: str) -> subprocess.Popen[str]:
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*COMMAND, *arguments], **pipes, text=True)  # noqa: S603


def decode(lines: str) -> list[AgentEvent]:
    codec = MessageCodec()
    return [codec.decode_event(line) for line in lines.splitlines()]


def check_order(events: list[AgentEvent]) -> None:
    """Every opened thing is closed, in the order of nesting."""
    assert isinstance(events[0], AgentStart)
    assert isinstance(events[-1], AgentEnd)
    assert sum(isinstance(event, (AgentStart, AgentEnd)) for event in events) == 2
    in_turn = in_message = False
    open_calls: set[str] = set()
    for event in events:
        match event:
            case TurnStart() | TurnEnd():
                assert in_turn == isinstance(event, TurnEnd)
                assert not in_message
                assert not open_calls
                in_turn = not in_turn
            case MessageStart() | MessageEnd():
                assert in_turn
                assert in_message == isinstance(event, MessageEnd)
                in_message = not in_message
            case ToolExecutionStart(tool_call_id=call_id):
                assert in_turn
                assert not in_message
                open_calls.add(call_id)
            case ToolExecutionEnd(tool_call_id=call_id):
                open_calls.remove(call_id)
            case _:
                pass
    assert not in_turn


def check_transcript(events: list[AgentEvent]) -> None:
    """Every call of a complete answer has one result, in source order, directly after the answer."""
    end = events[-1]
    assert isinstance(end, AgentEnd)
    owed: list[str] = []
    for message in end.messages:
        if isinstance(message, ToolResultMessage):
            assert owed.pop(0) == message.tool_call_id
        else:
            assert owed == []
            if isinstance(message, AssistantMessage) and message.stop_reason not in ("error", "aborted"):
                owed = [call.id for call in message.tool_calls]
    assert owed == []


def final_text(events: list[AgentEvent]) -> str:
    end = events[-1]
    assert isinstance(end, AgentEnd)
    last = end.messages[-1]
    assert isinstance(last, AssistantMessage)
    return last.text


@pytest.fixture(scope="module")
def events() -> list[AgentEvent]:
    finished = run("--json")
    assert finished.returncode == 0, finished.stderr
    assert "scripted" in finished.stderr
    return decode(finished.stdout)


def test_json_is_one_event_a_line_well_ordered(events: list[AgentEvent]) -> None:
    check_order(events)
    check_transcript(events)


def test_the_catalogue_is_read_in_two_steps_and_every_product_is_checked(events: list[AgentEvent]) -> None:
    starts = [event for event in events if isinstance(event, ToolExecutionStart)]
    reads = [event.args for event in starts if event.tool_name == "read"]
    checks = [event.args["product_id"] for event in starts if event.tool_name == "stock_check"]

    assert reads == [{"path": "catalogue.json"}, {"path": "catalogue.json", "offset": 2001}]
    assert checks == [product.id for product in load_catalogue(SHIPPED_CATALOGUE).products]
    assert not any(event.is_error for event in events if isinstance(event, ToolExecutionEnd))


def test_the_answer_adds_up_what_the_checks_found(events: list[AgentEvent]) -> None:
    catalogue = load_catalogue(SHIPPED_CATALOGUE)
    available = {product.id: stock_of(product).available for product in catalogue.products}
    worth = sum(product.price * available[product.id] for product in catalogue.products)
    in_stock = sum(count > 0 for count in available.values())

    assert final_text(events).startswith(
        f"{catalogue.shop}: {in_stock} of {len(available)} products are in stock, "
        f"{sum(available.values()):,} pieces worth {catalogue.currency} {worth:,.2f}."
    )


def test_another_catalogue_gives_another_answer(tmp_path: Path, events: list[AgentEvent]) -> None:
    data: dict[str, Any] = msgspec.json.decode(SHIPPED_CATALOGUE.read_bytes())
    sold_out = next(product for product in data["products"] if sum(product["on_hand"].values()) > product["reserved"])
    sold_out["on_hand"] = {}
    path = tmp_path / "my shop.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(data)))

    finished = run("--json", "--catalogue", path)

    assert finished.returncode == 0, finished.stderr
    answer, other = final_text(events), final_text(decode(finished.stdout))
    assert answer != other
    assert int(answer.split(": ")[1].split()[0]) - 1 == int(other.split(": ")[1].split()[0])


def test_text_output_says_that_the_model_is_scripted_and_sums_up() -> None:
    finished = run("Which tents are in stock?")

    assert finished.returncode == 0, finished.stderr
    first, *_, last = finished.stdout.splitlines()
    assert "scripted" in first
    assert "> Which tents are in stock?" in finished.stdout
    assert "  read(path='catalogue.json'): done\n" in finished.stdout
    assert "  stock_check, 14 calls: done\n" in finished.stdout
    assert "Tents" in finished.stdout
    assert last.startswith("4 turns, 16 tool calls, at most 14 stock checks at once, ")
    assert "\x1b" not in finished.stdout
    assert finished.stderr == ""


@pytest.mark.parametrize("content", [None, "", "{}", '{"shop": "Empty", "products": []}', "[" * 10_000])
def test_a_bad_catalogue_is_one_line_on_stderr_and_status_2(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "catalogue.json"
    if content is not None:
        path.write_text(content)

    finished = run("--catalogue", path)

    assert finished.returncode == 2
    assert finished.stdout == ""
    assert finished.stderr.startswith(f"trio-agent: {path}: ")
    assert finished.stderr.count("\n") == 1


def test_an_unknown_option_is_a_usage_error() -> None:
    finished = run("--catalog-of-what")

    assert finished.returncode == 2
    assert "usage: trio-agent" in finished.stderr
    assert "Traceback" not in finished.stderr


def read_until(stream: IO[str], wanted: str) -> str:
    lines: list[str] = []
    for line in stream:
        lines.append(line)
        if wanted in line:
            break
    return "".join(lines)


@pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")
@pytest.mark.parametrize("moment", ["agent_start", "message_update", "tool_execution_start", "tool_execution_end"])
def test_ctrl_c_ends_promptly_with_a_valid_transcript_and_status_130(moment: str) -> None:
    with start("--json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        output = read_until(process.stdout, f'"type":"{moment}"')
        interrupted = time.monotonic()
        process.send_signal(signal.SIGINT)
        rest, errors = process.stdout.read(), process.stderr.read()
        process.wait(timeout=30)

    assert time.monotonic() - interrupted < 5  # a hang is the failure; a busy machine is not
    assert process.returncode == 130
    events = decode(output + rest)
    check_order(events)
    check_transcript(events)
    assert "The transcript is valid: " in errors
    assert "Traceback" not in errors


@pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")
def test_ctrl_c_works_even_when_nobody_reads() -> None:
    with start("--json") as process:
        assert process.stderr is not None
        process.stderr.readline()
        time.sleep(1)  # by then the pipe is full
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
        errors = process.stderr.read()

    assert process.returncode == 130
    assert errors.startswith("Interrupted. The transcript is valid: ")


@pytest.mark.skipif(os.name != "posix", reason="pipes and signals of POSIX")
@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_a_reader_that_leaves_is_no_traceback(arguments: list[str]) -> None:
    with start(*arguments) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()

    assert process.wait(timeout=30) == 141
    assert "Traceback" not in errors
    assert "Exception ignored" not in errors
