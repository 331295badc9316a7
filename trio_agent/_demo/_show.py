"""Shows one run of an agent on the standard output, as text or as JSON, and lets Ctrl-C end it in order.

Knows nothing of what the agent is for. A customer of the library that uses public doors only.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Final

import trio

from trio_agent import Agent, AgentEvent, AgentMessage, MessageCodec, RunResult, ToolResultMessage
from trio_agent._demo._output import Output
from trio_agent._demo._terminal import TerminalView
from trio_agent.testing import check_transcript

__all__ = ["INTERRUPTED", "PATIENCE", "Summary", "show_run"]

INTERRUPTED: Final = 130
"""The exit status after Ctrl-C: 128 and the number of the signal, as shells report it."""

PATIENCE: Final = 0.3
"""Seconds that Ctrl-C gives a run to close, and then to say so."""

Summary = Callable[[RunResult, float], str]
"""Says what a run was like, from its result and the seconds it took."""


async def show_run(agent: Agent, question: str, *, as_json: bool, notice: str, summary: Summary) -> int:
    """Run an agent and show it.

    Args:
        agent: to run.
        question: its prompt.
        as_json: write every event as one line of JSON.
        notice: said before.
        summary: said afterwards.

    Returns:
        The exit status: 0, or 1 if the run failed, 130 after Ctrl-C.

    Raises:
        BrokenPipeError: nobody reads the standard output any more.
    """
    show = _show_json if as_json else _show_text
    result = await show(agent, question, notice, summary)
    if result is None:
        sys.stderr.write(f"Interrupted. {_describe_transcript(agent.state.messages)}\n")
        return INTERRUPTED
    return 0 if result.stop_reason == "stop" else 1


async def _show_text(agent: Agent, question: str, notice: str, summary: Summary) -> RunResult | None:
    output = Output(sys.stdout)
    in_place = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    view = TerminalView(output.put, columns=shutil.get_terminal_size().columns if in_place else None)

    async def show(event: AgentEvent) -> None:
        view.handle(event)
        await output.flush()

    output.put(f"{notice}\n\n> {question}\n\n")
    started = trio.current_time()
    result = await _run(agent, question, show)
    view.close()
    if result is not None:
        output.put(f"\n{summary(result, trio.current_time() - started)}\n")
    with trio.move_on_after(PATIENCE if result is None else math.inf):
        await output.flush()
    return result


async def _show_json(agent: Agent, question: str, notice: str, summary: Summary) -> RunResult | None:
    output = Output(sys.stdout)
    codec = MessageCodec()

    async def show(event: AgentEvent) -> None:
        output.put(codec.encode_event(event) + b"\n")
        await output.flush()

    sys.stderr.write(f"{notice}\n")
    started = trio.current_time()
    result = await _run(agent, question, show)
    if result is not None:
        sys.stderr.write(summary(result, trio.current_time() - started) + "\n")
    return result


async def _run(agent: Agent, question: str, show: Callable[[AgentEvent], Awaitable[None]]) -> RunResult | None:
    """Run the agent until it is done; ``None`` if Ctrl-C was pressed.

    Ctrl-C is an abort: the run closes what is open, and every event of that is shown. Only if that takes too long,
    because nobody reads what is shown, the run is cancelled.
    """
    with trio.CancelScope() as scope, agent.subscribe(show):

        def interrupt() -> None:
            agent.abort()
            scope.deadline = min(scope.deadline, trio.current_time() + PATIENCE)

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


def _describe_transcript(messages: Sequence[AgentMessage]) -> str:
    """Say what a run has left behind, checked and not assumed."""
    try:
        check_transcript(messages)
    except AssertionError as error:
        return f"The transcript is broken: {error}."
    results = sum(isinstance(message, ToolResultMessage) for message in messages)
    return f"The transcript is valid: {len(messages)} messages, {results} tool results, one for each call."
