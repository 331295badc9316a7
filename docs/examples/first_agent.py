"""An agent with one tool answers a question.

Prints::

    There are 12 pieces of tea.
    2 turns, ended as stop
"""

import trio

from trio_agent import Agent, tool
from trio_agent.testing import Answer, ScriptedModel, tool_call


@tool
async def stock(product: str) -> str:
    """Look up how many pieces of a product are in stock."""
    return f"12 pieces of {product}"


async def main() -> None:
    scripted = ScriptedModel([Answer(calls=[tool_call("stock", product="tea")]), "There are 12 pieces of tea."])
    agent = Agent(scripted.model, system_prompt="You work in a shop.", tools=[stock], stream_fn=scripted)

    result = await agent.prompt("How much tea is left?")
    print(result.text)
    print(f"{result.turns} turns, ended as {result.stop_reason}")


trio.run(main)
