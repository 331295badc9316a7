"""Checks of what a run leaves behind."""

from __future__ import annotations

from collections.abc import Sequence

from trio_agent._messages import AgentMessage, AssistantMessage, ToolResultMessage

__all__ = ["check_transcript"]

_FINAL = {"stop", "length", "toolUse", "error", "aborted"}


def check_transcript(messages: Sequence[AgentMessage]) -> None:
    """Check that a transcript is valid.

    Every call of a complete answer has exactly one result, in source order, directly after its answer; answers that
    failed or were aborted have none; every answer has ended.

    Raises:
        AssertionError: it is not; the text says where and why.
    """
    expected: list[str] = []
    owner = -1
    for index, message in enumerate(messages):
        if isinstance(message, ToolResultMessage):
            if not expected:
                raise AssertionError(
                    f"message {index}: a result for call {message.tool_call_id!r} that no answer before it waits for"
                )
            if message.tool_call_id != expected[0]:
                raise AssertionError(
                    f"message {index}: a result for call {message.tool_call_id!r} where message {owner} "
                    f"needs the one for {expected[0]!r}"
                )
            expected.pop(0)
            continue
        if expected:
            raise AssertionError(f"message {index}: message {owner} has calls without a result: {expected}")
        if isinstance(message, AssistantMessage):
            if message.stop_reason not in _FINAL:
                raise AssertionError(f"message {index}: the answer has not ended ({message.stop_reason!r})")
            ids = [call.id for call in message.tool_calls]
            if len(set(ids)) < len(ids):
                raise AssertionError(f"message {index}: two calls have the same id: {ids}")
            expected = [] if message.stop_reason in {"error", "aborted"} else ids
            owner = index
    if expected:
        raise AssertionError(f"message {owner} has calls without a result: {expected}")
