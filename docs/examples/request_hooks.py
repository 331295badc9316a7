"""Hooks before a request: send only what is needed, bring a key, and go on with a stronger model.

Prints::

    small, key-1, off: 2 messages
    small, key-2, off: 3 messages
    large, key-3, high: 3 messages
"""

from collections.abc import Sequence
from itertools import count

import msgspec
import trio

from trio_agent import Agent, AgentMessage, Hooks, Model, ToolResultMessage, TurnDetails, TurnUpdate, tool
from trio_agent.testing import Answer, ScriptedModel, tool_call

SMALL = Model(id="small", api="scripted", provider="scripted")
LARGE = msgspec.structs.replace(SMALL, id="large", reasoning=True)


@tool
async def look(where: str) -> str:
    """Look somewhere."""
    return f"nothing {where}"


async def newest(messages: Sequence[AgentMessage]) -> Sequence[AgentMessage]:
    """The first two messages and the last one that is no result of a tool, for this request only."""
    kept = [message for message in messages if not isinstance(message, ToolResultMessage)]
    return [*kept[:2], *kept[2:][-1:]]


async def switch(details: TurnDetails) -> TurnUpdate | None:
    found_nothing = sum(result.text.startswith("nothing") for result in details.tool_results)
    return TurnUpdate(model=LARGE, thinking_level="high") if found_nothing > 1 else None


async def main() -> None:
    numbers = count(1)

    async def key(provider: str) -> str:
        return f"key-{next(numbers)}"

    scripted = ScriptedModel(
        [
            Answer(calls=[tool_call("look", where="here")]),
            Answer(calls=[tool_call("look", where="there"), tool_call("look", where="everywhere")]),
            "I give up.",
        ],
    )
    hooks = Hooks(transform_context=newest, get_api_key=key, prepare_next_turn=switch)
    agent = Agent(SMALL, tools=[look], stream_fn=scripted, hooks=hooks)
    await agent.prompt("Where are my keys?")

    for request in scripted.requests:
        options = request.options
        level = options.reasoning or "off"
        print(f"{request.model.id}, {options.api_key}, {level}: {len(request.messages)} messages")


trio.run(main)
