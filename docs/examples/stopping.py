"""Four ways to stop: abort, leave the block, cancel one call, and Trio's own cancellation.

Prints::

    aborted: aborted, "One two "
    left: aborted, "One two "
    one call cancelled: error 'Tool "wait" was cancelled', then stop
    cancelled from outside: error 'Operation aborted', then valid
"""

import trio

from trio_agent import Agent, MessageUpdate, ToolExecutionStart, ToolResultMessage, tool
from trio_agent.testing import Answer, ScriptedModel, check_transcript, tool_call

LONG = Answer(text="One two three four", chunk_size=4)
CALL = Answer(calls=[tool_call("wait", "call_1")])


@tool
async def wait() -> None:
    """Wait for somebody who never comes."""
    await trio.sleep_forever()


def agent_with(*answers: str | Answer) -> Agent:
    scripted = ScriptedModel(answers)
    return Agent(scripted.model, tools=[wait], stream_fn=scripted)


def result_of(agent: Agent) -> str:
    message = next(message for message in agent.messages if isinstance(message, ToolResultMessage))
    return f"{'error' if message.is_error else 'result'} {message.text!r}"


async def main() -> None:
    agent = agent_with(LONG)
    async with agent.run("Count.") as run:
        async for event in run:
            if isinstance(event, MessageUpdate) and event.message.text == "One two ":
                run.abort()
    print(f'aborted: {run.result.stop_reason}, "{run.result.text}"')

    agent = agent_with(LONG)
    async with agent.run("Count.") as run:
        async for event in run:
            if isinstance(event, MessageUpdate) and event.message.text == "One two ":
                break
    print(f'left: {run.result.stop_reason}, "{run.result.text}"')

    agent = agent_with(CALL, "Nobody came.")
    async with agent.run("Wait.") as run:
        async for event in run:
            if isinstance(event, ToolExecutionStart):
                run.cancel_tool(event.tool_call_id)
    print(f"one call cancelled: {result_of(agent)}, then {run.result.stop_reason}")

    agent = agent_with(CALL)
    with trio.move_on_after(0.01):
        await agent.prompt("Wait.")
    check_transcript(agent.messages)
    print(f"cancelled from outside: {result_of(agent)}, then valid")


trio.run(main)
