"""How long an answer may become: a limit that leaves the prompt its room in the context window.

Servers refuse a request whose prompt and limit together exceed the window. How long a prompt is can only be estimated
here: by the last answer that reported its tokens, plus a guess by length for what came after it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from trio_agent._messages import (
    AssistantMessage,
    ImageContent,
    Message,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from trio_agent._models import Model
from trio_agent.wire._json import encode

__all__ = ["clamp_to_context", "estimate_tokens"]

_CHARACTERS_PER_TOKEN: Final = 3.5
_IMAGE_CHARACTERS: Final = 4800
_SMALLEST_MARGIN: Final = 4096
_LARGEST_SHARE: Final = 8
_MARGIN: Final = 0.15
_AMPLE_ROOM: Final = 32768


def clamp_to_context(model: Model, messages: Sequence[Message], wanted: int) -> int:
    """The wanted number of tokens, or as many as the window leaves beside the prompt, but at least one."""
    if model.context_window <= 0:
        return max(1, wanted)
    prompt = estimate_tokens(messages)
    # pi's margin alone would fill the whole window of a small local model.
    smallest = min(_SMALLEST_MARGIN, model.context_window // _LARGEST_SHARE)
    room = model.context_window - prompt - max(smallest, math.ceil(_MARGIN * prompt))
    if room < _AMPLE_ROOM:
        room = min(_AMPLE_ROOM, model.context_window - prompt - smallest)
    return min(wanted, max(1, room))


def estimate_tokens(messages: Sequence[Message]) -> int:
    """About how many tokens the messages are, without counting again what a model has counted."""
    start, counted, newest = 0, 0, 0
    for position, message in enumerate(messages):
        # An answer that is older than what stands before it was given to another prompt, before a compaction.
        if isinstance(message, AssistantMessage) and message.timestamp >= newest and _is_counted(message):
            usage = message.usage
            start = position + 1
            counted = usage.total_tokens or usage.input + usage.output + usage.cache_read + usage.cache_write
        newest = max(newest, message.timestamp)
    return counted + sum(_guess(message) for message in messages[start:])


def _is_counted(message: AssistantMessage) -> bool:
    usage = message.usage
    used = usage.total_tokens or usage.input or usage.output or usage.cache_read or usage.cache_write
    return bool(used) and message.stop_reason not in ("error", "aborted")


def _guess(message: Message) -> int:
    if not isinstance(message, SystemMessage):
        return _tokens(_length(message.content))
    sections = sum(len(section or "") for section in (message.sections or {}).values())
    tools = len(encode(message.tools_added)) if message.tools_added else 0
    return _tokens(_length(message.content) + sections) + _tokens(tools)


def _tokens(characters: int) -> int:
    return math.ceil(characters / _CHARACTERS_PER_TOKEN)


def _length(content: str | Iterable[TextContent | ImageContent | ThinkingContent | ToolCall]) -> int:
    if isinstance(content, str):
        return len(content)
    return sum(_block_length(block) for block in content)


def _block_length(block: TextContent | ImageContent | ThinkingContent | ToolCall) -> int:
    if isinstance(block, TextContent):
        return len(block.text)
    if isinstance(block, ThinkingContent):
        return len(block.thinking)
    if isinstance(block, ImageContent):
        return _IMAGE_CHARACTERS
    return len(block.name) + len(encode(block.arguments))
