"""Scripted tools, and nested calls of tools."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import trio

from trio_agent import AssistantMessage, Context, Hooks, Tool, ToolCall, ToolContext, ToolOutcome, ToolResult, Usage
from trio_agent.lowlevel import AbortHandle, LoopConfig, run_tool_call

from .actions import perform
from .scenario import JsonObject
from .stage import Stage
from .values import TIMESTAMP, ScriptedError, to_result, tool_declaration

__all__ = ["make_tool", "nested_call"]


def make_tool(stage: Stage, key: str) -> Tool:
    """The tool with this key; its calls play their script."""
    script: JsonObject = stage.definitions[key]
    declaration = tool_declaration(key, script)

    async def execute(arguments: JsonObject, ctx: ToolContext) -> ToolResult:
        return await _Call(stage, script, declaration["name"], arguments, ctx).play()

    return Tool(
        name=declaration["name"],
        description=declaration["description"],
        parameters=declaration["parameters"],
        label=script.get("label", declaration["name"]),
        execute=execute,
        execution_mode=script.get("executionMode"),
        prepare_arguments=_preparation(stage, declaration["name"], script.get("prepareArguments")),
    )


def _preparation(stage: Stage, name: str, script: JsonObject | None) -> Callable[[JsonObject], JsonObject] | None:
    if script is None:
        return None

    def prepare(raw: JsonObject) -> JsonObject:
        stage.recorder.note("main", "prepareArguments", name=name, args=copy.deepcopy(raw))
        if "throw" in script:
            raise ScriptedError(script["throw"])
        renamed = script.get("rename", {})
        return {**{renamed.get(key, key): value for key, value in raw.items()}, **script.get("set", {})}

    return prepare


class _Call:
    # One call of a scripted tool.
    def __init__(self, stage: Stage, script: JsonObject, name: str, arguments: JsonObject, ctx: ToolContext) -> None:
        self._stage = stage
        self._script = script
        self._name = name
        self._arguments = arguments
        self._ctx = ctx
        self._id = ctx.tool_call_id
        self._lane = f"tool:{self._id}"
        self._nested: list[JsonObject] = []

    def _note(self, what: str, **fields: Any) -> None:
        self._stage.recorder.note(self._lane, what, id=self._id, **fields)

    async def play(self) -> ToolResult:
        self._note("tool.start", name=self._name, args=copy.deepcopy(self._arguments))
        outcome = "throw"
        try:
            result = await self._shielded_steps() if self._script.get("shield") else await self._steps()
            outcome = "return"
        finally:
            self._note("tool.end", name=self._name, outcome=outcome)
        return result

    async def _shielded_steps(self) -> ToolResult:
        with trio.CancelScope(shield=True):
            return await self._steps()
        raise AssertionError("nobody cancels this scope")

    async def _steps(self) -> ToolResult:
        await self._stage.pause()
        steps = self._script.get("scripts", {}).get(self._id, self._script.get("script", ()))
        for step in steps:
            [(kind, value)] = step.items()
            if kind == "return":
                return self._result(value)
            if kind == "throw":
                raise ScriptedError(value)
            if kind in ("setArgs", "log", "lateUpdate"):
                self._at_once(kind, value)
            else:
                await self._step(kind, value)
        return self._result({"text": f"{self._name} ok"})

    def _result(self, value: JsonObject) -> ToolResult:
        return to_result(value, self._arguments, self._nested)

    def _at_once(self, kind: str, value: Any) -> None:
        if kind == "setArgs":
            self._arguments.update(copy.deepcopy(value))
        elif kind == "log":
            self._note("tool.log", text=value)
        else:
            self._stage.background.start_soon(self._late_update, value)

    async def _step(self, kind: str, value: Any) -> None:
        match kind:
            case "sleep":
                await trio.sleep(value / 1000)
            case "waitAbort":
                await trio.sleep_forever()
            case "checkpoint":
                await trio.lowlevel.checkpoint()
            case "update":
                await self._ctx.update(self._result(value))
            case "do":
                await perform(self._stage, value, self._lane)
            case "nested":
                self._nested.append(await nested_call(self._stage, self._lane, value, self._ctx))
            case _:
                raise ValueError(f"unknown step of a tool: {kind}")

    async def _late_update(self, late: JsonObject) -> None:
        await trio.sleep(late["after"] / 1000)
        self._stage.recorder.note(f"{self._lane}:late", "tool.lateUpdate", id=self._id)
        await self._ctx.update(self._result(late["update"]))


async def nested_call(stage: Stage, lane: str, call: JsonObject, ctx: ToolContext | None) -> JsonObject:
    """Run one call without events and messages, and log its outcome.

    A call out of a running tool takes the way of a tool, unless it wants what only the low-level function can do:
    other tools, no hooks, or a run that is aborted.

    Args:
        lane: of whoever calls.
        call: of the scenario.
        ctx: of the tool that calls; ``None`` for a call outside any run.
    """

    async def on_update(partial: ToolResult) -> None:
        shown = stage.recorder.normalise.result(partial)
        stage.recorder.note(lane, "nested.update", id=call["id"], partialResult=shown)

    listener = on_update if call.get("updates") else None
    special = call.get("hooks") is False or "tools" in call or call.get("aborted")
    if ctx is None or special:
        outcome = await _low_level_call(stage, call, listener)
    else:
        outcome = await ctx.call_tool(call["name"], call.get("args", {}), call_id=call["id"], on_update=listener)
    shown: JsonObject = {
        "id": call["id"],
        "result": stage.recorder.normalise.result(outcome.result),
        "isError": outcome.is_error,
    }
    if outcome.duration_ms is not None:
        shown["durationMs"] = "*"
    stage.recorder.note(lane, "nested.outcome", **shown)
    return shown


async def _low_level_call(stage: Stage, call: JsonObject, on_update: Any) -> ToolOutcome:
    context = stage.context()
    if "tools" in call:
        context = Context(messages=context.messages, tools=stage.tools_of(call["tools"]))
    abort = AbortHandle()
    if call.get("aborted"):
        abort.abort()
    return await run_tool_call(
        ToolCall(id=call["id"], name=call["name"], arguments=copy.deepcopy(call.get("args", {}))),
        context,
        LoopConfig(model=stage.model, hooks=Hooks() if call.get("hooks") is False else stage.hooks),
        assistant_message=stage.last_answer() or _no_answer(stage),
        on_update=on_update,
        abort=abort,
    )


def _no_answer(stage: Stage) -> AssistantMessage:
    model = stage.model
    return AssistantMessage(
        content=(),
        api=model.api,
        provider=model.provider,
        model=model.id,
        usage=Usage.zero(),
        stop_reason="stop",
        timestamp=TIMESTAMP,
    )
