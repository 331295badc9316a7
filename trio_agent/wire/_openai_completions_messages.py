"""Messages of Chat Completions requests, and the marks that tell an Anthropic model behind a router what to cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

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
from trio_agent._models import Model
from trio_agent.wire._compat import CompletionsCompat
from trio_agent.wire._history import Turn
from trio_agent.wire._json import as_list, quote
from trio_agent.wire._names import ToolNames
from trio_agent.wire._reasoning_details import read_details

__all__ = ["completions_messages", "mark_for_cache"]

_REASONING_FIELDS: Final = frozenset({"reasoning", "reasoning_content", "reasoning_text"})


def completions_messages(
    messages: Sequence[Turn], model: Model, compat: CompletionsCompat, names: ToolNames
) -> list[JsonObject]:
    """The messages of a repaired conversation in the server's form."""
    wire: list[JsonObject] = []
    images: list[JsonObject] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            wire.append(_tool_result(message, compat, names))
            images += [_image(block) for block in message.content if isinstance(block, ImageContent)]
            continue
        _flush_images(wire, images, compat)
        if isinstance(message, AssistantMessage):
            converted = _assistant(message, model, compat, names)
            if converted is not None:
                wire.append(converted)
        else:
            content = _user_content(message)
            if content is not None:
                _append_user(wire, content, compat)
    _flush_images(wire, images, compat)
    return wire


def _append_user(wire: list[JsonObject], content: JsonValue, compat: CompletionsCompat) -> None:
    if compat.requires_assistant_after_tool_result and wire and wire[-1]["role"] == "tool":
        wire.append({"role": "assistant", "content": "I have processed the tool results."})
    wire.append({"role": "user", "content": content})


def _flush_images(wire: list[JsonObject], images: list[JsonObject], compat: CompletionsCompat) -> None:
    # Results hold text only; their images follow, all together, as if the user had sent them.
    if images:
        _append_user(wire, [_text("Attached image(s) from tool result:"), *images], compat)
        images.clear()


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _image(block: ImageContent) -> JsonObject:
    return {"type": "image_url", "image_url": {"url": f"data:{block.mime_type};base64,{block.data}"}}


def _user_content(message: UserMessage) -> JsonValue:
    if isinstance(message.content, str):
        return message.content
    parts = [
        _image(block) if isinstance(block, ImageContent) else _text(block.text)
        for block in message.content
        if isinstance(block, ImageContent) or block.text
    ]
    return parts or None


def _assistant(
    message: AssistantMessage, model: Model, compat: CompletionsCompat, names: ToolNames
) -> JsonObject | None:
    texts = [block.text for block in message.content if isinstance(block, TextContent) and block.text.strip()]
    thinking = [block for block in message.content if isinstance(block, ThinkingContent)]
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": names.on_wire(call.name), "arguments": quote(call.arguments)},
        }
        for call in message.tool_calls
    ]
    # One string, never an array: models that see their own text as an array begin to write such arrays.
    content: JsonValue = "".join(texts) or None
    reasoning = "\n\n".join(block.thinking for block in thinking if block.thinking.strip())
    if compat.requires_thinking_as_text and reasoning:
        content = [_text(reasoning), *(_text(text) for text in texts)]
    if content is None and not calls:
        return None
    if content is None and (compat.requires_assistant_after_tool_result or compat.requires_non_null_assistant_content):
        content = ""
    converted: JsonObject = {"role": "assistant", "content": content}
    if calls:
        converted["tool_calls"] = calls
    if not compat.requires_thinking_as_text:
        converted.update(_replayed_reasoning(thinking))
    if compat.requires_reasoning_content_on_assistant_messages and model.reasoning:
        converted.setdefault("reasoning_content", "")
    return converted


def _replayed_reasoning(thinking: list[ThinkingContent]) -> JsonObject:
    for block in thinking:
        details = read_details(block.thinking_signature or "")
        if details:
            return {"reasoning_details": details}
    shown = [block for block in thinking if block.thinking.strip()]
    field = shown[0].thinking_signature if shown else None
    return {field: "\n".join(block.thinking for block in shown)} if field in _REASONING_FIELDS else {}


def _tool_result(message: ToolResultMessage, compat: CompletionsCompat, names: ToolNames) -> JsonObject:
    text = "\n".join([block.text for block in message.content if isinstance(block, TextContent)])
    if not text.strip():
        has_images = any(isinstance(block, ImageContent) for block in message.content)
        text = "(see attached image)" if has_images else "(no tool output)"
    converted: JsonObject = {"role": "tool", "content": text, "tool_call_id": message.tool_call_id}
    if compat.requires_tool_result_name:
        converted["name"] = names.on_wire(message.tool_name)
    return converted


def mark_for_cache(body: JsonObject, *, long: bool) -> None:
    """Mark the system message, the last tool and the last message with text as ends of what is to be cached."""
    mark: JsonObject = {"type": "ephemeral", "ttl": "1h"} if long else {"type": "ephemeral"}
    messages = cast("list[JsonObject]", body["messages"])
    if messages and messages[0]["role"] in ("system", "developer"):
        _mark_message(messages[0], mark)
    if body.get("tools"):
        body["tools"][-1]["cache_control"] = mark
    for message in reversed(messages):
        if message["role"] not in ("system", "developer") and _mark_message(message, mark):
            return


def _mark_message(message: JsonObject, mark: JsonObject) -> bool:
    content = message["content"]
    if isinstance(content, str) and content:
        message["content"] = [{**_text(content), "cache_control": mark}]
        return True
    texts = [part for part in as_list(content) if "text" in part]
    if texts:
        texts[-1]["cache_control"] = mark
    return bool(texts)
