"""One of three calls is cancelled; the others finish, and the model is told of all three.

Prints::

    a: done
    b: Tool "fetch" was cancelled
    c: done
    model: Two of three pages were read.
"""

import trio
import trio.testing

from trio_agent import Agent, ToolExecutionStart, ToolResultMessage, tool
from trio_agent.testing import Answer, ScriptedModel, tool_call


@tool
async def fetch(page: str) -> str:
    """Fetch a page; one of them never comes."""
    await trio.sleep(1 if page != "b" else 1000)
    return "done"


async def main() -> None:
    calls = [tool_call("fetch", page, page=page) for page in "abc"]
    model = ScriptedModel([Answer(calls=calls), "Two of three pages were read."])
    agent = Agent(model.model, tools=[fetch], stream_fn=model)

    async with trio.open_nursery() as nursery, agent.run("Read a, b and c.") as run:

        async def give_up() -> None:
            await trio.sleep(5)
            run.cancel_tool("b")

        async for event in run:
            if isinstance(event, ToolExecutionStart) and event.tool_call_id == "b":
                nursery.start_soon(give_up)

    for message in run.result.messages:
        if isinstance(message, ToolResultMessage):
            print(f"{message.tool_call_id}: {message.text}")
    print(f"model: {run.result.text}")


trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
