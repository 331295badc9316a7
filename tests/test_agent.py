"""The agent: prompts, going on without one, one run at a time, and reset."""

from __future__ import annotations

import pytest
import trio
from loop_kit import assistant, plain_tool, scripted_agent, shorts, spoken, user

from trio_agent import (
    AgentBusyError,
    AgentEvent,
    DeadlockError,
    ImageContent,
    ModelError,
    SystemMessage,
    TextContent,
    TranscriptError,
    TurnEnd,
    UserMessage,
)
from trio_agent.testing import Answer, Gate, tool_call


async def test_a_text_becomes_a_user_message_with_one_text_block() -> None:
    agent, _ = scripted_agent("Hello.")

    await agent.prompt("Hi")

    first = agent.messages[0]
    assert isinstance(first, UserMessage)
    assert first.content == (TextContent(text="Hi"),)


async def test_images_go_after_the_text_in_the_same_message() -> None:
    agent, _ = scripted_agent("A cat.")
    image = ImageContent(data="aGk=", mime_type="image/png")

    await agent.prompt("What is this?", images=[image])

    first = agent.messages[0]
    assert isinstance(first, UserMessage)
    assert first.content == (TextContent(text="What is this?"), image)


async def test_a_message_is_taken_as_it_is() -> None:
    agent, _ = scripted_agent("Hello.")
    message = user("Hi")

    await agent.prompt(message)

    assert agent.messages[0] is message


async def test_messages_are_taken_in_order_and_answered_once() -> None:
    agent, _ = scripted_agent("Hello both.")

    result = await agent.prompt([user("I am A"), user("I am B")])

    assert shorts(result.messages) == ["user: I am A", "user: I am B", "assistant[stop]: Hello both."]


async def test_a_tuple_of_messages_is_a_prompt_too() -> None:
    agent, _ = scripted_agent("Hello.")

    await agent.prompt((user("a"), user("b")))

    assert spoken(agent)[:2] == ["user: a", "user: b"]


async def test_an_empty_prompt_is_refused_and_names_the_way_to_continue() -> None:
    agent, _ = scripted_agent()

    with pytest.raises(ValueError, match=r"continue_\(\)"):
        await agent.prompt([])

    assert not agent.is_running


async def test_images_with_messages_are_refused() -> None:
    agent, _ = scripted_agent()

    with pytest.raises(ValueError, match="images go with a text"):
        await agent.prompt(user("x"), images=[ImageContent(data="", mime_type="image/png")])


async def test_the_system_prompt_and_the_tools_lead_the_transcript() -> None:
    agent, scripted = scripted_agent("Hello.", system_prompt="Be brief.", tools=[plain_tool("work")])

    await agent.prompt("Hi")

    assert shorts(agent.messages)[0] == "system: Be brief. +work"
    assert scripted.requests[0].system_prompt == agent.state.system_prompt == "Be brief."
    assert [tool.name for tool in scripted.requests[0].tools] == ["work"]


async def test_an_earlier_transcript_that_begins_with_a_system_message_keeps_it() -> None:
    agent, _ = scripted_agent(
        "Hello.", system_prompt="ignored", messages=[SystemMessage(content="kept", timestamp=0), user("Hi")]
    )

    assert agent.state.system_prompt == "kept"


# -- continuing --------------------------------------------------------------------------------------------------------


async def test_continue_answers_a_user_message_at_the_tail_without_another_prompt() -> None:
    agent, _ = scripted_agent("Hello.", messages=[user("Hi")])

    result = await agent.continue_()

    assert shorts(result.messages) == ["assistant[stop]: Hello."]


async def test_a_run_without_a_prompt_continues() -> None:
    agent, _ = scripted_agent("Hello.", messages=[user("Hi")])

    async with agent.run() as run:
        async for _event in run:
            pass

    assert run.result.text == "Hello."


async def test_continue_from_an_answer_takes_steering_before_follow_ups() -> None:
    agent, _ = scripted_agent("One.", "Two.", messages=[user("Hi"), assistant("Hello.")])
    agent.follow_up("F")
    agent.steer("S")

    result = await agent.continue_()

    assert shorts(result.messages) == ["user: S", "assistant[stop]: One.", "user: F", "assistant[stop]: Two."]


