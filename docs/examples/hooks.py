"""Hooks keep a tool from harm, hide a secret, and decide whether a turn was the last one.

Prints::

    asked to go on after: I have read it.
    delete -> error: Only the owner may delete files.
    read -> name: pi, password: ***
    It says that the name is pi.
"""

import trio

from trio_agent import (
    Agent,
    BlockToolCall,
    Hooks,
    TextContent,
    ToolCallDetails,
    ToolResultDetails,
    ToolResultMessage,
    ToolResultPatch,
    TurnDecision,
    TurnDetails,
    tool,
)
from trio_agent.testing import Answer, ScriptedModel, tool_call


@tool
async def read(path: str) -> str:
    """Read a file."""
    return "name: pi, password: 31415"


@tool
async def delete(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


async def guard(details: ToolCallDetails) -> BlockToolCall | None:
    return BlockToolCall("Only the owner may delete files.") if details.tool_call.name == "delete" else None


async def redact(details: ToolResultDetails) -> ToolResultPatch:
    texts = [block.text for block in details.result.content if isinstance(block, TextContent)]
    return ToolResultPatch(content=" ".join(texts).replace("31415", "***"))


async def demand_an_answer(details: TurnDetails) -> TurnDecision:
    if details.message.text == "I have read it.":
        print("asked to go on after:", details.message.text)
        return "continue"
    return None


async def main() -> None:
    scripted = ScriptedModel(
        [
            Answer(calls=[tool_call("delete", path="a.txt"), tool_call("read", path="a.txt")]),
            "I have read it.",
            "It says that the name is pi.",
        ]
    )
    hooks = Hooks(before_tool_call=guard, after_tool_call=redact, finish_turn=demand_an_answer)
    agent = Agent(scripted.model, tools=[read, delete], stream_fn=scripted, hooks=hooks)

    result = await agent.prompt("Clean up.")

    for message in result.messages:
        if isinstance(message, ToolResultMessage):
            print(f"{message.tool_name} -> {'error: ' if message.is_error else ''}{message.text}")
    print(result.text)


trio.run(main)
