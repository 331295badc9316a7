"""Requests of Anthropic's Messages: a transcript to the body that one server takes, by its record in ``_compat``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from trio_agent._errors import TranscriptError
from trio_agent._messages import JsonObject, JsonValue, Message, ToolDeclaration
from trio_agent._models import Model, StreamOptions, ThinkingLevel
from trio_agent._transcript import replay
from trio_agent.wire._anthropic_messages import anthropic_messages, mark_last_message
from trio_agent.wire._budget import clamp_to_context
from trio_agent.wire._compat import AnthropicCompat, anthropic_compat
from trio_agent.wire._history import conversation
from trio_agent.wire._ids import CallIdRule
from trio_agent.wire._names import ToolNames
from trio_agent.wire._request import WireRequest, affinity_headers, endpoint, request_headers
from trio_agent.wire._thinking import adjust_for_budget, level_of, thinking_budget

__all__ = ["encode_anthropic"]

_CALL_IDS: Final = CallIdRule(max_length=64, plain=True)
_DEFAULT_MAX_TOKENS: Final = 8192
_MIN_BUDGET: Final = 1024
_MIN_ANSWER_TOKENS: Final = 1024
_INTERLEAVED_THINKING: Final = "interleaved-thinking-2025-05-14"
_FINE_GRAINED_STREAMING: Final = "fine-grained-tool-streaming-2025-05-14"
_EFFORTS: Final = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
_SCHEMA_KEYWORDS: Final = ("additionalProperties", "$defs", "definitions")


def encode_anthropic(model: Model, messages: Sequence[Message], options: StreamOptions) -> WireRequest:
    """The request that asks a model to answer a transcript.

    Args:
        model: who is asked.
        messages: the transcript; its system messages give the prompt and the tools.
        options: of the request, with the key.

    Raises:
        TranscriptError: nothing is left to be sent; servers refuse a request without messages.
        ValueError: the model's ``compat`` is wrong.
    """
    compat = anthropic_compat(model)
    state = replay(messages)
    names = ToolNames(tool.name for tool in state.tools)
    wire_messages = anthropic_messages(
        conversation(messages, model, _CALL_IDS), names, allow_empty_signature=compat.allow_empty_signature
    )
    if not wire_messages:
        raise TranscriptError("there is nothing to send: the transcript has no message with content for the model")
    level = level_of(model, options)
    max_tokens, budget = _limits(model, messages, compat, options, level)
    mark = _cache_mark(compat, options)
    if mark:
        mark_last_message(wire_messages, mark)
    body: JsonObject = {"model": model.id, "messages": wire_messages, "max_tokens": max_tokens, "stream": True}
    if state.system_prompt:
        body["system"] = [_marked({"type": "text", "text": state.system_prompt}, mark)]
    if options.temperature is not None and level == "off" and compat.supports_temperature:
        body["temperature"] = options.temperature
    if state.tools:
        body["tools"] = _tools(state.tools, compat, names, mark)
    body.update(_thinking(model, compat, level, budget))
    user_id = (options.metadata or {}).get("user_id")
    if isinstance(user_id, str):
        body["metadata"] = {"user_id": user_id}
    if options.tool_choice is not None:
        body["tool_choice"] = _tool_choice(options.tool_choice, names)
    defaults = {"anthropic-version": "2023-06-01"}
    betas = _betas(compat, level, has_tools=bool(state.tools))
    if betas:
        defaults["anthropic-beta"] = ",".join(betas)
    affinity = affinity_headers(
        options, send=compat.send_session_affinity_headers, style=compat.session_affinity_format
    )
    return WireRequest(
        url=endpoint(model.base_url.rstrip("/").removesuffix("/v1"), "/v1/messages"),
        headers=request_headers(model, options, compat.api_key_header, defaults, affinity),
        body=body,
        aliases=names.aliases,
    )


def _limits(
    model: Model, messages: Sequence[Message], compat: AnthropicCompat, options: StreamOptions, level: ThinkingLevel
) -> tuple[int, int]:
    """The longest answer, and how much of it is for thinking, where that is a number."""
    wanted = options.max_tokens or model.max_tokens or _DEFAULT_MAX_TOKENS
    limit = clamp_to_context(model, messages, wanted)
    if level == "off" or compat.force_adaptive_thinking:
        return limit, 0
    total, budget = adjust_for_budget(limit, model.max_tokens, thinking_budget(level, options))
    total = clamp_to_context(model, messages, total)
    return total, min(budget, total - _MIN_ANSWER_TOKENS)


def _thinking(model: Model, compat: AnthropicCompat, level: ThinkingLevel, budget: int) -> JsonObject:
    if not model.reasoning:
        return {}
    words = model.thinking_level_map or {}
    if level == "off":
        cannot_be_off = "off" in words and words["off"] is None
        return {} if cannot_be_off else {"thinking": {"type": "disabled"}}
    if compat.force_adaptive_thinking:
        effort = words.get(level) or _EFFORTS[level]
        return {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": effort}}
    if budget < _MIN_BUDGET:
        # The server takes no smaller budget, and the answer has no room for this one.
        return {"thinking": {"type": "disabled"}}
    return {"thinking": {"type": "enabled", "budget_tokens": budget, "display": "summarized"}}


def _cache_mark(compat: AnthropicCompat, options: StreamOptions) -> JsonObject:
    match options.cache_retention:
        case "none":
            return {}
        case "long" if compat.supports_long_cache_retention:
            return {"type": "ephemeral", "ttl": "1h"}
        case _:
            return {"type": "ephemeral"}


def _marked(block: JsonObject, mark: JsonObject) -> JsonObject:
    return {**block, "cache_control": mark} if mark else block


def _tools(
    tools: Sequence[ToolDeclaration], compat: AnthropicCompat, names: ToolNames, mark: JsonObject
) -> list[JsonObject]:
    declared: list[JsonObject] = []
    for tool in tools:
        declaration: JsonObject = {
            "name": names.on_wire(tool.name),
            "description": tool.description,
            "input_schema": _input_schema(tool.parameters),
        }
        if compat.supports_eager_tool_input_streaming:
            declaration["eager_input_streaming"] = True
        if tool.strict and compat.supports_strict_tools:
            declaration["strict"] = True
        declared.append(declaration)
    if compat.supports_cache_control_on_tools:
        declared[-1] = _marked(declared[-1], mark)
    return declared


def _input_schema(parameters: JsonObject) -> JsonObject:
    # Unions and the like are refused at the root of a schema, and so are a few other keywords.
    schema: JsonObject = {
        "type": "object",
        "properties": parameters.get("properties") or {},
        "required": parameters.get("required") or [],
    }
    return schema | {keyword: parameters[keyword] for keyword in _SCHEMA_KEYWORDS if keyword in parameters}


def _tool_choice(choice: JsonValue, names: ToolNames) -> JsonValue:
    # The words and the shape of other APIs are understood, too.
    match choice:
        case "required":
            return {"type": "any"}
        case str():
            return {"type": choice}
        case {"type": "function", "function": {"name": str(name)}} | {"type": "tool", "name": str(name)}:
            return (
                {**choice, "name": names.on_wire(name)}
                if "name" in choice
                else {
                    "type": "tool",
                    "name": names.on_wire(name),
                }
            )
        case _:
            return choice


def _betas(compat: AnthropicCompat, level: ThinkingLevel, *, has_tools: bool) -> list[str]:
    betas: list[str] = []
    if level != "off" and not compat.force_adaptive_thinking:
        betas.append(_INTERLEAVED_THINKING)
    if has_tools and compat.supports_eager_tool_input_streaming is False:
        betas.append(_FINE_GRAINED_STREAMING)
    return betas
