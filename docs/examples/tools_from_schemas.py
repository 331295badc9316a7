"""A tool made of a JSON Schema, such as a server sends it.

Prints::

    search called with {'query': 'tea', 'limit': 5}
    {"hits":["green tea","black tea"]}
"""

import trio

from trio_agent import Agent, JsonObject, Tool, ToolContext, ToolResultMessage
from trio_agent.testing import Answer, ScriptedModel, tool_call


async def search(arguments: JsonObject, ctx: ToolContext) -> JsonObject:
    print(ctx.tool_name, "called with", arguments)
    return {"hits": ["green tea", "black tea"]}


search_tool = Tool(
    name="search",
    description="Search the catalogue.",
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "maximum": 50}},
        "required": ["query"],
    },
    execute=search,
    output_schema={"type": "object", "properties": {"hits": {"type": "array", "items": {"type": "string"}}}},
    timeout=10,
)


async def main() -> None:
    scripted = ScriptedModel([Answer(calls=[tool_call("search", query="tea", limit="5")]), "Two kinds."])
    agent = Agent(scripted.model, tools=[search_tool], stream_fn=scripted)

    result = await agent.prompt("Which teas are there?")
    print(*[message.text for message in result.messages if isinstance(message, ToolResultMessage)])


trio.run(main)
