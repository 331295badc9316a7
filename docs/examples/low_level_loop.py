"""The loop without an agent: the caller keeps the transcript and takes the events.

Prints::

    agent_start
    turn_start
    tool_execution_start
    tool_execution_end
    turn_end
    turn_start
    turn_end
    agent_end
    5 messages, the last one: It is noon.
    one call alone: noon
"""

from collections.abc import Sequence

import msgspec
import trio

from trio_agent import (
    AgentEvent,
    AgentMessage,
    AssistantMessage,
    Context,
    Hooks,
    TextContent,
    UserMessage,
    tool,
)
from trio_agent.lowlevel import LoopConfig, run_agent_loop, run_tool_call
from trio_agent.testing import Answer, ScriptedModel, tool_call


@tool
async def clock() -> str:
    """Tell the time."""
    return "noon"


async def show(event: AgentEvent) -> None:
    """The sink: awaited for each event, and the loop stands until it returns."""
    name = msgspec.to_builtins(event)["type"]
    if not name.startswith("message"):
        print(name)


async def no_steering() -> Sequence[AgentMessage]:
    """Without an agent there are no queues; hooks are asked in their place."""
    return ()


async def main() -> None:
    scripted = ScriptedModel([Answer(calls=[tool_call("clock")]), "It is noon."])
    config = LoopConfig(model=scripted.model, hooks=Hooks(get_steering_messages=no_steering))
    context = Context(messages=[], tools=[clock])

    added = await run_agent_loop([UserMessage.from_text("How late is it?")], context, config, show, scripted)

    last = added[-1]
    assert isinstance(last, AssistantMessage)
    assert context.messages == []
    print(f"{len(added)} messages, the last one: {last.text}")

    outcome = await run_tool_call(tool_call("clock", "call_1"), context, config)
    print("one call alone:", *[block.text for block in outcome.result.content if isinstance(block, TextContent)])


trio.run(main)
