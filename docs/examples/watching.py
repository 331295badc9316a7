"""A run is watched: text as it arrives, and what the tools do.

Prints::

    Let me look.
    [stock {'product': 'tea'} ...]
    [... 12 pieces of tea]
    There are 12 pieces.
    4 messages were logged
"""

import trio

from trio_agent import (
    Agent,
    AgentEvent,
    MessageEnd,
    MessageUpdate,
    TextContent,
    TextDelta,
    TextEnd,
    ToolExecutionEnd,
    ToolExecutionStart,
    tool,
)
from trio_agent.testing import Answer, ScriptedModel, tool_call


@tool
async def stock(product: str) -> str:
    """Look up how many pieces of a product are in stock."""
    return f"12 pieces of {product}"


def show(event: AgentEvent) -> None:
    match event:
        case MessageUpdate(assistant_message_event=TextDelta(delta=delta)):
            print(delta, end="", flush=True)
        case MessageUpdate(assistant_message_event=TextEnd()):
            print()
        case ToolExecutionStart(tool_name=name, args=args):
            print(f"[{name} {args} ...]")
        case ToolExecutionEnd(result=result):
            print(f"[... {' '.join(block.text for block in result.content if isinstance(block, TextContent))}]")
        case _:
            pass


async def main() -> None:
    scripted = ScriptedModel(
        [Answer(text="Let me look. ", calls=[tool_call("stock", product="tea")]), "There are 12 pieces."],
        chunk_size=4,
    )
    agent = Agent(scripted.model, tools=[stock], stream_fn=scripted)
    log: list[AgentEvent] = []

    # A listener is called before any watcher, as long as its subscription is open.
    with agent.subscribe(log.append):
        async with agent.run("How much tea is left?") as run:
            async for event in run:
                show(event)

    print(f"{sum(isinstance(event, MessageEnd) for event in log)} messages were logged")


trio.run(main)
