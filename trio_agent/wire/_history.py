"""The conversation of a request: a stored transcript made into one that any server takes.

A transcript may come from another model, from a run that crashed, or from an old file. Servers refuse a call without a
result, a result without a call, reasoning that they did not write, and ids that come twice. Nothing stored is changed.

* Failed, aborted and unfinished answers are left out, and the results of their calls with them.
* Every call is followed by its result, in source order, before anything else; one that has none gets an error result.
  A result belongs to the latest call with its id: some models use their ids again in every turn.
* Of another model, reasoning is left out (the new model would take it for part of the answer), and so are signatures.
* For a model without eyes, images become a line of text.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from trio_agent._messages import (
    AssistantContent,
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from trio_agent._models import Model
from trio_agent.wire._ids import CallIdMap, CallIdRule

__all__ = ["Turn", "conversation"]

Turn: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage
"""A message of a conversation; what system messages say goes elsewhere."""

_INCOMPLETE: Final = frozenset({"error", "aborted", "pending"})
_NO_RESULT: Final = (TextContent(text="No result provided"),)
_USER_IMAGE: Final = TextContent(text="(image omitted: model does not support images)")
_TOOL_IMAGE: Final = TextContent(text="(tool image omitted: model does not support images)")


def conversation(messages: Sequence[Message], model: Model, rule: CallIdRule) -> list[Turn]:
    """The messages that a request to the model consists of, without the system messages.

    Args:
        messages: a transcript.
        model: who is to be asked.
        rule: what its server demands of tool-call ids.
    """
    results = _results_of_calls(messages)
    sees = "image" in model.input
    ids = CallIdMap(rule)
    repaired: list[Turn] = []
    for position, message in enumerate(messages):
        if isinstance(message, UserMessage):
            repaired.append(message if sees else _without_user_images(message))
        elif isinstance(message, AssistantMessage) and message.stop_reason not in _INCOMPLETE:
            answer = _for_model(message, native=_is_by(message, model), ids=ids)
            repaired.append(answer)
            for call, result in zip(answer.tool_calls, results[position], strict=True):
                repaired.append(_result_for(call, result, message, sees=sees))
    return repaired


def _is_by(message: AssistantMessage, model: Model) -> bool:
    return (message.provider, message.api, message.model) == (model.provider, model.api, model.id)


def _results_of_calls(messages: Iterable[Message]) -> dict[int, list[ToolResultMessage | None]]:
    """The result of each call, by the position of the answer and the order of its calls."""
    results: dict[int, list[ToolResultMessage | None]] = {}
    waiting: dict[str, deque[tuple[list[ToolResultMessage | None], int]]] = {}
    for position, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            slots = results[position] = [None] * len(message.tool_calls)
            calls: defaultdict[str, deque[tuple[list[ToolResultMessage | None], int]]] = defaultdict(deque)
            if message.stop_reason not in _INCOMPLETE:
                for number, call in enumerate(message.tool_calls):
                    calls[call.id].append((slots, number))
            waiting.update(calls)
        elif isinstance(message, ToolResultMessage) and waiting.get(message.tool_call_id):
            slots, number = waiting[message.tool_call_id].popleft()
            slots[number] = message
    return results


def _for_model(message: AssistantMessage, *, native: bool, ids: CallIdMap) -> AssistantMessage:
    content: list[AssistantContent] = []
    for block in message.content:
        if isinstance(block, ToolCall):
            content.append(_call_for_model(block, native=native, ids=ids))
        elif isinstance(block, TextContent):
            foreign = not native and block.text_signature is not None
            content.append(TextContent(text=block.text) if foreign else block)
        elif native and (block.redacted or block.thinking_signature or block.thinking.strip()):
            content.append(block)
    return msgspec.structs.replace(message, content=tuple(content))


def _call_for_model(call: ToolCall, *, native: bool, ids: CallIdMap) -> ToolCall:
    call_id = ids.assign(call.id, native=native)
    signature = call.thought_signature if native else None
    if call_id == call.id and signature == call.thought_signature:
        return call
    return msgspec.structs.replace(call, id=call_id, thought_signature=signature)


def _result_for(
    call: ToolCall, result: ToolResultMessage | None, answer: AssistantMessage, *, sees: bool
) -> ToolResultMessage:
    if result is None:
        return ToolResultMessage(
            tool_call_id=call.id, tool_name=call.name, content=_NO_RESULT, is_error=True, timestamp=answer.timestamp
        )
    content = result.content if sees else _without_images(result.content, _TOOL_IMAGE)
    if content is result.content and result.tool_call_id == call.id:
        return result
    return msgspec.structs.replace(result, tool_call_id=call.id, content=content)


def _without_user_images(message: UserMessage) -> UserMessage:
    if isinstance(message.content, str):
        return message
    content = _without_images(message.content, _USER_IMAGE)
    return message if content is message.content else msgspec.structs.replace(message, content=content)


def _without_images(
    content: tuple[TextContent | ImageContent, ...], placeholder: TextContent
) -> tuple[TextContent | ImageContent, ...]:
    if not any(isinstance(block, ImageContent) for block in content):
        return content
    kept: list[TextContent | ImageContent] = []
    for block in content:
        if not isinstance(block, ImageContent):
            kept.append(block)
        elif not kept or kept[-1] != placeholder:
            kept.append(placeholder)
    return tuple(kept)
