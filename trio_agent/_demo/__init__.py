"""The built-in demonstration: a clerk with a scripted model answers what a shop has in stock.

All but the model is real: the catalogue is a file, the ``read`` tool reads it in portions, every stock check is a call
of a function over its data, and all checks run at once. A customer of the library that uses public doors only.
"""

from __future__ import annotations

import functools
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TextIO

import trio

from trio_agent import (
    Agent,
    AgentEvent,
    AgentMessage,
    MessageCodec,
    RunResult,
    ToolResultMessage,
)
from trio_agent._demo._catalogue import Catalogue, CatalogueError, load_catalogue
from trio_agent._demo._scripted import instructions, scripted_model
from trio_agent._demo._stock import Gauge, stock_check_tool
from trio_agent._demo._terminal import TerminalView
from trio_agent.testing import check_transcript
from trio_agent.toolkit import read_tool

__all__ = ["demonstrate"]

QUESTION: Final = "What is in stock?"
SHIPPED_CATALOGUE: Final = Path(__file__).with_name("catalogue.json")
_NOTICE: Final = "The model is scripted and works offline; the file, the tools and the concurrency are real."


def demonstrate(question: str | None, *, catalogue: Path | None, as_json: bool) -> int:
    """Run the demonstration and show it on the standard output.

    Args:
        question: for the clerk; naming a category asks for its products only.
        catalogue: the file to read instead of the shipped one.
        as_json: write every event as one line of JSON.

    Returns:
        The exit status: 0, or 1 if the run failed, 2 if the catalogue cannot be used, 130 after Ctrl-C.
    """
    # Resolved, as the tool refuses links that lead out of the folder it may read.
    path = (catalogue or SHIPPED_CATALOGUE).resolve()
    try:
        shop = load_catalogue(path)
    except CatalogueError as error:
        _say(sys.stderr, f"trio-agent: {error}\n")
        return 2
    question = question or QUESTION
    gauge = Gauge()
    agent = make_agent(shop, path, gauge)
    show = _show_json if as_json else _show_text
    notes = sys.stderr if as_json else sys.stdout
    _say(notes, f"{_NOTICE}\n\n> {question}\n\n")
    try:
        return trio.run(show, agent, question, gauge)
    except KeyboardInterrupt:
        _say(sys.stderr, f"Interrupted. {describe_transcript(agent.state.messages)}\n")
        return 130


def make_agent(shop: Catalogue, path: Path, gauge: Gauge, *, pace: float = 1.0) -> Agent:
    """The clerk; ``pace`` stretches the time that streaming and checking take."""
    scripted = scripted_model(pace=pace)
    return Agent(
        scripted.model,
        system_prompt=instructions(path.name),
        tools=[read_tool(path.parent), stock_check_tool(shop, gauge, pace=pace)],
        stream_fn=scripted,
    )


async def _show_text(agent: Agent, question: str, gauge: Gauge) -> int:
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    view = TerminalView(functools.partial(_say, sys.stdout), columns=columns)
    try:
        result, seconds = await _ask(agent, question, view.handle)
    finally:
        view.close()
    view.line("")
    view.line(_summary(result, gauge, seconds))
    return int(result.stop_reason != "stop")


async def _show_json(agent: Agent, question: str, gauge: Gauge) -> int:
    codec = MessageCodec()

    def write(event: AgentEvent) -> None:
        sys.stdout.buffer.write(codec.encode_event(event) + b"\n")
        sys.stdout.buffer.flush()

    result, seconds = await _ask(agent, question, write)
    _say(sys.stderr, _summary(result, gauge, seconds) + "\n")
    return int(result.stop_reason != "stop")


def _say(stream: TextIO, text: str) -> None:
    stream.write(text)
    stream.flush()


async def _ask(agent: Agent, question: str, handle: Callable[[AgentEvent], None]) -> tuple[RunResult, float]:
    # A listener and not the body of `agent.run()`: interrupted, that body is left, while a listener still gets the
    # events that close the run, so that what is shown is complete.
    started = trio.current_time()
    with agent.subscribe(handle):
        result = await agent.prompt(question)
    return result, trio.current_time() - started


def _summary(result: RunResult, gauge: Gauge, seconds: float) -> str:
    calls = sum(isinstance(message, ToolResultMessage) for message in result.messages)
    return (
        f"{result.turns} turns, {calls} tool calls, at most {gauge.peak} stock checks at once, {seconds:.1f} s, "
        "with a scripted model."
    )


def describe_transcript(messages: Sequence[AgentMessage]) -> str:
    """Say what a run has left behind, checked and not assumed."""
    try:
        check_transcript(messages)
    except AssertionError as error:
        return f"The transcript is broken: {error}."
    results = sum(isinstance(message, ToolResultMessage) for message in messages)
    return f"The transcript is valid: {len(messages)} messages, {results} tool results, one for each call."
