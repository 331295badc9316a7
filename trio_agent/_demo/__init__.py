"""The built-in demonstration: a clerk with a scripted model answers what a shop has in stock.

All but the model is real: the catalogue is a file, the ``read`` tool reads it in portions, every stock check is a call
of a function over its data, and all checks run at once. A customer of the library that uses public doors only.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from pathlib import Path
from typing import Final

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
from trio_agent._demo._output import Output
from trio_agent._demo._scripted import instructions, scripted_model
from trio_agent._demo._stock import Gauge, stock_check_tool
from trio_agent._demo._terminal import TerminalView
from trio_agent.testing import check_transcript
from trio_agent.toolkit import read_tool

__all__ = ["demonstrate"]

QUESTION: Final = "What is in stock?"
SHIPPED_CATALOGUE: Final = Path(__file__).with_name("catalogue.json")
_NOTICE: Final = "The model is scripted and works offline; the file, the tools and the concurrency are real."
# Seconds that Ctrl-C gives a run to close, and then to say so.
_PATIENCE: Final = 0.3


def demonstrate(question: str | None, *, catalogue: Path | None, as_json: bool) -> int:
    """Run the demonstration and show it on the standard output.

    Args:
        question: for the clerk; naming a category asks for its products only.
        catalogue: the file to read instead of the shipped one.
        as_json: write every event as one line of JSON.

    Returns:
        The exit status: 0, or 1 if the run failed, 2 if the catalogue cannot be used, 130 after Ctrl-C.

    Raises:
        BrokenPipeError: nobody reads the standard output any more.
    """
    # Resolved, as the tool refuses links that lead out of the folder it may read.
    path = (catalogue or SHIPPED_CATALOGUE).resolve()
    try:
        shop = load_catalogue(path)
    except CatalogueError as error:
        sys.stderr.write(f"trio-agent: {error}\n")
        return 2
    gauge = Gauge()
    agent = make_agent(shop, path, gauge)
    show = _show_json if as_json else _show_text
    result = trio.run(show, agent, question or QUESTION, gauge)
    if result is None:
        sys.stderr.write(f"Interrupted. {describe_transcript(agent.state.messages)}\n")
        return 130
    return 0 if result.stop_reason == "stop" else 1


def make_agent(shop: Catalogue, path: Path, gauge: Gauge, *, pace: float = 1.0) -> Agent:
    """The clerk; ``pace`` stretches the time that streaming and checking take."""
    scripted = scripted_model(pace=pace)
    return Agent(
        scripted.model,
        system_prompt=instructions(path.name),
        tools=[read_tool(path.parent), stock_check_tool(shop, gauge, pace=pace)],
        stream_fn=scripted,
        closing_grace=_PATIENCE,
    )


async def _show_text(agent: Agent, question: str, gauge: Gauge) -> RunResult | None:
    output = Output(sys.stdout)
    in_place = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    view = TerminalView(output.put, columns=shutil.get_terminal_size().columns if in_place else None)

    async def show(event: AgentEvent) -> None:
        view.handle(event)
        await output.flush()

    output.put(f"{_NOTICE}\n\n> {question}\n\n")
    started = trio.current_time()
    result = await _ask(agent, question, show)
    view.close()
    if result is not None:
        output.put(f"\n{_summary(result, gauge, trio.current_time() - started)}\n")
    with trio.move_on_after(_PATIENCE if result is None else math.inf):
        await output.flush()
    return result


async def _show_json(agent: Agent, question: str, gauge: Gauge) -> RunResult | None:
    output = Output(sys.stdout)
    codec = MessageCodec()

    async def show(event: AgentEvent) -> None:
        output.put(codec.encode_event(event) + b"\n")
        await output.flush()

    sys.stderr.write(f"{_NOTICE}\n")
    started = trio.current_time()
    result = await _ask(agent, question, show)
    if result is not None:
        sys.stderr.write(_summary(result, gauge, trio.current_time() - started) + "\n")
    return result


async def _ask(agent: Agent, question: str, show: Callable[[AgentEvent], Awaitable[None]]) -> RunResult | None:
    """Run the agent until it is done; ``None`` if Ctrl-C was pressed.

    Ctrl-C is an abort: the run closes what is open, and every event of that is shown. Only if that takes too long,
    because nobody reads what is shown, the run is cancelled.
    """
    with trio.CancelScope() as scope, agent.subscribe(show):

        def interrupt() -> None:
            agent.abort()
            scope.deadline = min(scope.deadline, trio.current_time() + _PATIENCE)

        with _on_ctrl_c(interrupt):
            result = await agent.prompt(question)
        return None if result.stop_reason == "aborted" else result
    return None


@contextlib.contextmanager
def _on_ctrl_c(action: Callable[[], None]) -> Generator[None]:
    token = trio.lowlevel.current_trio_token()
    usual = signal.signal(signal.SIGINT, lambda _number, _frame: token.run_sync_soon(action))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


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
