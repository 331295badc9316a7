"""Messages of Anthropic requests.

Servers refuse empty text blocks, empty contents of error results, and images in error results; all results of a turn
have to stand in one user message, before anything else in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from trio_agent._messages import (
    AssistantMessage,
    ImageContent,
    JsonObject,
    JsonValue,
    TextContent,
    ThinkingContent,
    ToolResultMessage,
    UserMessage,
)
from trio_agent.wire._history import Turn
from trio_agent.wire._names import ToolNames

__all__ = ["anthropic_messages", "mark_last_message"]


def anthropic_messages(
    messages: Sequence[Turn], names: ToolNames, *, allow_empty_signature: bool = False
) -> list[JsonObject]:
    """The messages of a repaired conversation in the server's form."""
    wire: list[JsonObject] = []
    results: list[ToolResultMessage] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            results.append(message)
            continue
        _flush_results(wire, results)
        if isinstance(message, UserMessage):
            role, content = "user", _user_content(message)
        else:
            role = "assistant"
            content = _assistant_blocks(message, names, allow_empty_signature=allow_empty_signature)
        if content:
            wire.append({"role": role, "content": content})
    _flush_results(wire, results)
    return wire


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _image(block: ImageContent) -> JsonObject:
    return {"type": "image", "source": {"type": "base64", "media_type": block.mime_type, "data": block.data}}


def _user_content(message: UserMessage) -> JsonValue:
    if isinstance(message.content, str):
        return message.content if message.content.strip() else None
    return _blocks(message.content)


def _blocks(content: Sequence[TextContent | ImageContent]) -> list[JsonObject]:
    return [
        _image(block) if isinstance(block, ImageContent) else _text(block.text)
        for block in content
        if isinstance(block, ImageContent) or block.text.strip()
    ]


def _assistant_blocks(message: AssistantMessage, names: ToolNames, *, allow_empty_signature: bool) -> list[JsonObject]:
    blocks: list[JsonObject | None] = []
    for block in message.content:
        if isinstance(block, TextContent):
            blocks.append(_text(block.text) if block.text.strip() else None)
        elif isinstance(block, ThinkingContent):
            blocks.append(_thinking(block, allow_empty_signature=allow_empty_signature))
        else:
            name = names.on_wire(block.name)
            blocks.append({"type": "tool_use", "id": block.id, "name": name, "input": block.arguments})
    return [block for block in blocks if block is not None]


def _thinking(block: ThinkingContent, *, allow_empty_signature: bool) -> JsonObject | None:
    signature = block.thinking_signature or ""
    if block.redacted:
        return {"type": "redacted_thinking", "data": signature}
    if signature or allow_empty_signature:
        # Not touched in any way: the signature is of this very text.
        return {"type": "thinking", "thinking": block.thinking, "signature": signature}
    return _text(block.thinking) if block.thinking.strip() else None


def _flush_results(wire: list[JsonObject], results: list[ToolResultMessage]) -> None:
    if not results:
        return
    content = [_tool_result(result) for result in results]
    for result in results:
        images = [_image(block) for block in result.content if isinstance(block, ImageContent)]
        if result.is_error and images:
            caption = f"Images from the error result of tool call {result.tool_call_id} ({result.tool_name}):"
            content += [_text(caption), *images]
    wire.append({"role": "user", "content": content})
    results.clear()


def _tool_result(result: ToolResultMessage) -> JsonObject:
    texts = [block.text for block in result.content if isinstance(block, TextContent)]
    has_images = any(isinstance(block, ImageContent) for block in result.content)
    content: JsonValue
    if has_images and not result.is_error:
        blocks = _blocks(result.content)
        has_text = any(block["type"] == "text" for block in blocks)
        content = blocks if has_text else [_text("(see attached image)"), *blocks]
    else:
        if has_images:
            texts.append("(image attached after the tool results)")
        text = "\n".join(texts)
        content = text if text.strip() else "(no tool output)"
    return {
        "type": "tool_result",
        "tool_use_id": result.tool_call_id,
        "content": content,
        "is_error": result.is_error,
    }


def mark_last_message(messages: list[JsonObject], mark: JsonObject) -> None:
    """Mark the end of the last message, if it is the user's, as the end of what is to be cached."""
    last = messages[-1]
    if last["role"] != "user":
        return
    content = last["content"]
    if isinstance(content, str):
        last["content"] = [{**_text(content), "cache_control": mark}]
    else:
        blocks = cast("list[JsonObject]", content)
        blocks[-1] = {**blocks[-1], "cache_control": mark}
