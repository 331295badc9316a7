"""Rules of the loop for requests: declarations of tools, the hooks before a request, and hooks that fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from loop_kit import outline, plain_tool, play, short, shorts, user

from trio_agent import (
    AgentMessage,
    AssistantMessage,
    Context,
    Hooks,
    RequestDetails,
    RequestUpdate,
    StreamOptions,
    SystemMessage,
)
from trio_agent.lowlevel import LoopConfig, run_agent_loop
from trio_agent.testing import Answer, ScriptedModel, check_transcript, tool_call


async def test_tools_that_are_declared_already_are_not_declared_again() -> None:
    work = plain_tool("work")
    head = SystemMessage(content="Be brief.", timestamp=0, tools_added=(work.declaration,))

    seen = await play(["Done."], context=Context((head,), (work,)))

    assert seen.transcript == ["user: go", "assistant[stop]: Done."]


async def test_a_redefined_tool_is_removed_and_added() -> None:
    head = SystemMessage(content="", timestamp=0, tools_added=(plain_tool("work").declaration,))

    seen = await play(["Done."], context=Context((head,), (plain_tool("work", description="new"),)))

    assert seen.transcript[0] == "system: +work -work"
    assert seen.scripted.requests[0].tools[0].description == "new"


async def test_the_difference_joins_a_system_message_among_the_prompts() -> None:
    seen = await play(
        ["Done."],
        prompts=[user("go"), SystemMessage(content="Be brief.", timestamp=0)],
        context=Context((), (plain_tool("work"),)),
    )

    assert seen.transcript == ["user: go", "system: Be brief. +work", "assistant[stop]: Done."]


async def test_tools_changed_by_prepare_request_are_declared_in_that_request() -> None:
    late = plain_tool("late")

    async def prepare_request(details: RequestDetails) -> RequestUpdate | None:
        return None if details.context.tools else RequestUpdate(context=Context(details.context.messages, (late,)))

    seen = await play([Answer(calls=[tool_call("late", "c1")]), "Done."], hooks=Hooks(prepare_request=prepare_request))

    assert [tool.name for tool in seen.scripted.requests[0].tools] == ["late"]
    assert seen.transcript == [
        "user: go",
        "system: +late",
        "assistant[toolUse]: late(c1)",
        "result c1: ok",
        "assistant[stop]: Done.",
    ]


async def test_what_hooks_change_holds_for_the_rest_of_the_run() -> None:
    other = ScriptedModel().model
    updates = iter([RequestUpdate(model=other, thinking_level="high"), None])

    async def prepare_request(_details: RequestDetails) -> RequestUpdate | None:
        return next(updates)

    seen = await play(
        [Answer(calls=[tool_call("work", "c1")]), "Done."],
        tools=[plain_tool("work")],
        hooks=Hooks(prepare_request=prepare_request),
    )

    assert [(r.model is other, r.options.reasoning) for r in seen.scripted.requests] == [(True, "high")] * 2
    assert [m.thinking_level for m in seen.messages if isinstance(m, AssistantMessage)] == ["high", "high"]


# -- the hooks of a request --------------------------------------------------------------------------------------------


async def test_a_key_from_the_hook_goes_into_the_request_and_none_leaves_the_options() -> None:
    keys = iter(["first", None])
    providers: list[str] = []

    async def get_api_key(provider: str) -> str | None:
        providers.append(provider)
        return next(keys)

    seen = await play(
        [Answer(calls=[tool_call("work", "c1")]), "Done."],
        tools=[plain_tool("work")],
        hooks=Hooks(get_api_key=get_api_key),
        options=StreamOptions(api_key="fixed"),
    )

    assert [request.options.api_key for request in seen.scripted.requests] == ["first", "fixed"]
    assert providers == ["scripted", "scripted"]


async def test_transform_context_changes_the_request_and_not_the_transcript() -> None:
    async def transform_context(messages: Sequence[AgentMessage]) -> Sequence[AgentMessage]:
        return [*messages, user("by the way")]

    seen = await play(["Done."], hooks=Hooks(transform_context=transform_context))

    assert seen.requests == [["user: go", "user: by the way"]]
    assert seen.transcript == ["user: go", "assistant[stop]: Done."]


# -- failing hooks -----------------------------------------------------------------------------------------------------


class HookError(Exception):
    """Of a hook in a test."""


async def _raise(*_details: object) -> Any:
    raise HookError("here")


def _raise_plainly(*_details: object) -> Any:
    raise HookError("here")


@pytest.mark.parametrize(
    ("hooks", "closing", "transcript"),
    [
        (Hooks(transform_context=_raise), ["turn_end None 0", "agent_end 2"], ["system: +work", "user: go"]),
        (Hooks(convert_to_llm=_raise_plainly), ["turn_end None 0", "agent_end 2"], ["system: +work", "user: go"]),
        (Hooks(get_api_key=_raise), ["turn_end None 0", "agent_end 2"], ["system: +work", "user: go"]),
        (Hooks(prepare_request=_raise), ["turn_end None 0", "agent_end 2"], ["system: +work", "user: go"]),
        (Hooks(get_steering_messages=_raise), ["turn_end None 0", "agent_end 2"], ["system: +work", "user: go"]),
        (
            Hooks(finish_turn=_raise),
            ["turn_end toolUse 1", "agent_end 4"],
            ["system: +work", "user: go", "assistant[toolUse]: work(c1)", "result c1: ok"],
        ),
        (
            Hooks(should_stop_after_turn=_raise),
            ["turn_end toolUse 1", "agent_end 4"],
            ["system: +work", "user: go", "assistant[toolUse]: work(c1)", "result c1: ok"],
        ),
        (
            Hooks(prepare_next_turn=_raise),
            ["turn_end toolUse 1", "agent_end 4"],
            ["system: +work", "user: go", "assistant[toolUse]: work(c1)", "result c1: ok"],
        ),
    ],
    ids=lambda value: next((n for n in Hooks.__slots__ if getattr(value, n)), "") if isinstance(value, Hooks) else "",
)
async def test_a_failing_hook_ends_the_run_bare_after_the_transcript_was_closed(
    hooks: Hooks, closing: list[str], transcript: list[str]
) -> None:
    scripted = ScriptedModel([Answer(calls=[tool_call("work", "c1")])])
    events: list[Any] = []

    with pytest.raises(HookError, match="here"):
        await run_agent_loop(
            [user("go")],
            Context((), (plain_tool("work"),)),
            LoopConfig(model=scripted.model, hooks=hooks),
            events.append,
            scripted,
        )

    assert outline(events)[-2:] == closing
    assert shorts(events[-1].messages) == transcript
    check_transcript(events[-1].messages)


async def test_convert_to_llm_sees_what_transform_context_gave_and_decides_what_is_sent() -> None:
    async def transform_context(messages: Sequence[AgentMessage]) -> Sequence[AgentMessage]:
        return [*messages, user("added")]

    def convert_to_llm(messages: Sequence[AgentMessage]) -> list[Any]:
        return [user(text) for message in messages for text in [short(message).upper()]]

    seen = await play(["Done."], hooks=Hooks(transform_context=transform_context, convert_to_llm=convert_to_llm))

    assert seen.requests == [["user: USER: GO", "user: USER: ADDED"]]
