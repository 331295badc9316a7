"""Requests of Chat Completions: a transcript to the body that one server takes, by its record in ``_compat``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trio_agent._messages import JsonObject, JsonValue, Message, ToolDeclaration
from trio_agent._models import Model, StreamOptions
from trio_agent._transcript import replay
from trio_agent.wire._budget import clamp_to_context
from trio_agent.wire._compat import CompletionsCompat, completions_compat
from trio_agent.wire._history import conversation
from trio_agent.wire._names import ToolNames
from trio_agent.wire._openai_completions_messages import completions_messages, mark_for_cache
from trio_agent.wire._request import WireRequest, affinity_headers, endpoint, request_headers
from trio_agent.wire._thinking import level_of, thinking_budget, word_for

__all__ = ["encode_completions"]

_CACHE_KEY_LENGTH = 64
_MIN_ANSWER_TOKENS = 1024


def encode_completions(model: Model, messages: Sequence[Message], options: StreamOptions) -> WireRequest:
    """The request that asks a model to answer a transcript.

    Args:
        model: who is asked.
        messages: the transcript; its system messages give the prompt and the tools.
        options: of the request, with the key.

    Raises:
        ValueError: the model's ``compat`` is wrong.
    """
    compat = completions_compat(model)
    state = replay(messages)
    names = ToolNames(tool.name for tool in state.tools)
    body: JsonObject = {"model": model.id, "messages": [], "stream": True}
    wire_messages = completions_messages(conversation(messages, model, compat.call_ids), model, compat, names)
    if state.system_prompt:
        role = "developer" if model.reasoning and compat.supports_developer_role else "system"
        wire_messages.insert(0, {"role": role, "content": state.system_prompt})
    body["messages"] = wire_messages
    _add_cache_hints(body, model, compat, options)
    if compat.supports_usage_in_streaming:
        body["stream_options"] = {"include_usage": True}
    if compat.supports_store:
        body["store"] = False
    wanted = options.max_tokens or model.max_tokens
    limit = clamp_to_context(model, messages, wanted) if wanted else 0
    if limit:
        body[compat.max_tokens_field] = limit
    if options.temperature is not None:
        body["temperature"] = options.temperature
    _add_tools(body, state.tools, compat, names)
    if options.tool_choice is not None:
        body["tool_choice"] = _tool_choice(options.tool_choice, names)
    _add_thinking(body, model, compat, options, limit or model.max_tokens)
    if compat.vllm_priority is not None:
        body["priority"] = compat.vllm_priority
    if compat.cache_control_format and options.cache_retention != "none":
        mark_for_cache(body, long=options.cache_retention == "long" and compat.supports_long_cache_retention)
    by_level = (model.sampling_params_by_thinking_level or {}).get(level_of(model, options))
    for params in (model.sampling_params, by_level, options.sampling_params):
        body.update(params or {})
    affinity = affinity_headers(
        options, send=compat.send_session_affinity_headers, style=compat.session_affinity_format
    )
    return WireRequest(
        url=endpoint(model.base_url, "/chat/completions"),
        headers=request_headers(model, options, compat.api_key_header, {}, affinity),
        body=body,
        aliases=names.aliases,
    )


def _add_cache_hints(body: JsonObject, model: Model, compat: CompletionsCompat, options: StreamOptions) -> None:
    retention = options.cache_retention or "short"
    if retention == "none" or compat.prompt_cache_key_mode == "disabled":
        return
    long = retention == "long" and compat.supports_long_cache_retention
    wanted = compat.prompt_cache_key_mode == "enabled" or long or "api.openai.com" in model.base_url
    if options.session_id and wanted:
        body["prompt_cache_key"] = options.session_id[:_CACHE_KEY_LENGTH]
    if long:
        body["prompt_cache_retention"] = "24h"


def _add_tools(body: JsonObject, tools: Sequence[ToolDeclaration], compat: CompletionsCompat, names: ToolNames) -> None:
    declared: list[JsonObject] = []
    for tool in tools:
        function: JsonObject = {
            "name": names.on_wire(tool.name),
            "description": tool.description,
            "parameters": tool.parameters,
        }
        if compat.supports_strict_mode:
            function["strict"] = tool.strict
        declared.append({"type": "function", "function": function})
    has_calls = any("tool_calls" in message or message["role"] == "tool" for message in body["messages"])
    if declared or (has_calls and compat.requires_tools_with_tool_history):
        body["tools"] = declared
    if declared and compat.zai_tool_stream:
        body["tool_stream"] = True


def _tool_choice(choice: JsonValue, names: ToolNames) -> JsonValue:
    # The words and the shape of other APIs are understood, too.
    match choice:
        case "any":
            return "required"
        case {"type": "tool", "name": str(name)} | {"type": "function", "function": {"name": str(name)}}:
            return {"type": "function", "function": {"name": names.on_wire(name)}}
        case _:
            return choice


def _add_thinking(
    body: JsonObject, model: Model, compat: CompletionsCompat, options: StreamOptions, ceiling: int
) -> None:
    if not model.reasoning:
        return
    level = level_of(model, options)
    on = level != "off"
    body.update(_thinking_fields(model, compat, word_for(model, level), on=on))
    if on and compat.thinking_token_budget_field:
        budget = min(thinking_budget(level, options), ceiling - _MIN_ANSWER_TOKENS)
        if budget > 0:
            body[compat.thinking_token_budget_field] = budget


def _thinking_fields(model: Model, compat: CompletionsCompat, word: str, *, on: bool) -> dict[str, Any]:
    words = model.thinking_level_map or {}
    off_word = words.get("off")
    can_be_off = not ("off" in words and off_word is None)
    effort = {"reasoning_effort": word} if on and compat.supports_reasoning_effort else {}
    switch = {"type": "enabled" if on else "disabled"}
    match compat.thinking_format:
        case "openai":
            if on:
                return effort
            return {"reasoning_effort": off_word} if off_word else {}
        case "openrouter":
            if on:
                return {"reasoning": {"effort": word}}
            return {"reasoning": {"effort": off_word or "none"}} if can_be_off else {}
        case "deepseek":
            return {"thinking": switch, **effort} if on or can_be_off else {}
        case "together":
            return {"reasoning": {"enabled": on}, **effort}
        case "zai":
            return {"thinking": {**switch, "clear_thinking": False} if on else switch, **effort}
        case "qwen":
            return {"enable_thinking": on, **effort}
        case "qwen-chat-template":
            return {"chat_template_kwargs": {"enable_thinking": on, "preserve_thinking": True}}
        case _:
            return {}
