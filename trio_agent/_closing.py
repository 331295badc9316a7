"""What is owed when anything but an abort stops a run: a cancellation, Ctrl-C, a failing hook or sink.

First the transcript is closed, synchronously: whatever happens next, it is valid. Then the events that are owed are
sent, innermost first. If the reason is an ordinary exception nobody is in a hurry, and a cancellation may still come;
otherwise they are sent under a shield, and the grace bounds all of them together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import trio

from trio_agent._agent_events import AgentEnd, AgentEvent, MessageEnd, MessageStart
from trio_agent._answer import final_answer
from trio_agent._failures import bare, split_cancelled
from trio_agent._messages import AssistantMessage
from trio_agent._run_core import RunCore
from trio_agent._tool_batch import ToolBatch

__all__ = ["close"]


async def close(core: RunCore, make_batch: Callable[[AssistantMessage], ToolBatch | None], exc: BaseException) -> None:
    """Close the transcript at once, then deliver the events that are owed.

    Args:
        core: of the run.
        make_batch: the batch of an answer whose tools were not begun.
        exc: why the run is stopped.

    Raises:
        Exception: what the sink raised meanwhile, in place of a cancellation, or in a group with ``exc``.
    """
    owed = _settle(core, make_batch)
    if core.sink.failure is not None and not core.sink.survives_failure:
        return
    failures: list[Exception] = []
    grace = core.config.closing_grace
    if isinstance(exc, Exception):
        try:
            await _send(core, owed, failures)
        except BaseException as stop:  # noqa: BLE001, ASYNC103  # `exc` goes on, and weighs more than a cancellation
            with trio.move_on_after(grace, shield=True):
                await _send(core, owed, failures)
            if split_cancelled(stop)[1] is not None:
                raise bare(stop) from exc  # noqa: ASYNC104
    elif grace > 0:
        with trio.move_on_after(grace, shield=True):
            await _send(core, owed, failures)
    if not failures:
        return
    if isinstance(exc, Exception):
        raise ExceptionGroup("the run failed, and so did its closing events", [exc, *failures])
    if split_cancelled(exc)[1] is None:
        raise failures[0] if len(failures) == 1 else ExceptionGroup("closing events failed", failures)
    for failure in failures:
        exc.add_note(f"a handler of the closing events failed, too: {failure!r}")


async def _send(core: RunCore, owed: deque[AgentEvent], failures: list[Exception]) -> None:
    try:
        await core.sink.finish()
    except Exception as exc:  # noqa: BLE001  # the others are owed all that follows
        failures.append(exc)
    while owed:
        try:
            await core.emit(owed.popleft())
        except Exception as exc:  # noqa: BLE001  # the rest is owed all the same
            failures.append(exc)
            if not core.sink.survives_failure:
                return


def _settle(core: RunCore, make_batch: Callable[[AssistantMessage], ToolBatch | None]) -> deque[AgentEvent]:
    owed = deque[AgentEvent]()
    if not core.running:
        return owed
    if core.message is not None:
        owed.append(MessageEnd(message=core.commit_open_message()))
    turn = core.turn
    if turn is not None:
        builder = turn.builder
        if turn.message is None and builder is not None and (turn.announced or builder.finished):
            turn.message = final_answer(turn, builder)
            core.commit(turn.message)
            if not turn.announced:
                owed.append(MessageStart(message=turn.message))
            owed.append(MessageEnd(message=turn.message))
        if turn.message is not None and turn.batch is None:
            turn.batch = make_batch(turn.message)
        if turn.batch is not None:
            owed.extend(turn.batch.settle())
        owed.append(core.close_turn(turn))
    owed.append(AgentEnd(messages=tuple(core.transcript.new)))
    core.running = False
    return owed
