"""Scripted hooks; one without an entry in the scenario is not installed at all."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Literal

import msgspec
import trio

from trio_agent import (
    UNSET,
    BlockToolCall,
    Context,
    Hooks,
    ReplaceArguments,
    RequestDetails,
    RequestUpdate,
    ToolCallDetails,
    ToolResultDetails,
    ToolResultPatch,
    TurnDetails,
    TurnUpdate,
    Usage,
    UserMessage,
)

from .actions import perform
from .scenario import JsonObject
from .stage import Stage
from .values import TIMESTAMP, ScriptedError, keep_last, role_of, roles, to_model, to_result_content

__all__ = ["make_hooks"]


def make_hooks(stage: Stage) -> Hooks:
    scripts: JsonObject = stage.input.get("hooks", {})
    installed = {field: make(stage, scripts[name]) for name, (field, make) in _HOOKS.items() if name in scripts}
    return Hooks(**installed)


class _Rules:
    # The rules of one hook. `play` plays the first one that fits and returns it, or an empty rule. A call is counted
    # before anything else can happen in it.
    def __init__(self, stage: Stage, rules: list[JsonObject]) -> None:
        self._stage = stage
        self._rules = rules
        self._used = [0] * len(rules)
        self._calls = itertools.count(1)

    def next_call(self) -> int:
        return next(self._calls)

    def _fits(self, number: int, known: JsonObject) -> bool:
        rule = self._rules[number]
        if "times" in rule and self._used[number] >= rule["times"]:
            return False
        return all(rule[key] == value for key, value in known.items() if key in rule)

    async def play(self, lane: str, call: int, **known: str) -> JsonObject:
        fitting = (number for number in range(len(self._rules)) if self._fits(number, {"call": call, **known}))
        number = next(fitting, None)
        if number is None:
            return {}
        self._used[number] += 1
        rule = self._rules[number]
        if "sleep" in rule:
            await trio.sleep(rule["sleep"] / 1000)
        await perform(self._stage, rule.get("do", ()), lane)
        if "throw" in rule:
            raise ScriptedError(rule["throw"])
        return rule


def _throw_at(script: JsonObject, call: int) -> None:
    if "throw" in script and script.get("throwAt", call) == call:
        raise ScriptedError(script["throw"])


def _tool_call_fields(stage: Stage, details: ToolCallDetails | ToolResultDetails) -> JsonObject:
    fields: JsonObject = {
        "id": details.tool_call.id,
        "name": details.tool_call.name,
        "args": copy.deepcopy(details.arguments),
    }
    if isinstance(details, ToolResultDetails):
        fields["isError"] = details.is_error
        fields["result"] = stage.recorder.normalise.result(details.result)
    fields["contextRoles"] = roles(details.context.messages)
    if stage.agent is not None:
        fields["stateRoles"] = roles(stage.agent.state.messages)
    return fields


def _before_tool_call(stage: Stage, script: list[JsonObject]) -> Any:
    rules = _Rules(stage, script)

    async def before_tool_call(details: ToolCallDetails) -> BlockToolCall | ReplaceArguments | None:
        await stage.pause()
        call = rules.next_call()
        fields = _tool_call_fields(stage, details)
        stage.recorder.note("main", "hook.beforeToolCall", **fields)
        rule = await rules.play("main", call, id=fields["id"], name=fields["name"])
        decision = rule.get("return") or {}
        if decision.get("block"):
            return BlockToolCall(reason=decision.get("reason"), terminate=decision.get("terminate", False))
        if "setArgs" in rule:
            return ReplaceArguments({**details.arguments, **copy.deepcopy(rule["setArgs"])})
        return None

    return before_tool_call


def _after_tool_call(stage: Stage, script: list[JsonObject]) -> Any:
    rules = _Rules(stage, script)

    async def after_tool_call(details: ToolResultDetails) -> ToolResultPatch | None:
        await stage.pause()
        call = rules.next_call()
        fields = _tool_call_fields(stage, details)
        lane = f"tool:{fields['id']}"
        stage.recorder.note(lane, "hook.afterToolCall", **fields)
        rule = await rules.play(lane, call, id=fields["id"], name=fields["name"])
        changes = rule.get("return")
        return None if changes is None else _patch(changes)

    return after_tool_call


def _patch(changes: JsonObject) -> ToolResultPatch:
    usage = changes.get("usage", UNSET)
    return ToolResultPatch(
        content=to_result_content(changes["content"]) if "content" in changes else UNSET,
        details=changes.get("details", UNSET),
        structured_content=changes.get("structuredContent", UNSET),
        is_error=changes.get("isError", UNSET),
        usage=msgspec.convert(usage, Usage) if isinstance(usage, dict) else usage,
        terminate=changes.get("terminate", UNSET),
    )


def _turn_hook(stage: Stage, what: str, script: list[JsonObject]) -> Callable[[TurnDetails], Awaitable[JsonObject]]:
    rules = _Rules(stage, script)

    async def play(details: TurnDetails) -> JsonObject:
        await stage.pause()
        call = rules.next_call()
        fields = stage.recorder.turn(details.message, details.tool_results, details.context, details.new_messages)
        stage.recorder.note("main", what, call=call, **fields)
        rule = await rules.play("main", call)
        return rule.get("return") or {}

    return play


def _finish_turn(stage: Stage, script: list[JsonObject]) -> Any:
    play = _turn_hook(stage, "hook.finishTurn", script)

    async def finish_turn(details: TurnDetails) -> Literal["end", "continue"] | None:
        action: Literal["end", "continue"] | None = (await play(details)).get("action")
        return action

    return finish_turn


def _prepare_next_turn(stage: Stage, script: list[JsonObject]) -> Any:
    play = _turn_hook(stage, "hook.prepareNextTurn", script)

    async def prepare_next_turn(details: TurnDetails) -> TurnUpdate | None:
        update = await play(details)
        if not update:
            return None
        return TurnUpdate(
            **_update(stage, details.context, update), messages=tuple(stage.messages(update.get("messages", ())))
        )

    return prepare_next_turn


def _prepare_request(stage: Stage, script: list[JsonObject]) -> Any:
    rules = _Rules(stage, script)

    async def prepare_request(details: RequestDetails) -> RequestUpdate | None:
        await stage.pause()
        call = rules.next_call()
        stage.recorder.note(
            "main",
            "hook.prepareRequest",
            call=call,
            contextRoles=roles(details.context.messages),
            model=details.model.id,
            thinkingLevel=details.thinking_level,
        )
        update = (await rules.play("main", call)).get("return")
        return RequestUpdate(**_update(stage, details.context, update)) if update else None

    return prepare_request


def _update(stage: Stage, context: Context, update: JsonObject) -> Any:
    return {
        "context": _new_context(stage, context, update["context"]) if "context" in update else UNSET,
        "model": to_model(update["model"]) if "model" in update else UNSET,
        "thinking_level": update.get("thinkingLevel", UNSET),
    }


def _new_context(stage: Stage, context: Context, change: JsonObject) -> Context:
    messages: Sequence[Any] = context.messages
    if "messages" in change:
        messages = stage.messages(change["messages"])
    elif "keepLast" in change:
        messages = keep_last(messages, change["keepLast"])
    return Context(messages=messages, tools=stage.tools_of(change["tools"]) if "tools" in change else context.tools)


def _transform_context(stage: Stage, script: JsonObject) -> Any:
    calls = itertools.count(1)

    async def transform_context(messages: Sequence[Any]) -> list[Any]:
        await stage.pause()
        call = next(calls)
        stage.recorder.note("main", "hook.transformContext", call=call, roles=roles(messages))
        if "sleep" in script:
            await trio.sleep(script["sleep"] / 1000)
        _throw_at(script, call)
        kept = keep_last(messages, script["keepLast"]) if "keepLast" in script else list(messages)
        return kept + stage.messages(script.get("append", ()))

    return transform_context


def _convert_to_llm(stage: Stage, script: JsonObject) -> Any:
    calls = itertools.count(1)

    def convert_to_llm(messages: Sequence[Any]) -> list[Any]:
        call = next(calls)
        stage.recorder.note("main", "hook.convertToLlm", roles=roles(messages))
        _throw_at(script, call)
        return [
            _as_user(message) if role_of(message) in script.get("toUser", ()) else message
            for message in messages
            if role_of(message) not in script.get("drop", ())
        ]

    return convert_to_llm


def _as_user(message: Any) -> UserMessage:
    text = getattr(message, "text", None)
    if text is None:
        text = message.content
    return UserMessage(content=f"[{role_of(message)}] {text}", timestamp=TIMESTAMP)


def _get_api_key(stage: Stage, script: JsonObject) -> Any:
    calls = itertools.count(1)
    keys: list[str | None] = script["keys"]

    async def get_api_key(provider: str) -> str | None:
        await stage.pause()
        call = next(calls)
        key = keys[min(call, len(keys)) - 1]
        stage.recorder.note("main", "hook.getApiKey", call=call, provider=provider, key=key)
        return key

    return get_api_key


def _message_source(what: str, stage: Stage, script: JsonObject) -> Any:
    calls = itertools.count(1)

    async def source() -> list[Any]:
        await stage.pause()
        call = next(calls)
        polls = script.get("polls", [])
        messages = stage.messages(polls[call - 1]) if call <= len(polls) else []
        stage.recorder.note("main", what, call=call, returned=len(messages))
        _throw_at(script, call)
        return messages

    return source


_HOOKS: dict[str, tuple[str, Callable[[Stage, Any], Any]]] = {
    "beforeToolCall": ("before_tool_call", _before_tool_call),
    "afterToolCall": ("after_tool_call", _after_tool_call),
    "finishTurn": ("finish_turn", _finish_turn),
    "prepareNextTurn": ("prepare_next_turn", _prepare_next_turn),
    "prepareRequest": ("prepare_request", _prepare_request),
    "transformContext": ("transform_context", _transform_context),
    "convertToLlm": ("convert_to_llm", _convert_to_llm),
    "getApiKey": ("get_api_key", _get_api_key),
    "getSteeringMessages": ("get_steering_messages", partial(_message_source, "hook.getSteeringMessages")),
    "getFollowUpMessages": ("get_follow_up_messages", partial(_message_source, "hook.getFollowUpMessages")),
}