async def test_continue_from_an_answer_with_empty_queues_is_refused_at_once() -> None:
    agent, scripted = scripted_agent(messages=[user("Hi"), assistant("Hello.")])

    with pytest.raises(TranscriptError, match="prompt the agent, or steer it first"):
        await agent.continue_()

    assert not agent.is_running
    assert scripted.requests == []


@pytest.mark.parametrize("messages", [(), (SystemMessage(content="Be brief.", timestamp=0),)])
async def test_continue_without_anything_said_is_refused(messages: tuple[SystemMessage, ...]) -> None:
    agent, _ = scripted_agent(messages=messages)

    with pytest.raises(TranscriptError, match="no message to answer"):
        await agent.continue_()


# -- one run at a time -------------------------------------------------------------------------------------------------


async def test_a_second_run_on_a_busy_agent_raises_at_once_and_leaves_the_first_alone() -> None:
    gate = Gate()
    agent, _ = scripted_agent(Answer(calls=[tool_call("gate", "c1")]), "Done.", tools=[gate.tool])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent.prompt, "first")
        await gate.wait_entered()
        with pytest.raises(AgentBusyError, match=r"steer\(\) or follow_up\(\)"):
            await agent.prompt("second")
        with pytest.raises(AgentBusyError):
            await agent.continue_()
        with pytest.raises(AgentBusyError):
            async with agent.run("third"):
                pass
        with pytest.raises(AgentBusyError, match=r"abort\(\) and wait_idle\(\)"):
            agent.reset()
        with pytest.raises(AgentBusyError, match=r"steer\(\) brings a message in"):
            agent.messages = []
        gate.open()

    assert spoken(agent) == ["user: first", "assistant[toolUse]: gate(c1)", "result c1: open", "assistant[stop]: Done."]


async def test_an_agent_is_busy_until_its_last_handler_has_returned() -> None:
    agent, _ = scripted_agent("Done.")
    running: list[bool] = []
    agent.subscribe(lambda _event: running.append(agent.is_running))

    await agent.prompt("go")

    assert set(running) == {True}
    assert not agent.is_running


@pytest.mark.parametrize("wait", ["prompt", "continue_", "wait_idle"])
async def test_a_listener_that_waits_for_the_run_gets_an_error_instead_of_a_deadlock(wait: str) -> None:
    agent, _ = scripted_agent("Done.")
    errors: list[type[BaseException]] = []

    async def listener(event: AgentEvent) -> None:
        if isinstance(event, TurnEnd):
            arguments = ["again"] if wait == "prompt" else []
            try:
                await getattr(agent, wait)(*arguments)
            except AgentBusyError as exc:
                errors.append(type(exc))

    agent.subscribe(listener)
    await agent.prompt("go")

    assert errors == [DeadlockError if wait == "wait_idle" else AgentBusyError]


async def test_wait_idle_returns_when_the_run_is_over() -> None:
    gate = Gate()
    agent, _ = scripted_agent(Answer(calls=[tool_call("gate", "c1")]), "Done.", tools=[gate.tool])
    await agent.wait_idle()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent.prompt, "go")
        await gate.wait_entered()
        gate.open()
        await agent.wait_idle()

        assert spoken(agent)[-1] == "assistant[stop]: Done."


# -- reset -------------------------------------------------------------------------------------------------------------


async def test_reset_keeps_the_prompt_and_the_declarations_and_forgets_the_rest() -> None:
    agent, scripted = scripted_agent(
        Answer(fail=ModelError("down")), "Fresh.", system_prompt="Be brief.", tools=[plain_tool("work")]
    )
    await agent.prompt("go")
    agent.steer("s")
    agent.follow_up("f")

    agent.reset()

    assert shorts(agent.messages) == ["system: Be brief. +work"]
    assert agent.queued() == ()
    assert agent.state.error_message is None

    await agent.prompt("hello")
    assert spoken(agent) == ["user: hello", "assistant[stop]: Fresh."]
    assert len(scripted.requests[-1].messages) == 2


def test_reset_of_an_agent_without_prompt_and_tools_leaves_nothing() -> None:
    agent, _ = scripted_agent(messages=[user("a"), assistant("b")])

    agent.reset()

    assert list(agent.messages) == []
