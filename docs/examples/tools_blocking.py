"""Blocking functions as tools: in worker threads, with progress, a deadline and a way to stop.

Prints::

    counting: half
    counted 2 chapters of 2
    'patience' timed out and was told to stop
"""

import threading

import trio

from trio_agent import Agent, TextContent, ToolContext, ToolExecutionUpdate, ToolResult, ToolResultMessage, tool
from trio_agent.testing import Answer, ScriptedModel, tool_call

stopped = threading.Event()


@tool
def count(chapters: list[str], ctx: ToolContext) -> str:
    """Count chapters. A plain `def` may block: it runs in a thread of its own."""
    assert threading.current_thread() is not threading.main_thread()
    trio.from_thread.run(ctx.update, "half")
    return f"counted {len(chapters)} chapters of {len(set(chapters))}"


@tool(cancellable="cooperative", timeout=0.05)
def patience() -> None:
    """Wait for something that never comes, but look whether anyone still wants to know."""
    try:
        while True:
            trio.from_thread.check_cancelled()
            threading.Event().wait(0.01)
    finally:
        stopped.set()


async def main() -> None:
    scripted = ScriptedModel(
        [Answer(calls=[tool_call("count", chapters=["a", "b"])]), Answer(calls=[tool_call("patience")]), "Done."]
    )
    agent = Agent(scripted.model, tools=[count, patience], stream_fn=scripted)

    async with agent.run("Go.") as run:
        async for event in run:
            match event:
                case ToolExecutionUpdate(partial_result=ToolResult(content=(TextContent(text=text),))):
                    print("counting:", text)
                case _:
                    pass
    first, second = [message for message in run.result.messages if isinstance(message, ToolResultMessage)]
    print(first.text)
    assert second.is_error
    assert stopped.is_set()
    print(f"{second.tool_name!r} timed out and was told to stop")


trio.run(main)
