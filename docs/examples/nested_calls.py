"""A tool that calls other tools: same hooks, same limits, no events and no messages of their own.

Prints::

    3 found, 1 failed
    checked: ['research', 'fetch', 'fetch', 'fetch', 'fetch']
    results in the transcript: 1
"""

from typing import Literal

import trio

from trio_agent import Agent, Hooks, ToolCallDetails, ToolContext, ToolError, ToolOutcome, ToolResultMessage, tool
from trio_agent.testing import Answer, ScriptedModel, tool_call

Page = Literal["home", "news", "shop", "lost"]


@tool
async def fetch(page: Page) -> str:
    """Fetch a page."""
    if page == "lost":
        raise ToolError("There is no such page.")
    return f"the page {page}"


@tool
async def research(pages: list[Page], ctx: ToolContext) -> str:
    """Fetch pages together and say what came of it."""
    outcomes: list[ToolOutcome] = []

    async def one(page: Page) -> None:
        outcomes.append(await ctx.call_tool("fetch", {"page": page}))

    async with trio.open_nursery() as nursery:
        for page in pages:
            nursery.start_soon(one, page)
    failed = sum(outcome.is_error for outcome in outcomes)
    return f"{len(outcomes) - failed} found, {failed} failed"


async def main() -> None:
    checked: list[str] = []

    async def check(details: ToolCallDetails) -> None:
        checked.append(details.tool_call.name)

    scripted = ScriptedModel(
        [Answer(calls=[tool_call("research", pages=["home", "news", "shop", "lost"])]), "Three pages exist."]
    )
    agent = Agent(
        scripted.model,
        tools=[research, fetch],
        stream_fn=scripted,
        hooks=Hooks(before_tool_call=check),
        # The nested calls share the two slots with their caller, which lends them its own while it waits.
        limiter=trio.CapacityLimiter(2),
    )
    result = await agent.prompt("Which pages exist?")

    results = [message for message in result.messages if isinstance(message, ToolResultMessage)]
    print(results[0].text)
    print("checked:", checked)
    print("results in the transcript:", len(results))


trio.run(main)
